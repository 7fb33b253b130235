// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

// #cgo pkg-config: libcrikeep
// #include "bridge.h"
import "C"

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/cgo"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options of a cache. A duration of 0 means the default of crikeep.h.
type Options struct {
	StateDir string       // "": /run/crikeep. Created if absent; one process at a time owns it
	Host     Host         // required
	Hooks    Hooks        // nil: none
	Logger   *slog.Logger // nil: slog.Default()

	TTL            time.Duration // how long a result is kept after its last request (10 minutes)
	CreateDeadline time.Duration // after this, the outcome of a creation is unknown (15 minutes)
	LostGrace      time.Duration // a lost creation that a caller waits for fails after so long an absence (30 s)
	SupersedeWait  time.Duration // how long a new attempt waits for the old one's ports (20 s)
	DestroyTimeout time.Duration // after this, a Destroy counts as failed, and another one is begun (60 s)

	Mode                 Mode
	HandBack             HandBackMode
	OnAnnotationChange   AnnotationChange
	IgnoreAnnotations    []string // patterns with at most one '*', at the end; nil: what CNI plugins write
	CompareSandboxConfig bool     // also compare the parts of CreateContainer that only RunPodSandbox uses

	// IsRuntime says that this process is the runtime, so that a creation that has not finished
	// ends with it. The database then need not say at once that one has begun (K29).
	IsRuntime bool

	// Now is a clock for tests, used with Cache.Step. It is called from any goroutine, at any
	// time, and must not call this package. nil: the kernel's CLOCK_BOOTTIME.
	Now func() time.Duration
}

// Cache keeps late results. Open makes one. Every method may be called from any goroutine.
type Cache struct {
	o      Options
	logger *slog.Logger
	handle cgo.Handle
	ctx    context.Context // ends when Close begins
	cancel context.CancelCauseFunc

	mu      sync.RWMutex // held for reading while C works on the cache
	c       *C.struct_ck_cache
	closing atomic.Bool
	close   sync.Once
	err     error // of Close

	loopMu sync.Mutex    // held while the event loop is processed
	fd     *os.File      // a duplicate of ck_cache_fd()
	looped chan struct{} // closed when the event loop has ended

	logs     *queue[logLine]
	logLevel atomic.Int32 // as C knows it; levelMu is held while it changes
	levelMu  sync.Mutex
	events   *queue[Entry] // for CommitWatcher
}

var _ io.Closer = (*Cache)(nil)

type logLine struct {
	level slog.Level
	text  string
}

// logLines is how many lines may wait for a slow Logger, about as many as a thousand pods cause at
// once. Further lines are counted, not kept.
const logLines = 4096

// Open opens the database in the state directory, or creates it, owns it, and takes up what an
// earlier process left (K25). One goroutine runs until Close.
func Open(o Options) (*Cache, error) {
	if o.Host == nil {
		return nil, invalid("options: there is no Host")
	}
	for _, d := range []time.Duration{o.TTL, o.CreateDeadline, o.LostGrace, o.SupersedeWait, o.DestroyTimeout} {
		if d < 0 {
			return nil, invalid("options: a negative duration")
		}
	}
	c := &Cache{o: o, logger: o.Logger, looped: make(chan struct{})}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.logs = newQueue(logLines, c.logLine, func(n int) {
		c.logger.Warn(fmt.Sprintf("%d lines of crikeep's log were dropped", n))
	})
	c.events = newQueue(0, c.committed, nil)
	c.handle = cgo.NewHandle(c)
	if err := c.open(); err != nil {
		c.cancel(err)
		c.handle.Delete()
		return nil, err
	}
	live.caches.Add(1)
	go c.loop()
	return c, nil
}

