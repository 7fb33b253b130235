// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crikeep.io/go/crikeep"
	"crikeep.io/go/internal/ramstore"
)

// What the suites run against: this package's store and one in memory by the rules of CRI-O's, each
// within a small runtime.

const interval = time.Minute // of the sweeps there; twice that is the TTL here

type resource struct {
	id      string
	created atomic.Int32 // how often SetCreated was called
}

func (r *resource) ID() string  { return r.id }
func (r *resource) SetCreated() { r.created.Add(1) }

type cleaner interface {
	Add(ctx context.Context, description string, fn func() error)
	Cleanup() error
}

// One store, with the calls CRI-O's has.
type documented interface {
	Get(name string) string
	Put(name string, r *resource, c cleaner) error
	Delete(name string)
	WatcherForResource(name string) (chan struct{}, string)
	SetStageForResource(ctx context.Context, name, stage string)
	Close()
	newCleaner() cleaner
	advance(d time.Duration) // the time, and does what is due by then
}

// What makes a resource, and notes how to undo it.
type maker func(c cleaner) (*resource, error)

// And with a runtime around it.
type subject interface {
	documented
	// create is the runtime's handler of RunPodSandbox or CreateContainer
	create(ctx context.Context, kind crikeep.Kind, name string, request []byte, make maker) (string, error)
	// onWait sets what is called when a create is about to wait, and after that when it was
	// woken and waits again
	onWait(waits, again func())
	hides(kind crikeep.Kind, id string) bool
	removed(kind crikeep.Kind, id string) // the runtime has removed it
	kill(id string)                       // its process has died
	entries() int
	events() []string // "created ID": what was told to others when a result was handed over from the store
	restart()         // the process ends and begins again
}

// ---- ours ---------------------------------------------------------------------------------------

type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(int64(time.Hour))
	return c
}

func (c *clock) now() time.Duration      { return time.Duration(c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

type ours struct {
	*ResourceStore
	t     testing.TB
	clock *clock
	dir   string

	mu           sync.Mutex
	waits, again func()
	dead         map[string]bool
	told         []string
	onCommit     func(kind crikeep.Kind, id string)
	made         map[string]*resource // what survives the process: the runtime's own state files
	cleaners     map[string]*ResourceCleaner
}

func TestMain(m *testing.M) {
	slog.SetDefault(quiet()) // cleaners have no other
	os.Exit(m.Run())
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// stores are the engines of this build.
var stores = map[bool][]string{true: {"durable", "memory"}, false: {"memory"}}[Durable]

// each runs a test on every store.
func each(t *testing.T, test func(t *testing.T, s *ours)) {
	for _, store := range stores {
		t.Run(store, func(t *testing.T) { test(t, newOurs(t, store)) })
	}
}

// stateDir is short-lived, and in memory where there is such a place.
func stateDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "resourcestore-test-")
	if err != nil {
		dir, err = os.MkdirTemp("", "resourcestore-test-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "state")
}

func newOurs(t testing.TB, store string) *ours {
	o := &ours{t: t, clock: newClock(), dead: map[string]bool{}, made: map[string]*resource{},
		cleaners: map[string]*ResourceCleaner{}}
	if store == "durable" {
		o.dir = stateDir(t)
	}
	o.open()
	t.Cleanup(func() { o.ResourceStore.Close() })
	return o
}

// dirOf is another state directory, if the store has one.
func (o *ours) dirOf(name string) string {
	if o.dir == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(o.dir), name)
}

func (o *ours) open() { o.reopen(Options{Recover: o.recover, Alive: o.alive}) }

// reopen opens another store in place of the one that is there.
func (o *ours) reopen(options Options) {
	options.StateDir, options.TTL, options.Logger, options.now = o.dir, 2*interval, quiet(), o.clock.now
	options.Committed, options.waiting = o.committed, o.waiting
	if o.ResourceStore != nil {
		o.ResourceStore.Close()
	}
	store, err := Open(options)
	if err != nil {
		o.t.Fatal(err)
	}
	o.ResourceStore = store
}

func (o *ours) recover(_ context.Context, _ crikeep.Kind, name, id string) (IdentifiableCreatable, *ResourceCleaner, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.made[id]; r != nil {
		return r, o.cleaners[id], nil
	}
	return nil, nil, nil
}

func (o *ours) alive(_ context.Context, _ crikeep.Kind, _, id string) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.dead[id], nil
}

func (o *ours) committed(_ context.Context, kind crikeep.Kind, _, id string) {
	o.mu.Lock()
	o.told = append(o.told, "created "+id)
	then := o.onCommit
	o.mu.Unlock()
	if then != nil {
		then(kind, id)
	}
}

func (o *ours) waiting() {
	o.mu.Lock()
	waits := o.waits
	o.mu.Unlock()
	if waits != nil {
		waits()
	}
}

func (o *ours) onWait(waits, again func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits, o.again = waits, again
}

func (o *ours) Put(name string, r *resource, c cleaner) error {
	return o.ResourceStore.Put(name, r, c.(*ResourceCleaner))
}

func (o *ours) newCleaner() cleaner { return NewResourceCleaner() }

func (o *ours) advance(d time.Duration) {
	o.clock.advance(d)
	o.cache.Step()
}

// The whole handler.
func (o *ours) create(ctx context.Context, kind crikeep.Kind, name string, request []byte,
	make maker) (string, error) {
	id, err := o.GetForRequest(ctx, kind, name, request)
	if id != "" || err != nil {
		return id, err
	}
	undo := NewResourceCleaner()
	r, err := make(undo)
	if err != nil {
		undo.Cleanup()
		o.Fail(context.Background(), name, err)
		return "", err
	}
	o.mu.Lock()
	o.made[r.id], o.cleaners[r.id] = r, undo
	o.mu.Unlock()
	return o.Finish(ctx, name, r, undo)
}

func (s *ResourceStore) hides(kind crikeep.Kind, id string) bool {
	hidden, err := s.Hides(context.Background(), kind, id)
	return hidden && err == nil
}

func (o *ours) removed(kind crikeep.Kind, id string) {
	o.mu.Lock()
	delete(o.made, id)
	o.mu.Unlock()
	o.Removed(context.Background(), kind, id)
}

func (o *ours) kill(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead[id] = true
}

// entries of the database, or what this package remembers, whichever is more
func (o *ours) entries() int {
	entries, err := o.cache.Entries()
	if err != nil {
		o.t.Fatal(err)
	}
	o.ResourceStore.mu.Lock()
	defer o.ResourceStore.mu.Unlock()
	return max(len(entries), len(o.names), len(o.objects))
}

func (o *ours) events() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.told...)
}

