// SPDX-License-Identifier: Apache-2.0

package resourcestore_test

// What contrib/cri-o/README.md shows, so that it compiles, and does what is said there. server
// stands for CRI-O's: sandboxes in a map, with a Created flag that lists look at, names that are
// reserved, and a creation that collects its clean-up.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crikeep.io/go/crikeep"
	"crikeep.io/go/resourcestore"
	"crikeep.io/go/sloglogrus"
)

const (
	createDeadline = 15 * time.Minute
	destroyTimeout = time.Minute
	nriDeadline    = 10 * time.Second
)

// sandbox is internal/lib/sandbox.Sandbox.
type sandbox struct {
	id, name string
	created  atomic.Bool
}

func (sb *sandbox) ID() string    { return sb.id }
func (sb *sandbox) Name() string  { return sb.name }
func (sb *sandbox) SetCreated()   { sb.created.Store(true) }
func (sb *sandbox) Created() bool { return sb.created.Load() }

// disk is what outlives the process: containers/storage and the processes.
type disk struct {
	mu        sync.Mutex
	sandboxes map[string]string // id to name
	made      int
}

type server struct {
	resourceStore *resourcestore.ResourceStore
	synchronised  int // sandboxes that plugins were synchronised with
	disk          *disk

	mu        sync.Mutex
	sandboxes map[string]*sandbox
	names     map[string]string // ReservePodName
	log       []string          // events and NRI, in order
	refuse    string            // what a plugin says
	broken    error             // the OCI runtime fails
	slow      chan struct{}     // creations wait for it
	begun     chan struct{}     // and say so
}

func (s *server) note(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, a...))
}

func (s *server) noted(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.log {
		if l == what {
			return true
		}
	}
	return false
}

func (s *server) generateCRIEvent(id, what string) { s.note("event %s %s", what, id) }

func (s *server) find(name, id string) *sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sb := range s.sandboxes {
		if sb.id == id || (id == "" && sb.name == name) {
			return sb
		}
	}
	return nil
}

func (s *server) nriEvent(ctx context.Context, event crikeep.HookEvent, sb *sandbox) error {
	s.note("nri %v %s", event, sb.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if event == crikeep.HookRun && s.refuse != "" {
		return errors.New(s.refuse)
	}
	return ctx.Err()
}

// ListPodSandbox looks at Created().
func (s *server) ListPodSandbox() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, sb := range s.sandboxes {
		if sb.Created() {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *server) shown(id string) bool {
	for _, shown := range s.ListPodSandbox() {
		if shown == id {
			return true
		}
	}
	return false
}

// runPodSandboxRequest is CRI's, as far as this test goes: config { metadata { name, uid, namespace
// } } and an annotation.
type runPodSandboxRequest struct{ pod, annotation string }

func (r *runPodSandboxRequest) name() string { return "k8s_" + r.pod + "_default_" + r.pod + "-uid_0" }

func field(n byte, parts ...string) string {
	s := strings.Join(parts, "")
	return string([]byte{n<<3 | 2, byte(len(s))}) + s
}

func (r *runPodSandboxRequest) Marshal() ([]byte, error) {
	config := field(1, field(1, r.pod), field(2, r.pod+"-uid"), field(3, "default"))
	if r.annotation != "" {
		config += field(7, field(1, "a"), field(2, r.annotation))
	}
	return []byte(field(1, config)), nil
}

// makeSandbox is runPodSandbox from ReservePodName() to AddIPs().
func (s *server) makeSandbox(ctx context.Context, r *runPodSandboxRequest,
	cleaner *resourcestore.ResourceCleaner) (*sandbox, error) {
	s.disk.mu.Lock()
	s.disk.made++
	sb := &sandbox{id: fmt.Sprintf("%s-%d", r.pod, s.disk.made), name: r.name()}
	s.disk.mu.Unlock()

	s.mu.Lock()
	other, taken := s.names[sb.name]
	if !taken {
		s.names[sb.name] = sb.id
	}
	s.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("name %s is reserved for %s", sb.name, other)
	}
	later := context.WithoutCancel(ctx) // when it is cleaned up, the handler's is over
	cleaner.Add(later, "release the name "+sb.name, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.names, sb.name)
		return nil
	})
	s.resourceStore.SetStageForResource(ctx, sb.name, "sandbox network creation")
	if slow := s.slow; slow != nil {
		s.begun <- struct{}{}
		select {
		case <-slow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.broken != nil {
		return nil, s.broken
	}
	s.load(sb)
	cleaner.Add(later, "remove "+sb.id, func() error { return s.removePodSandbox(later, sb) })
	return sb, nil
}

func (s *server) load(sb *sandbox) {
	s.disk.mu.Lock()
	s.disk.sandboxes[sb.id] = sb.name
	s.disk.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sandboxes[sb.id] = sb
	s.names[sb.name] = sb.id
}

// restore loads what storage has; nothing of it is created yet.
func (s *server) restore() {
	for id, name := range s.disk.sandboxes {
		s.load(&sandbox{id: id, name: name})
	}
}

func (s *server) ListSandboxes() (l []*sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sb := range s.sandboxes {
		l = append(l, sb)
	}
	return l
}

// grpcError is: code, message := crikeep.Status(err); return status.Error(codes.Code(code), message).
// This module has no gRPC.
func grpcError(err error) error { return err }

// logrus is github.com/sirupsen/logrus, as far as it is used.
var logrus logrusPackage

type (
	logrusPackage struct{}
	logrusLevel   uint32
	logrusFields  map[string]any
	logrusLogger  struct{}
	logrusEntry   struct{}
)

func (logrusPackage) StandardLogger() *logrusLogger        { return &logrusLogger{} }
func (*logrusLogger) IsLevelEnabled(logrusLevel) bool      { return true }
func (*logrusLogger) WithFields(logrusFields) *logrusEntry { return &logrusEntry{} }
func (*logrusEntry) Log(logrusLevel, ...any)               {}

func (s *server) stopPodSandbox(context.Context, *sandbox) error { return nil }

func (s *server) removePodSandbox(ctx context.Context, sb *sandbox) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.disk.mu.Lock()
	delete(s.disk.sandboxes, sb.id)
	s.disk.mu.Unlock()
	s.mu.Lock()
	delete(s.sandboxes, sb.id)
	if s.names[sb.name] == sb.id {
		delete(s.names, sb.name)
	}
	s.mu.Unlock()
	s.note("removed %s", sb.id)
	return s.resourceStore.Removed(ctx, crikeep.Sandbox, sb.ID())
}