func (c *Cache) open() error {
	o := &c.o
	dir := cstring(o.StateDir)
	if dir == nil {
		return invalid("options: a zero byte in StateDir")
	}
	patterns, n := []byte{0}, C.int(-1)
	if o.IgnoreAnnotations != nil {
		n = C.int(len(o.IgnoreAnnotations))
		patterns = patterns[:0]
		for _, p := range o.IgnoreAnnotations {
			if cstring(p) == nil {
				return invalid("options: a zero byte in IgnoreAnnotations")
			}
			patterns = append(append(patterns, p...), 0)
		}
		patterns = append(patterns, 0)
	}
	durations := C.struct_ckgo_durations{
		ttl:             C.uint64_t(o.TTL),
		create_deadline: C.uint64_t(o.CreateDeadline),
		lost_grace:      C.uint64_t(o.LostGrace),
		supersede_wait:  C.uint64_t(o.SupersedeWait),
		destroy_timeout: C.uint64_t(o.DestroyTimeout),
	}
	flags := C.int(0)
	set := func(flag C.int, on bool) {
		if on {
			flags |= flag
		}
	}
	_, inspector := o.Host.(Inspector)
	_, lister := o.Host.(Lister)
	_, resolver := o.Host.(ImageResolver)
	_, watcher := o.Host.(CommitWatcher)
	set(C.CKGO_INSPECT, inspector)
	set(C.CKGO_LIST, lister)
	set(C.CKGO_RESOLVE, resolver)
	set(C.CKGO_COMMITTED, watcher)
	set(C.CKGO_HOOKS, o.Hooks != nil)
	set(C.CKGO_CLOCK, o.Now != nil)
	set(C.CKGO_SANDBOX_CONFIG, o.CompareSandboxConfig)
	set(C.CKGO_IS_RUNTIME, o.IsRuntime)

	cerr := newError()
	if inside() {
		return ErrDeadlock
	}
	enterC()
	r := C.ckgo_open(dir, flags, &durations, C.int(o.Mode), C.int(o.HandBack), C.int(o.OnAnnotationChange),
		(*C.char)(bytesPointer(patterns)), n, C.uintptr_t(c.handle), &c.c, cerr)
	leaveC()
	if err := wrap(r, cerr); err != nil {
		return err
	}
	if err := c.openFD(); err != nil {
		C.ck_cache_close(c.c, nil)
		c.c = nil
		return err
	}
	return nil
}

// openFD gives a duplicate of the cache's descriptor to Go's poller, so that no thread waits in
// poll(2).
func (c *Cache) openFD() error {
	fd, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(C.ck_cache_fd(c.c)), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return &Error{Code: CodeIO, Errno: errno, Text: "duplicate the cache's descriptor: " + errno.Error()}
	}
	if err := syscall.SetNonblock(int(fd), true); err != nil { // else os.NewFile does not give it to the poller
		syscall.Close(int(fd))
		return &Error{Code: CodeIO, Text: "the cache's descriptor: " + err.Error()}
	}
	c.fd = os.NewFile(fd, "crikeep")
	if err := c.fd.SetReadDeadline(time.Time{}); err != nil {
		c.fd.Close()
		return &Error{Code: CodeIO, Text: "the cache's descriptor: " + err.Error()}
	}
	return nil
}

// Close gives every waiting turn ErrClosed, ends the contexts of Host's calls, makes running
// creations lost (K8) and releases the state directory. It waits for calls that are inside the
// library and for the Logger, but not for calls of Host. Closing again does nothing. Turns and
// views must still be closed. It must not be called from the Logger.
func (c *Cache) Close() error {
	if inside() {
		return ErrDeadlock
	}
	c.close.Do(func() { c.err = c.doClose() })
	return c.err
}

func (c *Cache) doClose() error {
	c.closing.Store(true)
	c.cancel(ErrClosed)
	c.fd.Close() // wakes the event loop
	<-c.looped
	cerr := newError()
	c.mu.Lock()
	r := C.ck_cache_close(c.c, cerr)
	c.c = nil
	c.mu.Unlock()
	c.handle.Delete()
	c.logs.wait()
	live.caches.Add(-1)
	return wrap(r, cerr)
}

