// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
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

func TestOpenErrors(t *testing.T) {
	if _, err := Open(Options{StateDir: stateDir(t)}); err == nil {
		t.Error("opened without Recover")
	}
	o := newOurs(t)
	if _, err := Open(Options{StateDir: o.dir, Recover: o.recover, Logger: quiet()}); !errors.Is(err, crikeep.ErrOwned) {
		t.Errorf("opened twice: %v", err)
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
	s := newOurs(t)
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
	s.Removed(crikeep.Sandbox, "1")
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

func TestDeleteLetsAWaiterTakeOver(t *testing.T) {
	s := newOurs(t)
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

func TestPutGoesStraightToAWaiter(t *testing.T) {
	s := newOurs(t)
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
func TestFinishOfANameIsForgotten(t *testing.T) {
	s := newOurs(t)
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
func TestWatcherAfterPut(t *testing.T) {
	s := newPrivate(t)
	put(t, s, podName, &resource{id: "1"}, s.newCleaner())
	if watcher, _ := s.WatcherForResource(podName); !signalled(watcher) {
		t.Error("not signalled")
	}
}

// What the library does not take at all is cleaned up: one pod uid has one name.
func TestRefusedByTheLibraryIsCleaned(t *testing.T) {
	s := newPrivate(t)
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
func TestFailByAnInnerDeadline(t *testing.T) {
	s := newOurs(t)
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	got := wait(s, crikeep.Sandbox, podName, podRequest(0, "a"))
	s.Fail(podName, fmt.Errorf("CNI: %w", context.DeadlineExceeded))
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
func TestSlowCreationIsNotMadeTwice(t *testing.T) {
	s := newOurs(t)
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

func TestSlowCreationIsTaken(t *testing.T) {
	s := newOurs(t)
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

// An answer to List that the library had no use for is forgotten with its entry.
func TestFoundAndNotWanted(t *testing.T) {
	s := newOurs(t)
	s.found(crikeep.Entry{Number: 1, Kind: crikeep.Sandbox}, "1", podName, &resource{id: "1"}, nil)
	s.found(crikeep.Entry{Number: 2, Kind: crikeep.Sandbox}, "2", podNameOf(1), &resource{id: "2"}, nil)
	s.unfind([]crikeep.Entry{{Number: 2}})
	if s.hiddenObject(crikeep.Sandbox, "1") != nil || s.hiddenObject(crikeep.Sandbox, "2") == nil {
		t.Error("the wrong one was forgotten")
	}
	s.found(crikeep.Entry{Number: 3, Kind: crikeep.Sandbox}, "3", podNameOf(2), &resource{id: "3"}, nil)
	host := durableHost{privateHost{s.ResourceStore}}
	if _, err := host.List(context.Background(), crikeep.Filter{Kind: crikeep.Sandbox}); err != nil || len(s.lost) != 0 {
		t.Errorf("%v; %d are left after the next List", err, len(s.lost))
	}
}

func TestSupersededIsUndone(t *testing.T) {
	s := newOurs(t)
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

func TestStopSandbox(t *testing.T) {
	s := newOurs(t)
	undone := make(chan struct{})
	if err := late(s, crikeep.Container, ctrName, ctrRequest("s1", "nginx"), &resource{id: "1"}, func() error {
		close(undone)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.StopSandbox("s1")
	<-undone
	_, err := s.GetForRequest(context.Background(), crikeep.Container, ctrName, ctrRequest("s1", "nginx"))
	if !errors.Is(err, crikeep.ErrPrecondition) {
		t.Errorf("a container in a stopped sandbox: %v", err)
	}
}

func TestCloseWakesWhoWaits(t *testing.T) {
	s := newOurs(t)
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
	s.Fail(podName, errors.New("boom"))
	s.Delete(podName)
	s.Removed(crikeep.Sandbox, "1")
	s.StopSandbox("1")
	s.Hides(crikeep.Sandbox, "1")
	if id := s.Get(podName); id != "" {
		t.Errorf("Get: %q", id)
	}
}

// A dead one that its maker takes care of is not the store's any more.
func TestDeleteOfADeadOne(t *testing.T) {
	s := newOurs(t)
	if err := late(s, crikeep.Sandbox, podName, podRequest(0, "a"), &resource{id: "1"}, func() error {
		t.Error("was cleaned up")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.kill("1")
	s.Delete(podName)
	if s.Hides(crikeep.Sandbox, "1") {
		t.Error("hidden after Delete")
	}
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// What was removed is forgotten at once, not when its time has come.
func TestRemovedIsForgotten(t *testing.T) {
	s := newOurs(t)
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
func TestWatchersHoldEnds(t *testing.T) {
	s := newPrivate(t)
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
func TestHangingStepIsBegunOnce(t *testing.T) {
	o := &ours{t: t, clock: newClock()}
	store, err := openPrivate(Options{TTL: 2 * interval, DestroyTimeout: 20 * time.Millisecond, Logger: quiet(),
		now: o.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	o.ResourceStore = store
	defer o.Close()
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

// ---- another life -------------------------------------------------------------------------------

const (
	childEnv     = "RESOURCESTORE_TEST_DIR"
	childPrivate = "private"
)

// The child of TestKilledProcess: it leaves one resource kept and three unfinished, and is killed.
// That of TestLeftPrivateDirectory leaves a directory.
func TestChild(t *testing.T) {
	dir := os.Getenv(childEnv)
	switch dir {
	case "":
		return
	case childPrivate:
		fmt.Println(New().private)
		select {}
	}
	s, err := Open(Options{StateDir: dir, Logger: quiet(),
		Recover: func(crikeep.Kind, string, string) (IdentifiableCreatable, *ResourceCleaner, error) {
			return nil, nil, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	for i := uint32(0); i < 4; i++ {
		name, request := victim(i)
		if id, err := s.GetForRequest(context.Background(), crikeep.Sandbox, name, request); id != "" || err != nil {
			t.Fatalf("%q, %v", id, err)
		}
		s.SetStageForResource(context.Background(), name, "sandbox network creation")
	}
	name, _ := victim(0)
	if err := s.Put(name, &resource{id: "kept"}, NewResourceCleaner()); err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	select {}
}

func victim(i uint32) (name string, request []byte) {
	p := parts{kind: crikeep.Sandbox, pod: fmt.Sprintf("p%d", i), namespace: "ns", uid: fmt.Sprintf("uid%d", i)}
	return fmt.Sprintf("k8s_p%d_ns_uid%d_0", i, i), p.request()
}

// startChild runs TestChild in a process of its own; what its first line says comes back once it
// has been said.
func startChild(t *testing.T, what string) (child *exec.Cmd, line string) {
	child = exec.Command(os.Args[0], "-test.run=^TestChild$")
	child.Env = append(os.Environ(), childEnv+"="+what)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where the test has not come to it
		child.Process.Kill()
		child.Wait()
	})
	if line, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return child, line
}

func TestKilledProcess(t *testing.T) {
	dir := stateDir(t)
	child, line := startChild(t, dir)
	if line != "ready\n" {
		t.Fatalf("the child said %q", line)
	}
	child.Process.Kill()
	child.Wait()

	var asked sync.Map
	undone := make(chan string, 4)
	failures := atomic.Int32{}
	recover := func(_ crikeep.Kind, name, id string) (IdentifiableCreatable, *ResourceCleaner, error) {
		asked.Store(name+" "+id, true)
		undo := NewResourceCleaner()
		undo.Add(context.Background(), "undo", func() error { undone <- name; return nil })
		switch name[len("k8s_")] {
		case 'p':
		default:
			t.Errorf("asked for %q", name)
		}
		switch name[len("k8s_p")] {
		case '0': // kept, and the first answer is not known yet
			if failures.Add(1) == 1 {
				return nil, nil, errors.New("not loaded yet")
			}
			return &resource{id: "kept"}, undo, nil
		case '1': // had come to its end, as its state file says
			return &resource{id: "whole"}, undo, nil
		case '2': // was in the middle
			return nil, undo, nil
		default: // had not begun
			return nil, nil, nil
		}
	}
	s, err := Open(Options{StateDir: dir, Logger: quiet(), Recover: recover})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !s.Hides(crikeep.Sandbox, "kept") || !s.Hides(crikeep.Sandbox, "whole") {
		t.Error("visible after a restart")
	}
	for i, want := range []string{"kept", "whole", "", ""} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		name, request := victim(uint32(i))
		if id, err := s.GetForRequest(ctx, crikeep.Sandbox, name, request); id != want || err != nil {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
	if name := <-undone; name != "k8s_p2_ns_uid2_0" || len(undone) != 0 {
		t.Errorf("undone: %s, and %d more", name, len(undone))
	}
	for _, question := range []string{"k8s_p0_ns_uid0_0 kept", "k8s_p1_ns_uid1_0 ", "k8s_p2_ns_uid2_0 ",
		"k8s_p3_ns_uid3_0 "} {
		if _, ok := asked.Load(question); !ok {
			t.Errorf("nobody asked for %q", question)
		}
	}
}

// What is not there any more is made anew; what is of no use is undone first.
func TestRecoverOfNothing(t *testing.T) {
	s := newOurs(t)
	if err := late(s, crikeep.Sandbox, podName, podRequest(0, "a"), &resource{id: "1"}, nil); err != nil {
		t.Fatal(err)
	}
	delete(s.made, "1")
	s.restart()
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
}

// With the old calls a result of an earlier life can be had, too.
func TestGetAfterRestart(t *testing.T) {
	s := newOurs(t)
	r := &resource{id: "1"}
	for _, c := range []struct {
		kind    crikeep.Kind
		name    string
		request []byte
	}{{crikeep.Sandbox, podName, podRequest(0, "a")}, {crikeep.Container, ctrName, ctrRequest("s1", "nginx")}} {
		if err := late(s, c.kind, c.name, c.request, r, nil); err != nil {
			t.Fatal(err)
		}
		s.restart()
		if id := s.Get(c.name); id != "1" {
			t.Errorf("%s: got %q", c.name, id)
		}
		if id := s.Get(c.name); id != "" {
			t.Errorf("%s: got %q once more", c.name, id)
		}
	}
	if n := r.created.Load(); n != 2 {
		t.Errorf("SetCreated was called %d times", n)
	}
}

// The steps of what is found are done once, too, however often the rest has to be tried.
func TestRecoveredStepsAreDoneOnce(t *testing.T) {
	s := newOurs(t)
	if err := late(s, crikeep.Container, ctrName, ctrRequest("s1", "nginx"), &resource{id: "1"}, nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	var unmounted, tries atomic.Int32
	done := make(chan struct{}, 1)
	recover := func(crikeep.Kind, string, string) (IdentifiableCreatable, *ResourceCleaner, error) {
		c := NewResourceCleaner()
		c.Add(context.Background(), "release the name", func() error {
			if tries.Add(1) < 4 {
				return errors.New("not yet")
			}
			done <- struct{}{}
			return nil
		})
		c.Add(context.Background(), "unmount", func() error { unmounted.Add(1); return nil })
		return &resource{id: "1"}, c, nil
	}
	store, err := Open(Options{StateDir: s.dir, TTL: 2 * interval, Logger: quiet(), now: s.clock.now, Recover: recover})
	if err != nil {
		t.Fatal(err)
	}
	s.ResourceStore = store
	if err := endsAfter(s, 1, done); err != nil {
		t.Fatal(err)
	}
	if n := unmounted.Load(); n != 1 {
		t.Errorf("unmounted %d times", n)
	}
}

// ---- behind something else ----------------------------------------------------------------------

// behind begins attempt 1 with the old calls while attempt 0 cannot be undone.
func behind(t *testing.T) (s *ours, release func()) {
	s = newPrivate(t)
	blocked, hold := make(chan struct{}), make(chan struct{})
	c := s.newCleaner()
	c.Add(context.Background(), "undo", func() error { close(blocked); <-hold; return nil })
	put(t, s, podNameOf(0), &resource{id: "0"}, c)
	s.SetStageForResource(context.Background(), podNameOf(1), "sandbox creating")
	<-blocked
	return s, func() { close(hold) }
}

func TestPutBehindAnEviction(t *testing.T) {
	s, release := behind(t)
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
func TestPutAfterAnEviction(t *testing.T) {
	s, release := behind(t)
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
func TestStageOfASupersededAttempt(t *testing.T) {
	s := newPrivate(t)
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

func TestGetBehindAnEviction(t *testing.T) {
	s, release := behind(t)
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

func TestFinishBehindAnEviction(t *testing.T) {
	s, release := behind(t)
	defer release()
	r := &resource{id: "1"}
	if id, err := s.Finish(context.Background(), podNameOf(1), r, nil); id != "1" || err != nil || r.created.Load() != 1 {
		t.Errorf("got %q, %v, created %d times", id, err, r.created.Load())
	}
}

func TestDeleteBehindAnEviction(t *testing.T) {
	s, release := behind(t)
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
func TestStorm(t *testing.T) {
	s := newOurs(t)
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
	lives := func(n int) {
		for i := 0; i < n; i++ {
			s := New()
			watcher, _ := s.WatcherForResource(podName)
			s.SetStageForResource(context.Background(), podName, "sandbox creating")
			if err := s.Put(podName, &resource{id: "1"}, NewResourceCleaner()); err != nil || !signalled(watcher) {
				t.Fatal(err)
			}
			s.SetStageForResource(context.Background(), ctrName, "container creating")
			if s.Get(podName) != "1" {
				t.Fatal("not there")
			}
			s.Close()
			if _, err := os.Stat(s.private); !os.IsNotExist(err) {
				t.Fatalf("%s is there after Close: %v", s.private, err)
			}
		}
	}
	count := func() (fds, goroutines int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries), runtime.NumGoroutine()
	}
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

func newHooked(t *testing.T, h *hooks) *ours {
	o := &ours{t: t, clock: newClock(), dir: stateDir(t), dead: map[string]bool{}}
	recover := func(_ crikeep.Kind, name, id string) (IdentifiableCreatable, *ResourceCleaner, error) {
		t.Errorf("asked for %q %q, which is of this life", name, id)
		return nil, nil, nil
	}
	store, err := Open(Options{StateDir: o.dir, TTL: 2 * interval, Logger: quiet(), now: o.clock.now, Hooks: h,
		Committed: o.committed, waiting: o.waiting, Recover: recover})
	if err != nil {
		t.Fatal(err)
	}
	o.ResourceStore = store
	t.Cleanup(store.Close)
	return o
}

// A plugin says no: the resource is undone once, by the store, and nobody saw it.
func TestRefusedByAHook(t *testing.T) {
	h := &hooks{refuse: "plugin 10-test: no"}
	s := newHooked(t, h)
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
func TestCallerLeavesDuringHooks(t *testing.T) {
	h := &hooks{hold: make(chan struct{})}
	s := newHooked(t, h)
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
	if r.created.Load() != 0 || !s.Hides(crikeep.Sandbox, "1") {
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
	if told := strings.Join(s.events(), ", "); told != "created 1" || r.created.Load() != 1 || s.Hides(crikeep.Sandbox, "1") {
		t.Errorf("told %q, created %d times, hidden %v", told, r.created.Load(), s.Hides(crikeep.Sandbox, "1"))
	}
	if fired := h.all(); fired != "run 1" {
		t.Errorf("told: %s", fired)
	}
	s.Removed(crikeep.Sandbox, "1")
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// What was committed is shown before it is told: a runtime drops the events of what it finds
// hidden.
func TestShownWhenCommittedIsTold(t *testing.T) {
	for _, handedBack := range []bool{false, true} {
		opened, told := make(chan struct{}), make(chan bool, 1)
		var s *ResourceStore
		s, err := Open(Options{StateDir: stateDir(t), Logger: quiet(), Recover: (&ours{}).recover,
			Committed: func(kind crikeep.Kind, _, id string) {
				<-opened
				told <- s.Hides(kind, id)
			}})
		if err != nil {
			t.Fatal(err)
		}
		close(opened)
		t.Cleanup(s.Close)
		begin(t, &ours{ResourceStore: s}, crikeep.Sandbox, podName, podRequest(0, "a"))
		ctx, cancel := context.WithCancel(context.Background())
		if handedBack {
			cancel()
		}
		_, _ = s.Finish(ctx, podName, &resource{id: "1"}, nil)
		cancel()
		if handedBack && !s.Hides(crikeep.Sandbox, "1") {
			t.Error("it is not hidden while it is kept")
		}
		if id, err := s.GetForRequest(context.Background(), crikeep.Sandbox, podName, podRequest(0, "a")); id != "1" || err != nil {
			t.Fatalf("%q, %v", id, err)
		}
		if <-told {
			t.Errorf("handed back %v: hidden while Committed runs", handedBack)
		}
	}
}

// Lists go on while Recover takes its time.
func TestHidesDoesNotWaitForRecover(t *testing.T) {
	s := newOurs(t)
	if err := late(s, crikeep.Sandbox, podName, podRequest(0, "a"), &resource{id: "1"}, nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	asked, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	store, err := Open(Options{StateDir: s.dir, Logger: quiet(), now: s.clock.now,
		Recover: func(crikeep.Kind, string, string) (IdentifiableCreatable, *ResourceCleaner, error) {
			first.Do(func() { close(asked) })
			<-release
			return &resource{id: "1"}, nil, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s.ResourceStore = store
	got := make(chan answer, 1)
	go func() {
		id, err := store.GetForRequest(context.Background(), crikeep.Sandbox, podName, podRequest(0, "a"))
		got <- answer{id, err}
	}()
	<-asked
	said := make(chan bool, 1)
	go func() { said <- store.Hides(crikeep.Sandbox, "1") }()
	select {
	case hidden := <-said:
		if !hidden {
			t.Error("it is shown")
		}
	case <-time.After(30 * time.Second):
		t.Error("Hides waits for Recover")
	}
	close(release)
	if a := <-got; a.id != "1" || a.err != nil {
		t.Errorf("%q, %v", a.id, a.err)
	}
}

// After Close nothing is held for what had not ended, who watches is not left waiting, and nothing
// is undone any more.
func TestCloseEndsWhatWasBegun(t *testing.T) {
	for what, s := range map[string]*ours{"durable": newOurs(t), "private": newPrivate(t)} {
		s.SetStageForResource(context.Background(), podName, "sandbox creating")
		watcher, _ := s.WatcherForResource(podName)
		s.Close()
		if !signalled(watcher) {
			t.Errorf("%s: a watcher was not signalled", what)
		}
		for name, rec := range s.names {
			if rec.turn != nil {
				t.Errorf("%s: %s has a turn", what, name)
			}
		}
		for _, name := range []string{podName, ctrName} {
			undone := make(chan struct{}, 1)
			c := NewResourceCleaner()
			c.Add(context.Background(), "undo", func() error { undone <- struct{}{}; return nil })
			if err := s.Put(name, &resource{id: name}, c); !errors.Is(err, crikeep.ErrClosed) {
				t.Errorf("%s: put: %v", what, err)
			}
			select {
			case <-undone:
				t.Errorf("%s: %s was undone", what, name)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// What the library does not take is undone, and said to be.
func TestPutOfAnIDThatIsTooLong(t *testing.T) {
	s := newPrivate(t)
	undone := make(chan struct{}, 1)
	c := NewResourceCleaner()
	c.Add(context.Background(), "undo", func() error { undone <- struct{}{}; return nil })
	if err := s.Put(podName, &resource{id: strings.Repeat("x", 2000)}, c); !errors.Is(err, crikeep.ErrInvalid) {
		t.Errorf("%v", err)
	}
	<-undone
}

// What an earlier life left may be undone before Open has returned, and Open does not wait for it.
func TestOpenDoesNotWaitForCleaners(t *testing.T) {
	s := newOurs(t)
	if err := late(s, crikeep.Sandbox, podName, podRequest(0, "a"), &resource{id: "1"}, nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.clock.advance(3 * interval)
	begun, opened, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c := NewResourceCleaner()
	c.Add(context.Background(), "remove", func() error {
		close(begun)
		<-opened
		s.Removed(crikeep.Sandbox, "1")
		close(done)
		return nil
	})
	s.mu.Lock()
	s.cleaners["1"] = c
	s.mu.Unlock()
	s.open()
	close(opened)
	s.advance(time.Minute)
	<-begun
	<-done
}

// Close among everything else: nobody hangs, and nothing keeps its turn.
func TestCloseAmongEverything(t *testing.T) {
	for round := 0; round < 20; round++ {
		s := New()
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
						s.Removed(crikeep.Sandbox, fmt.Sprint(g, "-", i-4))
					case 6:
						if got, err := s.GetForRequest(ctx, crikeep.Sandbox, name, parseName(name).request()); got == "" && err == nil {
							_, _ = s.Finish(ctx, name, &resource{id: id}, nil)
						}
					case 7:
						s.Hides(crikeep.Sandbox, id)
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

// What a killed process left is removed by whoever comes next; what somebody has, is about to have,
// or is not ours, is not.
func TestLeftPrivateDirectory(t *testing.T) {
	child, line := startChild(t, childPrivate)
	left := strings.TrimSpace(line)
	if _, err := os.Stat(left); left == "" || err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	living, fresh := New(), stateDir(t) // a directory nobody has opened yet is its parent
	defer living.Close()
	if _, err := os.Stat(left); err != nil {
		t.Errorf("of a process that lives: %v", err)
	}
	child.Process.Kill()
	child.Wait()
	next := New()
	defer next.Close()
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", left, err)
	}
	for what, dir := range map[string]string{"of this process": living.private, "not opened yet": filepath.Dir(fresh)} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Creations that went well leave nothing in a log in which they left nothing before; what is undone
// is said.
func TestPrivateStoreIsQuiet(t *testing.T) {
	var log lines
	clock := newClock()
	store, err := openPrivate(Options{TTL: 2 * interval, Logger: slog.New(slog.NewTextHandler(&log, nil)), now: clock.now})
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
	store.Close() // waits for the log
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "could not be stored") {
		t.Errorf("%s", got)
	}
}
