package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/report"
)

// profile takes a CPU profile of the bridge while a closed loop runs against
// it, if profiles are wanted. What it returns tells the outcome once.
func (c *comparison) profile(sys *system, kind load.Kind, round int) <-chan error {
	done := make(chan error, 1)
	if c.cpu == "" || sys.name != report.Bridge {
		done <- nil
		return done
	}
	file := filepath.Join(c.cpu, fmt.Sprintf("%s-%d.pprof", kind, round+1))
	url := fmt.Sprintf("http://%s/profile/cpu?seconds=%d", sys.under.Control, max(1, int(c.window.Seconds())))
	go func() { done <- download(url, file) }()
	return done
}

// download keeps what an address answers in a file.
func download(url, file string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
