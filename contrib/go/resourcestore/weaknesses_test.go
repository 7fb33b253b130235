// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crikeep.io/go/crikeep"
)

// The known weaknesses of a store in memory, W1 to W15, as far as a store can heal them: ours is
// free of each. The same test runs against a store that has the weakness, and must say so there:
// that is how we know that it can.

func healed(t *testing.T, weakness string, test func(s subject) error) {
	healedBy(t, weakness, stores, test)
}

func healedBy(t *testing.T, weakness string, stores []string, test func(s subject) error) {
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			if err := test(newOurs(t, store)); err != nil {
				t.Errorf("%s: %v", weakness, err)
			}
		})
	}
	t.Run("ram has it", func(t *testing.T) {
		err := test(newRAM(t))
		if err == nil {
			t.Fatalf("%s was not noticed where it is: the test is blind", weakness)
		}
		t.Logf("as expected: %v", err)
	})
}

const podUID = "0d5e1f7c-95c7-4a3a-9d3c-6d1f2a7b8c90"

func podNameOf(attempt uint32) string {
	return fmt.Sprintf("k8s_web-0_default_%s_%d", podUID, attempt)
}

// podRequest is a RunPodSandboxRequest; hostname stands for everything that is not in the name.
func podRequest(attempt uint32, hostname string) []byte {
	metadata := message(nil, 1, text(nil, 1, "web-0"), text(nil, 2, podUID), text(nil, 3, "default"), number(nil, 4, attempt))
	return message(nil, 1, metadata, text(nil, 2, hostname))
}

// ctrRequest is a CreateContainerRequest for the container of ctrName.
func ctrRequest(sandboxID, image string) []byte {
	config := message(nil, 2, message(nil, 1, text(nil, 1, "nginx")), message(nil, 2, text(nil, 1, image)))
	sandbox := message(nil, 3, message(nil, 1, text(nil, 1, "web-0"), text(nil, 2, podUID), text(nil, 3, "default")))
	return append(append(text(nil, 1, sandboxID), config...), sandbox...)
}

type answer struct {
	id  string
	err error
}

// late makes a resource for a caller that gives up meanwhile.
func late(s subject, kind crikeep.Kind, name string, request []byte, r *resource, undo func() error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	id, err := s.create(ctx, kind, name, request, func(c cleaner) (*resource, error) {
		if undo != nil {
			c.Add(ctx, "undo "+r.id, undo)
		}
		cancel()
		return r, nil
	})
	if id != "" || !errors.Is(err, context.Canceled) {
		return fmt.Errorf("a caller that had left got %q, %v", id, err)
	}
	return nil
}

func never(cleaner) (*resource, error) { return nil, errors.New("was made a second time") }

func nothing() error { return nil }

// again asks for what exists already.
func again(s subject, kind crikeep.Kind, name string, request []byte) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.create(ctx, kind, name, request, never)
}

// The same is asked for again by a caller that may wait for 240 s, 20 s before it is ready. Nobody
// may destroy it under him.
func TestW1ResultStaysWhileAWatcherWaits(t *testing.T) {
	healed(t, "W1", func(s subject) error {
		ctx := context.Background()
		cleaned := atomic.Bool{}
		c := s.newCleaner()
		c.Add(ctx, "undo", func() error { cleaned.Store(true); return nil })
		s.SetStageForResource(ctx, podName, "sandbox creating")
		watcher, _ := s.WatcherForResource(podName)
		s.advance(20 * time.Second)
		if err := s.Put(podName, &resource{id: "1"}, c); err != nil {
			return err
		}
		if !signalled(watcher) {
			return errors.New("not signalled")
		}
		for waited := 20 * time.Second; waited < 240*time.Second; waited += 20 * time.Second {
			s.advance(20 * time.Second)
		}
		s.advance(15 * time.Second) // the kubelet's pause before the third call
		id := s.Get(podName)
		if id != "1" || cleaned.Load() {
			return fmt.Errorf("the third call got %q, cleaned up: %v", id, cleaned.Load())
		}
		return nil
	})
}

