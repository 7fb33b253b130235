// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"

	"crikeep.io/go/crikeep"
)

// What CRI-O's store has no call for.

// GetForRequest asks for the resource with the whole request, the bytes of a RunPodSandboxRequest
// or CreateContainerRequest:
//
//   - an id: here it is, SetCreated() has been called; answer with it;
//   - "" and no error: nobody makes it. It is yours to make; end that with Finish, Put, Fail or Delete under the same name;
//   - an error: the creation somebody else was making failed, with that error; or there is a resource of this key that
//     another request made (crikeep.ErrConflict); or the kubelet has moved on (crikeep.ErrAbandoned); or ctx ended.
//
// It waits while another call makes the same, at the longest until ctx ends; and while an earlier
// attempt, or the result of a request that differs, is being cleaned up. name is CRI-O's name of
// the object; after a restart Recover is asked for it.
func (s *ResourceStore) GetForRequest(ctx context.Context, kind crikeep.Kind, name string, request []byte) (id string,
	err error) {
	s.sweep()
	for {
		id, err = s.getForRequest(ctx, kind, name, request)
		var status *crikeep.StatusError
		if !errors.As(err, &status) || status.GRPC != grpcAborted || status.Message != deletedText || ctx.Err() != nil {
			return id, err
		}
		// The creation this waited for ended without a result of the store's: now it may be
		// ours.
	}
}

func (s *ResourceStore) getForRequest(ctx context.Context, kind crikeep.Kind, name string, request []byte) (string, error) {
	s.makeWay(name, partsOfRequest(kind, request))
	turn, err := s.cache.Begin(ctx, crikeep.Request{Kind: kind, Bytes: request})
	if err != nil {
		return "", fmt.Errorf("%s %q: %w", kind, name, err)
	}
	outcome := turn.Outcome()
	if outcome == crikeep.Wait {
		if s.options.waiting != nil {
			s.options.waiting()
		}
		if outcome, err = turn.Wait(ctx); err != nil {
			turn.Close()
			return "", fmt.Errorf("%s %q: %w", kind, name, err)
		}
	}
	switch outcome {
	case crikeep.Create:
		rec := s.find(name, kind, true)
		defer rec.mu.Unlock()
		if rec.object != nil { // of a request that differed, or given up: the library has seen to it
			rec.object = nil
		}
		s.endTurn(rec)
		rec.turn, rec.pending, rec.passed, rec.explicit = turn, false, false, true
		rec.parts = partsOfRequest(kind, request)
		rec.stage, rec.touched = "", s.now()
		return "", nil
	case crikeep.HandBack:
		return s.deliver(ctx, kind, name, turn)
	default:
		turn.Close()
		return "", fmt.Errorf("%s %q: %w", kind, name, outcomeError(ctx, outcome))
	}
}

// makeWay gives up a result of this name that is another object's, as the name tells no sandbox
// from another: what is made now needs the name. The library then waits for its destruction by
// itself.
func (s *ResourceStore) makeWay(name string, wanted parts) {
	rec := s.find(name, 0, false)
	if rec == nil {
		return
	}
	defer rec.mu.Unlock()
	if o := rec.object; o != nil && rec.explicit && rec.parts != wanted {
		s.warn(s.cache.Seen(o.kind, o.id, crikeep.Dead), "make way", name)
	}
}

func outcomeError(ctx context.Context, outcome crikeep.Outcome) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case outcome == crikeep.Abandoned:
		return crikeep.ErrAbandoned
	default: // so little is left of the deadline that an answer might miss its caller
		return crikeep.ErrKept
	}
}

// deliver hands over a committed result. The turn is ended.
func (s *ResourceStore) deliver(ctx context.Context, kind crikeep.Kind, name string, turn *crikeep.Turn) (string, error) {
	defer turn.Close()
	reply, err := turn.Reply()
	if err != nil {
		return "", fmt.Errorf("%q: %w", name, err)
	}
	o := s.hiddenObject(kind, reply.ID)
	delivered := ctx.Err() == nil
	if o != nil {
		if delivered {
			o.show()
		}
	}
	s.warn(turn.Answered(delivered), "answer", name)
	if !delivered {
		return "", ctx.Err()
	}
	if o != nil {
		s.delivered(name, o)
	}
	return reply.ID, nil
}

// delivered: what undoes the resource is not needed any more, it is the kubelet's. A repetition is
// answered by the library.
func (s *ResourceStore) delivered(name string, o *object) {
	s.drop(o)
	rec := s.find(name, 0, false)
	if rec == nil {
		return
	}
	if rec.object == o {
		rec.object = nil
		s.forget(rec)
	}
	rec.mu.Unlock()
}

