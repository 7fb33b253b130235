// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"crikeep.io/go/crikeep"
)

// What the store in memory must do by itself, and what New promises.

func TestOpenOfADirectoryNeedsTheLibrary(t *testing.T) {
	s, err := Open(Options{StateDir: stateDir(t), Logger: quiet(), Recover: (&ours{}).recover})
	switch {
	case Durable && err != nil:
		t.Error(err)
	case Durable:
		s.Close()
	case err == nil || !strings.Contains(err.Error(), "without libcrikeep"):
		t.Errorf("opened without libcrikeep: %v", err)
	}
}

// New begins nothing, however often it is called. And nothing of it is left after its use.
func TestNewIsLazy(t *testing.T) {
	before := runtime.NumGoroutine()
	var all []*ResourceStore
	for i := 0; i < 300; i++ {
		all = append(all, New())
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, and %d before", n, before)
	}
	for _, s := range all {
		name := podNameOf(0)
		s.SetStageForResource(context.Background(), name, "sandbox creating")
		if err := s.Put(name, &resource{id: "1"}, NewResourceCleaner()); err != nil {
			t.Fatal(err)
		}
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines in use, and %d before", n, before)
	}
	for _, s := range all {
		if id := s.Get(podNameOf(0)); id != "1" {
			t.Errorf("got %q", id)
		}
		s.Close()
		s.Close()
	}
}

// By the real clock: what nobody asks for is undone.
func TestTimeoutByTheRealClock(t *testing.T) {
	s := NewWithTimeout(10 * time.Millisecond)
	defer s.Close()
	done := make(chan struct{})
	c := NewResourceCleaner()
	c.Add(context.Background(), "undo", func() error { close(done); return nil })
	if err := s.Put(podName, &resource{id: "1"}, c); err != nil {
		t.Fatal(err)
	}
	<-done
}

// ---- the same request ---------------------------------------------------------------------------

