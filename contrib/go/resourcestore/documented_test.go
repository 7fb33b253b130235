// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"
)

// What CRI-O's store is documented to do, asked of both.

const (
	podName = "k8s_web-0_default_0d5e1f7c-95c7-4a3a-9d3c-6d1f2a7b8c90_0"
	ctrName = "k8s_nginx_web-0_default_0d5e1f7c-95c7-4a3a-9d3c-6d1f2a7b8c90_0"
)

// What CRI-O's server writes down of these names compiles with ours: as functions, as methods, in
// structs, and as zero values.
var (
	_ func() *ResourceStore                                                       = New
	_ func(time.Duration) *ResourceStore                                          = NewWithTimeout
	_ func(*ResourceStore)                                                        = (*ResourceStore).Close
	_ func(*ResourceStore, string) string                                         = (*ResourceStore).Get
	_ func(*ResourceStore, string, IdentifiableCreatable, *ResourceCleaner) error = (*ResourceStore).Put
	_ func(*ResourceStore, string)                                                = (*ResourceStore).Delete
	_ func(*ResourceStore, string) (chan struct{}, string)                        = (*ResourceStore).WatcherForResource
	_ func(*ResourceStore, context.Context, string, string)                       = (*ResourceStore).SetStageForResource

	_ func() *ResourceCleaner                                       = NewResourceCleaner
	_ func(*ResourceCleaner, context.Context, string, func() error) = (*ResourceCleaner).Add
	_ func(*ResourceCleaner) error                                  = (*ResourceCleaner).Cleanup

	_ interface {
		ID() string
		SetCreated()
	} = IdentifiableCreatable(nil)
)

const _ string = StageUnknown

// A cleaner need not be made by NewResourceCleaner, and a resource may have none.
func TestZeroCleaners(t *testing.T) {
	var c ResourceCleaner
	done := false
	c.Add(context.Background(), "step", func() error { done = true; return nil })
	if err := c.Cleanup(); err != nil || !done {
		t.Errorf("%v, done %v", err, done)
	}
	if err := new(ResourceCleaner).Cleanup(); err != nil {
		t.Error(err)
	}
	each(t, func(t *testing.T, s *ours) {
		if err := s.ResourceStore.Put(podName, &resource{id: "1"}, nil); err != nil {
			t.Fatal(err)
		}
		s.advance(3 * interval)
		for end := time.Now().Add(time.Minute); s.entries() != 0 && time.Now().Before(end); s.advance(time.Second) {
			time.Sleep(time.Millisecond)
		}
		if n := s.entries(); n != 0 || s.Get(podName) != "" {
			t.Errorf("%d entries are left", n)
		}
	})
}

func both(t *testing.T, test func(t *testing.T, s documented)) {
	each(t, func(t *testing.T, s *ours) { test(t, s) })
	t.Run("ram", func(t *testing.T) { test(t, newRAM(t)) })
}

func put(t *testing.T, s documented, name string, r *resource, c cleaner) {
	t.Helper()
	if err := s.Put(name, r, c); err != nil {
		t.Fatal(err)
	}
}

func signalled(watcher chan struct{}) bool {
	select {
	case <-watcher:
		return true
	default:
		return false
	}
}

func TestGetOfNothing(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		if id := s.Get(podName); id != "" {
			t.Errorf("got %q of an empty store", id)
		}
	})
}

func TestPutThenGetOnce(t *testing.T) {
	for _, name := range []string{podName, ctrName, "anything at all", "", "k8s_POD_p_n_u_3", "\x00"} {
		both(t, func(t *testing.T, s documented) {
			r := &resource{id: "1"}
			put(t, s, name, r, s.newCleaner())
			if r.created.Load() != 0 {
				t.Error("created before it was got")
			}
			if id := s.Get(name); id != "1" {
				t.Fatalf("got %q", id)
			}
			if n := r.created.Load(); n != 1 {
				t.Errorf("SetCreated was called %d times", n)
			}
			if id := s.Get(name); id != "" {
				t.Errorf("got %q a second time", id)
			}
		})
	}
}

func TestNameIsFreeAfterGet(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		for _, id := range []string{"1", "2", "1"} {
			s.SetStageForResource(context.Background(), ctrName, "container creating")
			put(t, s, ctrName, &resource{id: id}, s.newCleaner())
			if got := s.Get(ctrName); got != id {
				t.Fatalf("got %q instead of %q", got, id)
			}
		}
	})
}

