package main

import (
	"runtime"
	"slices"
	"strings"
)

// everyProgram needs these variables to find its files, its terminal and its
// language. None of them is a secret.
var everyProgram = []string{
	"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_*",
}

// everyWindowsProgram needs these on Windows, where names have no case.
var everyWindowsProgram = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA",
	"PROGRAMFILES*", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// environment returns what a command is given of the bridge's own environment: what
// every program needs, and what the setting command-env lists.
func environment(own, listed []string) []string {
	wanted := slices.Clone(everyProgram)
	if runtime.GOOS == "windows" {
		wanted = append(wanted, everyWindowsProgram...)
	}
	var set []string
	for _, entry := range listed {
		if strings.Contains(entry, "=") {
			set = append(set, entry)
		} else {
			wanted = append(wanted, entry)
		}
	}
	given := []string{}
	for _, variable := range own {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(fold(name), "BRIDGE_") && slices.ContainsFunc(wanted, func(w string) bool { return matches(w, name) }) {
			given = append(given, variable)
		}
	}
	return append(given, set...)
}

// matches reports whether a variable is one of those that an entry names.
func matches(entry, name string) bool {
	if prefix, all := strings.CutSuffix(entry, "*"); all {
		return strings.HasPrefix(fold(name), fold(prefix))
	}
	return fold(name) == fold(entry)
}

// fold is a name as the system compares it.
func fold(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}
