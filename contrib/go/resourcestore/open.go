// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"crikeep.io/go/crikeep"
)

// Options of Open. The functions, and the steps of cleaners, may be called from any goroutine,
// several at the same time, and before Open has returned. If they need the store, they must wait
// for that. Open waits for Recover and List only.
type Options struct {
	// StateDir is the directory of the database. One process at a time owns it. "" is
	// /run/crikeep. It should last until the next boot, as sandboxes do.
	StateDir string
	// TTL is how long a result is kept after its last request. 0 is the library's default, 10
	// minutes.
	TTL time.Duration
	// DestroyTimeout is how long one pass of a cleaner may take. 0 is a minute. After that the
	// pass is not stopped, but counts as failed.
	DestroyTimeout time.Duration
	// Recover is required. It returns the Go values of a resource that an earlier process made,
	// when they are needed.
	//   - a resource, and a cleaner that undoes it: it exists and is complete;
	//   - nil and a cleaner: it cannot be used, but something is left to undo;
	//   - nil and nil: nothing is left of it;
	//   - an error: not known yet; ask again.
	// id is "" for a creation that had not ended when the process did. Only its name is known
	// then, and a resource must be returned only if its creation was completed. Recover may be
	// called more than once.
	Recover func(kind crikeep.Kind, name, id string) (IdentifiableCreatable, *ResourceCleaner, error)
	// Alive says whether a kept resource is still usable, before it is handed back. nil: every
	// resource counts as usable.
	Alive func(ctx context.Context, kind crikeep.Kind, name, id string) (bool, error)
	// Committed is called once for every resource that is handed over, after its SetCreated().
	// It can send CRI's events. It must not wait for a call of this package.
	Committed func(kind crikeep.Kind, name, id string)
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
	// Logger is slog.Default() if nil.
	Logger *slog.Logger

	now     func() time.Duration // a clock for tests
	waiting func()               // for tests: GetForRequest is about to wait
}

// Open returns a store that survives its process. Kept results are available again, and unfinished
// clean-up continues.
func Open(o Options) (*ResourceStore, error) {
	if o.Recover == nil {
		return nil, errors.New("resourcestore: there is no Options.Recover: nobody could hand back what is found")
	}
	s := newStore(o)
	s.durable = true
	if err := s.open(o.StateDir); err != nil {
		return nil, err
	}
	return s, nil
}

// openPrivate returns a store that does not survive its process.
func openPrivate(o Options) (*ResourceStore, error) {
	dir, err := privateDir()
	if err != nil {
		return nil, err
	}
	s := newStore(o)
	s.private = dir
	if err := s.open(dir); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

const privateName = "crikeep-store-"

func privateDir() (string, error) {
	var dir string
	var err error
	for _, base := range []string{"/dev/shm", os.TempDir()} {
		removeLeft(base)
		if dir, err = os.MkdirTemp(base, privateName); err == nil {
			break
		}
	}
	return dir, err
}

// removeLeft removes the private directories of killed processes. The library locks a directory as
// long as it owns it, and writes the file owner once it has the lock. A directory without that file
// may be about to be used.
func removeLeft(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, privateName+"*"))
	for _, dir := range dirs {
		f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		var st syscall.Stat_t
		ours := syscall.Fstat(int(f.Fd()), &st) == nil && int(st.Uid) == os.Geteuid()
		if _, err = os.Lstat(filepath.Join(dir, "owner")); ours && err == nil &&
			syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = f.Close()
	}
}

func newStore(o Options) *ResourceStore {
	s := &ResourceStore{
		opened:  make(chan struct{}),
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
	return s
}

func (s *ResourceStore) open(dir string) error {
	cache, err := crikeep.Open(crikeep.Options{
		StateDir:       dir,
		Host:           s.host(),
		Hooks:          s.options.Hooks,
		Logger:         s.libraryLog(),
		TTL:            s.options.TTL,
		DestroyTimeout: s.options.DestroyTimeout,
		Now:            s.options.now,
		// CRI-O takes a pod's annotations from the sandbox when it creates a container. A
		// sandbox with old ones would pass them on.
		OnAnnotationChange: crikeep.AnnotationEvict,
	})
	if err != nil {
		s.cancel()
		return fmt.Errorf("resourcestore: %w", err)
	}
	s.cache = cache
	close(s.opened)
	if s.durable {
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
	}
	return nil
}

// libraryLog is for the library's own lines. CRI-O's store logs nothing about a successful
// creation, and for the library a Delete only means that no result came. So these lines are left
// out if nobody can read the database.
func (s *ResourceStore) libraryLog() *slog.Logger {
	if s.private == "" {
		return s.log
	}
	return slog.New(atLeast{s.log.Handler(), slog.LevelWarn})
}

// atLeast is a handler of lines from a level on.
type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level && h.Handler.Enabled(ctx, level)
}

func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
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
