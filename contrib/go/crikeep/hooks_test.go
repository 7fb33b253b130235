// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// recorder are hooks that write down what they hear
type recorder struct {
	w      *world
	inside func() // called from Choose
	fire   func(ctx context.Context, event HookEvent, e Entry) ([]string, string)
	choose func(e Entry) ([]string, string)

	mu    sync.Mutex
	heard []string
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	r.heard = append(r.heard, fmt.Sprintf(format, args...))
	r.mu.Unlock()
}

func (r *recorder) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.heard, ", ")
}

func (r *recorder) until(t *testing.T, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("heard %q, not %q", r.all(), want), func() bool { return r.all() == want })
}

func (r *recorder) Choose(e Entry) ([]string, string) {
	r.note("choose %s", e.ID)
	if r.inside != nil {
		r.inside()
	}
	if r.choose != nil {
		return r.choose(e)
	}
	return []string{"10-a", "20-b"}, ""
}

func (r *recorder) Fire(ctx context.Context, event HookEvent, e Entry) ([]string, string) {
	r.note("%s %s", event, e.ID)
	if r.fire != nil {
		return r.fire(ctx, event, e)
	}
	return e.Told, ""
}

func (r *recorder) Cancel(entry uint64)         { r.note("cancel") }
func (r *recorder) Released(e Entry, gone bool) { r.note("released %s %v", e.ID, gone) }

func newHooked(t *testing.T) (*world, *recorder) {
	w := newWorld(t)
	r := &recorder{w: w}
	w.o.Hooks = r
	return w, r
}

func TestHooksInOrder(t *testing.T) {
	w, r := newHooked(t)
	var told []string
	r.fire = func(_ context.Context, event HookEvent, e Entry) ([]string, string) {
		told = e.Told
		return e.Told, ""
	}
	c := w.open()
	a := ask{pod: "a"}
	must[Reply](t)(c.Do(background, a.request(), w.maker(a)))
	r.until(t, "choose sandbox-1, run sandbox-1")
	if fmt.Sprint(told) != "[10-a 20-b]" {
		t.Error(told)
	}
	var snapshot []Entry
	if err := c.Snapshot(func(e Entry) error { snapshot = append(snapshot, e); return nil }); err != nil {
		t.Error(err)
	}
	if len(snapshot) != 1 || snapshot[0].ID != "sandbox-1" || fmt.Sprint(snapshot[0].Told) != "[10-a 20-b]" {
		t.Error(snapshot)
	}
	b := must[*Turn](t)(c.Begin(background, pod("b"))) // which nobody has heard of
	defer b.Close()
	if e := must[[]Entry](t)(c.Entries()); len(e) != 2 || !e[0].Known || e[1].Known {
		t.Error(e)
	}
	if err := c.ObjectRemoved(Sandbox, "sandbox-1"); err != nil {
		t.Error(err)
	}
	r.until(t, "choose sandbox-1, run sandbox-1, released sandbox-1 true")
}

func TestHooksRefuse(t *testing.T) {
	w, r := newHooked(t)
	r.fire = func(_ context.Context, event HookEvent, e Entry) ([]string, string) {
		if event == HookRun {
			return e.Told, "plugin 10-a: over quota"
		}
		return e.Told, ""
	}
	c := w.open()
	_, err := c.Do(background, pod("a"), w.maker(ask{pod: "a"}))
	wantErr(t, err, ErrRefused)
	if !strings.Contains(err.Error(), "plugin 10-a: over quota") {
		t.Error(err)
	}
	r.until(t, "choose sandbox-1, run sandbox-1, stop sandbox-1, remove sandbox-1, released sandbox-1 true")
	if len(w.destroyed) != 1 {
		t.Error(w.destroyed)
	}
}

func TestHooksAbsent(t *testing.T) {
	w, r := newHooked(t)
	absent := "30-required"
	r.choose = func(Entry) ([]string, string) { return nil, absent }
	c := w.open()
	_, err := c.Do(background, pod("a"), w.maker(ask{pod: "a"}))
	wantErr(t, err, ErrUnavailable)
	if !strings.Contains(err.Error(), "30-required") {
		t.Error(err)
	}
	absent = ""
	if reply := must[Reply](t)(c.Do(background, pod("a"), never)); reply.ID != "sandbox-1" {
		t.Error(reply)
	}
}

// a name that cannot be written down is nobody's
func TestHooksTooManyNames(t *testing.T) {
	for _, name := range []string{strings.Repeat("long", 100000), "a\x00b"} {
		w, r := newHooked(t)
		r.choose = func(Entry) ([]string, string) { return []string{name}, "" }
		c := w.open()
		_, err := c.Do(background, pod("a"), w.maker(ask{pod: "a"}))
		wantErr(t, err, ErrUnavailable)
	}
}

