// SPDX-License-Identifier: Apache-2.0

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

// Options of a cache. A duration of 0 is the default of crikeep.h.
type Options struct {
	StateDir string       // "": /run/crikeep. Made if absent; one process at a time has it
	Host     Host         // required
	Hooks    Hooks        // nil: nobody is told of what is committed
	Logger   *slog.Logger // nil: slog.Default()

	TTL            time.Duration // how long a result is kept after the last interest (10 minutes)
	CreateDeadline time.Duration // after this a creation's end is unknown (15 minutes)
	LostGrace      time.Duration // absence for this long ends a lost creation somebody waits for (30 s)
	SupersedeWait  time.Duration // a new attempt waits this long for the old one's ports (20 s)
	DestroyTimeout time.Duration // a Destroy without an answer counts as failed, and another is begun (60 s)

	Mode                 Mode
	HandBack             HandBackMode
	OnAnnotationChange   AnnotationChange
	IgnoreAnnotations    []string // patterns with at most one '*', at the end; nil: what CNI plugins write
	CompareSandboxConfig bool     // CreateContainer's copy of what only RunPodSandbox consumes counts too

	// Now is a clock for tests, steered with Cache.Step. It is called from any goroutine, at
	// any time, and must not call this package. nil: the kernel's CLOCK_BOOTTIME.
	Now func() time.Duration
}

// Cache keeps late results. Make one with Open. Every method may be called from any goroutine.
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

	crankMu sync.Mutex // who turns the crank
	fd      *os.File   // a duplicate of ck_fd()
	cranked chan struct{}

	logs   *queue[logLine]
	events *queue[Entry] // for CommitWatcher
}

var _ io.Closer = (*Cache)(nil)

type logLine struct {
	level slog.Level
	text  string
}

// logLines is how many lines wait for a Logger that is slow; further ones are counted, not kept. As
// many as a storm of a thousand pods makes at once.
const logLines = 4096