// enter must be called before C works on the cache, and leave after it.
func (c *Cache) enter() error {
	if inside() {
		return ErrDeadlock
	}
	c.mu.RLock()
	if c.closing.Load() {
		c.mu.RUnlock()
		return ErrClosed
	}
	enterC()
	return nil
}

func (c *Cache) leave() {
	leaveC()
	c.mu.RUnlock()
}

// ---- the event loop -----------------------------------------------------------------------------

// loop does what is due whenever the descriptor is readable. Go's poller reports edges. None is
// lost: Read remembers an edge between two of its waits, and the library writes to its eventfd
// again for what came after ck_cache_process() had looked. So it is enough to continue until nothing
// is left before waiting.
func (c *Cache) loop() {
	defer close(c.looped)
	raw, err := c.fd.SyscallConn()
	if err == nil {
		err = raw.Read(func(uintptr) bool {
			c.process()
			return c.closing.Load()
		})
	}
	if err != nil && !c.closing.Load() {
		c.logger.Error("crikeep: the event loop of the cache has ended: " + err.Error())
	}
}

func (c *Cache) process() {
	c.loopMu.Lock()
	defer c.loopMu.Unlock()
	for !c.closing.Load() {
		n := C.ck_cache_process(c.c, nil)
		if n < 0 || (n == 0 && C.ck_cache_timeout(c.c) != 0) {
			return
		}
	}
}