// And with the whole request: he does not even have to come a third time.
func TestW1ResultStaysWhileARequestWaits(t *testing.T) {
	healed(t, "W1", waitingCaller)
}

func TestW2WaitingCallerGetsIt(t *testing.T) {
	healed(t, "W2", waitingCaller)
}

// A first caller gives up, a second one waits while the creation ends. It answers from what it got.
func waitingCaller(s subject) error {
	waits, second := make(chan struct{}), make(chan answer, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.onWait(func() { close(waits) }, cancel) // who has to wait again does so to its deadline
	r := &resource{id: "1"}
	first, leave := context.WithCancel(context.Background())
	defer leave()
	if _, err := s.create(first, crikeep.Sandbox, podName, podRequest(0, "web"), func(cleaner) (*resource, error) {
		leave()
		go func() {
			id, err := s.create(ctx, crikeep.Sandbox, podName, podRequest(0, "web"), never)
			second <- answer{id, err}
		}()
		<-waits
		return r, nil
	}); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the first caller, which had left, got %v", err)
	}
	got := <-second
	if got.id != "1" || got.err != nil {
		return fmt.Errorf("the waiting caller got %q, %v", got.id, got.err)
	}
	if n := r.created.Load(); n != 1 {
		return fmt.Errorf("SetCreated was called %d times", n)
	}
	return nil
}

// Same name, other contents: what was kept is of no use.
func TestW3OtherRequestOfTheSameName(t *testing.T) {
	healed(t, "W3", func(s subject) error {
		return other(s, crikeep.Sandbox, podName, podRequest(0, "old"), podRequest(0, "new"))
	})
}

func TestW3OtherSandboxOfAContainer(t *testing.T) {
	healed(t, "W3", func(s subject) error {
		return other(s, crikeep.Container, ctrName, ctrRequest("sandbox-a", "nginx"), ctrRequest("sandbox-b", "nginx"))
	})
}

func other(s subject, kind crikeep.Kind, name string, before, now []byte) error {
	undone := make(chan struct{}, 1)
	undo := func() error { undone <- struct{}{}; return nil }
	if err := late(s, kind, name, before, &resource{id: "old"}, undo); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, err := s.create(ctx, kind, name, now, func(cleaner) (*resource, error) {
		if !signalled(undone) {
			return nil, errors.New("the old one still has the name")
		}
		return &resource{id: "new"}, nil
	})
	if id != "new" || err != nil {
		return fmt.Errorf("got %q, %v", id, err)
	}
	return nil
}

// An attempt that was given up is undone as soon as the next is asked for, not when its time has
// come.
func TestW3NextAttemptEvicts(t *testing.T) {
	healed(t, "attempt", func(s subject) error {
		undone := make(chan struct{}, 1)
		if err := late(s, crikeep.Sandbox, podNameOf(0), podRequest(0, "web"), &resource{id: "old"}, func() error {
			undone <- struct{}{}
			return nil
		}); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		before := false
		id, err := s.create(ctx, crikeep.Sandbox, podNameOf(1), podRequest(1, "web"), func(cleaner) (*resource, error) {
			before = signalled(undone)
			return &resource{id: "new"}, nil
		})
		if id != "new" || err != nil {
			return fmt.Errorf("got %q, %v", id, err)
		}
		if !before {
			return errors.New("attempt 0 still had its address when attempt 1 was made")
		}
		return nil
	})
}

// With nothing changed but the import: the stage of the next attempt is enough.
func TestW3NextAttemptEvictsByName(t *testing.T) { each(t, testW3NextAttemptEvictsByName) }

func testW3NextAttemptEvictsByName(t *testing.T, s *ours) {
	undone := make(chan struct{})
	c := s.newCleaner()
	c.Add(context.Background(), "undo", func() error { close(undone); return nil })
	put(t, s, podNameOf(0), &resource{id: "old"}, c)
	s.SetStageForResource(context.Background(), podNameOf(1), "sandbox creating")
	<-undone
	put(t, s, podNameOf(1), &resource{id: "new"}, s.newCleaner())
	if id := s.Get(podNameOf(1)); id != "new" {
		t.Errorf("got %q", id)
	}
}

