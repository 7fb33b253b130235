// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep_test

// What contrib/containerd/README.md shows, so that it compiles, and does what is said there.
// criService stands for containerd's: two stores, an index of names, a list for NRI, and a creation
// that rolls itself back.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"crikeep.io/go/crikeep"
)

const (
	createDeadline = 15 * time.Minute
	nriDeadline    = 10 * time.Second
)

// object is containerd's sandboxstore.Sandbox or containerstore.Container.
type object struct {
	kind     crikeep.Kind
	id, name string
	pod      string // its names, as the request has them
	once     sync.Once
	told     bool // NRI has been sent it
	ready    bool
	dead     bool
}

func (o *object) exited() bool { return o.dead }

func (o *object) key() crikeep.Object {
	return crikeep.Object{Kind: o.kind, Condition: crikeep.Ready, ID: o.id, PodName: o.pod, PodNamespace: "default", PodUID: o.pod + "-uid"}
}

// store is one of containerd's, and the map of hidden ones: id to object.
type store struct {
	mu      sync.Mutex
	objects map[string]*object
}

func (s *store) Add(o *object) { s.put(o) }

func (s *store) put(o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects == nil {
		s.objects = map[string]*object{}
	}
	s.objects[o.id] = o
}

func (s *store) get(_ crikeep.Kind, id string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[id]
}

func (s *store) drop(_ crikeep.Kind, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, id)
}

func (s *store) list() (l []*object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		l = append(l, o)
	}
	return l
}

// names is internal/registrar.
type names struct {
	mu sync.Mutex
	id map[string]string
}

func (n *names) Reserve(name, id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if other, ok := n.id[name]; ok && other != id {
		return fmt.Errorf("name %q is reserved for %q", name, other)
	}
	if n.id == nil {
		n.id = map[string]string{}
	}
	n.id[name] = id
	return nil
}

func (n *names) ReleaseByName(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.id, name)
}

type criService struct {
	keep           *crikeep.Cache
	hidden         store // exists, and is in no store yet
	sandboxStore   store
	containerStore store
	names          names
	recovered      chan struct{}

	mu      sync.Mutex
	made    int
	log     []string      // events and NRI, in order
	refuse  string        // what a plugin says
	slow    chan struct{} // creations wait for it
	begun   chan struct{} // and say so
	destroy func() error  // clean-up fails
}

func (c *criService) note(format string, a ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf(format, a...))
}

func (c *criService) event(id, what string) { c.note("event %s %s", what, id) }
func (c *criService) monitorExit(h *object) {}
func (c *criService) store(o *object)       { o.ready = true; c.sandboxStore.Add(o) }
func (c *criService) find(k crikeep.Kind, id string) *object {
	if o := c.hidden.get(k, id); o != nil {
		return o
	}
	return c.sandboxStore.get(k, id)
}

func (c *criService) objects(f crikeep.Filter) (l []crikeep.Object) {
	if f.Kind != crikeep.Sandbox {
		return nil
	}
	for _, o := range append(c.hidden.list(), c.sandboxStore.list()...) {
		l = append(l, o.key())
	}
	return l
}

func (c *criService) nri(ctx context.Context, event crikeep.HookEvent, o *object) error {
	c.mu.Lock()
	refuse := c.refuse
	c.mu.Unlock()
	c.note("nri %v %s", event, o.id)
	if event == crikeep.HookRun {
		o.told = true
		if refuse != "" {
			return errors.New(refuse)
		}
	}
	return ctx.Err()
}

// runPodSandboxRequest is CRI's, as far as this test goes: config { metadata { name, uid, namespace
// } } and a hostname.
type runPodSandboxRequest struct{ pod, hostname string }

func field(n byte, parts ...string) string {
	s := strings.Join(parts, "")
	return string([]byte{n<<3 | 2, byte(len(s))}) + s
}

func (r *runPodSandboxRequest) Marshal() ([]byte, error) {
	config := field(1, field(1, r.pod), field(2, r.pod+"-uid"), field(3, "default"))
	if r.hostname != "" {
		config += field(2, r.hostname)
	}
	return []byte(field(1, config)), nil
}

