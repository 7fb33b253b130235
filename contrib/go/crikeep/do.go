// SPDX-License-Identifier: Apache-2.0

package crikeep

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
)

// Do passes one create through the cache. create is called if it is ours to make: in a goroutine of
// its own, with a context that has the values of ctx but does not end with it, only when the
// creation is abandoned (K9) or the cache closed. Do returns at the latest when ctx ends; the
// creation goes on, and its result is kept for the repetition of the request. So ctx is the
// caller's, with the caller's deadline.
//
// create may be called a second time, when nobody knows how the first call ended and the runtime
// does not have it either (K8); t.Again says so. What it returns:
//
//   - nil: the resource exists;
//   - an error: it failed for certain and nothing is left of it. This caller gets that error, others a *StatusError of it;
//   - an error that leaves the end open (see Ends): the host is asked until it is known.
//
// Do takes a reply that it returns while ctx is alive for delivered. Whoever can tell better uses
// Begin and Turn.Answered.
//
// A panic of create is passed on to the caller of Do as a *Panic, or logged if that has gone; the
// end is open then, too.
//
// Errors beside those of Begin, Wait and create: ctx.Err(), and ErrKept.
func (c *Cache) Do(ctx context.Context, r Request, create func(ctx context.Context, t *Turn) (Result, error)) (Reply, error) {
	if ctx.Err() != nil { // it would move nothing on (K9)
		return Reply{}, ctx.Err()
	}
	t, err := c.Begin(ctx, r)
	if err != nil {
		return Reply{}, err
	}
	ours := true // to close
	defer func() {
		if ours {
			t.Close()
		}
	}()
	for {
		switch o := t.Outcome(); o {
		case HandBack:
			reply, err := t.Reply()
			if err != nil {
				return Reply{}, err
			}
			if ctx.Err() != nil {
				t.Answered(false)
				return Reply{}, ctx.Err()
			}
			t.Answered(true)
			return reply, nil
		case Create:
			var m made
			m, ours = c.make(ctx, t, create)
			if m.exits {
				runtime.Goexit()
			}
			if m.panicked != nil {
				panic(m.panicked)
			}
			err = m.err
		case Wait:
			_, err = t.Wait(ctx)
		case Kept:
			if ctx.Err() != nil {
				return Reply{}, ctx.Err()
			}
			err = &Error{Code: CodeKept}
		case Abandoned:
			err = &Error{Code: CodeAbandoned}
		default:
			err = &Error{Code: CodeState}
		}
		if err != nil {
			return Reply{}, err
		}
	}
}

// Ends tells whether an error says how a creation ended. Canceled, DeadlineExceeded, Unavailable
// and ErrLost do not.
func Ends(err error) bool {
	if errors.Is(err, ErrLost) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	switch GRPCCode(err) {
	case grpcCanceled, grpcDeadline, grpcUnavailable:
		return false
	}
	return true
}

// made is how a call of create ended
type made struct {
	err      error
	panicked *Panic
	exits    bool // by runtime.Goexit, as testing.T.FailNow does
}

// who ends a turn whose creation runs: the first of the two to come here leaves it to the other
const (
	bothThere = iota
	callerGone
	creatorDone
)

// make has it made, and waits for that as long as the caller does. ours: the turn is to be closed
// by the caller.
func (c *Cache) make(ctx context.Context, t *Turn, create func(context.Context, *Turn) (Result, error)) (m made, ours bool) {
	mctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })
	t.whenAbandoned(func() { cancel(ErrAbandoned) })
	var state atomic.Int32
	result := make(chan made, 1)
	go func() {
		var m made
		defer func() { // also if create ends its goroutine
			t.whenAbandoned(nil)
			stop()
			cancel(nil)
			if state.CompareAndSwap(bothThere, creatorDone) {
				result <- m
				return
			}
			t.Close()
			if m.panicked != nil {
				c.logPanic("a creation whose caller has gone", m.panicked)
			}
		}()
		guarded(func() { m.err = t.run(mctx, create) }, func(p *Panic, exits bool) {
			t.Lost()
			m.panicked, m.exits = p, exits
		})
	}()
	select {
	case m := <-result:
		return m, true
	case <-ctx.Done():
		m.err = ctx.Err()
		t.Leave()
	case <-t.abandoned:
		m.err = t.why(CodeAbandoned)
	case <-c.ctx.Done():
		m.err = ErrClosed
	}
	if !state.CompareAndSwap(bothThere, callerGone) { // it has just ended
		return <-result, true
	}
	return m, false
}

// run calls create and says how it ended
func (t *Turn) run(ctx context.Context, create func(context.Context, *Turn) (Result, error)) error {
	result, err := create(ctx, t)
	if err == nil {
		_, err = t.Finish(result)
		return err
	}
	if !Ends(err) || (GRPCCode(err) == grpcAlreadyExists && t.Again()) {
		return t.Lost()
	}
	t.Fail(err)
	return err
}

func asStatus(err error) *StatusError {
	var s *StatusError
	if errors.As(err, &s) && s.GRPC != 0 {
		return s
	}
	return nil
}

// Remove carries out the removal of a sandbox or container: it waits until creations in the sandbox
// have ended and are destroyed (K16), calls remove in this goroutine, and forgets the resource when
// that returned nil or an error that is ErrNotFound. An error that is ErrBusy: not yet, and remove
// was not called.
func (c *Cache) Remove(ctx context.Context, k Kind, id string, remove func(ctx context.Context) error) error {
	t, err := c.beginRemoval(ctx, k, id)
	if err != nil {
		return err
	}
	defer t.Close()
	if _, err := t.Wait(ctx); err != nil {
		return err
	}
	err = remove(ctx)
	if err != nil && !errors.Is(err, ErrNotFound) && GRPCCode(err) != grpcNotFound {
		return err
	}
	if err := c.Forget(k, id); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}