// ---- from here on as in the README --------------------------------------------------------------

func (s *server) loadResults(dir string, ttl time.Duration) (err error) {
	s.resourceStore, err = resourcestore.Load(resourcestore.Options{
		StateDir:  dir,
		TTL:       ttl,
		Recover:   s.recoverResource,
		Alive:     s.resourceAlive,
		Hooks:     nriHooks{s, &sync.Map{}},
		Committed: s.resourceGiven,
		Logger:    slog.New(sloglogrus.New(logrus.StandardLogger())),
	})
	if err != nil {
		return err // another CRI-O, or a crikeepd, owns the directory
	}
	for _, sb := range s.ListSandboxes() {
		hidden, err := s.resourceStore.Hides(context.Background(), crikeep.Sandbox, sb.ID())
		if err != nil {
			return err
		}
		if !hidden {
			sb.SetCreated()
		}
	}
	return nil
}

func (s *server) runPodSandbox(ctx context.Context, req *runPodSandboxRequest) (string, error) {
	bytes, err := req.Marshal() // before anything is filled in
	if err != nil {
		return "", err
	}
	id, err := s.resourceStore.Do(ctx, resourcestore.Request{Kind: crikeep.Sandbox, Bytes: bytes, Name: req.name()},
		func(mk context.Context, c *resourcestore.Creation) (resourcestore.IdentifiableCreatable, error) {
			mk, cancel := context.WithTimeout(mk, createDeadline)
			defer cancel()
			return s.makeSandbox(mk, req, c.Undo) // ReservePodName() ... AddIPs(), as it was
		})
	return id, grpcError(err)
}

func (s *server) recoverResource(ctx context.Context, kind crikeep.Kind, name, id string) (resourcestore.IdentifiableCreatable,
	*resourcestore.ResourceCleaner, error) {
	sb := s.find(name, id) // by its id; by its name, if id is "": the creation had not ended
	if sb == nil {
		return nil, nil, nil // nothing is left of it
	}
	cleaner := resourcestore.NewResourceCleaner()
	cleaner.Add(ctx, "remove "+name, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), destroyTimeout)
		defer cancel()
		if err := s.stopPodSandbox(ctx, sb); err != nil { // a container: removeContainerInPod()
			return err
		}
		return s.removePodSandbox(ctx, sb)
	})
	return sb, cleaner, nil
}

func (s *server) resourceAlive(ctx context.Context, kind crikeep.Kind, name, id string) (bool, error) {
	return s.find(name, id) != nil, nil
}

