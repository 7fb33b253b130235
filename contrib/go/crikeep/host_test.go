// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// late has something kept, without an awaiting caller
func (w *world) late(c *Cache, a ask) {
	w.t.Helper()
	turn := w.creating(c, a.request())
	turn.Leave()
	if o := must[Outcome](w.t)(turn.Finish(must[Result](w.t)(w.make(a)))); o != Kept {
		w.t.Fatal(o)
	}
	turn.Close()
}

// a destroy is tried again until it is confirmed, whatever it said, and even if it panicked (K17,
// K18)
func TestDestroyUntilConfirmed(t *testing.T) {
	w := newWorld(t).clock()
	tries := make(chan int, 100)
	n := 0
	answers := []error{errors.New("plain"), ErrBusy, &StatusError{GRPC: 14}, context.Canceled, nil}
	w.fail = func(call string) error {
		if call != "destroy" {
			return nil
		}
		w.mu.Lock()
		n++
		i := n - 1
		w.mu.Unlock()
		tries <- i + 1
		if i == 2 {
			panic("destroy panics")
		}
		return answers[i]
	}
	c := w.open()
	w.late(c, ask{pod: "a"})
	next := ask{pod: "a", attempt: 1}
	must[*Turn](t)(c.Begin(background, next.request())).Close()
	eventually(t, "it was tried often enough", func() bool {
		select {
		case try := <-tries:
			return try == len(answers)
		default:
			w.advance(c, 10*time.Second)
			return false
		}
	})
	w.until("it is destroyed", func() bool { return len(w.destroyed) == 1 })
	w.logged("destroy panics")
	w.logged("TestDestroyUntilConfirmed") // the stack
}

func TestDestroyNotFoundConfirms(t *testing.T) {
	for _, err := range []error{ErrNotFound, fmt.Errorf("x: %w", &StatusError{GRPC: 5}), foreign{&foreignStatusText{5, "none"}},
		fmt.Errorf("%w: %w", ErrNotFound, &StatusError{GRPC: 13})} {
		w := newWorld(t)
		n := 0
		w.fail = func(call string) error {
			if call != "destroy" {
				return nil
			}
			w.change(func() { n++ })
			return err
		}
		c := w.open()
		w.late(c, ask{pod: "a"})
		must[*Turn](t)(c.Begin(background, ask{pod: "a", attempt: 1}.request())).Close()
		w.until("it was tried", func() bool { return n == 1 })
		eventually(t, "it is gone", func() bool {
			for _, e := range must[[]Entry](t)(c.Entries()) {
				if e.ID == "sandbox-1" {
					return false
				}
			}
			return true
		})
		c.Close()
	}
}

// a job has to be ended even after Close, and what it is about has its names
func TestDestroyAfterClose(t *testing.T) {
	w := newWorld(t)
	host := &stuckHost{world: w, called: make(chan Entry, 1), goOn: make(chan struct{})}
	w.o.Host = host
	c := w.open()
	w.late(c, ask{pod: "a"})
	must[*Turn](t)(c.Begin(background, ask{pod: "a", attempt: 1}.request())).Close()
	e := <-host.called
	if e.ID != "sandbox-1" || e.PodName != "a" || e.PodUID != "uid-a" || e.Kind != Sandbox || e.Number == 0 {
		t.Error(e)
	}
	c.Close()
	if live.jobs.Load() == 0 {
		t.Error("no job is under way")
	}
	close(host.goOn)
	eventually(t, "the job ends", func() bool { return live.jobs.Load() == 0 })
	if host.ctx.Err() == nil || context.Cause(host.ctx) != ErrClosed {
		t.Error("its context goes on")
	}
}

type stuckHost struct {
	*world
	called chan Entry
	goOn   chan struct{}
	ctx    context.Context
}

func (h *stuckHost) Destroy(ctx context.Context, e Entry) error {
	h.ctx = ctx
	h.called <- e
	<-h.goOn
	return nil
}

