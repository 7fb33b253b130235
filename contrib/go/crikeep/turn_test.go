// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestTurnInSteps(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	turn := must[*Turn](t)(c.Begin(background, pod("a")))
	defer turn.Close()
	if turn.Outcome() == Wait { // until the first list
		must[Outcome](t)(turn.Wait(background))
	}
	if turn.Outcome() != Create {
		t.Fatal(turn.Outcome())
	}
	if _, err := turn.Reply(); !errors.Is(err, ErrState) {
		t.Error("a reply before there is one:", err)
	}
	if o := must[Outcome](t)(turn.Finish(Result{ID: "x"})); o != HandBack || turn.Outcome() != HandBack {
		t.Fatal(o)
	}
	if o, err := turn.Wait(background); o != HandBack || err != nil {
		t.Error("Wait after the decision:", o, err)
	}
	if reply := must[Reply](t)(turn.Reply()); reply.ID != "x" {
		t.Error(reply)
	}
	_, err := turn.Finish(Result{ID: "y"})
	wantErr(t, err, ErrState)
	wantErr(t, turn.Fail(errors.New("no")), ErrState)
	wantErr(t, turn.Lost(), ErrState)
	wantErr(t, turn.Stage("no"), ErrState)
	wantErr(t, turn.Fail(nil), ErrInvalid)
	if err := turn.Answered(true); err != nil {
		t.Error(err)
	}
}

// creating is a turn whose outcome is Create
func (w *world) creating(c *Cache, r Request) *Turn {
	w.t.Helper()
	turn := must[*Turn](w.t)(c.Begin(background, r))
	w.t.Cleanup(func() { turn.Close() })
	if turn.Outcome() == Wait {
		must[Outcome](w.t)(turn.Wait(background))
	}
	if turn.Outcome() != Create {
		w.t.Fatal(turn.Outcome())
	}
	return turn
}

func TestTurnAfterClose(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	turn := w.creating(c, pod("a"))
	waiter := must[*Turn](t)(c.Begin(background, pod("a")))
	errs := make(chan error)
	go func() {
		_, err := waiter.Wait(background)
		errs <- err
	}()
	if err := waiter.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, <-errs, ErrClosed)
	for i := 0; i < 2; i++ {
		if err := turn.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := turn.Finish(Result{ID: "x"})
		wantErr(t, err, ErrClosed)
		_, err = turn.Wait(background)
		wantErr(t, err, ErrClosed)
		_, err = turn.Reply()
		wantErr(t, err, ErrClosed)
		wantErr(t, turn.Stage("x"), ErrClosed)
		wantErr(t, turn.Fail(ErrBusy), ErrClosed)
		wantErr(t, turn.Lost(), ErrClosed)
		wantErr(t, turn.Answered(true), ErrClosed)
		turn.Leave()
	}
}

func TestTurnLeave(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	w.creating(c, pod("a"))
	for name, leave := range map[string]func(t *Turn, cancel func()){
		"the context ends": func(_ *Turn, cancel func()) { cancel() },
		"it is left":       func(t *Turn, _ func()) { t.Leave(); t.Leave() },
	} {
		ctx, cancel := context.WithCancel(background)
		waiter := must[*Turn](t)(c.Begin(background, pod("a")))
		errs := make(chan error)
		go func() {
			_, err := waiter.Wait(ctx)
			errs <- err
		}()
		leave(waiter, cancel)
		if err := <-errs; !errors.Is(err, context.Canceled) && !errors.Is(err, ErrAbandoned) {
			t.Error(name, err)
		}
		cancel()
		waiter.Close()
	}
}

// a container whose answer was lost is kept, however that is known (K7)
func TestTurnAnswerLost(t *testing.T) {
	for name, lose := range map[string]func(turn *Turn) error{
		"the stream broke":   func(turn *Turn) error { must[Outcome](t)(turn.Wait(background)); return turn.Answered(false) },
		"nobody looked":      func(turn *Turn) error { return turn.Close() },
		"nobody looked late": func(turn *Turn) error { <-time.After(0); return turn.Close() },
	} {
		w := newWorld(t)
		c := w.open()
		a := ask{pod: "a", sandbox: "s", container: "c"}
		turn := w.creating(c, a.request())
		waiter := must[*Turn](t)(c.Begin(background, a.request()))
		turn.Leave()
		result, _ := w.make(a)
		if o, err := turn.Finish(result); err != nil || o == HandBack {
			t.Fatal(o, err)
		}
		if err := lose(waiter); err != nil {
			t.Error(name, err)
		}
		if e := must[[]Entry](t)(c.Entries()); len(e) != 1 || e[0].State != StateKept {
			t.Error(name, e)
		}
		waiter.Close()
		if reply := must[Reply](t)(c.Do(background, a.request(), never)); reply.ID != result.ID {
			t.Error(reply)
		}
		c.Close()
	}
}