func TestNamesAreApart(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		names := []string{podName, ctrName, "k8s_POD_web-0_default_0d5e1f7c-95c7-4a3a-9d3c-6d1f2a7b8c90_0", "odd", "odd2"}
		for _, name := range names {
			put(t, s, name, &resource{id: "id of " + name}, s.newCleaner())
		}
		for _, name := range names {
			if id := s.Get(name); id != "id of "+name {
				t.Errorf("got %q for %q", id, name)
			}
		}
	})
}

func TestPutTwiceIsRefused(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		r, c := &resource{id: "1"}, s.newCleaner()
		put(t, s, podName, r, c)
		if err := s.Put(podName, r, c); err == nil {
			t.Error("the same was taken twice")
		}
		if id := s.Get(podName); id != "1" {
			t.Errorf("got %q afterwards", id)
		}
	})
}

func TestWatchersAreSignalledByPut(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		first, _ := s.WatcherForResource(podName)
		s.SetStageForResource(context.Background(), podName, "sandbox creating")
		second, _ := s.WatcherForResource(podName)
		other, _ := s.WatcherForResource(ctrName)
		if id := s.Get(podName); id != "" {
			t.Errorf("got %q while it is being made", id)
		}
		if signalled(first) || signalled(second) {
			t.Error("signalled before there is anything")
		}
		put(t, s, podName, &resource{id: "1"}, s.newCleaner())
		if !signalled(first) || !signalled(second) {
			t.Error("not signalled")
		}
		if signalled(first) || signalled(other) {
			t.Error("signalled twice, or for another name")
		}
		if id := s.Get(podName); id != "1" {
			t.Errorf("got %q after the signal", id)
		}
	})
}

func TestStages(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		ctx := context.Background()
		if _, stage := s.WatcherForResource(podName); stage != StageUnknown {
			t.Errorf("stage %q of nothing", stage)
		}
		for _, want := range []string{"sandbox creating", "sandbox network creation"} {
			s.SetStageForResource(ctx, podName, want)
			if _, stage := s.WatcherForResource(podName); stage != want {
				t.Errorf("stage %q instead of %q", stage, want)
			}
		}
		s.SetStageForResource(ctx, ctrName, "container creating")
		if _, stage := s.WatcherForResource(ctrName); stage != "container creating" {
			t.Errorf("stage %q", stage)
		}
	})
}

func TestDeleteBeginsAnew(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		s.Delete(podName) // of nothing
		s.SetStageForResource(context.Background(), podName, "sandbox creating")
		s.Delete(podName)
		if _, stage := s.WatcherForResource(podName); stage != StageUnknown {
			t.Errorf("stage %q after Delete", stage)
		}
		put(t, s, podName, &resource{id: "1"}, s.newCleaner())
		r := &resource{id: "2"}
		s.Delete(podName)
		if id := s.Get(podName); id != "" {
			t.Errorf("got %q after Delete", id)
		}
		put(t, s, podName, r, s.newCleaner())
		if id := s.Get(podName); id != "2" {
			t.Errorf("got %q", id)
		}
	})
}

func TestDeletedIsNotCleaned(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		c := s.newCleaner()
		c.Add(context.Background(), "a step", func() error { t.Error("was cleaned up"); return nil })
		put(t, s, podName, &resource{id: "1"}, c)
		s.Delete(podName)
		s.advance(3 * interval)
		s.advance(3 * interval)
	})
}

// Nobody got it from the store. The library tells of what it commits in a goroutine of its own, so
// one try would not do.
func TestDeletedIsNotShown(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		for i := 0; i < 100; i++ {
			r := &resource{id: strconv.Itoa(i)}
			put(t, s, podName, r, s.newCleaner())
			s.Delete(podName)
			if n := r.created.Load(); n != 0 {
				t.Fatalf("SetCreated was called, the %d. time", i)
			}
		}
	})
}

func TestGotIsNotCleaned(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		c := s.newCleaner()
		c.Add(context.Background(), "a step", func() error { t.Error("was cleaned up"); return nil })
		put(t, s, podName, &resource{id: "1"}, c)
		s.Get(podName)
		s.advance(3 * interval)
		s.advance(3 * interval)
	})
}