// makeSandbox is RunPodSandbox up to NRI.
func (c *criService) makeSandbox(ctx context.Context, t *crikeep.Turn, r *runPodSandboxRequest) (_ *object, retErr error) {
	c.mu.Lock()
	c.made++
	o := &object{kind: crikeep.Sandbox, id: fmt.Sprintf("%s-%d", r.pod, c.made), name: r.pod + "_default_0", pod: r.pod}
	c.mu.Unlock()
	if err := c.names.Reserve(o.name, o.id); err != nil {
		return nil, err
	}
	defer func() {
		if retErr != nil {
			c.names.ReleaseByName(o.name)
		}
	}()
	t.Stage("sandbox network creation")
	if c.slow != nil {
		c.begun <- struct{}{}
		select {
		case <-c.slow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return o, nil
}

func (c *criService) remove(ctx context.Context, o *object) error {
	if c.destroy != nil {
		if err := c.destroy(); err != nil {
			return err
		}
	}
	c.note("removed %s", o.id)
	c.names.ReleaseByName(o.name)
	return nil
}

// ---- from here on as in the README --------------------------------------------------------------

func (c *criService) RunPodSandbox(ctx context.Context, r *runPodSandboxRequest) (string, error) {
	bytes, err := r.Marshal()
	if err != nil {
		return "", err
	}
	return c.do(ctx, crikeep.Sandbox, bytes, func(ctx context.Context, t *crikeep.Turn) (*object, error) {
		return c.makeSandbox(ctx, t, r)
	})
}

func (c *criService) do(ctx context.Context, kind crikeep.Kind, request []byte,
	create func(context.Context, *crikeep.Turn) (*object, error)) (string, error) {
	reply, err := c.keep.Do(ctx, crikeep.Request{Kind: kind, Bytes: request}, func(mk context.Context, t *crikeep.Turn) (crikeep.Result, error) {
		// mk ends when the kubelet has moved on, and not with the caller; a CNI plugin that
		// hangs has to end, too
		mk, cancel := context.WithTimeout(mk, createDeadline)
		defer cancel()
		o, err := create(mk, t)
		if err != nil {
			return crikeep.Result{}, err
		}
		c.hidden.put(o) // before the cache hears of it: it may be committed, or destroyed, at once
		return crikeep.Result{ID: o.id}, nil
	})
	if err != nil {
		return "", err // with crikeep.GRPCCode(err)
	}
	c.publish(kind, reply.ID) // the kubelet's next call names it
	return reply.ID, nil
}

// publish shows what is committed; once, and whoever comes second waits for the first.
func (c *criService) publish(kind crikeep.Kind, id string) {
	h := c.hidden.get(kind, id)
	if h == nil {
		return // done
	}
	h.once.Do(func() {
		if kind == crikeep.Container {
			c.containerStore.Add(h)
			c.event(id, "CREATED")
		} else {
			h.ready = true // status READY
			c.sandboxStore.Add(h)
			c.event(id, "CREATED")
			c.monitorExit(h) // with the channel of WaitSandbox()
			c.event(id, "STARTED")
		}
		c.hidden.drop(kind, id) // at no moment it is nowhere
	})
}

type keepHost struct{ c *criService }

func (h keepHost) Destroy(ctx context.Context, e crikeep.Entry) error {
	o := h.c.hidden.get(e.Kind, e.ID)
	if o == nil {
		return crikeep.ErrNotFound // confirmed
	}
	if err := h.c.remove(ctx, o); err != nil {
		return err // asked for again, for ever
	}
	h.c.hidden.drop(e.Kind, e.ID)
	return nil
}

func (h keepHost) Inspect(ctx context.Context, e crikeep.Entry) (crikeep.Condition, error) {
	o := h.c.find(e.Kind, e.ID)
	switch {
	case o == nil:
		return crikeep.Absent, nil
	case o.exited():
		return crikeep.Dead, nil // also when the controller knows it no more: we do
	default:
		return crikeep.Ready, nil
	}
}

// List tells what there is, shown or not. It is asked as soon as the cache is open, and nobody
// knows before recover() has ended.
func (h keepHost) List(ctx context.Context, f crikeep.Filter) ([]crikeep.Object, error) {
	select {
	case <-h.c.recovered:
		return h.c.objects(f), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Committed comes for what nobody waited for to the end, too.
func (h keepHost) Committed(e crikeep.Entry) { h.c.publish(e.Kind, e.ID) }

type keepHooks struct {
	c    *criService
	told *sync.Map // an entry's number to its object: Remove is sent when that is in no other map any more
}

// Go's adaptation keeps its plugins to itself: one name stands for all of them.
func (h keepHooks) Choose(crikeep.Entry) (names []string, absent string) {
	return []string{"00-nri"}, ""
}

func (h keepHooks) Fire(ctx context.Context, event crikeep.HookEvent, e crikeep.Entry) (told []string, refusal string) {
	ctx, cancel := context.WithTimeout(ctx, nriDeadline) // never the kubelet's
	defer cancel()
	o, ok := h.told.Load(e.Number)
	if !ok { // HookRun; or told in an earlier life
		found := h.c.find(e.Kind, e.ID)
		if found == nil {
			return nil, ""
		}
		o, _ = h.told.LoadOrStore(e.Number, found)
	}
	if err := h.c.nri(ctx, event, o.(*object)); err != nil && event == crikeep.HookRun {
		refusal = err.Error()
	}
	return []string{"00-nri"}, refusal
}

func (h keepHooks) Cancel(uint64) {}

func (h keepHooks) Released(e crikeep.Entry, gone bool) {
	if gone {
		h.told.Delete(e.Number)
	}
}

func (c *criService) RemovePodSandbox(ctx context.Context, id string) error {
	return c.keep.Remove(ctx, crikeep.Sandbox, id, func(ctx context.Context) error {
		return c.removeSandbox(ctx, id)
	})
}

func (c *criService) removeSandbox(ctx context.Context, id string) error {
	o := c.sandboxStore.get(crikeep.Sandbox, id)
	if o == nil {
		return nil
	}
	if err := c.remove(ctx, o); err != nil {
		return err
	}
	c.sandboxStore.drop(crikeep.Sandbox, id)
	return nil
}

// recover is the middle of containerd's: what was loaded goes where it belongs.
func (c *criService) recover(loaded []*object) error {
	view, err := c.keep.View()
	if err != nil {
		return err
	}
	defer view.Close()
	for _, o := range loaded {
		hidden, err := view.Hides(o.key())
		if err != nil {
			return err
		}
		if hidden {
			c.hidden.put(o)
		} else {
			c.store(o)
		}
		c.names.Reserve(o.name, o.id) // all of them
	}
	close(c.recovered)
	return nil
}

// ---- and what is said of it ---------------------------------------------------------------------

// patient is a caller's context; whoever keeps it waiting for so long has failed.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func newCRI(t *testing.T, dir string, loaded ...*object) *criService {
	t.Helper()
	c := &criService{begun: make(chan struct{}, 8), recovered: make(chan struct{})}
	keep, err := crikeep.Open(crikeep.Options{
		StateDir: dir,
		Host:     keepHost{c},
		Hooks:    keepHooks{c, &sync.Map{}},
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.keep = keep
	t.Cleanup(func() { keep.Close() })
	if err := c.recover(loaded); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *criService) shown(id string) bool { return c.sandboxStore.get(crikeep.Sandbox, id) != nil }

func (c *criService) noted(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.log {
		if l == what {
			return true
		}
	}
	return false
}

// eventually asks again: destroying and committing have goroutines of their own. Who asks for a
// minute has failed.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: never", what)
		}
	}
}

// late begins a creation whose caller leaves, and lets it end: the result is kept.
func (c *criService) late(t *testing.T, r *runPodSandboxRequest) (id string) {
	t.Helper()
	c.slow = make(chan struct{})
	ctx, cancel := context.WithCancel(patient(t))
	ended := make(chan error)
	go func() {
		_, err := c.RunPodSandbox(ctx, r)
		ended <- err
	}()
	<-c.begun
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the caller that left was told %v", err)
	}
	close(c.slow)
	eventually(t, "kept", func() bool {
		entries, err := c.keep.Entries()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.State == crikeep.StateKept && e.PodName == r.pod {
				id = e.ID
			}
		}
		return id != ""
	})
	c.slow = nil
	return id
}

