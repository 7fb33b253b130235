// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"crikeep.io/go/crikeep"
)

// Request is one create, as it came.
type Request struct {
	Kind  crikeep.Kind
	Bytes []byte // of the RunPodSandboxRequest or CreateContainerRequest
	Name  string // of the object; "": CRI-O's name, made from the request
}

// Creation is a creation that Do has begun.
type Creation struct {
	// Undo holds the steps that undo what was created so far.
	Undo  *ResourceCleaner
	store *ResourceStore
	name  string
}

// Name is the name of the object.
func (c *Creation) Name() string { return c.name }

// Stage sets the stage of the creation. Calls that wait too long are told.
func (c *Creation) Stage(ctx context.Context, stage string) {
	c.store.SetStageForResource(ctx, c.name, stage)
}

// Do answers one create. It returns the id of a resource that exists; or it calls create, unless
// another call does already, and waits. Do does all that GetForRequest, Finish and Fail ask of a
// handler.
//
// create runs in a goroutine of its own. Its context has the values of ctx but not its deadline; it
// ends when the kubelet has moved on, or the store is closed. Do returns at the latest when ctx
// ends. The creation then continues, and its result is kept for the repeated request. So ctx must
// be the caller's.
//
// If create returns an error, or panics, its steps are undone. Do answers after the first try of
// that. Requests for the same wait until nothing is left, and get the error.
func (s *ResourceStore) Do(ctx context.Context, r Request, create func(ctx context.Context, c *Creation) (
	IdentifiableCreatable, error)) (id string, err error) {
	name := r.Name
	if name == "" {
		name = partsOfRequest(r.Kind, r.Bytes).name()
	}
	if id, err = s.GetForRequest(ctx, r.Kind, name, r.Bytes); id != "" || err != nil {
		return id, err
	}
	m := &making{Creation: Creation{Undo: s.NewCleaner(), store: s, name: name}, caller: ctx,
		answer: make(chan made, 1)}
	go m.run(create)
	select {
	case got := <-m.answer:
		return got.id, got.err
	case <-ctx.Done():
	}
	if m.turned.CompareAndSwap(false, true) {
		return "", ctx.Err()
	}
	got := <-m.answer // it was ready at the same time
	return got.id, got.err
}

// making is a creation and its caller.
type making struct {
	Creation
	caller context.Context
	turned atomic.Bool // the caller has gone, or the creation is about to answer it: whichever came first
	answer chan made
}

type made struct {
	id  string
	err error
}

func (m *making) run(create func(context.Context, *Creation) (IdentifiableCreatable, error)) {
	s := m.store
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(m.caller))
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(crikeep.ErrClosed) })()
	abandoned, ended := s.abandoned(m.name), make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-abandoned:
			cancel(crikeep.ErrAbandoned)
		case <-ended:
		}
	}()

	resource, err := m.guarded(ctx, create)
	caller := m.caller
	if !m.turned.CompareAndSwap(false, true) { // nobody listens: it is kept
		over, end := context.WithCancel(context.Background())
		end()
		caller = over
	}
	if err == nil {
		var got made
		got.id, got.err = s.Finish(caller, m.name, resource, m.Undo)
		m.answer <- got
		return
	}
	if left := m.Undo.once(s.ctx); left != nil {
		m.answer <- made{err: err}
		if m.Undo.CleanupContext(s.ctx) != nil { // closed: the next process looks for it
			return
		}
		_ = s.Fail(ctx, m.name, err) // it is logged
		return
	}
	_ = s.Fail(ctx, m.name, err)
	m.answer <- made{err: err}
}

// guarded calls create. A panic is an error: the runtime goes on, and what was created is undone.
func (m *making) guarded(ctx context.Context, create func(context.Context, *Creation) (IdentifiableCreatable, error)) (
	resource IdentifiableCreatable, err error) {
	done := make(chan struct{})
	go func() {
		err = errors.New("the creation ended its goroutine")
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("a panic: %v", v)
				m.store.log.ErrorContext(ctx, "a creation panicked", "name", m.name, "panic", fmt.Sprint(v),
					"stack", string(debug.Stack()))
			}
		}()
		resource, err = create(ctx, &m.Creation)
		if err == nil && resource == nil {
			err = errors.New("the creation returned no resource")
		}
	}()
	<-done
	return resource, err
}

// abandoned is closed when the result of the running creation will be destroyed.
func (s *ResourceStore) abandoned(name string) <-chan struct{} {
	rec := s.find(name, 0, false)
	if rec == nil {
		return nil
	}
	defer rec.mu.Unlock()
	if rec.turn == nil {
		return nil
	}
	return rec.turn.Abandoned()
}