func TestUnclaimedIsCleanedAfterTwoIntervals(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		cleaned := make(chan string, 3)
		c := s.newCleaner()
		for _, step := range []string{"third", "second", "first"} {
			step := step
			c.Add(context.Background(), step, func() error { cleaned <- step; return nil })
		}
		put(t, s, podName, &resource{id: "1"}, c)
		s.advance(interval - time.Second)
		if len(cleaned) != 0 {
			t.Fatal("cleaned up before the first interval was over")
		}
		s.advance(interval + 2*time.Second)
		for _, want := range []string{"first", "second", "third"} {
			if step := <-cleaned; step != want {
				t.Errorf("step %q instead of %q", step, want)
			}
		}
		if id := s.Get(podName); id != "" {
			t.Errorf("got %q after it was cleaned up", id)
		}
	})
}

func TestNameIsFreeAfterCleanup(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		cleaned := make(chan struct{}, 1)
		c := s.newCleaner()
		c.Add(context.Background(), "undo", func() error { cleaned <- struct{}{}; return nil })
		put(t, s, podName, &resource{id: "1"}, c)
		s.advance(2*interval + time.Second)
		<-cleaned
		s.SetStageForResource(context.Background(), podName, "sandbox creating")
		put(t, s, podName, &resource{id: "2"}, s.newCleaner())
		if id := s.Get(podName); id != "2" {
			t.Errorf("got %q", id)
		}
	})
}

func TestUnfinishedIsNotCleaned(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		watcher, _ := s.WatcherForResource(podName)
		s.SetStageForResource(context.Background(), ctrName, "container creating")
		for i := 0; i < 6; i++ {
			s.advance(interval)
		}
		put(t, s, podName, &resource{id: "1"}, s.newCleaner())
		put(t, s, ctrName, &resource{id: "2"}, s.newCleaner())
		if !signalled(watcher) {
			t.Error("not signalled after six intervals")
		}
		if s.Get(podName) != "1" || s.Get(ctrName) != "2" {
			t.Error("not to be had after six intervals")
		}
	})
}

func TestCloseTwice(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		s.Close()
		s.Close()
	})
}

func TestOneOfManyGets(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		for round := 0; round < 20; round++ {
			put(t, s, podName, &resource{id: "1"}, s.newCleaner())
			var wg sync.WaitGroup
			got := make(chan string, 16)
			for i := 0; i < cap(got); i++ {
				wg.Add(1)
				go func() {
					defer wg.Done()
					got <- s.Get(podName)
				}()
			}
			wg.Wait()
			close(got)
			n := 0
			for id := range got {
				if id == "1" {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("%d callers got it", n)
			}
		}
	})
}

// ---- cleaners -----------------------------------------------------------------------------------

func TestCleanupOrderAndRetries(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		var steps []string
		failures := 2
		c := s.newCleaner()
		noWait(c)
		c.Add(context.Background(), "last", func() error { steps = append(steps, "last"); return nil })
		c.Add(context.Background(), "flaky", func() error {
			steps = append(steps, "flaky")
			if failures > 0 {
				failures--
				return errors.New("not yet")
			}
			return nil
		})
		c.Add(context.Background(), "first", func() error { steps = append(steps, "first"); return nil })
		if err := c.Cleanup(); err != nil {
			t.Fatal(err)
		}
		want := []string{"first", "flaky", "flaky", "flaky", "last"}
		if len(steps) != len(want) {
			t.Fatalf("steps %v", steps)
		}
		for i := range want {
			if steps[i] != want[i] {
				t.Fatalf("steps %v instead of %v", steps, want)
			}
		}
	})
}

func TestCleanupGivesUpAfterTwentyTries(t *testing.T) {
	both(t, func(t *testing.T, s documented) {
		tries := 0
		c := s.newCleaner()
		noWait(c)
		c.Add(context.Background(), "never reached", func() error { t.Error("the step behind it ran"); return nil })
		boom := errors.New("boom")
		c.Add(context.Background(), "fails", func() error { tries++; return boom })
		if err := c.Cleanup(); !errors.Is(err, boom) {
			t.Errorf("error %v", err)
		}
		if tries != 20 {
			t.Errorf("%d tries", tries)
		}
	})
}

func noWait(c cleaner) {
	if c, ok := c.(*ResourceCleaner); ok {
		c.wait = func(context.Context, time.Duration) error { return nil }
	}
}