// Its process has died while it was kept.
func TestW4DeadIsNotHandedBack(t *testing.T) {
	healed(t, "W4", func(s subject) error {
		if err := late(s, crikeep.Sandbox, podName, podRequest(0, "web"), &resource{id: "dead"}, nothing); err != nil {
			return err
		}
		s.kill("dead")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		id, err := s.create(ctx, crikeep.Sandbox, podName, podRequest(0, "web"), func(cleaner) (*resource, error) {
			return &resource{id: "new"}, nil
		})
		if id != "new" || err != nil {
			return fmt.Errorf("got %q, %v", id, err)
		}
		return nil
	})
}

// Who waits for a creation that fails hears of it, with its error, at once.
func TestW5FailureWakesWhoWaits(t *testing.T) {
	healed(t, "W5", func(s subject) error {
		waits, second := make(chan struct{}), make(chan answer, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s.onWait(func() { close(waits) }, func() {})
		boom := &crikeep.StatusError{GRPC: 13, Message: "no free address"}
		make := func(cleaner) (*resource, error) {
			go func() {
				id, err := s.create(ctx, crikeep.Sandbox, podName, podRequest(0, "web"), never)
				second <- answer{id, err}
			}()
			<-waits
			return nil, boom
		}
		_, err := s.create(context.Background(), crikeep.Sandbox, podName, podRequest(0, "web"), make)
		if !errors.Is(err, error(boom)) {
			return fmt.Errorf("the first caller got %v", err)
		}
		return heard(s, second, cancel, func(a answer) error {
			var status *crikeep.StatusError
			if !errors.As(a.err, &status) || status.GRPC != 13 || status.Message != "no free address" {
				return fmt.Errorf("the waiting caller got %q, %v", a.id, a.err)
			}
			return nil
		})
	})
}

// heard waits for an answer; who gives none before its deadline has waited in vain.
func heard(s subject, c chan answer, deadline func(), check func(answer) error) error {
	select {
	case a := <-c:
		return check(a)
	case <-time.After(grace(s)):
		deadline()
		a := <-c
		return fmt.Errorf("the waiting caller heard nothing until its deadline: %v", a.err)
	}
}

// A store in memory that has nothing to tell is believed after this. Ours is waited for.
const deaf = 200 * time.Millisecond

// And one that succeeds for its own caller: a second, identical request gets the same.
func TestW5SuccessWakesWhoWaits(t *testing.T) {
	healed(t, "W5", func(s subject) error {
		waits, second := make(chan struct{}), make(chan answer, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s.onWait(func() { close(waits) }, func() {})
		make := func(cleaner) (*resource, error) {
			go func() {
				id, err := s.create(ctx, crikeep.Sandbox, podName, podRequest(0, "web"), never)
				second <- answer{id, err}
			}()
			<-waits
			return &resource{id: "1"}, nil
		}
		id, err := s.create(context.Background(), crikeep.Sandbox, podName, podRequest(0, "web"), make)
		if id != "1" || err != nil {
			return fmt.Errorf("the first caller got %q, %v", id, err)
		}
		return heard(s, second, cancel, func(a answer) error {
			if a.id != "1" || a.err != nil {
				return fmt.Errorf("the waiting caller got %q, %v", a.id, a.err)
			}
			return nil
		})
	})
}

// With the old calls only: Delete signals, too.
func TestW5DeleteSignalsWatchers(t *testing.T) {
	healed(t, "W5", func(s subject) error {
		s.SetStageForResource(context.Background(), podName, "sandbox creating")
		watcher, _ := s.WatcherForResource(podName)
		s.Delete(podName)
		if !signalled(watcher) {
			return errors.New("the watcher was not signalled")
		}
		return nil
	})
}

// A creation that failed leaves nothing, and neither does a watcher whose creation never came.
func TestW6FailureLeavesNothing(t *testing.T) {
	healed(t, "W6", func(s subject) error {
		for attempt := uint32(0); attempt < 5; attempt++ {
			fail := func(cleaner) (*resource, error) { return nil, errors.New("boom") }
			name, request := podNameOf(attempt), podRequest(attempt, "web")
			if _, err := s.create(context.Background(), crikeep.Sandbox, name, request, fail); err == nil {
				return errors.New("it did not fail")
			}
		}
		if n := s.entries(); n != 0 {
			return fmt.Errorf("%d entries are left", n)
		}
		return nil
	})
}

func TestW6WatchersLeaveNothing(t *testing.T) {
	healed(t, "W6", func(s subject) error {
		for i := 0; i < 100; i++ {
			s.WatcherForResource(fmt.Sprintf("k8s_p%d_default_%d_0", i, i))
		}
		for i := 0; i < 10; i++ {
			s.advance(interval)
		}
		s.WatcherForResource(podName)
		if n := s.entries(); n != 1 {
			return fmt.Errorf("%d entries are left", n)
		}
		return nil
	})
}

// With the old calls only, nobody tells of a failure. It is given up when a creation cannot last
// that long.
func TestW6UnendedLeavesNothing(t *testing.T) {
	healed(t, "W6", func(s subject) error {
		for i := 0; i < 10; i++ {
			s.SetStageForResource(context.Background(), fmt.Sprintf("k8s_p%d_default_%d_0", i, i), "sandbox creating")
		}
		for i := 0; i < 40; i++ {
			s.advance(interval)
			s.SetStageForResource(context.Background(), podName, "sandbox creating")
		}
		s.Delete(podName)
		// what is lost is asked about in goroutines
		for end := time.Now().Add(grace(s)); s.entries() > 0 && time.Now().Before(end); {
			s.advance(interval)
			time.Sleep(time.Millisecond)
		}
		if n := s.entries(); n != 0 {
			return fmt.Errorf("%d entries are left", n)
		}
		return nil
	})
}

// What Put refuses is cleaned up.
func TestW7RefusedIsCleaned(t *testing.T) {
	healed(t, "W7", func(s subject) error {
		if err := s.Put(podName, &resource{id: "1"}, s.newCleaner()); err != nil {
			return err
		}
		cleaned := make(chan struct{})
		c := s.newCleaner()
		c.Add(context.Background(), "undo 2", func() error { close(cleaned); return nil })
		if err := s.Put(podName, &resource{id: "2"}, c); err == nil {
			return errors.New("a second result was taken")
		}
		select {
		case <-cleaned:
		case <-time.After(grace(s)):
			return errors.New("nobody cleans up what was refused")
		}
		if id := s.Get(podName); id != "1" {
			return fmt.Errorf("got %q", id)
		}
		return nil
	})
}

// grace: ours is waited for as long as the test may run, the other as long as it takes to see that
// nothing comes
func grace(s subject) time.Duration {
	if _, ok := s.(*ours); ok {
		return time.Hour
	}
	return deaf
}

// Cleaners do not wait for each other: each of these succeeds only after the other was tried.
func TestW8CleanersDoNotWaitForEachOther(t *testing.T) {
	healed(t, "W8", func(s subject) error {
		var tried [2]atomic.Bool
		done := make(chan struct{}, 2)
		for i := range tried {
			i := i
			c := s.newCleaner()
			c.Add(context.Background(), "release the name", func() error { done <- struct{}{}; return nil })
			c.Add(context.Background(), "undo", func() error {
				tried[i].Store(true)
				if !tried[1-i].Load() {
					return errors.New("not before the other")
				}
				return nil
			})
			name := fmt.Sprintf("k8s_p%d_default_uid%d_0", i, i)
			if err := s.Put(name, &resource{id: fmt.Sprint(i)}, c); err != nil {
				return err
			}
		}
		return endsAfter(s, 2, done)
	})
}

// And they do not give up: neither after 20 tries, nor on the steps behind.
func TestW8CleanersDoNotGiveUp(t *testing.T) {
	healed(t, "W8", func(s subject) error {
		tries := 0
		done := make(chan struct{}, 1)
		c := s.newCleaner()
		c.Add(context.Background(), "release the name", func() error { done <- struct{}{}; return nil })
		c.Add(context.Background(), "undo", func() error {
			if tries++; tries <= 25 {
				return errors.New("not yet")
			}
			return nil
		})
		if err := s.Put(podName, &resource{id: "1"}, c); err != nil {
			return err
		}
		return endsAfter(s, 1, done)
	})
}

// endsAfter lets time pass until that many cleaners have ended
func endsAfter(s subject, cleaners int, done chan struct{}) error {
	for end := time.Now().Add(30 * time.Second); cleaners > 0 && time.Now().Before(end); {
		s.advance(interval)
		select {
		case <-done:
			cleaners--
		case <-time.After(time.Millisecond): // a pass runs in a goroutine of its own
		}
		if r, ok := s.(*ram); ok && r.entries() == 0 && len(done) == 0 && cleaners > 0 {
			break // forgotten
		}
	}
	if cleaners > 0 {
		return fmt.Errorf("%d cleaners have not ended", cleaners)
	}
	return nil
}

// The sandbox is removed, and its hidden container with it. Its name comes again; nobody undoes
// that.
func TestW10RemovedIsNotCleaned(t *testing.T) {
	healed(t, "W10", func(s subject) error {
		wrong := atomic.Bool{}
		old := &resource{id: "old"}
		if err := late(s, crikeep.Container, ctrName, ctrRequest("sandbox-a", "nginx"), old, func() error {
			wrong.Store(true)
			return nil
		}); err != nil {
			return err
		}
		s.removed(crikeep.Container, "old")
		ctx := context.Background()
		slow := func(cleaner) (*resource, error) {
			for i := 0; i < 5; i++ { // it takes a while
				s.advance(interval)
			}
			return &resource{id: "new"}, nil
		}
		id, err := s.create(ctx, crikeep.Container, ctrName, ctrRequest("sandbox-b", "nginx"), slow)
		if id != "new" || err != nil {
			return fmt.Errorf("the next of that name got %q, %v", id, err)
		}
		if wrong.Load() {
			return errors.New("a stale cleaner ran")
		}
		return nil
	})
}

// Statistics and metrics can ask whether an id is hidden.
func TestW11HiddenIsKnownByID(t *testing.T) {
	healed(t, "W11", func(s subject) error {
		if err := late(s, crikeep.Sandbox, podName, podRequest(0, "web"), &resource{id: "1"}, nil); err != nil {
			return err
		}
		if !s.hides(crikeep.Sandbox, "1") {
			return errors.New("it is not hidden")
		}
		if s.hides(crikeep.Sandbox, "2") || s.hides(crikeep.Container, "1") {
			return errors.New("something else is hidden, too")
		}
		if id, err := again(s, crikeep.Sandbox, podName, podRequest(0, "web")); id != "1" || err != nil {
			return fmt.Errorf("got %q, %v", id, err)
		}
		if s.hides(crikeep.Sandbox, "1") {
			return errors.New("it is hidden after it was handed over")
		}
		return nil
	})
}

// What is handed over later is told as what is handed over at once: once, when it happens.
func TestW15CommittedIsTold(t *testing.T) {
	healed(t, "W15", func(s subject) error {
		request := ctrRequest("sandbox-a", "nginx")
		if err := late(s, crikeep.Container, ctrName, request, &resource{id: "1"}, nil); err != nil {
			return err
		}
		if told := s.events(); len(told) != 0 {
			return fmt.Errorf("told while it is hidden: %v", told)
		}
		for i := 0; i < 2; i++ {
			if id, err := again(s, crikeep.Container, ctrName, request); id != "1" || err != nil {
				return fmt.Errorf("got %q, %v", id, err)
			}
		}
		if told := strings.Join(s.events(), ", "); told != "created 1" {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
}