func TestTheSameRequest(t *testing.T) {
	label := func(key, value string) []byte { return message(nil, 6, text(nil, 1, key), text(nil, 2, value)) }
	note := func(key, value string) []byte { return message(nil, 7, text(nil, 1, key), text(nil, 2, value)) }
	metadata := message(nil, 1, text(nil, 1, "web-0"), text(nil, 2, podUID), text(nil, 3, "default"))
	pod := func(parts ...[]byte) []byte { return message(nil, 1, append([][]byte{metadata}, parts...)...) }
	env := func(key, value string) []byte { return message(nil, 6, text(nil, 1, key), text(nil, 2, value)) }
	mount := func(path, host string) []byte { return message(nil, 7, text(nil, 1, path), text(nil, 2, host)) }
	log := message(nil, 10, text(nil, 1, terminationKey), text(nil, 2, "/dev/termination-log"))
	ctr := func(sandbox []byte, config ...[]byte) []byte {
		all := append([][]byte{message(nil, 1, text(nil, 1, "nginx"))}, config...)
		return append(append(text(nil, 1, "s1"), message(nil, 2, all...)...), message(nil, 3, metadata, sandbox)...)
	}
	image := func(name, user string) []byte { return message(nil, 2, text(nil, 1, name), text(nil, 18, user)) }
	for _, c := range []struct {
		what string
		kind crikeep.Kind
		a, b []byte
		same bool
	}{
		{"labels in another order", crikeep.Sandbox, pod(label("a", "1"), label("b", "2")), pod(label("b", "2"), label("a", "1")), true},
		{"another label", crikeep.Sandbox, pod(label("a", "1")), pod(label("a", "2")), false},
		{"an annotation of a network plugin", crikeep.Sandbox, pod(note("cni.projectcalico.org/podIP", "1")), pod(), true},
		{"another annotation", crikeep.Sandbox, pod(note("mine", "1")), pod(), false},
		{"config.seen", crikeep.Sandbox, pod(note(configSeen, "1")), pod(note(configSeen, "2")), true},
		{"another hostname", crikeep.Sandbox, pod(text(nil, 2, "a")), pod(text(nil, 2, "b")), false},
		{"a field that is not known", crikeep.Sandbox, pod(text(nil, 200, "a")), pod(text(nil, 200, "b")), false},
		{"environment in another order", crikeep.Container, ctr(nil, env("A", "1"), env("B", "2")), ctr(nil, env("B", "2"), env("A", "1")), true},
		{"another environment", crikeep.Container, ctr(nil, env("A", "1")), ctr(nil, env("A", "2")), false},
		{"arguments in another order", crikeep.Container, ctr(nil, text(nil, 4, "a"), text(nil, 4, "b")), ctr(nil, text(nil, 4, "b"), text(nil, 4, "a")), false},
		{"termination log", crikeep.Container, ctr(nil, mount("/dev/termination-log", "/var/c/0123abcd"), log),
			ctr(nil, mount("/dev/termination-log", "/var/c/99999999"), log), true},
		{"another mount", crikeep.Container, ctr(nil, mount("/data", "/var/c/0123abcd"), log), ctr(nil, mount("/data", "/var/c/99999999"), log), false},
		{"what only RunPodSandbox uses", crikeep.Container, ctr(message(nil, 5, number(nil, 2, 80))), ctr(nil), true},
		{"the pod's labels", crikeep.Container, ctr(label("a", "1")), ctr(nil), false},
		{"another image", crikeep.Container, ctr(nil, image("a", "")), ctr(nil, image("b", "")), false},
		{"one image by two names", crikeep.Container, ctr(nil, image("a", "nginx:1")), ctr(nil, image("sha256:1", "nginx:1")), true},
		{"two images that the user wrote", crikeep.Container, ctr(nil, image("a", "nginx:1")), ctr(nil, image("b", "nginx:2")), false},
	} {
		t.Run(c.what, func(t *testing.T) {
			each(t, func(t *testing.T, s *ours) {
				name := podName
				if c.kind == crikeep.Container {
					name = ctrName
				}
				begin(t, s, c.kind, name, c.a)
				if _, err := s.Finish(context.Background(), name, &resource{id: "1"}, nil); err != nil {
					t.Fatal(err)
				}
				id, err := s.GetForRequest(context.Background(), c.kind, name, c.b)
				if same := id == "1" && err == nil; same != c.same || !same && !errors.Is(err, crikeep.ErrConflict) {
					t.Errorf("%q, %v", id, err)
				}
			})
		})
	}
}

// Two references are one image if the runtime says so. libcrikeep asks on the side, and has tests of
// its own for it.
func TestTheSameImageInMemory(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		s := newOurs(t, "memory")
		s.reopen(Options{Recover: s.recover, ResolveImage: func(_ context.Context, image string) (string, error) {
			if image == "other:1" {
				return "sha256:2", nil
			}
			return "sha256:1", nil
		}})
		withImage := func(image string) []byte {
			return append(append(text(nil, 1, "s1"), message(nil, 2, message(nil, 1, text(nil, 1, "nginx")),
				message(nil, 2, text(nil, 1, image)))...),
				message(nil, 3, message(nil, 1, text(nil, 1, "web-0"), text(nil, 2, podUID), text(nil, 3, "default")))...)
		}
		undone := make(chan struct{})
		if err := late(s, crikeep.Container, ctrName, withImage("nginx:1"), &resource{id: "1"}, nil); err != nil {
			t.Fatal(err)
		}
		if id, err := again(s, crikeep.Container, ctrName, withImage("sha256:1")); id != "1" || err != nil {
			t.Errorf("the same image: %q, %v", id, err)
		}
		s.removed(crikeep.Container, "1")
		if err := late(s, crikeep.Container, ctrName, withImage("nginx:1"), &resource{id: "2"}, func() error {
			close(undone)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		begin(t, s, crikeep.Container, ctrName, withImage("other:1"))
		<-undone
	})
}