// Step is for tests with Options.Now. It does what is due by that clock, and returns the time at
// which something is due next, by the same clock, or a negative value for never. Calls of Host that
// it began may still be running when it returns.
func (c *Cache) Step() time.Duration {
	if inside() {
		return -1
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closing.Load() {
		return -1
	}
	c.process()
	due := uint64(C.ck_cache_timeout(c.c))
	if due > 1<<63-1 {
		return -1
	}
	return time.Duration(due)
}

// ---- calls and events that the host sees --------------------------------------------------------

// idCall is a call that names an object.
func (c *Cache) idCall(id string, f func(id *C.char) C.int) error {
	cid := cstring(id)
	if cid == nil {
		return invalid("a zero byte in an id")
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	return check(f(cid))
}

// SandboxStopping says that StopPodSandbox is about to be carried out (K16).
func (c *Cache) SandboxStopping(sandboxID string) error {
	return c.idCall(sandboxID, func(id *C.char) C.int { return C.ck_sandbox_stopping(c.c, id) })
}

// ObjectRemoved says that a committed resource was removed. It returns ErrNotFound if the resource
// was not known. See Remove.
func (c *Cache) ObjectRemoved(k Kind, id string) error {
	return c.idCall(id, func(id *C.char) C.int { return C.ck_object_removed(c.c, uint32(k), id) })
}

// ObjectSeen says in which condition a resource was seen.
func (c *Cache) ObjectSeen(k Kind, id string, condition Condition) error {
	return c.idCall(id, func(id *C.char) C.int { return C.ck_object_seen(c.c, uint32(k), id, uint32(condition)) })
}

// ObjectUsed says that a call named the id of a committed resource, so its answer has arrived (K7).
func (c *Cache) ObjectUsed(k Kind, id string) error {
	return c.idCall(id, func(id *C.char) C.int { return C.ck_object_used(c.c, uint32(k), id) })
}

// ContainerStarting says that StartContainer is about to be carried out, and is called before the id
// is looked up with View.Resolve. A container that was handed over, and was kept again because its
// answer was not confirmed, is committed now (K7).
func (c *Cache) ContainerStarting(containerID string) error {
	return c.idCall(containerID, func(id *C.char) C.int { return C.ck_container_starting(c.c, id) })
}

// Snapshot calls f for every entry that plugins were told about and that is not gone, in one
// consistent pass: nothing is committed during it. f must be fast and must not call this package.
// The pass ends at the first error of f, which is returned.
func (c *Cache) Snapshot(f func(Entry) error) error {
	s := &snapshot{f: f}
	if err := c.enter(); err != nil {
		return err
	}
	h := cgo.NewHandle(s)
	r := C.ckgo_snapshot(c.c, C.uintptr_t(h))
	h.Delete()
	c.leave()
	if s.panicked != nil {
		panic(s.panicked)
	}
	if s.err != nil {
		return s.err
	}
	return check(r)
}

type snapshot struct {
	f        func(Entry) error
	err      error
	panicked *Panic
}

//export ckgoSnapshot
func ckgoSnapshot(h C.uintptr_t, told *C.struct_ck_told) C.int {
	s := cgo.Handle(h).Value().(*snapshot)
	critical("the function given to Snapshot", func() { s.err = s.f(entryOf(told)) }, func(p *Panic) { s.panicked = p })
	if s.panicked != nil || s.err != nil {
		return 1
	}
	return 0
}

// Entries returns all entries except tombstones, in one consistent pass, oldest first.
func (c *Cache) Entries() ([]Entry, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	now := uint64(C.ckgo_boottime())
	if c.o.Now != nil {
		now = uint64(c.o.Now())
	}
	e := &entries{now: now}
	h := cgo.NewHandle(e)
	defer h.Delete()
	r := C.ckgo_entries(c.c, C.uintptr_t(h))
	return e.list, check(r)
}

type entries struct {
	now  uint64
	list []Entry
}

//export ckgoEntry
func ckgoEntry(h C.uintptr_t, info *C.struct_ck_entry_info) {
	e := cgo.Handle(h).Value().(*entries)
	entry := Entry{
		Number:        uint64(info.entry),
		Kind:          Kind(info.kind),
		ID:            C.GoString(info.id),
		PodName:       C.GoString(info.pod_name),
		PodNamespace:  C.GoString(info.pod_namespace),
		PodUID:        C.GoString(info.pod_uid),
		SandboxID:     C.GoString(info.sandbox_id),
		ContainerName: C.GoString(info.container_name),
		Attempt:       uint32(info.attempt),
		State:         State(info.state),
		Stage:         C.GoString(info.stage),
		Lost:          info.lost != 0,
		Known:         info.told != 0,
		Ended:         info.ended != 0,
		Requests:      uint32(info.requests),
		Why:           C.GoString(info.why),
		Tries:         uint32(info.tries),
	}
	if changed := uint64(info.changed); changed < e.now { // else it happened before the last boot
		entry.Since = time.Duration(e.now - changed)
	}
	e.list = append(e.list, entry)
}

// Reconciled says whether the first lists of the host have succeeded. Until then requests wait, and
// nothing expires or is destroyed (K24, K25).
func (c *Cache) Reconciled() bool {
	if c.enter() != nil {
		return false
	}
	defer c.leave()
	return C.ck_reconciled(c.c) > 0
}

// ---- panics -------------------------------------------------------------------------------------

// Panic is the panic of a function given to Do or Snapshot. It is passed on to their callers.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value, if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// guarded calls f and catches its panic, which must not pass through C, because the locks of the
// library would stay locked. failed is called then. It is also called if f ends its goroutine by
// runtime.Goexit, which cannot be caught.
func guarded(f func(), failed func(p *Panic, exits bool)) {
	done := false
	defer func() {
		if v := recover(); v != nil {
			failed(&Panic{Value: v, Stack: debug.Stack()}, false)
		} else if !done {
			failed(&Panic{Value: "runtime.Goexit", Stack: debug.Stack()}, true)
		}
	}()
	f()
	done = true
}

// critical is guarded for functions that run inside the library.
func critical(where string, f func(), failed func(p *Panic)) {
	insiders.Add(1)
	defer insiders.Add(-1)
	guarded(f, func(p *Panic, exits bool) {
		if exits { // C was left with its locks held: the process cannot continue
			fmt.Fprintf(os.Stderr, "crikeep: runtime.Goexit in %s, which runs inside the library\n\n%s", where, p.Stack)
			os.Exit(2)
		}
		failed(p)
	})
}

func (c *Cache) logPanic(where string, p *Panic) {
	c.logger.Error("crikeep: a panic in "+where, "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
}
