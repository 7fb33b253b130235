// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

// #include "bridge.h"
import "C"

import (
	"context"
	"io"
	"log/slog"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"time"
)

// Turn is one caller's request in the cache, from Begin to Close. Cache.Do does all of it. Use a
// Turn if you know more than Do, above all whether the answer arrived.
//
// Methods may be called from any goroutine, but only one at a time may wait. After Close they
// return ErrClosed.
type Turn struct {
	c      *Cache
	handle cgo.Handle

	mu sync.RWMutex      // held for reading while C works on the turn
	t  *C.struct_ck_turn // nil: closed

	outcome atomic.Int32 // of the last decision that the caller received
	decided chan int     // from the event loop: an outcome, or -CK_E...
	closed  chan struct{}
	left    chan struct{}
	leaving sync.Once

	abandonMu   sync.Mutex
	isAbandoned bool
	abandoned   chan struct{}
	onAbandon   func()

	failed atomic.Pointer[error] // what Wait returned, for the next call
}

var _ io.Closer = (*Turn)(nil)

func (c *Cache) newTurn() *Turn {
	t := &Turn{
		c:         c,
		decided:   make(chan int, 1),
		closed:    make(chan struct{}),
		left:      make(chan struct{}),
		abandoned: make(chan struct{}),
	}
	t.handle = cgo.NewHandle(t)
	return t
}

// timeout is the rest of a context's time, in the form of crikeep.h
func timeout(ctx context.Context) (ns C.uint64_t, expired bool) {
	deadline, ok := ctx.Deadline()
	if ctx.Err() != nil {
		return 0, true
	}
	if !ok {
		return 0, false
	}
	left := time.Until(deadline)
	return C.uint64_t(max(left, 0)), left <= 0
}

// Begin starts a turn for a caller's request. The deadline of the turn is that of ctx. ctx is not
// used afterwards: Wait has its own context. Outcome says what to do: Create, Wait or HandBack.
// After an error there is no turn to close.
func (c *Cache) Begin(ctx context.Context, r Request) (*Turn, error) {
	ns, expired := timeout(ctx)
	flags := C.int(0)
	if expired || r.Expired {
		flags |= C.CKGO_EXPIRED
	}
	if r.KeyOnly {
		flags |= C.CKGO_KEY_ONLY
	}
	return c.begin(func(t *Turn, cerr *C.struct_ck_error) C.int {
		return C.ckgo_begin(c.c, C.int(r.Kind), bytesPointer(r.Bytes), C.size_t(len(r.Bytes)), ns, flags, C.uintptr_t(t.handle),
			&t.t, cerr)
	})
}

