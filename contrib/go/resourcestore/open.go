// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"crikeep.io/go/crikeep"
)

// Options of Open and Load. The functions may be called from any goroutine, several at the same
// time. Their contexts end when the store is closed, if not earlier. Recover and List are called
// before Load has returned, and Load waits for them. The steps of cleaners and Hooks.Fire are called
// after Start.
type Options struct {
	// StateDir is the directory of the database, /run/crikeep say, where the crikeep command
	// looks. One process at a time owns it. It should last until the next boot, as sandboxes do.
	// "" keeps everything in memory, and nothing survives the process. Open refuses a directory
	// if libcrikeep is not built in: see Durable.
	StateDir string
	// TTL is how long a result is kept after its last request. 0 is the library's default, 10
	// minutes.
	TTL time.Duration
	// DestroyTimeout is how long one pass of a cleaner may take. 0 is a minute. After that the
	// pass is not stopped, but counts as failed.
	DestroyTimeout time.Duration
	// Recover is required with a StateDir. It returns the Go values of a resource that an earlier process made,
	// when they are needed.
	//   - a resource, and a cleaner that undoes it: it exists and is complete;
	//   - nil and a cleaner: it cannot be used, but something is left to undo;
	//   - nil and nil: nothing is left of it;
	//   - an error: not known yet; ask again.
	// id is "" for a creation that had not ended when the process did. Only its name is known
	// then, and a resource must be returned only if its creation was completed. Recover may be
	// called more than once.
	Recover func(ctx context.Context, kind crikeep.Kind, name, id string) (IdentifiableCreatable, *ResourceCleaner, error)
	// Alive says whether a kept resource is still usable, before it is handed back. nil: every
	// resource counts as usable.
	Alive func(ctx context.Context, kind crikeep.Kind, name, id string) (bool, error)
	// Committed is called once for every resource that is handed over, after its SetCreated().
	// It can send CRI's events. It must not wait for a call of this package.
	Committed func(ctx context.Context, kind crikeep.Kind, name, id string)
	// Hooks are told before a resource is handed over, and may refuse it. Later they are told
	// about its end. Send NRI's RunPodSandbox from them. nil: none. An error of Finish or
	// GetForRequest that Is crikeep.ErrRefused comes from them.
	Hooks crikeep.Hooks
	// ResolveImage returns the image that a reference means, so that a request before a pull
	// equals the one after it. May be nil.
	ResolveImage func(ctx context.Context, image string) (id string, err error)
	// List lists the runtime's sandboxes or containers, like crikeep.Lister. Open then
	// reconciles the cache with them: it forgets what is gone, and does not clean up what is in
	// use. nil: the store lists what it knows itself.
	List func(ctx context.Context, f crikeep.Filter) ([]crikeep.Object, error)
	// CleansAtStart says that the runtime cleans up at its start what a creation left that its
	// process did not survive. Recover then need not hear of creations that were killed in their
	// first 0.2 s, and one that is never late is written once. See crikeep.Options.IsRuntime.
	CleansAtStart bool
	// Logger is slog.Default() if nil. For logrus, see package sloglogrus.
	Logger *slog.Logger
	// CleanupTries is how often Cleanup of a cleaner of NewCleaner tries a step. 0 means 20.
	CleanupTries int

	now     func() time.Duration // a clock for tests
	waiting func()               // for tests: GetForRequest is about to wait
}

// Open is Load and Start in one.
func Open(o Options) (*ResourceStore, error) {
	s, err := Load(o)
	if err == nil {
		s.Start()
	}
	return s, err
}

// Start is the second half of opening a store: from now on, what was given up is cleaned up, and
// hooks are told. Calling it again does nothing.
func (s *ResourceStore) Start() { s.starting.Do(func() { close(s.started) }) }

// Load returns a store that knows what is hidden, and that does not act yet: it cleans up nothing,
// and tells hooks nothing, before Start. In between a runtime shows what is not hidden, and starts
// what the hooks need, NRI say, so that plugins are synchronised with all that runs.
//
// A store with a StateDir survives its process: kept results are available again,
// and unfinished clean-up continues. One without is in memory. All else is the same in both: hooks,
// commits, what is compared and what is waited for.
func Load(o Options) (*ResourceStore, error) {
	if o.StateDir == "" {
		return newInMemory(o), nil
	}
	if o.Recover == nil {
		return nil, errors.New("resourcestore: there is no Options.Recover: nobody could hand back what is found")
	}
	s := newStore(o)
	s.durable = true
	if err := s.open(o.StateDir); err != nil {
		s.cancel()
		return nil, fmt.Errorf("resourcestore: %w", err)
	}
	return s, nil
}

func newInMemory(o Options) *ResourceStore {
	s := newStore(o)
	s.cache = newMemory(s.options, s.host(), s.log)
	close(s.opened)
	return s
}

func newStore(o Options) *ResourceStore {
	s := &ResourceStore{
		opened:  make(chan struct{}),
		started: make(chan struct{}),
		options: o,
		log:     o.Logger,
		names:   make(map[string]*record),
		objects: make(map[objectID]*object),
		lost:    make(map[objectID]*object),
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if o.Hooks != nil {
		s.options.Hooks = startedHooks{o.Hooks, s}
	}
	return s
}

func (s *ResourceStore) open(dir string) error {
	cache, err := s.openDurable(dir)
	if err != nil {
		return err
	}
	s.cache = cache
	close(s.opened)
	s.restore()
	if !s.reconciled(reconcileWait) {
		s.log.Warn("nobody can tell yet what became of earlier resources; creations wait for it")
		go func() {
			if s.reconciled(forever) {
				s.restore()
			}
		}()
	}
	s.restore()
	return nil
}

const (
	reconcileWait = 10 * time.Second // for Recover and List
	reconcilePoll = time.Millisecond
	forever       = time.Duration(1<<63 - 1)
)

// reconciled waits until the library has looked at what exists. Before that, all calls would wait.
// If a Recover or List cannot answer yet, it is called again, but it does not delay the start of
// its runtime for ever.
func (s *ResourceStore) reconciled(most time.Duration) bool {
	for waited, poll := time.Duration(0), reconcilePoll; !s.cache.Reconciled(); waited += poll {
		if waited >= most || s.ctx.Err() != nil {
			return false
		}
		if waited > time.Second {
			poll = 100 * reconcilePoll
		}
		time.Sleep(poll)
	}
	return true
}

// restore takes up what an earlier process left. It is hidden, and available by its name.
func (s *ResourceStore) restore() {
	entries, err := s.cache.Entries()
	if err != nil {
		s.log.Warn("restoring the resource store", "error", err)
		return
	}
	for _, e := range entries {
		if e.ID == "" || e.State == crikeep.StateCommitted {
			continue
		}
		o := s.objectOf(e)
		if e.State == crikeep.StateEvicting {
			continue
		}
		rec := s.find(o.name, o.kind, true)
		if rec.object == nil && rec.turn == nil {
			rec.object, rec.explicit = o, true
			rec.parts = partsOf(e)
		}
		rec.mu.Unlock()
	}
}

// partsOf returns the key of an entry. A container of an earlier process knows its sandbox.
func partsOf(e crikeep.Entry) parts {
	return parts{kind: e.Kind, namespace: e.PodNamespace, pod: e.PodName, uid: e.PodUID, sandboxID: e.SandboxID,
		container: e.ContainerName, attempt: e.Attempt}
}