func TestContainerdInTime(t *testing.T) {
	c := newCRI(t, t.TempDir())
	id, err := c.RunPodSandbox(patient(t), &runPodSandboxRequest{pod: "web"})
	if err != nil || !c.shown(id) {
		t.Fatalf("%q, %v, shown %v", id, err, c.shown(id))
	}
	if again, err := c.RunPodSandbox(patient(t), &runPodSandboxRequest{pod: "web"}); again != id || err != nil {
		t.Errorf("asked again: %q, %v", again, err)
	}
	want := []string{"nri run " + id, "event CREATED " + id, "event STARTED " + id}
	if got := strings.Join(c.log, "; "); got != strings.Join(want, "; ") {
		t.Errorf("told: %s", got)
	}
	if err := c.RemovePodSandbox(patient(t), id); err != nil || c.shown(id) {
		t.Errorf("removed: %v, shown %v", err, c.shown(id))
	}
	if next, err := c.RunPodSandbox(patient(t), &runPodSandboxRequest{pod: "web"}); next == id || err != nil {
		t.Errorf("asked for after its removal: %q, %v", next, err)
	}
}

func TestContainerdLateIsHiddenAndHandedBack(t *testing.T) {
	c := newCRI(t, t.TempDir())
	r := &runPodSandboxRequest{pod: "web"}
	kept := c.late(t, r)
	if c.shown(kept) || c.noted("nri run "+kept) {
		t.Error("shown, or told, before it is handed back")
	}
	id, err := c.RunPodSandbox(patient(t), r)
	if id != kept || err != nil || !c.shown(id) || c.made != 1 {
		t.Fatalf("%q, %v, shown %v, made %d times", id, err, c.shown(id), c.made)
	}
	if !c.noted("nri run "+kept) || !c.noted("event STARTED "+kept) {
		t.Errorf("told: %v", c.log)
	}
}

