// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"crikeep.io/go/crikeep"
)

// do asks for the pod, which create makes.
func do(ctx context.Context, s *ours, request []byte, create func(ctx context.Context, c *Creation) (IdentifiableCreatable, error)) (
	string, error) {
	return s.Do(ctx, Request{Kind: crikeep.Sandbox, Bytes: request}, create)
}

func TestDo(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		r := &resource{id: "1"}
		for i := 0; i < 2; i++ {
			id, err := do(context.Background(), s, podRequest(0, "a"), func(ctx context.Context, c *Creation) (IdentifiableCreatable, error) {
				c.Stage(ctx, "sandbox network creation")
				if c.Name() != podName || s.Stage(podName) != "sandbox network creation" || i > 0 {
					t.Errorf("%q, stage %q, call %d", c.Name(), s.Stage(podName), i)
				}
				return r, nil
			})
			if id != "1" || err != nil || r.created.Load() != 1 {
				t.Errorf("%q, %v, created %d times", id, err, r.created.Load())
			}
		}
	})
}

// The caller's deadline is not that of the creation. The repeated request gets the result.
func TestDoOutlivesItsCaller(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
		left, done := make(chan struct{}), make(chan struct{})
		id, err := do(ctx, s, podRequest(0, "a"), func(ctx context.Context, c *Creation) (IdentifiableCreatable, error) {
			defer close(done)
			cancel()
			<-left
			if ctx.Err() != nil || ctx.Value(key{}) != "value" {
				t.Errorf("its context: %v", ctx.Err())
			}
			return &resource{id: "1"}, nil
		})
		if id != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("who left got %q, %v", id, err)
		}
		close(left)
		<-done
		id, err = do(context.Background(), s, podRequest(0, "a"), func(context.Context, *Creation) (IdentifiableCreatable, error) {
			return nil, errors.New("was made a second time")
		})
		if id != "1" || err != nil {
			t.Errorf("the repetition got %q, %v", id, err)
		}
	})
}

// What failed is undone, before the name is free again. The error is told as it is.
func TestDoThatFails(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		boom := &crikeep.StatusError{GRPC: 8, Message: "no free address"}
		undone := make(chan struct{}, 8)
		hold := make(chan struct{})
		for _, broken := range []bool{false, true} {
			_, err := do(context.Background(), s, podRequest(0, "a"), func(ctx context.Context, c *Creation) (IdentifiableCreatable, error) {
				c.Undo.Add(ctx, "undo", func() error {
					undone <- struct{}{}
					if !broken {
						return nil
					}
					select {
					case <-hold:
						return nil
					default:
						return errors.New("not yet")
					}
				})
				return nil, boom
			})
			<-undone
			if code, message := crikeep.Status(err); code != 8 || message != "no free address" || err != error(boom) {
				t.Errorf("%v: %d %q", err, code, message)
			}
		}
		// the name is not free: it waits, and hears the error
		got := wait(s, crikeep.Sandbox, podName, podRequest(0, "a"))
		close(hold)
		if a := <-got; a.id != "" || a.err == nil || a.err.Error() != "no free address" {
			t.Errorf("who came meanwhile got %q, %v", a.id, a.err)
		}
		if id, err := do(context.Background(), s, podRequest(0, "a"), func(context.Context, *Creation) (IdentifiableCreatable, error) {
			panic("boom")
		}); id != "" || err == nil || !strings.Contains(err.Error(), "a panic: boom") {
			t.Errorf("a panic: %q, %v", id, err)
		}
		if n := s.entries(); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// The kubelet asks for the next attempt: the creation is told, and what it makes all the same is
// undone.
func TestDoThatIsAbandoned(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		begun, undone, ended := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			_, err := do(context.Background(), s, podRequest(0, "a"), func(ctx context.Context, c *Creation) (IdentifiableCreatable, error) {
				c.Undo.Add(ctx, "undo", func() error { close(undone); return nil })
				close(begun)
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), crikeep.ErrAbandoned) {
					t.Errorf("it ended by %v", context.Cause(ctx))
				}
				return &resource{id: "0"}, nil
			})
			ended <- err
		}()
		<-begun
		id, err := do(context.Background(), s, podRequest(1, "a"), func(context.Context, *Creation) (IdentifiableCreatable, error) {
			return &resource{id: "1"}, nil
		})
		if id != "1" || err != nil {
			t.Errorf("the next attempt got %q, %v", id, err)
		}
		<-undone
		if err := <-ended; !errors.Is(err, crikeep.ErrAbandoned) {
			t.Errorf("who had asked before got %v", err)
		}
	})
}