func TestRequestsThatAreRefused(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		for what, request := range map[string][]byte{
			"empty":    nil,
			"no proto": []byte("no request"),
			"cut":      podRequest(0, "a")[:20],
			"too long": parseName(strings.Repeat("x", 900)).request()[:100],
		} {
			if id, err := s.GetForRequest(context.Background(), crikeep.Sandbox, podName, request); !errors.Is(err, crikeep.ErrMalformed) {
				t.Errorf("%s: %q, %v", what, id, err)
			}
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := s.GetForRequest(ended, crikeep.Sandbox, podName, podRequest(0, "a")); !errors.Is(err, crikeep.ErrDeadline) {
			t.Errorf("a request that was over: %v", err)
		}
		if n := s.entries(); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// ---- hooks --------------------------------------------------------------------------------------

// A container of which plugins were told, and whose caller has gone, is kept. They are not told
// again when it is handed over.
func TestToldContainerIsKept(t *testing.T) {
	h := &hooks{hold: make(chan struct{})}
	each(t, func(t *testing.T, s *ours) {
		*h = hooks{hold: make(chan struct{})}
		s.hook(h)
		begin(t, s, crikeep.Container, ctrName, ctrRequest("s1", "nginx"))
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan answer)
		go func() {
			id, err := s.Finish(ctx, ctrName, &resource{id: "1"}, nil)
			ended <- answer{id, err}
		}()
		for h.all() == "" {
			runtime.Gosched()
		}
		cancel()
		if a := <-ended; !errors.Is(a.err, context.Canceled) {
			t.Errorf("who left got %q, %v", a.id, a.err)
		}
		close(h.hold)
		if id, err := again(s, crikeep.Container, ctrName, ctrRequest("s1", "nginx")); id != "1" || err != nil {
			t.Errorf("the repetition got %q, %v", id, err)
		}
		if fired := h.all(); fired != "run 1" {
			t.Errorf("told: %s", fired)
		}
	})
}

// The sandbox is stopped while plugins are told about its container.
func TestStopDuringHooks(t *testing.T) {
	h := &hooks{}
	each(t, func(t *testing.T, s *ours) {
		*h = hooks{hold: make(chan struct{})}
		s.hook(h)
		begin(t, s, crikeep.Container, ctrName, ctrRequest("s1", "nginx"))
		undone, ended := make(chan struct{}), make(chan answer)
		c := NewResourceCleaner()
		c.Add(context.Background(), "undo", func() error { close(undone); return nil })
		go func() {
			id, err := s.Finish(context.Background(), ctrName, &resource{id: "1"}, c)
			ended <- answer{id, err}
		}()
		for h.all() == "" {
			runtime.Gosched()
		}
		s.StopSandbox(context.Background(), "s1")
		if a := <-ended; !errors.Is(a.err, crikeep.ErrAbandoned) {
			t.Errorf("the maker got %q, %v", a.id, a.err)
		}
		close(h.hold)
		<-undone
		for end := time.Now().Add(20 * time.Second); !strings.HasSuffix(h.all(), "remove 1"); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("told: %s", h.all())
			}
		}
		if fired := h.all(); fired != "run 1, stop 1, remove 1" {
			t.Errorf("told: %s", fired)
		}
	})
}

// Hooks that panic refuse, and end nothing else.
type wild struct{ hooks }

func (w *wild) Fire(context.Context, crikeep.HookEvent, crikeep.Entry) ([]string, string) {
	panic("plugin")
}

func TestHooksThatPanic(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		s.reopen(Options{Hooks: &wild{}, Recover: s.recover})
		begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
		if id, err := s.Finish(context.Background(), podName, &resource{id: "1"}, nil); !errors.Is(err, crikeep.ErrRefused) {
			t.Errorf("%q, %v", id, err)
		}
	})
}

// ---- deadlines ----------------------------------------------------------------------------------

