// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package resourcestore

// What only a store with a database can do.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crikeep.io/go/crikeep"
)

func TestOpenErrors(t *testing.T) {
	if _, err := Open(Options{StateDir: stateDir(t)}); err == nil {
		t.Error("opened without Recover")
	}
	o := newOurs(t, "durable")
	if _, err := Open(Options{StateDir: o.dir, Recover: o.recover, Logger: quiet()}); !errors.Is(err, crikeep.ErrOwned) {
		t.Errorf("opened twice: %v", err)
	}
}

// An answer to List that the library had no use for is forgotten with its entry.
func TestFoundAndNotWanted(t *testing.T) {
	s := newOurs(t, "durable")
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

// The child of TestKilledProcess: it leaves one resource kept and three unfinished, and is killed.
const (
	childEnv      = "RESOURCESTORE_TEST_DIR"
	cleansAtStart = "CleansAtStart:" // before the directory
)

func TestChild(t *testing.T) {
	dir, cleans := strings.CutPrefix(os.Getenv(childEnv), cleansAtStart)
	if dir == "" {
		return
	}
	s, err := Open(Options{StateDir: dir, Logger: quiet(), CleansAtStart: cleans,
		Recover: func(context.Context, crikeep.Kind, string, string) (IdentifiableCreatable, *ResourceCleaner, error) {
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
	recover := func(_ context.Context, _ crikeep.Kind, name, id string) (IdentifiableCreatable, *ResourceCleaner, error) {
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
	if !s.hides(crikeep.Sandbox, "kept") || !s.hides(crikeep.Sandbox, "whole") {
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

// With CleansAtStart, what came to its end is kept all the same; what was killed in its first 0.2 s
// is made anew.
func TestKilledProcessThatCleansAtStart(t *testing.T) {
	dir := stateDir(t)
	child, _ := startChild(t, cleansAtStart+dir)
	child.Process.Kill()
	child.Wait()
	s, err := Open(Options{StateDir: dir, Logger: quiet(), CleansAtStart: true,
		Recover: func(_ context.Context, _ crikeep.Kind, name, id string) (IdentifiableCreatable, *ResourceCleaner, error) {
			if id == "" {
				return nil, nil, nil
			}
			return &resource{id: id}, NewResourceCleaner(), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !s.hides(crikeep.Sandbox, "kept") {
		t.Error("visible after a restart")
	}
	for i, want := range []string{"kept", "", "", ""} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		name, request := victim(uint32(i))
		if id, err := s.GetForRequest(ctx, crikeep.Sandbox, name, request); id != want || err != nil {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
}

// What is not there any more is made anew; what is of no use is undone first.
func TestRecoverOfNothing(t *testing.T) {
	s := newOurs(t, "durable")
	if err := late(s, crikeep.Sandbox, podName, podRequest(0, "a"), &resource{id: "1"}, nil); err != nil {
		t.Fatal(err)
	}
	delete(s.made, "1")
	s.restart()
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
}

// With the old calls a result of an earlier life can be had, too.
func TestGetAfterRestart(t *testing.T) {
	s := newOurs(t, "durable")
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
	s := newOurs(t, "durable")
	if err := late(s, crikeep.Container, ctrName, ctrRequest("s1", "nginx"), &resource{id: "1"}, nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	var unmounted, tries atomic.Int32
	done := make(chan struct{}, 1)
	recover := func(context.Context, crikeep.Kind, string, string) (IdentifiableCreatable, *ResourceCleaner, error) {
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
	s.reopen(Options{Recover: recover})
	if err := endsAfter(s, 1, done); err != nil {
		t.Fatal(err)
	}
	if n := unmounted.Load(); n != 1 {
		t.Errorf("unmounted %d times", n)
	}
}

// Lists go on while Recover takes its time.
func TestHidesDoesNotWaitForRecover(t *testing.T) {
	s := newOurs(t, "durable")
	if err := late(s, crikeep.Sandbox, podName, podRequest(0, "a"), &resource{id: "1"}, nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	asked, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	s.reopen(Options{
		Recover: func(context.Context, crikeep.Kind, string, string) (IdentifiableCreatable, *ResourceCleaner, error) {
			first.Do(func() { close(asked) })
			<-release
			return &resource{id: "1"}, nil, nil
		}})
	store := s.ResourceStore
	got := make(chan answer, 1)
	go func() {
		id, err := store.GetForRequest(context.Background(), crikeep.Sandbox, podName, podRequest(0, "a"))
		got <- answer{id, err}
	}()
	<-asked
	said := make(chan bool, 1)
	go func() { said <- store.hides(crikeep.Sandbox, "1") }()
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

// What an earlier life left may be undone before Open has returned, and Open does not wait for it.
func TestOpenDoesNotWaitForCleaners(t *testing.T) {
	s := newOurs(t, "durable")
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
		s.Removed(context.Background(), crikeep.Sandbox, "1")
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

// The process ends while something is kept. It is hidden still, and the repetition gets it.
func TestW9RestartKeepsIt(t *testing.T) {
	healedBy(t, "W9", []string{"durable"}, func(s subject) error {
		r := &resource{id: "1"}
		if err := late(s, crikeep.Sandbox, podName, podRequest(0, "web"), r, nil); err != nil {
			return err
		}
		s.restart()
		if r.created.Load() != 0 {
			return errors.New("it became visible by a restart")
		}
		if id, err := again(s, crikeep.Sandbox, podName, podRequest(0, "web")); id != "1" || err != nil {
			return fmt.Errorf("got %q, %v", id, err)
		}
		if n := r.created.Load(); n != 1 {
			return fmt.Errorf("SetCreated was called %d times", n)
		}
		return nil
	})
}

// And if nobody comes it is undone.
func TestW9RestartCleansIt(t *testing.T) {
	healedBy(t, "W9", []string{"durable"}, func(s subject) error {
		done := make(chan struct{}, 1)
		if err := late(s, crikeep.Sandbox, podName, podRequest(0, "web"), &resource{id: "1"}, func() error {
			done <- struct{}{}
			return nil
		}); err != nil {
			return err
		}
		s.restart()
		return endsAfter(s, 1, done)
	})
}

// After the first half it is known what is hidden, also of creations that had not ended. After the
// second one, what was given up is undone, and those are told that knew it.
func TestLoadKnowsWhatIsHidden(t *testing.T) {
	s := newOurs(t, "durable")
	h := &hooks{}
	s.hook(h)
	if err := late(s, crikeep.Sandbox, podName, podRequest(0, "a"), &resource{id: "kept"}, nil); err != nil {
		t.Fatal(err)
	}
	begin(t, s, crikeep.Container, ctrName, ctrRequest("s1", "nginx"))
	s.Close()

	undone := make(chan struct{})
	recover := func(_ context.Context, kind crikeep.Kind, _, id string) (IdentifiableCreatable, *ResourceCleaner, error) {
		if kind == crikeep.Container {
			c := NewResourceCleaner()
			c.Add(context.Background(), "undo", func() error { close(undone); return nil })
			return nil, c, nil
		}
		return &resource{id: id}, nil, nil
	}
	store, err := Load(Options{StateDir: s.dir, Logger: quiet(), Recover: recover, Hooks: h})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if !store.hides(crikeep.Sandbox, "kept") || store.hides(crikeep.Sandbox, "other") {
		t.Error("what was kept is not hidden, or something else is")
	}
	select {
	case <-undone:
		t.Error("undone before Start")
	case <-time.After(50 * time.Millisecond):
	}
	store.Start()
	<-undone
}

// The stage of a creation that takes a while is in the database; those of one in time need not be.
func TestStageIsWrittenIfItLasts(t *testing.T) {
	s := newOurs(t, "durable")
	stage := func() string {
		entries, err := s.cache.Entries()
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		return entries[0].Stage
	}
	begin(t, s, crikeep.Sandbox, podName, podRequest(0, "a"))
	for _, name := range []string{"sandbox creating", "sandbox network creation"} {
		s.SetStageForResource(context.Background(), podName, name)
	}
	for end := time.Now().Add(time.Minute); stage() != "sandbox network creation"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is %q", stage())
		}
	}
	if id, err := s.Finish(context.Background(), podName, &resource{id: "1"}, nil); id != "1" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}