// ---- stages, tries, logs ------------------------------------------------------------------------

// To ask for a stage keeps nothing alive and leaves nothing behind.
func TestStageLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		if stage := s.Stage(podName); stage != StageUnknown || s.entries() != 0 {
			t.Errorf("%q, %d entries", stage, s.entries())
		}
		s.SetStageForResource(context.Background(), podName, "sandbox creating")
		if stage := s.Stage(podName); stage != "sandbox creating" {
			t.Errorf("%q", stage)
		}
		cleaned := make(chan struct{}, 1)
		c := s.newCleaner()
		c.Add(context.Background(), "undo", func() error { cleaned <- struct{}{}; return nil })
		put(t, s, podName, &resource{id: "1"}, c)
		s.advance(2*interval + time.Second) // a watcher's would be 8 minutes
		select {
		case <-cleaned:
		case <-time.After(time.Minute):
			t.Error("it lives longer because somebody asked")
		}
	})
}

func TestTriesAndLogOfACleaner(t *testing.T) {
	var log bytes.Buffer
	store, err := Open(Options{CleanupTries: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	other := NewResourceCleaner()
	other.SetTries(2)
	for c, want := range map[*ResourceCleaner]int{store.NewCleaner(): 3, other: 2} {
		noWait(c)
		tries := 0
		c.Add(context.Background(), "undo", func() error { tries++; return errors.New("boom") })
		if err := c.Cleanup(); err == nil || tries != want {
			t.Errorf("%d tries instead of %d: %v", tries, want, err)
		}
	}
	if got := strings.Count(log.String(), "\n"); got != 4 { // three tries, and that it gives up
		t.Errorf("%s", log.String())
	}
}

// ---- one status ---------------------------------------------------------------------------------

// A plugin's words reach the caller as they are.
func TestRefusalIsOneStatus(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		s.hook(&hooks{refuse: "refused by test"})
		_, err := do(context.Background(), s, podRequest(0, "a"), func(context.Context, *Creation) (IdentifiableCreatable, error) {
			return &resource{id: "1"}, nil
		})
		if code, message := crikeep.Status(err); code != grpcUnknown || message != "refused by test" {
			t.Errorf("%d %q: %v", code, message, err)
		}
	})
}

// ---- in two halves ------------------------------------------------------------------------------

// Before Start nothing is cleaned up, and hooks are told nothing.
func TestNothingIsDoneBeforeStart(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		h := &hooks{refuse: "no"}
		store, err := Load(Options{StateDir: s.dirOf("other"), Logger: quiet(), Hooks: h, Recover: s.recover})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		undone, ended := make(chan struct{}, 1), make(chan error, 1)
		go func() {
			_, err := store.Do(context.Background(), Request{Kind: crikeep.Sandbox, Bytes: podRequest(0, "a")},
				func(_ context.Context, making *Creation) (IdentifiableCreatable, error) {
					making.Undo.Add(context.Background(), "undo", func() error { undone <- struct{}{}; return nil })
					return &resource{id: "1"}, nil
				})
			ended <- err
		}()
		time.Sleep(20 * time.Millisecond)
		if h.all() != "" || len(undone) != 0 {
			t.Errorf("told %q, undone %d", h.all(), len(undone))
		}
		store.Start()
		store.Start()
		if err := <-ended; !errors.Is(err, crikeep.ErrRefused) {
			t.Error(err)
		}
		<-undone
	})
}