func TestContainerdRepetitionThatWaitsGetsIt(t *testing.T) {
	c := newCRI(t, t.TempDir())
	c.slow = make(chan struct{})
	r := &runPodSandboxRequest{pod: "web"}
	first, cancel := context.WithCancel(patient(t))
	ended, got := make(chan error), make(chan string)
	go func() {
		_, err := c.RunPodSandbox(first, r)
		ended <- err
	}()
	<-c.begun
	cancel()
	<-ended
	go func() {
		id, err := c.RunPodSandbox(patient(t), r)
		if err != nil {
			id = err.Error()
		}
		got <- id
	}()
	close(c.slow)
	if id := <-got; !c.shown(id) || c.made != 1 {
		t.Errorf("%q, made %d times", id, c.made)
	}
}

func TestContainerdChangedRequestGetsItsOwn(t *testing.T) {
	c := newCRI(t, t.TempDir())
	kept := c.late(t, &runPodSandboxRequest{pod: "web", hostname: "blue"})
	failures := 1
	c.destroy = func() error { // clean-up that fails keeps the name, and is tried again
		c.mu.Lock()
		defer c.mu.Unlock()
		if failures--; failures >= 0 {
			return errors.New("CNI DEL failed")
		}
		return nil
	}
	id, err := c.RunPodSandbox(patient(t), &runPodSandboxRequest{pod: "web", hostname: "green"})
	if err != nil || id == kept || !c.noted("removed "+kept) {
		t.Errorf("%q after %q, %v: %v", id, kept, err, c.log)
	}
	if c.noted("nri run " + kept) {
		t.Error("plugins heard of what nobody was given")
	}
}

func TestContainerdRefusedByAPlugin(t *testing.T) {
	c := newCRI(t, t.TempDir())
	c.refuse = "plugin 10-quota: no"
	r := &runPodSandboxRequest{pod: "web"}
	_, err := c.RunPodSandbox(patient(t), r)
	if !errors.Is(err, crikeep.ErrRefused) || !strings.Contains(err.Error(), "10-quota: no") {
		t.Fatalf("%v", err)
	}
	eventually(t, "undone", func() bool { return c.noted("nri remove web-1") })
	if c.shown("web-1") || !c.noted("nri stop web-1") || !c.noted("removed web-1") {
		t.Errorf("left, or not told of its end: %v", c.log)
	}
	c.mu.Lock()
	c.refuse = ""
	c.mu.Unlock()
	if id, err := c.RunPodSandbox(patient(t), r); err != nil || !c.shown(id) {
		t.Errorf("the same request, later: %q, %v", id, err)
	}
}

func TestContainerdRestart(t *testing.T) {
	dir := t.TempDir()
	first := newCRI(t, dir)
	r := &runPodSandboxRequest{pod: "web"}
	shown, err := first.RunPodSandbox(patient(t), &runPodSandboxRequest{pod: "db"})
	if err != nil {
		t.Fatal(err)
	}
	kept := first.late(t, r)
	first.keep.Close()

	// containerd's metadata has both, and cannot tell them apart
	loaded := []*object{{kind: crikeep.Sandbox, id: kept, name: "web_default_0", pod: "web"},
		{kind: crikeep.Sandbox, id: shown, name: "db_default_0", pod: "db"}}
	c := newCRI(t, dir, loaded...)
	if c.shown(kept) || !c.shown(shown) {
		t.Errorf("after the restart shown: kept %v, committed %v", c.shown(kept), c.shown(shown))
	}
	id, err := c.RunPodSandbox(patient(t), r)
	if id != kept || err != nil || !c.shown(id) || c.made != 0 {
		t.Errorf("%q, %v, shown %v, made %d times", id, err, c.shown(id), c.made)
	}
}