func (c *Cache) begin(f func(t *Turn, cerr *C.struct_ck_error) C.int) (*Turn, error) {
	level := int32(C.CK_LOG_INFO)
	if c.logger.Enabled(context.Background(), slog.LevelDebug) {
		level = int32(C.CK_LOG_DEBUG)
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	if c.logLevel.Load() != level { // a Logger may change its level at any time
		c.levelMu.Lock()
		C.ck_cache_log_level(c.c, uint32(level))
		c.logLevel.Store(level)
		c.levelMu.Unlock()
	}
	t := c.newTurn()
	cerr := newError()
	r := f(t, cerr)
	c.leave()
	if err := wrap(r, cerr); err != nil {
		t.handle.Delete()
		return nil, err
	}
	live.turns.Add(1)
	t.outcome.Store(int32(r))
	return t, nil
}

func (t *Turn) enter() error {
	if inside() {
		return ErrDeadlock
	}
	t.mu.RLock()
	if t.t == nil {
		t.mu.RUnlock()
		return ErrClosed
	}
	enterC()
	return nil
}

func (t *Turn) leave() {
	leaveC()
	t.mu.RUnlock()
}

// Outcome is the outcome of the last decision that Begin, Wait or Finish returned.
func (t *Turn) Outcome() Outcome { return Outcome(t.outcome.Load()) }

// decide is called by the event loop
func (t *Turn) decide(outcome int) {
	if outcome == -int(CodeAbandoned) {
		t.abandon()
	}
	for {
		select {
		case t.decided <- outcome:
			return
		case <-t.decided: // an older decision that was not received
		}
	}
}

//export ckgoDecided
func ckgoDecided(h C.uintptr_t, outcome C.int) {
	cgo.Handle(h).Value().(*Turn).decide(int(outcome))
}

func (t *Turn) abandon() {
	t.abandonMu.Lock()
	first, f := !t.isAbandoned, t.onAbandon
	t.isAbandoned = true
	t.abandonMu.Unlock()
	if first {
		close(t.abandoned)
		if f != nil {
			f()
		}
	}
}

// whenAbandoned calls f once the turn is abandoned, or at once
func (t *Turn) whenAbandoned(f func()) {
	t.abandonMu.Lock()
	is := t.isAbandoned
	t.onAbandon = f
	t.abandonMu.Unlock()
	if is && f != nil {
		f()
	}
}

// Abandoned is closed when the result will not be handed out any more, because the kubelet has
// moved on. The creator may stop. It then calls Lost, or Fail if nothing is left.
func (t *Turn) Abandoned() <-chan struct{} { return t.abandoned }

// Wait waits until the turn is decided: Create, HandBack, Kept or Drained; or Busy, with
// an error that is ErrBusy and names the stage and the age. Other errors are a *StatusError if the
// creation failed, ErrAbandoned, ErrConflict, ErrUnavailable, ErrRefused, ErrPrecondition and
// ErrClosed. Wait returns at the latest when the deadline given to Begin is near (K3). If ctx ends
// first, the caller leaves the turn, and ctx's error is returned. But if the turn has just been
// told Create, Create is returned.
func (t *Turn) Wait(ctx context.Context) (Outcome, error) {
	if inside() {
		return 0, ErrDeadlock
	}
	select {
	case o := <-t.decided:
		return t.settle(o)
	default:
	}
	o := t.Outcome()
	if err := t.failed.Load(); err != nil {
		if o != Busy {
			o = 0
		}
		return o, *err
	}
	if o != Create && o != Wait {
		return o, nil
	}
	select {
	case o := <-t.decided:
		return t.settle(o)
	case <-ctx.Done():
		t.Leave()
		if o != Wait || !t.begun() {
			return 0, ctx.Err()
		}
	case <-t.left:
		return 0, &Error{Code: CodeAbandoned, Text: "the turn was left"}
	case <-t.closed:
		return 0, ErrClosed
	case <-t.c.ctx.Done():
		return 0, ErrClosed
	}
	// The turn was told Create before its caller left, and the event loop is about to report
	// that. There is an entry that only this turn can complete.
	select {
	case o := <-t.decided:
		return t.settle(o)
	case <-t.closed:
		return 0, ErrClosed
	case <-t.c.ctx.Done():
		return 0, ErrClosed
	}
}

// begun says whether the library expects this turn to create. A turn that need not create has no
// stage.
func (t *Turn) begun() bool {
	if t.enter() != nil {
		return false
	}
	defer t.leave()
	return C.ckgo_begun(t.t) != 0
}

// settle makes an outcome and an error of a decision
func (t *Turn) settle(o int) (Outcome, error) {
	if o >= 0 {
		t.outcome.Store(int32(o))
		if Outcome(o) != Busy {
			return Outcome(o), nil
		}
		err := error(t.why(CodeBusy))
		t.failed.Store(&err)
		return Busy, err
	}
	err := error(nil)
	if o == -int(CodeFailed) {
		if status := t.status(); status != nil {
			err = status
		}
	}
	if err == nil {
		err = t.why(Code(-o))
	}
	t.failed.Store(&err)
	return 0, err
}

// why returns the error of a decision
func (t *Turn) why(code Code) *Error {
	if t.enter() != nil {
		return &Error{Code: code}
	}
	defer t.leave()
	cerr := newError()
	C.ckgo_why(t.t, cerr)
	if cerr.code == 0 {
		errorPool.Put(cerr)
		return &Error{Code: code}
	}
	return wrap(-C.int(code), cerr).(*Error)
}

func (t *Turn) status() *StatusError {
	if t.enter() != nil {
		return nil
	}
	defer t.leave()
	var s C.struct_ck_status
	if C.ckgo_status(t.t, &s) < 0 {
		return nil
	}
	status := &StatusError{GRPC: uint32(s.grpc), Message: C.GoString(s.message)}
	if s.details != nil {
		status.Details = C.GoBytes(s.details, C.int(s.details_len))
	}
	return status
}

// Stage sets the current stage of the creation: "sandbox network creation". Callers that wait too
// long are told. It is cut at 64 bytes.
func (t *Turn) Stage(s string) error {
	text := plain(s)
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	return check(C.ck_turn_stage(t.t, text))
}

// Finish says that the resource exists. HandBack: answer your caller with Reply. Wait: hooks are
// being told; call Wait. Kept: do not answer your caller, and do not clean up. An error that is
// ErrAbandoned means that Host.Destroy will be called for it: do not clean up. One that is
// ErrUnavailable means that the result is kept, but its commit could not be written, or a required
// plugin is absent.
func (t *Turn) Finish(r Result) (Outcome, error) {
	id := cstring(r.ID)
	if id == nil {
		return 0, invalid("a zero byte in an id")
	}
	if err := t.enter(); err != nil {
		return 0, err
	}
	cerr := newError()
	o := C.ckgo_finish(t.t, id, bytesPointer(r.Reply), C.size_t(len(r.Reply)), cerr)
	t.leave()
	if o == -C.CK_EABANDONED {
		t.abandon()
	}
	if err := wrap(o, cerr); err != nil {
		return 0, err
	}
	t.outcome.Store(int32(o))
	return Outcome(o), nil
}

// Fail says that the creation failed for certain, and that nothing is left of it. Waiting callers
// get the error as a *StatusError: its code is that of GRPCCode, and it has message and details if
// it already is one. If the code of the error is Canceled, DeadlineExceeded or Unavailable, the
// outcome is mostly unknown: see Lost and Ends.
//
// If the runtime was asked for the same before, and this error does not say that the first request
// has ended (the name is taken, say), the outcome is unknown, as after Lost: Outcome is Wait (K8).
func (t *Turn) Fail(err error) error {
	if err == nil {
		return invalid("Fail without an error")
	}
	code, text := statusOf(err)
	details := []byte(nil)
	if s := asStatus(err); s != nil {
		details = s.Details
	}
	message := plain(text)
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	cerr := newError()
	r := C.ckgo_fail(t.t, C.int(code), message, bytesPointer(details), C.size_t(len(details)), cerr)
	if Outcome(r) == Wait {
		t.outcome.Store(int32(r))
	}
	return wrap(r, cerr)
}

// Lost says that the outcome of the creation is unknown. The host is asked until it is known. Wait
// returns the outcome.
func (t *Turn) Lost() error {
	if err := t.enter(); err != nil {
		return err
	}
	cerr := newError()
	r := C.ck_turn_lost(t.t, cerr)
	t.leave()
	if err := wrap(r, cerr); err != nil {
		return err
	}
	t.outcome.Store(int32(Wait))
	return nil
}

// Reply returns the answer, after HandBack.
func (t *Turn) Reply() (Reply, error) {
	if err := t.enter(); err != nil {
		return Reply{}, err
	}
	defer t.leave()
	var r C.struct_ck_reply
	if err := check(C.ckgo_reply(t.t, &r)); err != nil {
		return Reply{}, err
	}
	return Reply{ID: C.GoString(r.id), Bytes: C.GoBytes(r.bytes, C.int(r.len))}, nil
}

// Answered says that the answer arrived, or (delivered false) that its stream broke before the
// deadline plus one second (K7).
func (t *Turn) Answered(delivered bool) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	how := uint32(C.CK_LOST)
	if delivered {
		how = C.CK_DELIVERED
	}
	return check(C.ck_turn_answered(t.t, how))
}

// Leave says that the caller is gone. A creator continues; Wait returns. It may be called twice.
func (t *Turn) Leave() {
	if t.enter() != nil {
		return
	}
	C.ck_turn_leave(t.t)
	t.leave()
	t.leaving.Do(func() { close(t.left) })
}

// Close ends the turn in any state. A creation that has not finished becomes lost (K8). An answer
// that was not fetched counts as not given. If Create was never received, the creation has failed;
// but if it was to be sent again (K8), it stays lost. Closing again does nothing.
func (t *Turn) Close() error {
	if inside() {
		return ErrDeadlock
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.t == nil {
		return nil
	}
	close(t.closed)
	heard := C.int(C.CKGO_HEARD)
	switch t.Outcome() {
	case Wait:
		heard = C.CKGO_NOTHING
	case Create:
		heard = C.CKGO_CREATE
	}
	enterC()
	C.ckgo_free(t.t, heard)
	leaveC()
	t.t = nil
	t.handle.Delete()
	live.turns.Add(-1)
	return nil
}