func (s *server) resourceGiven(ctx context.Context, kind crikeep.Kind, name, id string) {
	if kind == crikeep.Sandbox {
		s.generateCRIEvent(id, "CONTAINER_CREATED_EVENT")
		s.generateCRIEvent(id, "CONTAINER_STARTED_EVENT")
		return
	}
	s.generateCRIEvent(id, "CONTAINER_CREATED_EVENT")
}

type nriHooks struct {
	s    *server
	told *sync.Map // an entry's number to its sandbox: Remove is sent when that is in no list any more
}

// Go's adaptation keeps its plugins to itself: one name stands for all of them.
func (h nriHooks) Choose(crikeep.Entry) (names []string, absent string) {
	return []string{"00-nri"}, ""
}

func (h nriHooks) Fire(ctx context.Context, event crikeep.HookEvent, e crikeep.Entry) (told []string, refusal string) {
	ctx, cancel := context.WithTimeout(ctx, nriDeadline) // never the kubelet's
	defer cancel()
	sb, ok := h.told.Load(e.Number)
	if !ok { // HookRun; or told in an earlier life
		found := h.s.find("", e.ID)
		if found == nil {
			return nil, ""
		}
		sb, _ = h.told.LoadOrStore(e.Number, found)
	}
	if err := h.s.nriEvent(ctx, event, sb.(*sandbox)); err != nil && event == crikeep.HookRun {
		_, refusal = crikeep.Status(err)
	}
	return []string{"00-nri"}, refusal
}

func (h nriHooks) Cancel(uint64) {}

func (h nriHooks) Released(e crikeep.Entry, gone bool) {
	if gone {
		h.told.Delete(e.Number)
	}
}

func (s *server) RemovePodSandbox(ctx context.Context, sb *sandbox) error {
	if err := s.resourceStore.StopSandbox(ctx, sb.ID()); err != nil {
		return err
	}
	return s.removePodSandbox(ctx, sb)
}

// ---- and what is said of it ---------------------------------------------------------------------

// patient is a caller's context; whoever keeps it waiting for so long has failed.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func newServer(t *testing.T, dir string, d *disk) *server {
	t.Helper()
	s := &server{disk: d, sandboxes: map[string]*sandbox{}, names: map[string]string{}, begun: make(chan struct{}, 8)}
	s.restore()
	if err := s.loadResults(dir, 0); err != nil {
		t.Fatal(err)
	}
	s.synchronised = len(s.ListPodSandbox()) // here NRI is started
	s.resourceStore.Start()
	t.Cleanup(s.resourceStore.Close)
	return s
}

// eachServer runs a test with each store: results_dir set, and results_dir empty.
func eachServer(t *testing.T, test func(t *testing.T, s *server)) {
	if resourcestore.Durable {
		t.Run("durable", func(t *testing.T) { test(t, newServer(t, t.TempDir(), newDisk())) })
	}
	t.Run("memory", func(t *testing.T) { test(t, newServer(t, "", newDisk())) })
}

func newDisk() *disk { return &disk{sandboxes: map[string]string{}} }

// late begins a creation whose caller leaves, and lets it end: the result is kept.
func (s *server) late(t *testing.T, r *runPodSandboxRequest) (id string) {
	t.Helper()
	s.slow = make(chan struct{})
	ctx, cancel := context.WithCancel(patient(t))
	ended := make(chan error)
	go func() {
		_, err := s.runPodSandbox(ctx, r)
		ended <- err
	}()
	<-s.begun
	cancel()
	close(s.slow)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the caller that left was told %v", err)
	}
	for ctx := patient(t); ; time.Sleep(time.Millisecond) { // the creation goes on
		if sb := s.find(r.name(), ""); sb != nil {
			if hidden, err := s.resourceStore.Hides(ctx, crikeep.Sandbox, sb.ID()); hidden && err == nil {
				s.slow = nil
				return sb.ID()
			}
		}
		if ctx.Err() != nil {
			t.Fatal("it is not kept")
		}
	}
}

func TestCRIOInTime(t *testing.T) { eachServer(t, crioInTime) }

func crioInTime(t *testing.T, s *server) {
	r := &runPodSandboxRequest{pod: "web"}
	id, err := s.runPodSandbox(patient(t), r)
	if err != nil || !s.shown(id) {
		t.Fatalf("%q, %v, shown %v", id, err, s.shown(id))
	}
	if again, err := s.runPodSandbox(patient(t), r); again != id || err != nil {
		t.Errorf("asked again: %q, %v", again, err)
	}
	if err := s.RemovePodSandbox(patient(t), s.find("", id)); err != nil {
		t.Error(err)
	}
	if next, err := s.runPodSandbox(patient(t), r); next == id || err != nil {
		t.Errorf("asked for after its removal: %q, %v", next, err)
	}
}