// a kept result is asked after before it is handed back (K6)
func TestInspect(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "a"}
	w.late(c, a)
	w.change(func() {
		o := w.objects["sandbox-1"]
		o.Condition = Dead
		w.objects["sandbox-1"] = o
	})
	reply := must[Reply](t)(c.Do(background, a.request(), w.maker(a)))
	if reply.ID != "sandbox-2" || len(w.destroyed) != 1 {
		t.Error(reply, w.destroyed)
	}

	b := ask{pod: "b"} // a question that fails means nothing, nor one that panics; it is asked again
	w.late(c, b)
	n := 0
	w.fail = func(call string) error {
		if call != "inspect" {
			return nil
		}
		w.mu.Lock()
		n++
		i := n
		w.mu.Unlock()
		switch i {
		case 1:
			return errors.New("not now")
		case 2:
			panic("inspect panics")
		}
		return nil
	}
	if reply := must[Reply](t)(c.Do(background, b.request(), never)); reply.ID != "sandbox-3" {
		t.Error(reply)
	}
}

// until the first lists have succeeded, nobody is served (K24)
func TestListAtTheStart(t *testing.T) {
	w := newWorld(t).clock()
	lists := 0
	w.fail = func(call string) error {
		if call != "list" {
			return nil
		}
		w.mu.Lock()
		lists++
		i := lists
		w.mu.Unlock()
		switch {
		case i == 1:
			panic("list panics")
		case i < 6:
			return errors.New("not now")
		}
		return nil
	}
	w.objects["old"] = Object{Kind: Sandbox, Condition: Ready, ID: "old", PodName: "o", PodNamespace: "ns", PodUID: "u",
		CreatedAt: time.Unix(1, 0)}
	c := w.open()
	if c.Reconciled() {
		t.Error("a list that failed is a list")
	}
	ch := w.begin(c, background, ask{pod: "a"}, w.maker(ask{pod: "a"}))
	eventually(t, "the lists succeed", func() bool {
		w.advance(c, time.Second)
		return c.Reconciled()
	})
	if got := <-ch; got.err != nil {
		t.Error(got.err)
	}
	if all := must[[]Entry](t)(c.Entries()); len(all) != 2 || all[0].ID != "old" || all[0].State != StateCommitted {
		t.Error(all)
	}
}

// plainHost has none of the optional methods
type plainHost struct{ w *world }

func (h plainHost) Destroy(ctx context.Context, e Entry) error {
	return h.w.Destroy(ctx, e)
}

func TestHostWithDestroyOnly(t *testing.T) {
	w := newWorld(t)
	w.o.Host = plainHost{w}
	c := w.open()
	if !c.Reconciled() {
		t.Error("there is nothing to list")
	}
	a := ask{pod: "a"}
	w.late(c, a)
	if reply := must[Reply](t)(c.Do(background, a.request(), never)); reply.ID != "sandbox-1" {
		t.Error(reply)
	}
}

// in order, by one goroutine, and it may call back
func TestCommitted(t *testing.T) {
	w := newWorld(t)
	host := &committedHost{world: w}
	w.o.Host = host
	c := w.open()
	host.c = c
	var makers sync.WaitGroup
	for i := 0; i < 50; i++ {
		a := ask{pod: fmt.Sprint("pod-", i)}
		makers.Add(1)
		go func() {
			defer makers.Done()
			must[Reply](t)(c.Do(background, a.request(), w.maker(a)))
		}()
	}
	makers.Wait()
	w.until("all are said to be committed", func() bool { return len(w.committed) == 50 })
	seen := map[string]bool{}
	for _, e := range w.committed {
		seen[e.ID] = true
	}
	if len(seen) != 50 {
		t.Error("some twice:", len(seen))
	}
}

type committedHost struct {
	*world
	c *Cache
}

func (h *committedHost) Committed(e Entry) {
	if e.PodName == "pod-7" {
		defer func() {
			if recover() != nil {
				h.world.Committed(e)
				panic("Committed panics")
			}
		}()
		panic("first")
	}
	if err := h.c.ObjectUsed(e.Kind, e.ID); err != nil {
		h.t.Error(err)
	}
	h.world.Committed(e)
}

