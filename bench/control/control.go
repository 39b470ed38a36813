// Package control lets the benchmark look into a process that it hosts: what
// the runtime has allocated, and how much memory is really in use once garbage
// is collected. Only processes built for the benchmark serve it: the product has
// no such endpoint, and the benchmark adds one to it with an overlay build.
package control

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/debug"
)

// Memory is a process's view of its own memory.
type Memory struct {
	Mallocs    uint64 `json:"mallocs"`    // objects allocated since the start
	TotalAlloc uint64 `json:"totalAlloc"` // bytes allocated since the start
	Heap       uint64 `json:"heap"`       // bytes of live objects, and garbage unless collected
	Stack      uint64 `json:"stack"`      // bytes of stacks
	Goroutines int    `json:"goroutines"`
}

// pathCollect collects garbage and gives free memory back to the system
// before it answers, pathRead only reads.
const (
	pathRead    = "/memory"
	pathCollect = "/memory/collected"
)

// Serve answers on addr until the process ends, and returns the address it
// listens on.
func Serve(addr string) (string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(pathRead, func(w http.ResponseWriter, _ *http.Request) { answer(w) })
	mux.HandleFunc(pathCollect, func(w http.ResponseWriter, _ *http.Request) {
		runtime.GC() // once to empty the pools' primary caches, once for their victims
		runtime.GC()
		debug.FreeOSMemory()
		answer(w)
	})
	mux.HandleFunc("/profile/cpu", pprof.Profile) // ?seconds=N, for go tool pprof
	mux.Handle("/profile/allocs", pprof.Handler("allocs"))
	mux.Handle("/profile/heap", pprof.Handler("heap"))
	mux.Handle("/profile/goroutine", pprof.Handler("goroutine"))
	go func() { _ = http.Serve(l, mux) }()
	return l.Addr().String(), nil
}

func answer(w http.ResponseWriter) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	_ = json.NewEncoder(w).Encode(Memory{Mallocs: m.Mallocs, TotalAlloc: m.TotalAlloc, Heap: m.HeapAlloc, Stack: m.StackInuse, Goroutines: runtime.NumGoroutine()})
}

// Read asks the process whose control endpoint is at addr, after a garbage
// collection if collect is set.
func Read(addr string, collect bool) (Memory, error) {
	path := pathRead
	if collect {
		path = pathCollect
	}
	var m Memory
	resp, err := http.Get("http://" + addr + path)
	if err != nil {
		return m, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return m, fmt.Errorf("control: status %d", resp.StatusCode)
	}
	return m, json.NewDecoder(resp.Body).Decode(&m)
}