func TestCRIOLateIsHiddenAndHandedBack(t *testing.T) { eachServer(t, crioLateIsHiddenAndHandedBack) }

func crioLateIsHiddenAndHandedBack(t *testing.T, s *server) {
	r := &runPodSandboxRequest{pod: "web"}
	kept := s.late(t, r)
	if s.shown(kept) || s.noted("nri run "+kept) {
		t.Error("shown, or told, before it is handed back")
	}
	id, err := s.runPodSandbox(patient(t), r)
	if id != kept || err != nil || !s.shown(id) || s.disk.made != 1 {
		t.Fatalf("%q, %v, shown %v, made %d times", id, err, s.shown(id), s.disk.made)
	}
	want := "nri run " + id + "; event CONTAINER_CREATED_EVENT " + id + "; event CONTAINER_STARTED_EVENT " + id
	if got := strings.Join(s.log, "; "); got != want {
		t.Errorf("told: %s", got)
	}
}

func TestCRIORepetitionThatWaitsGetsIt(t *testing.T) { eachServer(t, crioRepetitionThatWaitsGetsIt) }

func crioRepetitionThatWaitsGetsIt(t *testing.T, s *server) {
	s.slow = make(chan struct{})
	r := &runPodSandboxRequest{pod: "web"}
	first, cancel := context.WithCancel(patient(t))
	ended, got := make(chan error, 1), make(chan string)
	go func() {
		_, err := s.runPodSandbox(first, r)
		ended <- err
	}()
	<-s.begun
	cancel()
	go func() {
		id, err := s.runPodSandbox(patient(t), r)
		if err != nil {
			id = err.Error()
		}
		got <- id
	}()
	close(s.slow)
	if id := <-got; !s.shown(id) || s.disk.made != 1 {
		t.Errorf("%q, made %d times", id, s.disk.made)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left was told %v", err)
	}
}

func TestCRIOChangedRequestGetsItsOwn(t *testing.T) { eachServer(t, crioChangedRequestGetsItsOwn) }

func crioChangedRequestGetsItsOwn(t *testing.T, s *server) {
	kept := s.late(t, &runPodSandboxRequest{pod: "web", annotation: "blue"})
	id, err := s.runPodSandbox(patient(t), &runPodSandboxRequest{pod: "web", annotation: "green"})
	if err != nil || id == kept || !s.noted("removed "+kept) {
		t.Errorf("%q after %q, %v: %v", id, kept, err, s.log)
	}
	if s.noted("nri run " + kept) {
		t.Error("plugins heard of what nobody was given")
	}
}

func TestCRIOFailureFreesTheName(t *testing.T) { eachServer(t, crioFailureFreesTheName) }

func crioFailureFreesTheName(t *testing.T, s *server) {
	s.broken = errors.New("runc: no space left")
	r := &runPodSandboxRequest{pod: "web"}
	if _, err := s.runPodSandbox(patient(t), r); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("%v", err)
	}
	s.broken = nil
	if id, err := s.runPodSandbox(patient(t), r); err != nil || !s.shown(id) {
		t.Errorf("the same request, later: %q, %v", id, err)
	}
}

func TestCRIORefusedByAPlugin(t *testing.T) { eachServer(t, crioRefusedByAPlugin) }

func crioRefusedByAPlugin(t *testing.T, s *server) {
	patience := patient(t)
	s.refuse = "plugin 10-quota: no"
	r := &runPodSandboxRequest{pod: "web"}
	_, err := s.runPodSandbox(patient(t), r)
	if !errors.Is(err, crikeep.ErrRefused) || !strings.Contains(err.Error(), "10-quota: no") {
		t.Fatalf("%v", err)
	}
	s.mu.Lock()
	s.refuse = ""
	s.mu.Unlock()
	id, err := s.runPodSandbox(patient(t), r)                   // waits until the refused one is gone
	for !s.noted("nri remove web-1") && patience.Err() == nil { // sent when it is gone, in a goroutine of its own
		time.Sleep(time.Millisecond)
	}
	if err != nil || !s.shown(id) || !s.noted("removed web-1") || !s.noted("nri stop web-1") || patience.Err() != nil || s.shown("web-1") {
		t.Errorf("the same request, later: %q, %v: %v", id, err, s.log)
	}
}