// Open opens or makes the database in the state directory, owns it, and takes up what an earlier
// life left (K25). One goroutine runs until Close.
func Open(o Options) (*Cache, error) {
	if o.Host == nil {
		return nil, invalid("options: there is no Host")
	}
	for _, d := range []time.Duration{o.TTL, o.CreateDeadline, o.LostGrace, o.SupersedeWait, o.DestroyTimeout} {
		if d < 0 {
			return nil, invalid("options: a negative duration")
		}
	}
	c := &Cache{o: o, logger: o.Logger, cranked: make(chan struct{})}
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
	go c.crank()
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

// openFD hands a duplicate of the cache's descriptor to Go's poller, so that no thread sits in
// poll(2)
func (c *Cache) openFD() error {
	fd, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(C.ck_fd(c.c)), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return &Error{Code: CodeIO, Errno: errno, Text: "duplicate the cache's descriptor: " + errno.Error()}
	}
	if err := syscall.SetNonblock(int(fd), true); err != nil { // else os.NewFile keeps it from the poller
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

// Close gives every waiting turn ErrClosed, ends the contexts of Host's calls, lets creations
// become lost (K8) and gives the state directory up. It waits for calls that are inside the library
// and for the Logger, and for nothing else: a Host's call may end later. Closing once more does
// nothing. Turns and views have to be closed still. Not from the Logger.
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
	c.fd.Close() // wakes the crank
	<-c.cranked
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

// enter is called before C works on the cache, leave after it
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

// ---- the crank ----------------------------------------------------------------------------------

// crank does what is due whenever the descriptor says so. Go's poller reports edges. None is lost:
// Read remembers one that comes between two of its waits, the library writes to its eventfd anew
// for what came after ck_process() had looked, and so it is enough to go on until there is nothing
// left before waiting.
func (c *Cache) crank() {
	defer close(c.cranked)
	raw, err := c.fd.SyscallConn()
	if err == nil {
		err = raw.Read(func(uintptr) bool {
			c.process()
			return c.closing.Load()
		})
	}
	if err != nil && !c.closing.Load() {
		c.logger.Error("crikeep: the cache stands still: " + err.Error())
	}
}

func (c *Cache) process() {
	c.crankMu.Lock()
	defer c.crankMu.Unlock()
	for !c.closing.Load() {
		n := C.ck_process(c.c, nil)
		if n < 0 || (n == 0 && C.ck_timeout(c.c) != 0) {
			return
		}
	}
}

// Step is for tests with Options.Now: it does what is due by that clock, and tells when something
// is due next, on the same clock; negative: never. Calls of Host that it began may still run when
// it returns.
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
	due := uint64(C.ck_timeout(c.c))
	if due > 1<<63-1 {
		return -1
	}
	return time.Duration(due)
}

// ---- what the host sees pass by -----------------------------------------------------------------

// idCall is one of the calls that name an object
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

// Stopping says that StopPodSandbox is about to be carried out (K16).
func (c *Cache) Stopping(sandboxID string) error {
	return c.idCall(sandboxID, func(id *C.char) C.int { return C.ck_stopping(c.c, id) })
}

// Forget says that a committed resource was removed. ErrNotFound: it was not known. See Remove.
func (c *Cache) Forget(k Kind, id string) error {
	return c.idCall(id, func(id *C.char) C.int { return C.ck_forget(c.c, uint32(k), id) })
}

// Seen says in which condition a resource was seen.
func (c *Cache) Seen(k Kind, id string, condition Condition) error {
	return c.idCall(id, func(id *C.char) C.int { return C.ck_seen(c.c, uint32(k), id, uint32(condition)) })
}

// Used says that a call named the id of a committed resource: its answer has arrived (K7).
func (c *Cache) Used(k Kind, id string) error {
	return c.idCall(id, func(id *C.char) C.int { return C.ck_used(c.c, uint32(k), id) })
}

// NoteTold is for the history: plugins were told of this by the runtime itself. Call it before
// Forget.
func (c *Cache) NoteTold(k Kind, id string, event HookEvent, names []string) error {
	cnames := joined(names)
	if cnames == nil {
		return invalid("a zero byte in a name")
	}
	return c.idCall(id, func(id *C.char) C.int { return C.ck_note_told(c.c, uint32(k), id, uint32(event), cnames) })
}

// Snapshot calls f for every told entry that is not being torn down, in one consistent pass:
// nothing is committed meanwhile. f must be quick and call nothing of this package. The pass ends
// at its first error, which is returned.
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

// Entries are all but tombstones, in one consistent pass, oldest first.
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

// Reconciled tells whether the first lists of the host have succeeded: until then requests wait,
// and nothing expires or is destroyed (K24, K25).
func (c *Cache) Reconciled() bool {
	if c.enter() != nil {
		return false
	}
	defer c.leave()
	return C.ck_reconciled(c.c) > 0
}

// ---- panics -------------------------------------------------------------------------------------

// Panic is what a function given to Do or Snapshot panicked with; it is passed on to their callers.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap gives the value, if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// guarded calls f and catches its panic, which must not go through C: the library's locks would be
// held for ever. failed is called then, and when f ends its goroutine with runtime.Goexit, which
// cannot be caught.
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

// critical is guarded for what runs inside the library
func critical(where string, f func(), failed func(p *Panic)) {
	insiders.Add(1)
	defer insiders.Add(-1)
	guarded(f, func(p *Panic, exits bool) {
		if exits { // the frames of C are left, and its locks held: nothing that goes on now can end
			fmt.Fprintf(os.Stderr, "crikeep: runtime.Goexit in %s, which runs inside the library\n\n%s", where, p.Stack)
			os.Exit(2)
		}
		failed(p)
	})
}

func (c *Cache) logPanic(where string, p *Panic) {
	c.logger.Error("crikeep: a panic in "+where, "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
}
