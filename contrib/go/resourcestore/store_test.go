// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crikeep.io/go/crikeep"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name string
		want parts
	}{
		{"k8s_web_ns_uid_0", parts{kind: crikeep.Sandbox, pod: "web", namespace: "ns", uid: "uid"}},
		{"k8s_web_ns_uid_4294967295", parts{kind: crikeep.Sandbox, pod: "web", namespace: "ns", uid: "uid",
			attempt: 4294967295}},
		{"k8s_c_web_ns_uid_7", parts{kind: crikeep.Container, container: "c", pod: "web", namespace: "ns", uid: "uid",
			sandboxID: "pod:uid", attempt: 7}},
		{"k8s_POD_web_ns_uid_1", parts{kind: crikeep.Container, container: "POD", pod: "web", namespace: "ns", uid: "uid",
			sandboxID: "pod:uid", attempt: 1}},
		{"k8s_web_ns_uid_01", parts{kind: crikeep.Sandbox, pod: "k8s_web_ns_uid_01", uid: "k8s_web_ns_uid_01"}},
		{"k8s_web_ns_uid_4294967296", parts{kind: crikeep.Sandbox, pod: "k8s_web_ns_uid_4294967296",
			uid: "k8s_web_ns_uid_4294967296"}},
		{"k8s__ns_uid_0", parts{kind: crikeep.Sandbox, pod: "k8s__ns_uid_0", uid: "k8s__ns_uid_0"}},
		{"web", parts{kind: crikeep.Sandbox, pod: "web", uid: "web"}},
	} {
		got := parseName(c.name)
		if got != c.want {
			t.Errorf("%q is %+v instead of %+v", c.name, got, c.want)
		}
		if read := partsOfRequest(got.kind, got.request()); read != got {
			t.Errorf("%q: the request says %+v instead of %+v", c.name, read, got)
		}
		e := crikeep.Entry{Kind: got.kind, PodName: got.pod, PodNamespace: got.namespace, PodUID: got.uid,
			ContainerName: got.container, Attempt: got.attempt}
		if name := nameOf(e); name != c.name {
			t.Errorf("%q comes back as %q", c.name, name)
		}
	}
	long := strings.Repeat("x", 5000)
	if p := parseName(long); len(p.pod) > nameMax || p == parseName(long+"x") {
		t.Errorf("a long name is %+v", p)
	}
}

func TestPartsOfBrokenRequests(t *testing.T) {
	good := ctrRequest("s", "nginx")
	for n := range good {
		partsOfRequest(crikeep.Container, good[:n])
	}
	random := rand.New(rand.NewSource(1))
	for i := 0; i < 20000; i++ {
		b := make([]byte, random.Intn(40))
		random.Read(b)
		partsOfRequest(crikeep.Kind(1+i%2), b)
	}
}

// ---- what a request can hear --------------------------------------------------------------------

func begin(t *testing.T, s *ours, kind crikeep.Kind, name string, request []byte) {
	t.Helper()
	if id, err := s.GetForRequest(context.Background(), kind, name, request); id != "" || err != nil {
		t.Fatalf("not ours to make: %q, %v", id, err)
	}
}

// wait begins a second request, and returns when it waits.
func wait(s *ours, kind crikeep.Kind, name string, request []byte) chan answer {
	waits, got := make(chan struct{}), make(chan answer, 1)
	s.onWait(func() { close(waits) }, nil)
	go func() {
		id, err := s.GetForRequest(context.Background(), kind, name, request)
		got <- answer{id, err}
	}()
	<-waits
	s.onWait(nil, nil)
	return got
}

func TestCommittedConflictsWithOtherContents(t *testing.T) {
	each(t, testCommittedConflictsWithOtherContents)
}