// one image under two references (E5)
func TestResolveImage(t *testing.T) {
	w := newWorld(t)
	host := imageHost{w, new(atomic.Int32)}
	w.o.Host = host
	c := w.open()
	request := func(image string) Request {
		r := ask{pod: "a", sandbox: "s", container: "c"}
		metadata := pb{}.text(1, string(pb{}.text(1, "c")))
		config := metadata.text(2, string(pb{}.text(1, image)))
		pod := pb{}.text(1, string(pb{}.text(1, "a").text(2, "uid-a").text(3, "ns")))
		return Request{Kind: Container, Bytes: pb{}.text(1, r.sandbox).text(2, string(config)).text(3, string(pod))}
	}
	made := 0
	maker := func(context.Context, *Turn) (Result, error) {
		made++
		// what is not known when the turn ends is not known later
		eventually(t, "its image is known", func() bool { return host.asked.Load() > 0 && live.jobs.Load() == 0 })
		return Result{ID: "x"}, nil
	}
	must[Reply](t)(c.Do(background, request("busybox:1"), maker))
	must[Reply](t)(c.Do(background, request("sha256:0123"), maker))
	if made != 1 {
		t.Error("two references of one image are two containers")
	}
	if _, err := c.Do(background, request("other"), maker); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
}

type imageHost struct {
	*world
	asked *atomic.Int32
}

func (h imageHost) ResolveImage(_ context.Context, image string) (string, error) {
	h.asked.Add(1)
	if image == "other" {
		return "sha256:4567", nil
	}
	return "sha256:0123", nil
}

func (h imageHost) Inspect(context.Context, Entry) (Condition, error) { return Ready, nil }

// no value of a request in a log, an error or a file
func TestSecretsStayWhereTheyAre(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "a", sandbox: "s", container: "c", env: secret}
	h := newHeld()
	first := w.begin(c, background, a, h.creation(func() (Result, error) {
		return Result{}, errors.New("cannot start with SECRET=" + secret)
	}))
	<-h.begun
	h.turn.Stage("starting with " + secret)
	if e := must[[]Entry](t)(c.Entries()); strings.Contains(e[0].Stage, secret) {
		t.Error(e[0].Stage)
	}
	close(h.goOn)
	<-first
	w.late(c, a)
	a.env = "another-" + secret
	must[*Turn](t)(c.Begin(background, a.request())).Close()
	c.Close()
	if strings.Contains(w.logs.String(), secret) || w.logs.String() == "" {
		t.Error(w.logs.String())
	}
	files := 0
	filepath.Walk(w.o.StateDir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			files++
			b, _ := os.ReadFile(path)
			if strings.Contains(string(b), secret) {
				t.Error("it is in", path)
			}
		}
		return nil
	})
	if files == 0 {
		t.Error("no file was looked at")
	}
}

// a Logger may change its level at any time, and C makes no line that it drops
func TestLogLevel(t *testing.T) {
	w := newWorld(t)
	var level slog.LevelVar
	w.o.Logger = slog.New(slog.NewTextHandler(&w.logs, &slog.HandlerOptions{Level: &level}))
	c := w.open()
	lines := func(pod string) int {
		a := ask{pod: pod}
		must[Reply](t)(c.Do(background, a.request(), w.maker(a)))
		return int(c.logLevel.Load())
	}
	quiet := lines("quiet")
	level.Set(slog.LevelDebug)
	if loud := lines("loud"); loud <= quiet {
		t.Errorf("C makes lines up to level %d, and for debugging up to level %d", quiet, loud)
	}
	w.logged("loud attempt 0: creation begun")
	level.Set(slog.LevelInfo)
	if again := lines("again"); again != quiet {
		t.Errorf("C makes lines up to level %d again, not %d", again, quiet)
	}
	if strings.Contains(w.logs.String(), "quiet") || strings.Contains(w.logs.String(), "again") {
		t.Error(w.logs.String())
	}
}
