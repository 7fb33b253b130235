// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	background = context.Background()
	discard    = slog.New(slog.NewTextHandler(io.Discard, nil))
)

// held is a creation that goes on when it is told to
type held struct {
	begun, goOn, ended chan struct{}
	ctx                context.Context // the creation's
	turn               *Turn
}

func newHeld() *held {
	return &held{begun: make(chan struct{}), goOn: make(chan struct{}), ended: make(chan struct{})}
}

func (h *held) creation(f func() (Result, error)) func(context.Context, *Turn) (Result, error) {
	return func(ctx context.Context, t *Turn) (Result, error) {
		h.ctx, h.turn = ctx, t
		close(h.begun)
		<-h.goOn
		defer close(h.ended)
		return f()
	}
}

type answer struct {
	reply Reply
	err   error
}

// begin calls Do in a goroutine, and returns when it makes or waits
func (w *world) begin(c *Cache, ctx context.Context, a ask, create func(context.Context, *Turn) (Result, error)) chan answer {
	ch := make(chan answer, 1)
	go func() {
		reply, err := c.Do(ctx, a.request(), create)
		ch <- answer{reply, err}
	}()
	return ch
}

func never(context.Context, *Turn) (Result, error) { panic("it is made twice") }

// waiting returns when an entry has been asked for n times
func (w *world) waiting(c *Cache, n uint32) {
	w.t.Helper()
	eventually(w.t, "everybody has asked", func() bool {
		sum := uint32(0)
		for _, e := range must[[]Entry](w.t)(c.Entries()) {
			sum += e.Requests
		}
		return sum >= n
	})
}

func TestDoInTime(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "web-0"}
	reply := must[Reply](t)(c.Do(background, a.request(), w.maker(a)))
	if reply.ID != "sandbox-1" || len(reply.Bytes) == 0 {
		t.Fatal(reply)
	}
	again := must[Reply](t)(c.Do(background, a.request(), never))
	if again.ID != reply.ID || !bytes.Equal(again.Bytes, reply.Bytes) {
		t.Fatal(again)
	}
	w.until("it is said to be committed", func() bool { return len(w.committed) == 1 })
	if e := w.committed[0]; e.ID != "sandbox-1" || e.PodName != "web-0" || e.PodUID != "uid-web-0" || e.Kind != Sandbox {
		t.Fatal(e)
	}
}

func TestDoGivesTheRepliesBytesAsTheyAre(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	want := []byte{10, 1, 'x', 0, 255}
	reply := must[Reply](t)(c.Do(background, pod("a"), func(context.Context, *Turn) (Result, error) {
		return Result{ID: "x", Reply: want}, nil
	}))
	if !bytes.Equal(reply.Bytes, want) {
		t.Fatal(reply)
	}
}

func TestDoLate(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "web-0"}
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(background, key{}, "trace"))
	h := newHeld()
	ch := w.begin(c, ctx, a, h.creation(func() (Result, error) { return w.make(a) }))
	<-h.begun
	if err := h.turn.Stage("sandbox network creation"); err != nil {
		t.Error(err)
	}
	cancel()
	wantErr(t, (<-ch).err, context.Canceled)
	if h.ctx.Err() != nil || h.ctx.Value(key{}) != "trace" {
		t.Error("the creation's context ended with its caller's, or has not its values")
	}
	if e := must[[]Entry](t)(c.Entries()); len(e) != 1 || e[0].State != StateCreating || e[0].Stage != "sandbox network creation" {
		t.Error(e)
	}
	close(h.goOn)
	<-h.ended
	if reply := must[Reply](t)(c.Do(background, a.request(), never)); reply.ID != "sandbox-1" {
		t.Fatal(reply)
	}
}

func TestDoJoins(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "web-0"}
	h := newHeld()
	first := w.begin(c, background, a, h.creation(func() (Result, error) { return w.make(a) }))
	<-h.begun
	second := w.begin(c, background, a, never)
	w.waiting(c, 2)
	close(h.goOn)
	for _, ch := range []chan answer{first, second} {
		if got := <-ch; got.err != nil || got.reply.ID != "sandbox-1" {
			t.Error(got)
		}
	}
}