// listingHost lists when it is told to
type listingHost struct {
	*world
	called chan struct{}
	goOn   chan struct{}
}

func (h *listingHost) List(ctx context.Context, f Filter) ([]Object, error) {
	h.called <- struct{}{}
	<-h.goOn
	return h.world.List(ctx, f)
}

// begunUnheard has two turns of one request, of which first, the newer one, has become a creator,
// and nobody has been told so: the event loop is held until goOn
func begunUnheard(w *world) (c *Cache, first, second *Turn, goOn func()) {
	h := &listingHost{world: w, called: make(chan struct{}), goOn: make(chan struct{})}
	w.o.Host = h
	c = w.open()
	second = must[*Turn](w.t)(c.Begin(background, pod("a")))
	first = must[*Turn](w.t)(c.Begin(background, pod("a")))
	<-h.called
	<-h.called
	c.loopMu.Lock()
	close(h.goOn)
	eventually(w.t, "it is begun", func() bool { return len(must[[]Entry](w.t)(c.Entries())) == 1 })
	if first.Outcome() != Wait || len(first.decided) != 0 {
		w.t.Fatal("it knows already")
	}
	return c, first, second, c.loopMu.Unlock
}

func TestTurnBegunWhenLeft(t *testing.T) {
	w := newWorld(t)
	c, first, second, goOn := begunUnheard(w)
	defer second.Close()
	defer first.Close()
	ctx, cancel := context.WithCancel(background)
	cancel()
	outcomes := make(chan Outcome)
	go func() {
		o, _ := first.Wait(ctx)
		outcomes <- o
	}()
	<-first.left
	goOn()
	if o := <-outcomes; o != Create {
		t.Fatal(o)
	}
	first.Finish(must[Result](t)(w.make(ask{pod: "a"})))
	if o := must[Outcome](t)(second.Wait(background)); o != HandBack {
		t.Error(o)
	}
	c.Close()
}

func TestTurnBegunWhenClosed(t *testing.T) {
	w := newWorld(t)
	c, first, second, goOn := begunUnheard(w)
	first.Close()
	goOn()
	_, err := second.Wait(background)
	wantErr(t, err, ErrFailed)
	second.Close()
	if GRPCCode(err) != grpcCanceled {
		t.Error(err)
	}
	if e := must[[]Entry](t)(c.Entries()); len(e) != 0 {
		t.Error("somebody has to make it:", e)
	}
}

// The request is to be sent again, as nobody knows how it ended the first time (K8). That nobody is
// told so does not mean that nothing runs.
func TestTurnAgainWhenClosed(t *testing.T) {
	w := newWorld(t).clock()
	c := w.open()
	first := must[*Turn](t)(c.Begin(background, pod("a")))
	o := first.Outcome()
	if o == Wait { // for the first lists
		o = must[Outcome](t)(first.Wait(background))
	}
	if o != Create {
		t.Fatal(o)
	}
	second := must[*Turn](t)(c.Begin(background, pod("a")))
	if err := first.Lost(); err != nil {
		t.Fatal(err)
	}
	first.Close()
	eventually(t, "it is to be sent again", func() bool {
		w.tick(c)
		return len(second.decided) == 1
	})
	second.Close()
	if e := must[[]Entry](t)(c.Entries()); len(e) != 1 || !e[0].Lost {
		t.Fatal("what may still run is forgotten:", e)
	}
	w.make(ask{pod: "a"}) // the first one
	eventually(t, "it is kept", func() bool {
		w.tick(c)
		e := must[[]Entry](t)(c.Entries())
		return len(e) == 1 && e[0].State == StateKept
	})
}

func TestTurnDelivered(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "a", sandbox: "s", container: "c"}
	must[Reply](t)(c.Do(background, a.request(), w.maker(a)))
	turn := must[*Turn](t)(c.Begin(background, a.request()))
	defer turn.Close()
	if turn.Outcome() != HandBack {
		t.Fatal(turn.Outcome())
	}
	turn.Answered(false) // it was delivered once before
	if e := must[[]Entry](t)(c.Entries()); e[0].State != StateCommitted {
		t.Error(e)
	}
}

