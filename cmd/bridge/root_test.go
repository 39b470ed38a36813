package main

import "testing"

// Who misspells a command or a flag is told of the nearest one, as of settings in a file.
func TestMisspeltCommandsAndFlagsAreRecognised(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"serv"}, "no command \"serv\"; did you mean \"serve\"? `bridge --help` lists them"},
		{[]string{"server"}, "no command \"server\"; did you mean \"serve\"? `bridge --help` lists them"},
		{[]string{"frobnicate"}, "no command \"frobnicate\"; `bridge --help` lists them"},
		{[]string{"config", "valdate"}, "no command \"valdate\"; did you mean \"validate\"? `bridge config --help` lists them"},
		{[]string{"config", "defaults", "x"}, "`bridge config defaults` takes no argument, but got \"x\""},
		{[]string{"serve", "--upstrem", "x"}, "unknown flag: --upstrem; did you mean \"--upstream\"? `bridge serve --help` lists the flags"},
		{[]string{"serve", "--timeouts.flw", "1s"}, "unknown flag: --timeouts.flw; did you mean \"--timeouts.flow\"? `bridge serve --help` lists the flags"},
		{[]string{"serve", "--frobnicate"}, "unknown flag: --frobnicate; `bridge serve --help` lists the flags"},
		{[]string{"serve", "-x"}, "unknown shorthand flag: 'x' in -x; `bridge serve --help` lists the flags"},
	} {
		if err := fails(t, nil, test.args...); err.Error() != test.want || exitCode(err) != exitUsage {
			t.Errorf("%q: %v", test.args, err)
		}
	}
}