// Who waits hears shortly before its deadline, and the creation goes on.
func TestWaitingEndsBeforeTheDeadline(t *testing.T) {
	s, err := Open(Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := &ours{ResourceStore: s}
	begin(t, o, crikeep.Sandbox, podName, podRequest(0, "a"))
	s.SetStageForResource(context.Background(), podName, "sandbox network creation")
	ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
	defer cancel()
	_, err = s.GetForRequest(ctx, crikeep.Sandbox, podName, podRequest(0, "a"))
	if !errors.Is(err, crikeep.ErrBusy) || !strings.Contains(fmt.Sprint(err), "sandbox network creation") || ctx.Err() != nil {
		t.Errorf("%v, its context: %v", err, ctx.Err())
	}
	if id, err := s.Finish(context.Background(), podName, &resource{id: "1"}, nil); id != "1" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// An attempt that follows waits for the end of the one before, but not for ever (K10).
func TestNextAttemptDoesNotWaitForEver(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		hold := make(chan struct{})
		defer close(hold)
		blocked := make(chan struct{})
		if err := late(s, crikeep.Sandbox, podNameOf(0), podRequest(0, "a"), &resource{id: "0"}, func() error {
			close(blocked)
			<-hold
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		waits, got := make(chan struct{}), make(chan answer, 1)
		s.onWait(func() { close(waits) }, nil)
		go func() {
			id, err := s.GetForRequest(context.Background(), crikeep.Sandbox, podNameOf(1), podRequest(1, "a"))
			got <- answer{id, err}
		}()
		<-waits
		s.onWait(nil, nil)
		<-blocked
		s.advance(supersedeWait - time.Second)
		select {
		case a := <-got:
			t.Errorf("it did not wait: %q, %v", a.id, a.err)
		case <-time.After(20 * time.Millisecond):
		}
		s.advance(2 * time.Second)
		if a := <-got; a.id != "" || a.err != nil {
			t.Errorf("it went on with %q, %v", a.id, a.err)
		}
	})
}

// An answer that was lost keeps a container again, unless it was removed in the meantime.
func TestLostAnswerOfWhatWasRemoved(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		s.made["1"] = &resource{id: "1"} // it is alive
		for _, removed := range []bool{false, true} {
			request := crikeep.Request{Kind: crikeep.Container, Bytes: ctrRequest("s1", "nginx")}
			turn, err := s.cache.Begin(context.Background(), request)
			if err != nil || turn.Outcome() != crikeep.Create {
				t.Fatal(err)
			}
			if o, err := turn.Finish(crikeep.Result{ID: "1"}); o != crikeep.HandBack || err != nil {
				t.Fatal(o, err)
			}
			if removed {
				if err := s.cache.ObjectRemoved(crikeep.Container, "1"); err != nil {
					t.Error(err)
				}
			}
			_ = turn.Answered(false)
			turn.Close()
			entries, err := s.cache.Entries()
			if kept := len(entries) == 1 && entries[0].State == crikeep.StateKept; err != nil || kept == removed {
				t.Errorf("removed %v: %+v, %v", removed, entries, err)
			}
			if hidden, err := s.cache.Hides(crikeep.Container, "1"); err != nil || hidden == removed {
				t.Errorf("removed %v: hidden %v, %v", removed, hidden, err)
			}
			if !removed { // it is handed over once more, and removed
				turn, err := s.cache.Begin(context.Background(), request)
				if err != nil {
					t.Fatal(err)
				}
				if o, err := turn.Wait(context.Background()); o != crikeep.HandBack || err != nil {
					t.Fatal(o, err)
				}
				_ = turn.Answered(true)
				turn.Close()
				if err := s.cache.ObjectRemoved(crikeep.Container, "1"); err != nil {
					t.Error(err)
				}
			}
		}
		if m, ok := s.cache.(*memory); ok && len(m.alarms) != 0 {
			t.Errorf("%d alarms are left", len(m.alarms))
		}
	})
}