func TestTurnOutlivesItsCache(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	creator := w.creating(c, pod("a"))
	waiter := must[*Turn](t)(c.Begin(background, pod("a")))
	given := w.creating(c, pod("b"))
	must[Outcome](t)(given.Finish(Result{ID: "x"}))
	c.Close()
	if reply := must[Reply](t)(given.Reply()); reply.ID != "x" {
		t.Error(reply)
	}
	_, err := creator.Finish(Result{ID: "y"})
	wantErr(t, err, ErrClosed)
	_, err = waiter.Wait(background)
	wantErr(t, err, ErrClosed)
	for _, turn := range []*Turn{creator, waiter, given} {
		if err := turn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCacheAfterClose(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	view := must[*View](t)(c.View())
	for i := 0; i < 2; i++ {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Begin(background, pod("a"))
	wantErr(t, err, ErrClosed)
	_, err = c.View()
	wantErr(t, err, ErrClosed)
	_, err = c.Entries()
	wantErr(t, err, ErrClosed)
	wantErr(t, c.Snapshot(func(Entry) error { return nil }), ErrClosed)
	wantErr(t, c.Remove(background, Sandbox, "x", nil), ErrClosed)
	wantErr(t, c.ObjectRemoved(Sandbox, "x"), ErrClosed)
	wantErr(t, c.SandboxStopping("x"), ErrClosed)
	wantErr(t, c.ObjectSeen(Sandbox, "x", Dead), ErrClosed)
	wantErr(t, c.ObjectUsed(Sandbox, "x"), ErrClosed)
	wantErr(t, c.ContainerStarting("x"), ErrClosed)
	if c.Reconciled() || c.Step() >= 0 {
		t.Error("it goes on")
	}
	_, err = view.Hides(Object{Kind: Sandbox, ID: "x"})
	wantErr(t, err, ErrClosed)
	view.Close()
	c2 := w.open() // the directory is free
	c2.Close()
}

func TestOpenRefuses(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*Options){
		"no host":             func(o *Options) { o.Host = nil },
		"a negative duration": func(o *Options) { o.TTL = -1 },
		"more than a year":    func(o *Options) { o.LostGrace = 10000 * time.Hour },
		"a mode of its own":   func(o *Options) { o.Mode = 9 },
		"a zero byte":         func(o *Options) { o.StateDir += "\x00" },
		"another zero byte":   func(o *Options) { o.IgnoreAnnotations = []string{"a\x00"} },
	} {
		o := w.o
		change(&o)
		if _, err := Open(o); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := w.o
	o.StateDir = "/proc/crikeep"
	if _, err := Open(o); err == nil || GRPCCode(err) == 0 {
		t.Error(err)
	}
}

func TestOptionsReachTheLibrary(t *testing.T) {
	w := newWorld(t).clock()
	w.o.TTL = time.Minute
	w.o.IgnoreAnnotations = []string{}
	w.o.Mode = Identity
	c := w.open()
	a := ask{pod: "a", label: "one"}
	turn := w.creating(c, a.request())
	turn.Leave()
	if o := must[Outcome](t)(turn.Finish(must[Result](t)(w.make(a)))); o != Kept {
		t.Fatal(o)
	}
	a.label = "two" // Mode: nothing but the name counts
	if reply := must[Reply](t)(c.Do(background, a.request(), never)); reply.ID != "sandbox-1" {
		t.Error(reply)
	}
	b := ask{pod: "b"}
	turn = w.creating(c, b.request())
	turn.Leave()
	turn.Finish(must[Result](t)(w.make(b)))
	eventually(t, "time passes", func() bool {
		w.advance(c, 10*time.Second)
		e := must[[]Entry](t)(c.Entries())
		return e[len(e)-1].Since >= 50*time.Second
	})
	w.advance(c, 30*time.Second)
	w.advance(c, 0)
	w.until("what was kept is destroyed", func() bool { return len(w.destroyed) == 1 && w.destroyed[0] == "sandbox-2" })
	if due := c.Step(); due >= 0 && due < w.o.Now() {
		t.Error("something is due, and is not done:", due)
	}
}

func TestEntriesAndWhatPasses(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	s := ask{pod: "a"}
	must[Reply](t)(c.Do(background, s.request(), w.maker(s)))
	k := ask{pod: "a", sandbox: "sandbox-1", container: "c", attempt: 3}
	must[Reply](t)(c.Do(background, k.request(), w.maker(k)))
	all := must[[]Entry](t)(c.Entries())
	if len(all) != 2 || all[1].Kind != Container || all[1].SandboxID != "sandbox-1" || all[1].ContainerName != "c" ||
		all[1].Attempt != 3 || all[1].ID != "container-2" || all[1].State != StateCommitted || all[1].Number <= all[0].Number ||
		all[0].PodNamespace != "ns" || all[0].Requests != 1 {
		t.Fatal(all)
	}
	for name, err := range map[string]error{
		"used": c.ObjectUsed(Container, "container-2"), "starting": c.ContainerStarting("container-2"), "seen": c.ObjectSeen(Container, "container-2", Running),
		"removed": c.ObjectRemoved(Container, "container-2"),
	} {
		if err != nil {
			t.Error(name, err)
		}
	}
	wantErr(t, c.ObjectRemoved(Container, "container-2"), ErrNotFound)
	wantErr(t, c.ObjectUsed(Container, "container-2"), ErrNotFound)
	wantErr(t, c.ContainerStarting("container-2"), ErrNotFound)
	wantErr(t, c.ObjectSeen(Sandbox, "other", Dead), ErrNotFound)
	wantErr(t, c.ObjectUsed(Sandbox, ""), ErrInvalid)
	wantErr(t, c.ObjectUsed(Sandbox, "a\x00b"), ErrInvalid)
	if err := c.SandboxStopping("sandbox-1"); err != nil {
		t.Fatal(err)
	}
	_, err := c.Do(background, k.request(), never)
	wantErr(t, err, ErrPrecondition)
}

func TestRemove(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	s := ask{pod: "a"}
	must[Reply](t)(c.Do(background, s.request(), w.maker(s)))
	failed := errors.New("the runtime fails")
	wantErr(t, c.Remove(background, Sandbox, "sandbox-1", func(context.Context) error { return failed }), failed)
	if e := must[[]Entry](t)(c.Entries()); len(e) != 1 {
		t.Error("a removal that failed forgot it:", e)
	}
	gone := fmt.Errorf("it was not there: %w", &StatusError{GRPC: 5})
	if err := c.Remove(background, Sandbox, "sandbox-1", func(context.Context) error { return gone }); err != nil {
		t.Error(err)
	}
	if e := must[[]Entry](t)(c.Entries()); len(e) != 0 {
		t.Error(e)
	}
	if err := c.Remove(background, Container, "unknown", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	wantErr(t, c.Remove(background, Container, "", nil), ErrInvalid)
	wantErr(t, c.Remove(background, Container, "\x00", nil), ErrInvalid)
	over, cancel := context.WithCancel(background)
	cancel()
	wantErr(t, c.Remove(over, Container, "x", nil), ErrDeadline)
}

// the removal of a sandbox waits for creations in it (K16)
func TestRemoveWaitsForCreations(t *testing.T) {
	w := newWorld(t).clock()
	c := w.open()
	s := ask{pod: "a"}
	must[Reply](t)(c.Do(background, s.request(), w.maker(s)))
	k := ask{pod: "a", sandbox: "sandbox-1", container: "c"}
	h := newHeld()
	create := w.begin(c, background, k, h.creation(func() (Result, error) { return w.make(k) }))
	<-h.begun

	ctx, cancel := context.WithTimeout(background, time.Hour)
	defer cancel()
	busy := make(chan error)
	go func() {
		busy <- c.Remove(ctx, Sandbox, "sandbox-1", func(context.Context) error {
			t.Error("removed while a container is being made in it")
			return nil
		})
	}()
	wantErr(t, (<-create).err, ErrAbandoned)
	for err := error(nil); err == nil; {
		w.advance(c, time.Hour)
		select {
		case err = <-busy:
			wantErr(t, err, ErrBusy, ErrUnavailable)
		default:
		}
	}

	removed := make(chan error)
	go func() {
		removed <- c.Remove(background, Sandbox, "sandbox-1", func(context.Context) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.destroyed) != 1 || w.destroyed[0] != "container-2" {
				t.Error("not yet destroyed:", w.destroyed)
			}
			return nil
		})
	}()
	close(h.goOn)
	if err := <-removed; err != nil {
		t.Error(err)
	}
}
