// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
)

// Do passes one create through the cache. If the resource must be created, create is called in its
// own goroutine. Its context has the values of ctx but does not end with ctx. It ends only when the
// creation is abandoned (K9) or the cache is closed. Do returns at the latest when ctx ends. The
// creation then continues, and its result is kept for the repeated request. So ctx must be the
// caller's, with the caller's deadline.
//
// create may be called a second time, if the outcome of the first call is unknown and the runtime
// does not have the resource (K8). It returns:
//
//   - nil: the resource exists;
//   - an error: it failed for certain and left nothing. This caller gets that error, others a *StatusError of it;
//   - an error that leaves the outcome open (see Ends): the host is asked until the outcome is known.
//
// If Do returns a reply while ctx is alive, the reply counts as delivered. A caller that knows
// better uses Begin and Turn.Answered.
//
// A panic of create is passed on to the caller of Do as a *Panic, or logged if the caller has gone.
// The outcome is then open, too.
//
// Besides the errors of Begin, Wait and create, Do returns ctx.Err() and ErrKept.
func (c *Cache) Do(ctx context.Context, r Request, create func(ctx context.Context, t *Turn) (Result, error)) (Reply, error) {
	if ctx.Err() != nil { // it must not abandon anything (K9)
		return Reply{}, ctx.Err()
	}
	t, err := c.Begin(ctx, r)
	if err != nil {
		return Reply{}, err
	}
	ours := true // to be closed here
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
		default:
			err = &Error{Code: CodeState}
		}
		if err != nil {
			return Reply{}, err
		}
	}
}

// made is the outcome of a call of create.
type made struct {
	err      error
	panicked *Panic
	exits    bool // by runtime.Goexit, like testing.T.FailNow
}

// who ends the turn of a running creation: the first of the two to come here leaves it to the other
const (
	bothThere = iota
	callerGone
	creatorDone
)

// make creates the resource in a goroutine, and waits for that as long as the caller does. ours:
// the caller must close the turn.
func (c *Cache) make(ctx context.Context, t *Turn, create func(context.Context, *Turn) (Result, error)) (m made, ours bool) {
	mctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })
	t.whenAbandoned(func() { cancel(ErrAbandoned) })
	var state atomic.Int32
	result := make(chan made, 1)
	go func() {
		var m made
		defer func() { // also if create ends the goroutine
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
	if !state.CompareAndSwap(bothThere, callerGone) { // the creation has just ended
		return <-result, true
	}
	return m, false
}

// run calls create and reports the outcome
func (t *Turn) run(ctx context.Context, create func(context.Context, *Turn) (Result, error)) error {
	result, err := create(ctx, t)
	if err == nil {
		_, err = t.Finish(result)
		return err
	}
	if !Ends(err) {
		return t.Lost()
	}
	if t.Fail(err); t.Outcome() == Wait {
		return nil
	}
	return err
}

// Remove carries out the removal of a sandbox or container. It waits until creations in the sandbox
// have ended and are destroyed (K16), and then calls remove in this goroutine. If remove returns
// nil or an error that is ErrNotFound, the resource is forgotten. An error that is ErrBusy means
// that remove was not called, because something is not destroyed yet.
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
	if err := c.ObjectRemoved(k, id); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}
