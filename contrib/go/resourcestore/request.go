// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"

	"crikeep.io/go/crikeep"
)

// Calls that CRI-O's store does not have.

// GetForRequest asks for the resource with the whole request, the bytes of a RunPodSandboxRequest
// or CreateContainerRequest. It returns:
//
//   - an id: the resource exists, and SetCreated() has been called. Answer with the id.
//   - "" and no error: no other call creates it, so create it. End that with Finish, Put, Fail or Delete, with the same name.
//   - an error: the creation by another call failed with that error; or another request created a resource of this key
//     (crikeep.ErrConflict); or the kubelet has moved on (crikeep.ErrAbandoned); or ctx ended.
//
// It waits while another call creates the same, until ctx ends at the latest. It also waits while an
// earlier attempt, or the result of a different request, is being cleaned up. name is CRI-O's name
// of the object, with which Recover is called after a restart.
func (s *ResourceStore) GetForRequest(ctx context.Context, kind crikeep.Kind, name string, request []byte) (id string,
	err error) {
	s.sweep()
	for {
		id, err = s.getForRequest(ctx, kind, name, request)
		var status *crikeep.StatusError
		if !errors.As(err, &status) || status.GRPC != grpcAborted || status.Message != deletedText || ctx.Err() != nil {
			return id, err
		}
		// The creation that this call waited for ended without a result in the store. Now
		// this call may have to create it.
	}
}