func TestDoFailureReachesAll(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	own := errors.New("the runtime's own")
	for name, err := range map[string]error{
		"a status":           &StatusError{GRPC: 8, Message: "no addresses", Details: []byte{1, 0, 2}},
		"a wrapped status":   fmt.Errorf("net: %w", &StatusError{GRPC: 8, Message: "no addresses", Details: []byte{1, 0, 2}}),
		"a status of gRPC's": foreign{&foreignStatusText{8, "no addresses"}},
		"another":            own,
	} {
		a := ask{pod: "web-0"}
		h := newHeld()
		first := w.begin(c, background, a, h.creation(func() (Result, error) { return Result{}, err }))
		<-h.begun
		second := w.begin(c, background, a, never)
		w.waiting(c, 2)
		close(h.goOn)
		if got := <-first; got.err != err {
			t.Errorf("%s: the creator hears %v", name, got.err)
		}
		var status *StatusError
		got := <-second
		if !errors.As(got.err, &status) || status.GRPC != GRPCCode(err) || !errors.Is(got.err, ErrFailed) {
			t.Errorf("%s: who waits hears %v", name, got.err)
		}
		var want *StatusError
		if errors.As(err, &want) && !bytes.Equal(status.Details, want.Details) {
			t.Errorf("%s: details are lost: %v", name, status)
		}
		text := err.Error()
		if f, ok := err.(foreign); ok {
			text = f.s.text
		}
		if status.Message != text {
			t.Errorf("%s: %q, not %q", name, status.Message, text)
		}
	}
	a := ask{pod: "web-0"} // and the key is free
	if reply := must[Reply](t)(c.Do(background, a.request(), w.maker(a))); reply.ID != "sandbox-1" {
		t.Error(reply)
	}
}

// the end is open, and the host's list tells (K8)
func TestDoLostIsFound(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "web-0"}
	reply := must[Reply](t)(c.Do(background, a.request(), func(context.Context, *Turn) (Result, error) {
		w.make(a)
		return Result{}, fmt.Errorf("the shim said nothing more: %w", ErrLost)
	}))
	if reply.ID != "sandbox-1" || w.made != 1 {
		t.Fatal(reply, w.made)
	}
}

// absent for five seconds, it is asked for again (K8)
func TestDoLostIsMadeAgain(t *testing.T) {
	w := newWorld(t).clock()
	c := w.open()
	a := ask{pod: "web-0"}
	calls := make(chan bool, 2)
	again := false
	ch := w.begin(c, background, a, func(ctx context.Context, turn *Turn) (Result, error) {
		calls <- again
		if !again {
			again = true
			return Result{}, context.DeadlineExceeded
		}
		return w.make(a)
	})
	if <-calls {
		t.Error("the first call is not the second")
	}
	eventually(t, "it is asked for again", func() bool {
		select {
		case again := <-calls:
			return again
		default:
			w.tick(c)
			return false
		}
	})
	if got := <-ch; got.err != nil || got.reply.ID != "sandbox-1" {
		t.Fatal(got)
	}
}

// another attempt has been asked for (K9)
func TestDoAbandoned(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	old, next := ask{pod: "web-0"}, ask{pod: "web-0", attempt: 1}
	h := newHeld()
	first := w.begin(c, background, old, h.creation(func() (Result, error) { return w.make(old) }))
	<-h.begun
	second := w.begin(c, background, next, w.maker(next))
	got := <-first
	wantErr(t, got.err, ErrAbandoned)
	<-h.ctx.Done()
	wantErr(t, context.Cause(h.ctx), ErrAbandoned)
	<-h.turn.Abandoned()
	close(h.goOn)
	if got := <-second; got.err != nil || got.reply.ID != "sandbox-2" {
		t.Fatal(got)
	}
	w.until("the first is destroyed", func() bool { return len(w.destroyed) == 1 && w.destroyed[0] == "sandbox-1" })
}

func TestDoConflict(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "a", sandbox: "s", container: "c", env: "one"}
	must[Reply](t)(c.Do(background, a.request(), w.maker(a)))
	a.env = "hunter2"
	_, err := c.Do(background, a.request(), never)
	wantErr(t, err, ErrConflict)
	if !strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestDoKeyOnly(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "a", label: "x"}
	must[Reply](t)(c.Do(background, a.request(), w.maker(a)))
	r := pod("a")
	r.KeyOnly = true
	if reply := must[Reply](t)(c.Do(background, r, never)); reply.ID != "sandbox-1" {
		t.Error(reply)
	}
}

