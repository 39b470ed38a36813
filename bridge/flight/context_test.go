package flight

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Context{}
		ran := make(chan string, 9)
		note := func(name string) func() { return func() { ran <- name } }
		stopFirst := c.AfterFunc(note("first"))
		stopSecond := context.AfterFunc(c, note("second"))
		context.AfterFunc(c, note("third"))
		child, cancelChild := context.WithCancel(c)
		defer cancelChild()

		if !stopFirst() || stopFirst() || c.Err() != nil {
			t.Fatal("the first could not be stopped")
		}
		if !stopSecond() {
			t.Fatal("the second could not be stopped")
		}
		c.Cancel()
		c.Cancel()
		synctest.Wait()
		if len(ran) != 1 || <-ran != "third" {
			t.Fatal("a stopped function ran, or the other did not")
		}
		<-c.Done()
		<-child.Done()
		if c.Err() != context.Canceled || stopSecond() {
			t.Fatal("not cancelled")
		}
		if c.AfterFunc(note("late"))() {
			t.Fatal("stopped after the end")
		}
		if synctest.Wait(); <-ran != "late" {
			t.Fatal("a late function did not run")
		}
	})
}

func TestContextStopsOnce(t *testing.T) {
	c := &Context{}
	stop := c.AfterFunc(func() { t.Error("ran") })
	if !stop() {
		t.Fatal("not stopped")
	}
	c.Cancel()
	if stop() {
		t.Fatal("stopped twice")
	}
}