func (o *ours) restart() {
	o.open()
}

// ---- a store in memory --------------------------------------------------------------------------

type ram struct {
	*ramstore.Store
	t testing.TB

	mu           sync.Mutex
	passed       time.Duration
	waits, again func()
	reserved     map[string]string // name to id
	made         map[string]*resource
}

func newRAM(t testing.TB) *ram {
	r := &ram{Store: ramstore.New(0), t: t, reserved: map[string]string{}, made: map[string]*resource{}}
	return r
}

func (r *ram) Put(name string, res *resource, c cleaner) error {
	return r.Store.Put(name, res, c.(*ramstore.Cleaner))
}

func (r *ram) newCleaner() cleaner {
	c := ramstore.NewCleaner()
	c.Wait = func(time.Duration) {}
	return c
}

func (r *ram) advance(d time.Duration) {
	for r.passed += d; r.passed >= interval; r.passed -= interval {
		r.Sweep()
	}
}

func (r *ram) onWait(waits, again func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits, r.again = waits, again
}

func (r *ram) reserve(name string) (id string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, taken := r.reserved[name]; taken {
		return id, false
	}
	r.reserved[name] = ""
	return "", true
}

func (r *ram) release(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reserved, name)
}

// The handler as facts describe it: a name is reserved first, who finds it taken waits, is never
// given what it waited for, and gets an error that asks for one more try.
func (r *ram) create(ctx context.Context, _ crikeep.Kind, name string, _ []byte,
	make maker) (string, error) {
	if id, ok := r.reserve(name); !ok {
		return r.taken(ctx, name, id)
	}
	r.SetStageForResource(ctx, name, "creating")
	undo := r.newCleaner()
	undo.Add(ctx, "release the name", func() error { r.release(name); return nil })
	made, err := make(undo)
	if err != nil {
		undo.Cleanup()
		return "", err
	}
	r.mu.Lock()
	r.reserved[name], r.made[made.id] = made.id, made
	r.mu.Unlock()
	if ctx.Err() != nil {
		if err := r.Put(name, made, undo); err != nil {
			r.t.Log(err)
		}
		return "", ctx.Err()
	}
	r.Delete(name)
	made.SetCreated()
	return made.id, nil
}

func (r *ram) taken(ctx context.Context, name, id string) (string, error) {
	r.mu.Lock()
	made, waits, again := r.made[id], r.waits, r.again
	r.mu.Unlock()
	if made != nil && made.created.Load() > 0 {
		return id, nil
	}
	if id := r.Get(name); id != "" {
		return id, nil
	}
	watcher, stage := r.WatcherForResource(name)
	if waits != nil {
		waits()
	}
	select {
	case <-ctx.Done():
		return "", fmt.Errorf("at stage %s: %w: the name is taken", stage, ctx.Err())
	case <-watcher:
	}
	if again != nil {
		again()
	}
	<-ctx.Done()
	return "", errors.New("it is ready, and will be given to the next try")
}

func (r *ram) hides(crikeep.Kind, string) bool { return false } // statistics and metrics do not ask

func (r *ram) removed(_ crikeep.Kind, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.made, id)
	for name, reserved := range r.reserved {
		if reserved == id {
			delete(r.reserved, name)
		}
	}
}

func (r *ram) kill(string)      {}
func (r *ram) entries() int     { return r.Len() }
func (r *ram) events() []string { return nil }

// What has a state file is loaded, and counts as created.
func (r *ram) restart() {
	r.Store.Close()
	r.Store = ramstore.New(0)
	for _, made := range r.made {
		made.SetCreated()
	}
}