func testCommittedConflictsWithOtherContents(t *testing.T, s *ours) {
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	if id, err := s.Finish(context.Background(), podName, &resource{id: "1"}, nil); id != "1" || err != nil {
		t.Fatalf("%q, %v", id, err)
	}
	for i := 0; i < 3; i++ {
		id, err := s.GetForRequest(context.Background(), crikeep.Sandbox, podName, podRequest(0, "a"))
		if id != "1" || err != nil {
			t.Fatalf("a repetition got %q, %v", id, err)
		}
	}
	_, err := s.GetForRequest(context.Background(), crikeep.Sandbox, podName, podRequest(0, "b"))
	if !errors.Is(err, crikeep.ErrConflict) {
		t.Errorf("another request got %v", err)
	}
	s.Removed(context.Background(), crikeep.Sandbox, "1")
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

func TestDeleteLetsAWaiterTakeOver(t *testing.T) { each(t, testDeleteLetsAWaiterTakeOver) }

func testDeleteLetsAWaiterTakeOver(t *testing.T, s *ours) {
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	got := wait(s, crikeep.Sandbox, podName, podRequest(0, "a"))
	s.Delete(podName)
	if a := <-got; a.id != "" || a.err != nil {
		t.Fatalf("who waited got %q, %v", a.id, a.err)
	}
	if id, err := s.Finish(context.Background(), podName, &resource{id: "2"}, nil); id != "2" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

func TestPutGoesStraightToAWaiter(t *testing.T) { each(t, testPutGoesStraightToAWaiter) }

func testPutGoesStraightToAWaiter(t *testing.T, s *ours) {
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	s.SetStageForResource(context.Background(), podName, "sandbox creating")
	got := wait(s, crikeep.Sandbox, podName, podRequest(0, "a"))
	r := &resource{id: "1"}
	put(t, s, podName, r, NewResourceCleaner())
	if a := <-got; a.id != "1" || a.err != nil {
		t.Fatalf("who waited got %q, %v", a.id, a.err)
	}
	if n := r.created.Load(); n != 1 {
		t.Errorf("SetCreated was called %d times", n)
	}
	if id := s.Get(podName); id != "" {
		t.Errorf("it is there once more: %q", id)
	}
}

// Begun with the old calls: nobody will say that it was removed.
func TestFinishOfANameIsForgotten(t *testing.T) { each(t, testFinishOfANameIsForgotten) }

func testFinishOfANameIsForgotten(t *testing.T, s *ours) {
	s.SetStageForResource(context.Background(), podName, "sandbox creating")
	r := &resource{id: "1"}
	if id, err := s.Finish(context.Background(), podName, r, nil); id != "1" || err != nil || r.created.Load() != 1 {
		t.Errorf("%q, %v, created %d times", id, err, r.created.Load())
	}
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// Put came between a Get that found nothing and the watcher.
func TestWatcherAfterPut(t *testing.T) { each(t, testWatcherAfterPut) }

func testWatcherAfterPut(t *testing.T, s *ours) {
	put(t, s, podName, &resource{id: "1"}, s.newCleaner())
	if watcher, _ := s.WatcherForResource(podName); !signalled(watcher) {
		t.Error("not signalled")
	}
}

// What the library does not take at all is cleaned up: one pod uid has one name.
func TestRefusedByTheLibraryIsCleaned(t *testing.T) { each(t, testRefusedByTheLibraryIsCleaned) }

func testRefusedByTheLibraryIsCleaned(t *testing.T, s *ours) {
	put(t, s, "k8s_a_ns_uid_0", &resource{id: "1"}, s.newCleaner())
	cleaned := make(chan struct{})
	c := s.newCleaner()
	c.Add(context.Background(), "undo", func() error { close(cleaned); return nil })
	if err := s.Put("k8s_b_ns_uid_0", &resource{id: "2"}, c); !errors.Is(err, crikeep.ErrInvalid) {
		t.Errorf("put: %v", err)
	}
	<-cleaned
	if id := s.Get("k8s_a_ns_uid_0"); id != "1" {
		t.Errorf("got %q", id)
	}
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// A handler that fails by a deadline of its own has failed for certain: it has cleaned up.
func TestFailByAnInnerDeadline(t *testing.T) { each(t, testFailByAnInnerDeadline) }

func testFailByAnInnerDeadline(t *testing.T, s *ours) {
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	got := wait(s, crikeep.Sandbox, podName, podRequest(0, "a"))
	s.Fail(context.Background(), podName, fmt.Errorf("CNI: %w", context.DeadlineExceeded))
	a := <-got
	var status *crikeep.StatusError
	if !errors.As(a.err, &status) || !strings.HasPrefix(status.Message, "CNI: ") || status.GRPC != grpcUnknown {
		t.Errorf("who waited got %q, %v", a.id, a.err)
	}
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// A creation may take longer than the library believes. As long as its handler runs nobody makes
// another.
func TestSlowCreationIsNotMadeTwice(t *testing.T) { each(t, testSlowCreationIsNotMadeTwice) }

func testSlowCreationIsNotMadeTwice(t *testing.T, s *ours) {
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	got := wait(s, crikeep.Sandbox, podName, podRequest(0, "a"))
	for i := 0; i < 40; i++ {
		s.advance(interval)
		s.WatcherForResource(ctrName) // sweeps, too
		time.Sleep(time.Millisecond)  // what is asked in goroutines may be answered
	}
	if id, err := s.Finish(context.Background(), podName, &resource{id: "1"}, nil); id != "1" || err != nil {
		t.Errorf("the maker got %q, %v", id, err)
	}
	if a := <-got; a.id != "1" || a.err != nil {
		t.Errorf("who waited got %q, %v", a.id, a.err)
	}
}

func TestSlowCreationIsTaken(t *testing.T) { each(t, testSlowCreationIsTaken) }

func testSlowCreationIsTaken(t *testing.T, s *ours) {
	for i := 0; i < 40; i++ {
		s.SetStageForResource(context.Background(), podName, "sandbox network creation")
		s.advance(interval)
		time.Sleep(time.Millisecond)
	}
	put(t, s, podName, &resource{id: "1"}, s.newCleaner())
	if id := s.Get(podName); id != "1" {
		t.Errorf("got %q", id)
	}
}

func TestSupersededIsUndone(t *testing.T) { each(t, testSupersededIsUndone) }

func testSupersededIsUndone(t *testing.T, s *ours) {
	begin(t, s, crikeep.Sandbox, podNameOf(0), podRequest(0, "a"))
	waiter := wait(s, crikeep.Sandbox, podNameOf(0), podRequest(0, "a"))
	undone := make(chan struct{})
	c := NewResourceCleaner()
	c.Add(context.Background(), "undo", func() error { close(undone); return nil })
	next := make(chan answer, 1)
	go func() {
		id, err := s.GetForRequest(context.Background(), crikeep.Sandbox, podNameOf(1), podRequest(1, "a"))
		next <- answer{id, err}
	}()
	if a := <-waiter; !errors.Is(a.err, crikeep.ErrAbandoned) {
		t.Errorf("who waited for attempt 0 got %q, %v", a.id, a.err)
	}
	id, err := s.Finish(context.Background(), podNameOf(0), &resource{id: "0"}, c)
	if id != "" || !errors.Is(err, crikeep.ErrAbandoned) {
		t.Errorf("attempt 0 got %q, %v", id, err)
	}
	<-undone
	if a := <-next; a.id != "" || a.err != nil {
		t.Fatalf("attempt 1 got %q, %v", a.id, a.err)
	}
	if id, err := s.Finish(context.Background(), podNameOf(1), &resource{id: "1"}, nil); id != "1" || err != nil {
		t.Errorf("attempt 1 ended with %q, %v", id, err)
	}
}

func TestStopSandbox(t *testing.T) { each(t, testStopSandbox) }

func testStopSandbox(t *testing.T, s *ours) {
	undone := make(chan struct{})
	if err := late(s, crikeep.Container, ctrName, ctrRequest("s1", "nginx"), &resource{id: "1"}, func() error {
		close(undone)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.StopSandbox(context.Background(), "s1")
	<-undone
	_, err := s.GetForRequest(context.Background(), crikeep.Container, ctrName, ctrRequest("s1", "nginx"))
	if !errors.Is(err, crikeep.ErrPrecondition) {
		t.Errorf("a container in a stopped sandbox: %v", err)
	}
}

func TestCloseWakesWhoWaits(t *testing.T) { each(t, testCloseWakesWhoWaits) }

func testCloseWakesWhoWaits(t *testing.T, s *ours) {
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	got := wait(s, crikeep.Sandbox, podName, podRequest(0, "a"))
	s.Close()
	if a := <-got; !errors.Is(a.err, crikeep.ErrClosed) {
		t.Errorf("who waited got %q, %v", a.id, a.err)
	}
	s.SetStageForResource(context.Background(), ctrName, "container creating") // nothing of this may crash
	s.WatcherForResource(ctrName)
	if err := s.Put(ctrName, &resource{id: "2"}, NewResourceCleaner()); !errors.Is(err, crikeep.ErrClosed) {
		t.Errorf("Put: %v", err)
	}
	if _, err := s.Finish(context.Background(), podName, &resource{id: "1"}, nil); err == nil {
		t.Error("finished after Close")
	}
	s.Fail(context.Background(), podName, errors.New("boom"))
	s.Delete(podName)
	s.Removed(context.Background(), crikeep.Sandbox, "1")
	s.StopSandbox(context.Background(), "1")
	s.hides(crikeep.Sandbox, "1")
	if id := s.Get(podName); id != "" {
		t.Errorf("Get: %q", id)
	}
}

// A dead one that its maker takes care of is not the store's any more.
func TestDeleteOfADeadOne(t *testing.T) { each(t, testDeleteOfADeadOne) }

func testDeleteOfADeadOne(t *testing.T, s *ours) {
	if err := late(s, crikeep.Sandbox, podName, podRequest(0, "a"), &resource{id: "1"}, func() error {
		t.Error("was cleaned up")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.kill("1")
	s.Delete(podName)
	if s.hides(crikeep.Sandbox, "1") {
		t.Error("hidden after Delete")
	}
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// What was removed is forgotten at once, not when its time has come.
func TestRemovedIsForgotten(t *testing.T) { each(t, testRemovedIsForgotten) }

func testRemovedIsForgotten(t *testing.T, s *ours) {
	if err := late(s, crikeep.Container, ctrName, ctrRequest("s1", "nginx"), &resource{id: "1"}, func() error {
		t.Error("was cleaned up")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.removed(crikeep.Container, "1")
	for end := time.Now().Add(10 * time.Second); s.entries() > 0; time.Sleep(time.Millisecond) { // destroyed in a goroutine
		if time.Now().After(end) {
			t.Fatalf("%d entries are left", s.entries())
		}
	}
}

// Who watched and never came back does not keep a result for ever.
func TestWatchersHoldEnds(t *testing.T) { each(t, testWatchersHoldEnds) }

func testWatchersHoldEnds(t *testing.T, s *ours) {
	s.SetStageForResource(context.Background(), podName, "sandbox creating")
	s.WatcherForResource(podName)
	cleaned := make(chan struct{}, 1)
	c := s.newCleaner()
	c.Add(context.Background(), "undo", func() error { cleaned <- struct{}{}; return nil })
	put(t, s, podName, &resource{id: "1"}, c)
	s.advance(watcherHold - time.Second)
	if len(cleaned) != 0 {
		t.Error("cleaned up while a watcher may wait")
	}
	if err := endsAfter(s, 1, cleaned); err != nil {
		t.Error(err)
	}
}

// ---- clean-up -----------------------------------------------------------------------------------

func TestCleanupGoesOn(t *testing.T) {
	c := NewResourceCleaner()
	noWait(c)
	var steps []string
	broken := true
	for _, name := range []string{"release", "fails", "unmount"} {
		name := name
		c.Add(context.Background(), name, func() error {
			steps = append(steps, name)
			if name == "fails" && broken {
				return errors.New("boom")
			}
			return nil
		})
	}
	if err := c.Cleanup(); err == nil || len(steps) != 21 {
		t.Fatalf("%v after %d steps", err, len(steps))
	}
	broken, steps = false, nil
	if err := c.CleanupContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(steps, " "); got != "fails release" {
		t.Errorf("it went on with %q", got)
	}
	if err := c.Cleanup(); err != nil || len(steps) != 2 {
		t.Errorf("once more: %v, %v", err, steps)
	}
}

// What a step finds that has to be undone, too, is undone next.
func TestStepAddsAStep(t *testing.T) {
	c := NewResourceCleaner()
	var steps []string
	c.Add(context.Background(), "last", func() error { steps = append(steps, "last"); return nil })
	c.Add(context.Background(), "first", func() error {
		steps = append(steps, "first")
		c.Add(context.Background(), "added", func() error { steps = append(steps, "added"); return nil })
		return nil
	})
	if err := c.Cleanup(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(steps, " "); got != "first added last" {
		t.Errorf("steps %q", got)
	}
}

func TestCleanupOutlastsTwentyTries(t *testing.T) {
	c := NewResourceCleaner()
	var waited []time.Duration
	c.wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	tries := 0
	c.Add(context.Background(), "slow", func() error {
		if tries++; tries < 40 {
			return errors.New("not yet")
		}
		return nil
	})
	if err := c.CleanupContext(context.Background()); err != nil || tries != 40 {
		t.Errorf("%v after %d tries", err, tries)
	}
	if waited[0] != cleanupWait || waited[1] != cleanupWait*3/2 || waited[38] != cleanupWaitMost {
		t.Errorf("waits %v", waited)
	}
}

// A step that panics, or ends its goroutine, has failed and is tried again; it neither ends the
// process nor is waited for.
func TestStepThatPanicsHasFailed(t *testing.T) {
	for what, end := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		c := NewResourceCleaner()
		noWait(c)
		tries, below := 0, 0
		c.Add(context.Background(), "below", func() error { below++; return nil })
		c.Add(context.Background(), "step", func() error {
			if tries++; tries < 3 {
				end()
			}
			return nil
		})
		done := make(chan error, 1)
		go func() { done <- c.Cleanup() }()
		select {
		case err := <-done:
			if err != nil || tries != 3 || below != 1 {
				t.Errorf("%s: %v after %d tries, and %d of the step below", what, err, tries, below)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: its end is waited for", what)
		}
	}
}

// A step that hangs is begun once, however often its time is over, and holds nobody up.
func TestHangingStepIsBegunOnce(t *testing.T) { each(t, hangingStepIsBegunOnce) }

func hangingStepIsBegunOnce(t *testing.T, o *ours) {
	o.reopen(Options{DestroyTimeout: 20 * time.Millisecond, Recover: o.recover})
	var begun atomic.Int32
	release, done, other := make(chan struct{}), make(chan struct{}, 1), make(chan struct{}, 1)
	c := NewResourceCleaner()
	c.Add(context.Background(), "release the name", func() error { done <- struct{}{}; return nil })
	c.Add(context.Background(), "hangs", func() error { begun.Add(1); <-release; return nil })
	put(t, o, podName, &resource{id: "1"}, c)
	c = NewResourceCleaner()
	c.Add(context.Background(), "other", func() error { other <- struct{}{}; return nil })
	put(t, o, "k8s_other_ns_uid2_0", &resource{id: "2"}, c)

	if err := endsAfter(o, 1, other); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; { // until it was given up twice
		entries, err := o.cache.Entries()
		if err != nil || len(entries) < 1 || time.Now().After(end) {
			t.Fatalf("%v, %v", entries, err)
		}
		if entries[0].Tries >= 2 {
			break
		}
		o.advance(interval)
		time.Sleep(time.Millisecond)
	}
	close(release)
	if err := endsAfter(o, 1, done); err != nil {
		t.Fatal(err)
	}
	if n := begun.Load(); n != 1 {
		t.Errorf("it was begun %d times", n)
	}
}

// ---- behind something else ----------------------------------------------------------------------

// behind begins attempt 1 with the old calls while attempt 0 cannot be undone.
func behind(t *testing.T, s *ours) (release func()) {
	blocked, hold := make(chan struct{}), make(chan struct{})
	c := s.newCleaner()
	c.Add(context.Background(), "undo", func() error { close(blocked); <-hold; return nil })
	put(t, s, podNameOf(0), &resource{id: "0"}, c)
	s.SetStageForResource(context.Background(), podNameOf(1), "sandbox creating")
	<-blocked
	return func() { close(hold) }
}

func TestPutBehindAnEviction(t *testing.T) { each(t, testPutBehindAnEviction) }

func testPutBehindAnEviction(t *testing.T, s *ours) {
	release := behind(t, s)
	cleaned := make(chan struct{}, 1)
	c := s.newCleaner()
	c.Add(context.Background(), "undo", func() error { cleaned <- struct{}{}; return nil })
	put(t, s, podNameOf(1), &resource{id: "1"}, c)
	release()
	for kept := false; !kept; time.Sleep(time.Millisecond) { // it is the library's as soon as attempt 0 is gone
		entries, err := s.cache.Entries()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			kept = kept || e.ID == "1" && e.State == crikeep.StateKept
		}
	}
	s.SetStageForResource(context.Background(), ctrName, "container creating") // nothing of it hangs
	if err := endsAfter(s, 1, cleaned); err != nil {
		t.Error(err)
	}
}

// As soon as the way is free, it is as if nothing had been in it.
func TestPutAfterAnEviction(t *testing.T) { each(t, testPutAfterAnEviction) }

func testPutAfterAnEviction(t *testing.T, s *ours) {
	release := behind(t, s)
	release()
	for making := false; !making; time.Sleep(time.Millisecond) {
		rec := s.find(podNameOf(1), 0, false)
		making = !rec.pending
		rec.mu.Unlock()
	}
	put(t, s, podNameOf(1), &resource{id: "1"}, s.newCleaner())
	if id := s.Get(podNameOf(1)); id != "1" {
		t.Errorf("got %q", id)
	}
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// While an earlier result of its name is undone, the kubelet moves on to the next attempt. The
// handler of the one before goes on for a while, which is no request: what it says must not give up
// the attempt that is wanted.
func TestStageOfASupersededAttempt(t *testing.T) { each(t, testStageOfASupersededAttempt) }

func testStageOfASupersededAttempt(t *testing.T, s *ours) {
	name := func(attempt int) string { return ctrName[:len(ctrName)-1] + fmt.Sprint(attempt) }
	blocked, hold := make(chan struct{}), make(chan struct{})
	defer close(hold)
	c := s.newCleaner()
	c.Add(context.Background(), "undo", func() error { close(blocked); <-hold; return nil })
	put(t, s, name(1), &resource{id: "earlier"}, c)
	s.SetStageForResource(context.Background(), name(0), "container creating")
	s.Delete(name(0))
	<-blocked
	s.SetStageForResource(context.Background(), name(1), "container creating")
	s.SetStageForResource(context.Background(), name(2), "container creating")
	for over := false; !over; time.Sleep(time.Millisecond) {
		rec := s.find(name(1), 0, false)
		over = rec.turn == nil
		rec.mu.Unlock()
	}
	s.SetStageForResource(context.Background(), name(1), "container storage creation")
	put(t, s, name(2), &resource{id: "2"}, s.newCleaner())
	cleaned := make(chan struct{})
	c = s.newCleaner()
	c.Add(context.Background(), "undo", func() error { close(cleaned); return nil })
	if id := s.Get(name(2)); id != "2" {
		t.Errorf("got %q", id)
	}
	if err := s.Put(name(1), &resource{id: "1"}, c); !errors.Is(err, crikeep.ErrAbandoned) {
		t.Fatalf("put: %v", err)
	}
	<-cleaned
	s.SetStageForResource(context.Background(), name(1), "another handler") // it has ended, so this is a new one
	if rec := s.find(name(1), 0, false); rec == nil || rec.turn == nil {
		t.Error("its name is not free")
	} else {
		rec.mu.Unlock()
	}
}

func TestGetBehindAnEviction(t *testing.T) { each(t, testGetBehindAnEviction) }

func testGetBehindAnEviction(t *testing.T, s *ours) {
	release := behind(t, s)
	defer release()
	r := &resource{id: "1"}
	put(t, s, podNameOf(1), r, s.newCleaner())
	if id := s.Get(podNameOf(1)); id != "1" || r.created.Load() != 1 {
		t.Errorf("got %q, created %d times", id, r.created.Load())
	}
	if id := s.Get(podNameOf(1)); id != "" {
		t.Errorf("got %q once more", id)
	}
}

func TestFinishBehindAnEviction(t *testing.T) { each(t, testFinishBehindAnEviction) }

func testFinishBehindAnEviction(t *testing.T, s *ours) {
	release := behind(t, s)
	defer release()
	r := &resource{id: "1"}
	if id, err := s.Finish(context.Background(), podNameOf(1), r, nil); id != "1" || err != nil || r.created.Load() != 1 {
		t.Errorf("got %q, %v, created %d times", id, err, r.created.Load())
	}
}

func TestDeleteBehindAnEviction(t *testing.T) { each(t, testDeleteBehindAnEviction) }

func testDeleteBehindAnEviction(t *testing.T, s *ours) {
	release := behind(t, s)
	s.Delete(podNameOf(1))
	release()
	for end := time.Now().Add(10 * time.Second); s.entries() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d entries are left", s.entries())
		}
	}
}

// ---- many at once -------------------------------------------------------------------------------

// Callers that give up when it pleases them, creations that fail now and then, attempts that move
// on. In the end: whoever got an id got one that exists and that nobody undoes, and at most one of
// a pod's attempts is there.
func TestStorm(t *testing.T) { each(t, testStorm) }

func testStorm(t *testing.T, s *ours) {
	const pods, callers, rounds = 8, 6, 40
	var mu sync.Mutex
	exists, undone := map[string]bool{}, map[string]bool{}
	next := 0
	var wg sync.WaitGroup
	for pod := 0; pod < pods; pod++ {
		for caller := 0; caller < callers; caller++ {
			wg.Add(1)
			random := rand.New(rand.NewSource(int64(pod*callers + caller)))
			go func(pod int) {
				defer wg.Done()
				for round := 0; round < rounds; round++ {
					attempt := uint32(round / 10)
					p := parts{kind: crikeep.Sandbox, pod: fmt.Sprintf("p%d", pod), namespace: "ns",
						uid: fmt.Sprintf("uid%d", pod), attempt: attempt}
					name := fmt.Sprintf("k8s_p%d_ns_uid%d_%d", pod, pod, attempt)
					ctx, cancel := context.WithCancel(context.Background())
					timer := time.AfterFunc(time.Duration(random.Intn(2000))*time.Microsecond, cancel)
					make := func(c cleaner) (*resource, error) {
						mu.Lock()
						next++
						r := &resource{id: fmt.Sprint("id", next)}
						mu.Unlock()
						if random.Intn(8) == 0 {
							return nil, errors.New("boom")
						}
						c.Add(ctx, "undo", func() error {
							mu.Lock()
							defer mu.Unlock()
							if !exists[r.id] {
								t.Errorf("%s was undone after it was removed, or twice", r.id)
							}
							delete(exists, r.id)
							undone[r.id] = true
							return nil
						})
						mu.Lock()
						exists[r.id] = true
						mu.Unlock()
						for i := random.Intn(3); i > 0; i-- {
							runtime.Gosched()
						}
						return r, nil
					}
					id, err := s.create(ctx, crikeep.Sandbox, name, p.request(), make)
					mu.Lock()
					if err == nil && undone[id] {
						t.Errorf("%s was handed out and undone", id)
					}
					mu.Unlock()
					timer.Stop()
					cancel()
					if err == nil && random.Intn(4) == 0 { // the kubelet removes it
						mu.Lock()
						mine := exists[id]
						delete(exists, id)
						mu.Unlock()
						if mine {
							s.removed(crikeep.Sandbox, id)
						}
					}
				}
			}(pod)
		}
	}
	wg.Wait()
	for end := time.Now().Add(30 * time.Second); s.hidden() > 0 && time.Now().Before(end); {
		s.advance(interval)
		time.Sleep(time.Millisecond)
	}
	entries, err := s.cache.Entries()
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, e := range entries {
		if e.State != crikeep.StateCommitted || !exists[e.ID] {
			t.Errorf("left: %+v, exists %v", e, exists[e.ID])
		}
		delete(exists, e.ID)
	}
	for id := range exists {
		t.Errorf("%s exists, and nobody knows it", id)
	}
}

func (o *ours) hidden() int {
	entries, err := o.cache.Entries()
	if err != nil {
		o.t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if e.State != crikeep.StateCommitted {
			n++
		}
	}
	return n
}

func TestLifecyclesLeaveNothing(t *testing.T) {
	each(t, func(t *testing.T, first *ours) {
		lives := func(n int) {
			for i := 0; i < n; i++ {
				s, err := Open(Options{StateDir: first.dir, Recover: first.recover, Logger: quiet()})
				if err != nil {
					t.Fatal(err)
				}
				watcher, _ := s.WatcherForResource(podName)
				s.SetStageForResource(context.Background(), podName, "sandbox creating")
				if err := s.Put(podName, &resource{id: "1"}, NewResourceCleaner()); err != nil || !signalled(watcher) {
					t.Fatal(err)
				}
				if s.Get(podName) != "1" {
					t.Fatal("not there")
				}
				s.Close()
			}
		}
		count := func() (fds, goroutines int) {
			entries, _ := os.ReadDir("/proc/self/fd") // where there is one
			return len(entries), runtime.NumGoroutine()
		}
		first.Close()
		lives(3)
		fds, goroutines := count()
		lives(50)
		var fdsAfter, goroutinesAfter int
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) { // goroutines that end
			if fdsAfter, goroutinesAfter = count(); fdsAfter <= fds && goroutinesAfter <= goroutines {
				return
			}
		}
		t.Errorf("descriptors %d, then %d; goroutines %d, then %d", fds, fdsAfter, goroutines, goroutinesAfter)
	})
}

// ---- hooks --------------------------------------------------------------------------------------

// hooks stand for plugins: one of them may refuse, and may take its time.
type hooks struct {
	mu     sync.Mutex
	refuse string
	hold   chan struct{}
	fired  []string
}

func (h *hooks) Choose(crikeep.Entry) (names []string, absent string) { return []string{"10-test"}, "" }
func (h *hooks) Cancel(uint64)                                        {}
func (h *hooks) Released(crikeep.Entry, bool)                         {}

func (h *hooks) Fire(_ context.Context, event crikeep.HookEvent, e crikeep.Entry) (told []string, refusal string) {
	h.mu.Lock()
	h.fired = append(h.fired, event.String()+" "+e.ID)
	hold := h.hold
	if event == crikeep.HookRun {
		refusal = h.refuse
	}
	h.mu.Unlock()
	if hold != nil && event == crikeep.HookRun {
		<-hold
	}
	return []string{"10-test"}, refusal
}

func (h *hooks) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.fired, ", ")
}

// hook makes it a store with hooks.
func (o *ours) hook(h *hooks) {
	o.reopen(Options{Hooks: h, Recover: func(_ context.Context, _ crikeep.Kind, name, id string) (IdentifiableCreatable, *ResourceCleaner, error) {
		o.t.Errorf("asked for %q %q, which is of this life", name, id)
		return nil, nil, nil
	}})
}

// A plugin says no: the resource is undone once, by the store, and nobody saw it.
func TestRefusedByAHook(t *testing.T) { each(t, refusedByAHook) }

func refusedByAHook(t *testing.T, s *ours) {
	h := &hooks{refuse: "plugin 10-test: no"}
	s.hook(h)
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	got := wait(s, crikeep.Sandbox, podName, podRequest(0, "a"))
	undone := make(chan struct{}, 2)
	c := NewResourceCleaner()
	c.Add(context.Background(), "undo", func() error { undone <- struct{}{}; return nil })
	r := &resource{id: "1"}
	if id, err := s.Finish(context.Background(), podName, r, c); !errors.Is(err, crikeep.ErrRefused) {
		t.Errorf("the maker got %q, %v", id, err)
	}
	if a := <-got; !errors.Is(a.err, crikeep.ErrRefused) {
		t.Errorf("who waited got %q, %v", a.id, a.err)
	}
	<-undone
	h.mu.Lock()
	h.refuse = ""
	h.mu.Unlock()
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	if id, err := s.Finish(context.Background(), podName, &resource{id: "2"}, nil); id != "2" || err != nil {
		t.Errorf("the next one got %q, %v", id, err)
	}
	if fired := h.all(); fired != "run 1, stop 1, remove 1, run 2" {
		t.Errorf("told: %s", fired)
	}
	if told := strings.Join(s.events(), ", "); told != "created 2" || r.created.Load() != 0 || len(undone) != 0 {
		t.Errorf("told %q, created %d times, undone once more: %d", told, r.created.Load(), len(undone))
	}
}

// The caller leaves while plugins are told. A sandbox is the kubelet's then, which finds it in its
// list; the repetition gets it.
func TestCallerLeavesDuringHooks(t *testing.T) { each(t, callerLeavesDuringHooks) }

func callerLeavesDuringHooks(t *testing.T, s *ours) {
	h := &hooks{hold: make(chan struct{})}
	s.hook(h)
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	ctx, cancel := context.WithCancel(context.Background())
	r := &resource{id: "1"}
	ended := make(chan answer)
	go func() {
		id, err := s.Finish(ctx, podName, r, nil)
		ended <- answer{id, err}
	}()
	for h.all() == "" {
		runtime.Gosched()
	}
	if r.created.Load() != 0 || !s.hides(crikeep.Sandbox, "1") {
		t.Error("visible before the plugins agreed")
	}
	cancel()
	if a := <-ended; !errors.Is(a.err, context.Canceled) {
		t.Errorf("who left got %q, %v", a.id, a.err)
	}
	close(h.hold)
	id, err := s.GetForRequest(context.Background(), crikeep.Sandbox, podName, podRequest(0, "a"))
	if id != "1" || err != nil {
		t.Errorf("the repetition got %q, %v", id, err)
	}
	if told := strings.Join(s.events(), ", "); told != "created 1" || r.created.Load() != 1 || s.hides(crikeep.Sandbox, "1") {
		t.Errorf("told %q, created %d times, hidden %v", told, r.created.Load(), s.hides(crikeep.Sandbox, "1"))
	}
	if fired := h.all(); fired != "run 1" {
		t.Errorf("told: %s", fired)
	}
	s.Removed(context.Background(), crikeep.Sandbox, "1")
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// What was committed is shown before it is told: a runtime drops the events of what it finds
// hidden.
func TestShownWhenCommittedIsTold(t *testing.T) {
	each(t, func(t *testing.T, s *ours) {
		for i, handedBack := range []bool{false, true} {
			told := make(chan bool, 1)
			s.mu.Lock()
			s.onCommit = func(kind crikeep.Kind, id string) { told <- s.hides(kind, id) }
			s.mu.Unlock()
			name, request, id := podNameOf(uint32(i)), podRequest(uint32(i), "a"), fmt.Sprint(i)
			begin(t, s, crikeep.Sandbox, name, request)
			ctx, cancel := context.WithCancel(context.Background())
			if handedBack {
				cancel()
			}
			_, _ = s.Finish(ctx, name, &resource{id: id}, nil)
			cancel()
			if handedBack && !s.hides(crikeep.Sandbox, id) {
				t.Error("it is not hidden while it is kept")
			}
			if got, err := s.GetForRequest(context.Background(), crikeep.Sandbox, name, request); got != id || err != nil {
				t.Fatalf("%q, %v", got, err)
			}
			if <-told {
				t.Errorf("handed back %v: hidden while Committed runs", handedBack)
			}
		}
	})
}

// After Close nothing is held for what had not ended, who watches is not left waiting, and nothing
// is undone any more.
func TestCloseEndsWhatWasBegun(t *testing.T) { each(t, closeEndsWhatWasBegun) }

func closeEndsWhatWasBegun(t *testing.T, s *ours) {
	s.SetStageForResource(context.Background(), podName, "sandbox creating")
	watcher, _ := s.WatcherForResource(podName)
	s.Close()
	if !signalled(watcher) {
		t.Error("a watcher was not signalled")
	}
	for name, rec := range s.names {
		if rec.turn != nil {
			t.Errorf("%s has a turn", name)
		}
	}
	for _, name := range []string{podName, ctrName} {
		undone := make(chan struct{}, 1)
		c := NewResourceCleaner()
		c.Add(context.Background(), "undo", func() error { undone <- struct{}{}; return nil })
		if err := s.Put(name, &resource{id: name}, c); !errors.Is(err, crikeep.ErrClosed) {
			t.Errorf("put: %v", err)
		}
		select {
		case <-undone:
			t.Errorf("%s was undone", name)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// What the library does not take is undone, and said to be.
func TestPutOfAnIDThatIsTooLong(t *testing.T) { each(t, testPutOfAnIDThatIsTooLong) }

func testPutOfAnIDThatIsTooLong(t *testing.T, s *ours) {
	undone := make(chan struct{}, 1)
	c := NewResourceCleaner()
	c.Add(context.Background(), "undo", func() error { undone <- struct{}{}; return nil })
	if err := s.Put(podName, &resource{id: strings.Repeat("x", 2000)}, c); !errors.Is(err, crikeep.ErrInvalid) {
		t.Errorf("%v", err)
	}
	<-undone
}

// Close among everything else: nobody hangs, and nothing keeps its turn.
func TestCloseAmongEverything(t *testing.T) { each(t, closeAmongEverything) }

func closeAmongEverything(t *testing.T, first *ours) {
	for round := 0; round < 20; round++ {
		first.open()
		s := first.ResourceStore
		var all sync.WaitGroup
		for g := 0; g < 16; g++ {
			all.Add(1)
			go func(g int) {
				defer all.Done()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				for i := 0; i < 30; i++ {
					name, id := fmt.Sprintf("k8s_p%d_n_u%d_%d", i%3, i%3, i%2), fmt.Sprint(g, "-", i)
					switch (g + i) % 8 {
					case 0:
						s.SetStageForResource(ctx, name, "sandbox creating")
					case 1:
						_ = s.Put(name, &resource{id: id}, NewResourceCleaner())
					case 2:
						s.Get(name)
					case 3:
						s.Delete(name)
					case 4:
						s.WatcherForResource(name)
					case 5:
						s.Removed(context.Background(), crikeep.Sandbox, fmt.Sprint(g, "-", i-4))
					case 6:
						if got, err := s.GetForRequest(ctx, crikeep.Sandbox, name, parseName(name).request()); got == "" && err == nil {
							_, _ = s.Finish(ctx, name, &resource{id: id}, nil)
						}
					case 7:
						s.hides(crikeep.Sandbox, id)
					}
				}
			}(g)
		}
		time.Sleep(time.Duration(round) * time.Millisecond / 2)
		s.Close()
		all.Wait()
		turns := func() (n int) {
			for _, rec := range s.all() {
				rec.mu.Lock()
				if rec.turn != nil {
					n++
				}
				rec.mu.Unlock()
			}
			return n
		}
		for end := time.Now().Add(time.Minute); turns() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d turns are left", turns())
			}
		}
	}
}

// lines is a log that a test can read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Creations that went well leave nothing in a log in which they left nothing before; what is undone
// is said.
func TestStoreInMemoryIsQuiet(t *testing.T) {
	var log lines
	clock := newClock()
	store, err := Open(Options{TTL: 2 * interval, Logger: slog.New(slog.NewTextHandler(&log, nil)), now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	store.SetStageForResource(context.Background(), podName, "sandbox creating")
	store.Delete(podName) // in time
	put(t, &ours{ResourceStore: store}, ctrName, &resource{id: "1"}, NewResourceCleaner())
	if store.Get(ctrName) != "1" {
		t.Error("it is not there")
	}
	if err := store.Put(podName, &resource{id: "2"}, NewResourceCleaner()); err != nil {
		t.Fatal(err)
	}
	if err := store.Put(podName, &resource{id: "3"}, NewResourceCleaner()); !errors.Is(err, ErrExists) {
		t.Fatal(err)
	}
	store.Close()
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "could not be stored") {
		t.Errorf("%s", got)
	}
}