// a commit that is undone while plugins are being told (K13)
func TestHooksCancel(t *testing.T) {
	w, r := newHooked(t)
	running, goOn := make(chan struct{}), make(chan struct{})
	r.fire = func(_ context.Context, event HookEvent, e Entry) ([]string, string) {
		if event == HookRun && e.ID == "sandbox-1" {
			close(running)
			<-goOn
		}
		return e.Told, ""
	}
	c := w.open()
	first := w.begin(c, background, ask{pod: "a"}, w.maker(ask{pod: "a"}))
	<-running
	next := ask{pod: "a", attempt: 1}
	second := w.begin(c, background, next, w.maker(next))
	wantErr(t, (<-first).err, ErrAbandoned)
	r.until(t, "choose sandbox-1, run sandbox-1, cancel")
	close(goOn)
	if got := <-second; got.err != nil || got.reply.ID != "sandbox-2" {
		t.Error(got)
	}
	if !strings.HasPrefix(r.all(), "choose sandbox-1, run sandbox-1, cancel, stop sandbox-1") {
		t.Error(r.all())
	}
}

// what runs inside the library may not call it
func TestHooksCallBack(t *testing.T) {
	w, r := newHooked(t)
	c := w.open()
	turn := w.creating(c, pod("other"))
	view := must[*View](t)(c.View())
	defer view.Close()
	calls := map[string]func() error{
		"Close":      c.Close,
		"Begin":      func() error { _, err := c.Begin(background, pod("b")); return err },
		"Do":         func() error { _, err := c.Do(background, pod("b"), never); return err },
		"Remove":     func() error { return c.Remove(background, Sandbox, "x", nil) },
		"Entries":    func() error { _, err := c.Entries(); return err },
		"Snapshot":   func() error { return c.Snapshot(func(Entry) error { return nil }) },
		"Removed":    func() error { return c.ObjectRemoved(Sandbox, "x") },
		"View":       func() error { _, err := c.View(); return err },
		"Hides":      func() error { _, err := view.Hides(Object{Kind: Sandbox, ID: "x"}); return err },
		"View.Close": view.Close,
		"Wait":       func() error { _, err := turn.Wait(background); return err },
		"Finish":     func() error { _, err := turn.Finish(Result{ID: "y"}); return err },
		"Turn.Close": turn.Close,
		"Open":       func() error { _, err := Open(Options{Host: w, StateDir: w.dir + "/two"}); return err },
	}
	asked := 0
	inside := func() {
		for name, call := range calls {
			if err := call(); !errors.Is(err, ErrDeadlock) {
				t.Errorf("%s: %v", name, err)
			}
			asked++
		}
		turn.Leave() // does nothing
		if c.Step() >= 0 || c.Reconciled() {
			t.Error("it does something")
		}
	}
	r.inside = inside
	must[Reply](t)(c.Do(background, pod("a"), w.maker(ask{pod: "a"})))
	r.inside = nil
	if err := c.Snapshot(func(Entry) error { inside(); return nil }); err != nil {
		t.Error(err)
	}
	if asked != 2*len(calls) {
		t.Error("nobody asked")
	}
	if o := must[Outcome](t)(turn.Finish(Result{ID: "y"})); o != Wait {
		t.Error("it did something:", o)
	}
}

func TestSnapshotEnds(t *testing.T) {
	w, _ := newHooked(t)
	c := w.open()
	for _, name := range []string{"a", "b"} {
		must[Reply](t)(c.Do(background, pod(name), w.maker(ask{pod: name})))
	}
	own := errors.New("enough")
	n := 0
	if err := c.Snapshot(func(Entry) error { n++; return own }); err != own || n != 1 {
		t.Error(err, n)
	}
	var p *Panic
	func() {
		defer func() { p, _ = recover().(*Panic) }()
		c.Snapshot(func(Entry) error { panic(own) })
	}()
	if p == nil || !errors.Is(p, own) {
		t.Error(p)
	}
	must[Reply](t)(c.Do(background, pod("c"), w.maker(ask{pod: "c"}))) // no lock is held
}

func TestHooksPanic(t *testing.T) {
	w, r := newHooked(t)
	r.choose = func(Entry) ([]string, string) { panic("choose panics") }
	c := w.open()
	_, err := c.Do(background, pod("a"), w.maker(ask{pod: "a"}))
	wantErr(t, err, ErrUnavailable)
	r.choose = nil
	var calm atomic.Bool
	r.fire = func(_ context.Context, _ HookEvent, e Entry) ([]string, string) {
		if !calm.Load() {
			panic("fire panics")
		}
		return e.Told, ""
	}
	_, err = c.Do(background, pod("a"), never) // refused; undone, although Stop and Remove panic as well
	wantErr(t, err, ErrRefused)
	w.until("it is destroyed", func() bool { return len(w.destroyed) == 1 })
	calm.Store(true)
	must[Reply](t)(c.Do(background, pod("a"), w.maker(ask{pod: "a"})))
	c.Close()
	for _, text := range []string{"choose panics", "fire panics", "TestHooksPanic"} {
		w.logged(text)
	}
}

func TestClockPanics(t *testing.T) {
	w := newWorld(t).clock()
	broken := make(chan struct{})
	now := w.o.Now
	w.o.Now = func() time.Duration {
		select {
		case <-broken:
			panic("the clock panics")
		default:
			return now()
		}
	}
	c := w.open()
	must[Reply](t)(c.Do(background, pod("a"), w.maker(ask{pod: "a"})))
	close(broken)
	c.ObjectRemoved(Sandbox, "sandbox-1")
	c.Close()
	w.logged("the clock panics")
}