func (s *ResourceStore) getForRequest(ctx context.Context, kind crikeep.Kind, name string, request []byte) (string, error) {
	s.makeWay(name, partsOfRequest(kind, request))
	turn, err := s.cache.Begin(ctx, crikeep.Request{Kind: kind, Bytes: request})
	if err != nil {
		return "", err
	}
	outcome := turn.Outcome()
	if outcome == crikeep.Wait {
		if s.options.waiting != nil {
			s.options.waiting()
		}
		if outcome, err = turn.Wait(ctx); err != nil {
			turn.Close()
			return "", err
		}
	}
	switch outcome {
	case crikeep.Create:
		rec := s.find(name, kind, true)
		defer rec.mu.Unlock()
		if rec.object != nil { // of a different request, or given up: the library handles it
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
		return "", tooLate(ctx)
	}
}

// makeWay gives up a result of this name that belongs to another object. A name does not contain
// the sandbox, and the new object needs the name. The library then waits for the destruction of the
// old one.
func (s *ResourceStore) makeWay(name string, wanted parts) {
	rec := s.find(name, 0, false)
	if rec == nil {
		return
	}
	defer rec.mu.Unlock()
	if o := rec.object; o != nil && rec.explicit && rec.parts != wanted {
		s.warn(s.cache.ObjectSeen(o.kind, o.id, crikeep.Dead), "make way", name)
	}
}

// tooLate is the error of a caller whose result is kept.
func tooLate(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return crikeep.ErrKept // the deadline is so near that an answer might come too late
}

// deliver hands over a committed result and ends the turn.
func (s *ResourceStore) deliver(ctx context.Context, kind crikeep.Kind, name string, turn turn) (string, error) {
	reply, err := turn.Reply()
	if err != nil {
		turn.Close()
		return "", err
	}
	o := s.hiddenObject(kind, reply.ID)
	delivered := ctx.Err() == nil
	if o != nil {
		if delivered {
			o.show()
		}
	}
	if !delivered {
		s.warn(turn.Answered(false), "answer", name)
		turn.Close()
		return "", ctx.Err()
	}
	// That the answer has arrived is noted when it does. Of a container this is written, so it is done while the caller
	// reads the answer.
	note := func() {
		if err := turn.Answered(true); !errors.Is(err, crikeep.ErrNotFound) && !errors.Is(err, crikeep.ErrState) {
			s.warn(err, "answer", name) // or it was removed in the meantime
		}
		turn.Close()
	}
	if kind == crikeep.Container {
		go note()
	} else {
		note()
	}
	if o != nil {
		s.delivered(name, o)
	}
	return reply.ID, nil
}

// delivered: the resource belongs to the kubelet, so its cleaner is not needed any more. The
// library answers repeated requests.
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

// Finish is the last call of a handler: the resource exists. If ctx is alive and the caller gets
// the resource, it returns the id, and SetCreated() has been called. Otherwise the resource is kept
// for the repeated request, or given to a call that waits in GetForRequest, and the error is that
// of ctx. Or the kubelet has moved on: then it is cleaned up, and the error Is
// crikeep.ErrAbandoned. If it was begun with GetForRequest, it is remembered and answers every
// repeated request, until Removed is called.
func (s *ResourceStore) Finish(ctx context.Context, name string, r IdentifiableCreatable, c *ResourceCleaner) (id string,
	err error) {
	rec := s.find(name, 0, true)
	o, err := s.take(ctx, rec, r, c)
	if err != nil {
		rec.mu.Unlock()
		return "", err
	}
	if rec.pending { // begun without GetForRequest, and an object of its name is not gone yet
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
		_ = s.keep(rec) // it is logged
		rec.wake()
		rec.mu.Unlock()
		return "", ctx.Err()
	}
	turn, explicit := rec.turn, rec.explicit
	outcome, err := turn.Finish(crikeep.Result{ID: o.id})
	if err != nil || (outcome != crikeep.Wait && outcome != crikeep.HandBack) {
		defer rec.mu.Unlock()
		_ = s.finish(rec, err)
		rec.wake()
		if err == nil {
			err = tooLate(ctx)
		}
		return "", err
	}
	rec.turn = nil // ended below: the library now hands over the object or destroys it
	rec.wake()
	rec.mu.Unlock()
	if outcome == crikeep.Wait { // hooks are being told
		if outcome, err = turn.Wait(ctx); err != nil || outcome != crikeep.HandBack {
			turn.Close()
			if err == nil {
				err = tooLate(ctx)
			}
			return "", err
		}
	}
	id, err = s.deliver(ctx, o.kind, name, turn)
	if err == nil && !explicit {
		s.warn(s.cache.ObjectRemoved(o.kind, o.id), "finish", name) // no call will report its removal
	}
	return id, err
}

// Fail ends a creation that failed. All calls that wait for it in GetForRequest get the error, and
// watchers are signalled. Clean up first: the name is free from now on. It is done also if ctx is
// over, as in the other calls that report what has happened: ctx is for the log. An error says that
// the store did not note it.
func (s *ResourceStore) Fail(ctx context.Context, name string, why error) error {
	rec := s.find(name, 0, false)
	if rec == nil {
		return nil
	}
	defer rec.mu.Unlock()
	if rec.object != nil {
		return nil // the creation has not failed
	}
	var err error
	if rec.turn != nil && !rec.pending {
		if !crikeep.Ends(why) { // mostly an inner deadline: the library would ask whether the creation continues
			why = &crikeep.StatusError{GRPC: grpcUnknown, Message: why.Error()}
		}
		err = s.said(ctx, rec.turn.Fail(why), "fail", name)
	}
	s.forget(rec)
	return err
}

// said logs an error of a call that reports what has happened, and returns it.
func (s *ResourceStore) said(ctx context.Context, err error, what, name string) error {
	if err != nil && !errors.Is(err, crikeep.ErrClosed) {
		s.log.WarnContext(ctx, what, "name", name, "error", err)
	}
	return err
}

// Hides says whether a resource was created but not handed over. Leave it out of lists, statuses,
// statistics, metrics and events. Hides does not know resources that are still being created. After
// an error it is not known.
func (s *ResourceStore) Hides(_ context.Context, kind crikeep.Kind, id string) (bool, error) {
	if o := s.object(kind, id); o != nil {
		o.mu.Lock()
		shown, detached := o.shown, o.detached
		o.mu.Unlock()
		if !shown || detached {
			return !detached, nil
		}
	}
	// It was handed over, perhaps in vain: a container is then hidden again. Or it is unknown
	// here, because List has just found it.
	return s.cache.Hides(kind, id)
}

// StopSandbox must be called before a sandbox is stopped. Its kept results are given up. From now
// on, creations in it are refused, whether they have begun or are requested with GetForRequest.
func (s *ResourceStore) StopSandbox(ctx context.Context, id string) error {
	return s.said(ctx, s.cache.SandboxStopping(id), "stop", id)
}

// Removed must be called when a resource was removed by its own call. Nothing of it is left to
// clean up: if the store still keeps it, its cleaner never runs.
func (s *ResourceStore) Removed(ctx context.Context, kind crikeep.Kind, id string) error {
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
	err := s.cache.ObjectRemoved(kind, id)
	if errors.Is(err, crikeep.ErrNotFound) && o != nil {
		err = s.cache.ObjectSeen(kind, id, crikeep.Dead) // kept: it is given up now, and its destruction has no steps
	} else if o != nil {
		s.drop(o)
	}
	if errors.Is(err, crikeep.ErrNotFound) { // created before the store existed
		return nil
	}
	return s.said(ctx, err, "removed", id)
}
