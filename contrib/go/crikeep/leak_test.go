// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"context"
	"os"
	"runtime"
	"testing"
)

// lifecycles is how many are counted
const lifecycles = 1000

func countFDs(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// heap is what of Go's memory is in use
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// lifecycle opens a cache, has a turn in every state, views and jobs, and closes all
func lifecycle(t *testing.T, w *world) {
	c, err := Open(w.o)
	if err != nil {
		t.Fatal(err)
	}
	var turns []*Turn
	begin := func(name string) *Turn {
		turn, err := c.Begin(background, pod(name))
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, turn)
		return turn
	}
	begin("making").Stage("half way")
	waiting, cancelled := begin("making"), begin("making")
	ended := make(chan struct{})
	go func() {
		waiting.Wait(background)
		close(ended)
	}()
	ctx, cancel := context.WithCancel(background)
	cancel()
	cancelled.Wait(ctx)
	begin("given").Finish(Result{ID: "given"})
	begin("given")
	failed := begin("failed")
	begin("failed")
	failed.Fail(&StatusError{GRPC: 8, Message: "no", Details: []byte{1, 2, 3}})
	begin("lost").Lost()
	kept := begin("kept")
	kept.Leave()
	kept.Finish(Result{ID: "kept"})
	old := ask{pod: "kept", attempt: 1}
	if turn, err := c.Begin(background, old.request()); err == nil {
		turns = append(turns, turn)
	}
	view, err := c.View()
	if err != nil {
		t.Fatal(err)
	}
	view.Hides(Object{Kind: Sandbox, ID: "kept"})
	c.Do(background, pod("done"), func(context.Context, *Turn) (Result, error) { return Result{ID: "done"}, nil })
	c.Entries()
	c.Close()
	<-ended
	for _, turn := range turns {
		turn.Close()
	}
	view.Close()
	eventually(t, "jobs end", func() bool { return live.jobs.Load() == 0 })
	os.RemoveAll(w.o.StateDir)
}

func TestThousandLifecycles(t *testing.T) {
	w := newWorld(t)
	if dir, err := os.MkdirTemp("/dev/shm", "crikeep"); err == nil { // as /run is
		defer os.RemoveAll(dir)
		w.o.StateDir = dir + "/state"
	}
	w.o.Logger = discard
	w.o.Host = plainHost{w}
	run := func(n int) {
		for i := 0; i < n; i++ {
			lifecycle(t, w)
		}
		runtime.GC()

	}
	run(100) // pools fill, threads come
	goroutines, fds, threads, memory, ours := runtime.NumGoroutine(), countFDs(t), status(t, "Threads"), status(t, "RssAnon"), heap()
	run(lifecycles)
	eventually(t, "no goroutine more than before", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := heap(); n > ours+1<<20 {
		t.Errorf("%d bytes of Go's memory, %d before", n, ours)
	}
	if n := countFDs(t); n > fds {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	if n := status(t, "Threads"); n > threads+10 {
		t.Errorf("%d threads, %d before", n, threads)
	}
	if n := status(t, "RssAnon"); n > memory+16<<10 {
		t.Errorf("%d kB of memory, %d before", n, memory)
	}
	if n := live.caches.Load() + live.turns.Load() + live.views.Load() + live.jobs.Load(); n != 0 {
		t.Error("not given back:", n)
	}
}