// Finish is a handler's last call: the resource exists. It returns the id if ctx is alive and the
// resource is its caller's now: SetCreated() has been called. Otherwise it is kept for the
// repetition, or given to who waits for it in GetForRequest, and the error is ctx's; or the kubelet
// has moved on, then it is cleaned up, and the error Is crikeep.ErrAbandoned. What was begun with
// GetForRequest is remembered, and answers every repetition, until Removed is called.
func (s *ResourceStore) Finish(ctx context.Context, name string, r IdentifiableCreatable, c *ResourceCleaner) (id string,
	err error) {
	rec := s.find(name, 0, true)
	o, err := s.take(ctx, rec, r, c)
	if err != nil {
		rec.mu.Unlock()
		return "", err
	}
	if rec.pending { // begun without GetForRequest, and something of its name is not gone yet
		defer rec.mu.Unlock()
		rec.wake()
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		o.show()
		s.drop(o)
		s.forget(rec)
		return o.id, nil
	}
	if ctx.Err() != nil {
		_ = s.keep(rec) // said in the log
		rec.wake()
		rec.mu.Unlock()
		return "", ctx.Err()
	}
	turn, explicit := rec.turn, rec.explicit
	outcome, err := turn.Finish(crikeep.Result{ID: o.id})
	if err != nil || (outcome != crikeep.Wait && outcome != crikeep.HandBack) {
		defer rec.mu.Unlock()
		_ = s.finish(rec, outcome, err)
		rec.wake()
		if err == nil {
			err = outcomeError(ctx, outcome)
		}
		return "", fmt.Errorf("finish %q: %w", name, err)
	}
	rec.turn = nil // ended below: from here on the object is the library's, to hand over or to destroy
	rec.wake()
	rec.mu.Unlock()
	if outcome == crikeep.Wait { // hooks are told
		if outcome, err = turn.Wait(ctx); err != nil || outcome != crikeep.HandBack {
			turn.Close()
			if err == nil {
				err = outcomeError(ctx, outcome)
			}
			return "", fmt.Errorf("finish %q: %w", name, err)
		}
	}
	id, err = s.deliver(ctx, o.kind, name, turn)
	if err == nil && !explicit {
		s.warn(s.cache.Forget(o.kind, o.id), "finish", name) // nobody will tell of its removal
	}
	return id, err
}

// Fail ends a creation that failed. Everybody who waits for it in GetForRequest gets the error;
// watchers are signalled. Clean up first: the name is free from now on.
func (s *ResourceStore) Fail(name string, why error) {
	rec := s.find(name, 0, false)
	if rec == nil {
		return
	}
	defer rec.mu.Unlock()
	if rec.object != nil {
		return // it has not failed
	}
	if rec.turn != nil && !rec.pending {
		if !crikeep.Ends(why) { // an inner deadline, most often: the library would ask whether it goes on
			why = &crikeep.StatusError{GRPC: grpcUnknown, Message: why.Error()}
		}
		s.warn(rec.turn.Fail(why), "fail", name)
	}
	s.forget(rec)
}

// Hides tells whether a resource is one that was made and not handed over: leave it out of lists,
// statuses, statistics, metrics and events. It does not know what is still being made.
func (s *ResourceStore) Hides(kind crikeep.Kind, id string) bool {
	if o := s.object(kind, id); o != nil {
		o.mu.Lock()
		shown, detached := o.shown, o.detached
		o.mu.Unlock()
		if !shown || detached {
			return !detached
		}
	}
	// Handed over, perhaps in vain: then a container is hidden again. Or unknown here, as what
	// List has just found.
	view, err := s.cache.View()
	if err != nil {
		return false
	}
	defer view.Close()
	hidden, err := view.Hides(crikeep.Object{Kind: kind, ID: id})
	return err == nil && hidden
}

// StopSandbox is to be called before a sandbox is stopped: what is kept of it is given up, and
// creations in it that are begun or asked for with GetForRequest are refused from now on.
func (s *ResourceStore) StopSandbox(id string) {
	s.warn(s.cache.Stopping(id), "stop", id)
}

// Removed is to be called when a resource was removed by its own call. Nothing of it is left to
// clean: if the store still keeps it, its cleaner never runs.
func (s *ResourceStore) Removed(kind crikeep.Kind, id string) {
	o := s.object(kind, id)
	if o != nil {
		o.detach()
		if rec := s.find(o.name, 0, false); rec != nil {
			if rec.object == o {
				rec.object = nil
				s.forget(rec)
			}
			rec.mu.Unlock()
		}
	}
	err := s.cache.Forget(kind, id)
	if errors.Is(err, crikeep.ErrNotFound) && o != nil {
		err = s.cache.Seen(kind, id, crikeep.Dead) // kept: given up now, and its destruction takes no step
	} else if o != nil {
		s.drop(o)
	}
	if !errors.Is(err, crikeep.ErrNotFound) { // made before there was a store
		s.warn(err, "removed", id)
	}
}