// the clock stands still, so that the caller's own context does not end before the cache says that
// its time is up
func TestDoBusyAndKept(t *testing.T) {
	w := newWorld(t).clock()
	c := w.open()
	a := ask{pod: "web-0"}
	ctx, cancel := context.WithTimeout(background, time.Hour)
	defer cancel()
	h := newHeld()
	first := w.begin(c, ctx, a, h.creation(func() (Result, error) { return w.make(a) }))
	<-h.begun
	h.turn.Stage("sandbox network creation")
	second := w.begin(c, ctx, a, never)
	w.waiting(c, 2)
	w.advance(c, time.Hour)
	got := <-second
	wantErr(t, got.err, ErrBusy, ErrUnavailable)
	if !strings.Contains(got.err.Error(), "sandbox network creation") {
		t.Error(got.err)
	}
	close(h.goOn)
	wantErr(t, (<-first).err, ErrKept, ErrUnavailable)
}

func TestDoExpired(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err := c.Do(ctx, pod("a"), never)
	wantErr(t, err, context.Canceled)
	_, err = c.Begin(ctx, pod("a"))
	wantErr(t, err, ErrDeadline, context.DeadlineExceeded)
	r := pod("a")
	r.Expired = true
	_, err = c.Do(background, r, never)
	wantErr(t, err, ErrDeadline)
}

func TestDoWrongRequests(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	for _, r := range []Request{{}, {Kind: Sandbox}, {Kind: 3, Bytes: pod("a").Bytes}, {Kind: Sandbox, Bytes: []byte("\xff\xff")},
		{Kind: -1, Bytes: pod("a").Bytes}} {
		if _, err := c.Do(background, r, never); !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", r, err)
		}
	}
	_, err := c.Do(background, Request{Kind: Sandbox, Bytes: make([]byte, 16<<20+1)}, never)
	wantErr(t, err, ErrTooBig)
	_, err = c.Do(background, pod("a"), func(context.Context, *Turn) (Result, error) { return Result{ID: "a\x00b"}, nil })
	wantErr(t, err, ErrInvalid)
}

func TestDoPanics(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	cause := errors.New("the cause")
	var p *Panic
	func() {
		defer func() { p, _ = recover().(*Panic) }()
		c.Do(background, pod("a"), func(context.Context, *Turn) (Result, error) { panic(cause) })
	}()
	if p == nil || !errors.Is(p, cause) || !strings.Contains(p.Error(), "TestDoPanics") {
		t.Fatal("it did not reach the caller:", p)
	}
	if e := must[[]Entry](t)(c.Entries()); len(e) != 1 || !e[0].Lost {
		t.Error("the end is not open:", e)
	}

	ctx, cancel := context.WithCancel(background)
	h := newHeld()
	ch := w.begin(c, ctx, ask{pod: "b"}, h.creation(func() (Result, error) { panic("nobody is there") }))
	<-h.begun
	cancel()
	<-ch
	close(h.goOn)
	w.logged("nobody is there")
}

func TestDoGoexit(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	var ended sync.WaitGroup
	ended.Add(1)
	go func() {
		defer ended.Done()
		c.Do(background, pod("a"), func(context.Context, *Turn) (Result, error) {
			runtime.Goexit()
			return Result{}, nil
		})
		t.Error("Do went on")
	}()
	ended.Wait()
}

func TestDoClose(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	h := newHeld()
	first := w.begin(c, background, ask{pod: "a"}, h.creation(func() (Result, error) { return Result{ID: "late"}, nil }))
	<-h.begun
	second := w.begin(c, background, ask{pod: "a"}, never)
	w.waiting(c, 2)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, (<-first).err, ErrClosed)
	wantErr(t, (<-second).err, ErrClosed)
	<-h.ctx.Done()
	wantErr(t, context.Cause(h.ctx), ErrClosed)
	close(h.goOn)
	<-h.ended
	_, err := c.Do(background, pod("a"), never)
	wantErr(t, err, ErrClosed)
}
