// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"crikeep.io/go/crikeep"
)

// memoryTurn is one caller's request to the engine in memory. Its lock is the engine's.
type memoryTurn struct {
	m *memory
	parts
	form
	number    uint64
	images    map[string]string // what references mean, as far as that was asked
	deadline  time.Duration     // 0: none
	margin    time.Duration
	patience  alarm  // until an earlier attempt is waited for no more
	busy      alarm  // at the margin
	patient   bool   // patience has begun
	impatient bool   // and has ended
	entry     *entry // that it creates, waits for, or was handed

	outcome   crikeep.Outcome
	err       error
	news      chan struct{} // has room for one: decided anew
	abandoned chan struct{} // closed: the result of its creation will be destroyed
	left      bool
	closed    bool
	answered  bool
}

func (m *memory) Begin(ctx context.Context, r crikeep.Request) (turn, error) {
	if ctx.Err() != nil || r.Expired { // it must not give up anything (K9)
		return nil, fault(crikeep.CodeDeadline, "the caller's deadline had passed before its request was read")
	}
	p, f, err := formOf(r)
	if err != nil {
		return nil, err
	}
	t := &memoryTurn{m: m, parts: p, form: f, news: make(chan struct{}, 1), abandoned: make(chan struct{}),
		images: map[string]string{}}
	for image := m.unknownImage(t); image != ""; image = m.unknownImage(t) {
		if t.images[image], err = m.resolve(ctx, image); err != nil {
			t.images[image] = ""
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, crikeep.ErrClosed
	}
	if err := m.refusal(p); err != nil {
		return nil, err
	}
	m.number++
	t.number = m.number
	if deadline, ok := ctx.Deadline(); ok {
		left := max(time.Until(deadline), 1)
		t.deadline, t.margin = m.now()+left, min(max(left/50, marginLeast), marginMost)
		m.longest[t.kind] = max(m.longest[t.kind], left)
	}
	for _, w := range m.waiting { // K9
		if w.sameSlot(p) && w.parts != p {
			w.decide(0, fault(crikeep.CodeAbandoned, "superseded: the kubelet asked for another attempt"))
		}
	}
	t.outcome = crikeep.Wait
	if m.place(t, true) {
		m.waiting = append(m.waiting, t)
		if t.entry != nil {
			t.entry.requests++
		}
		if t.deadline > 0 {
			m.arm(&t.busy, t.deadline-t.margin, func() { // K3
				e := t.entry
				t.decide(crikeep.Busy, t.busyError())
				if e != nil {
					m.touch(e)
				}
			})
		}
	}
	m.settle() // others may wait for what was given up
	if t.err != nil {
		return nil, t.err
	}
	return t, nil
}

// unknownImage is a reference that has to be looked up before the request can be compared (E5).
func (m *memory) unknownImage(t *memoryTurn) string {
	if m.resolve == nil || t.image == "" {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.concerned(t.parts) {
		if e.parts != t.parts || e.image == t.image || e.image == "" {
			continue
		}
		for _, image := range []string{e.image, t.image} {
			if _, asked := t.images[image]; !asked {
				return image
			}
		}
	}
	return ""
}

// late: an answer might not arrive any more.
func (t *memoryTurn) late() bool { return t.deadline > 0 && t.m.now() >= t.deadline-t.margin }

func (t *memoryTurn) busyError() error {
	if t.entry == nil {
		return fault(crikeep.CodeBusy, "an earlier one is still being destroyed")
	}
	stage := ""
	if t.entry.stage != "" {
		stage = ": " + t.entry.stage
	}
	return fault(crikeep.CodeBusy, "it is still being created, since %v%s",
		(t.m.now() - t.entry.since).Round(time.Second), stage)
}

// decide is called with the lock held.
func (t *memoryTurn) decide(o crikeep.Outcome, err error) {
	t.outcome, t.err = o, err
	t.m.disarm(&t.busy)
	t.m.disarm(&t.patience)
	select {
	case t.news <- struct{}{}:
	default:
	}
}

func (t *memoryTurn) Outcome() crikeep.Outcome {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.outcome
}

func (t *memoryTurn) Abandoned() <-chan struct{} { return t.abandoned }

// state is the answer of Wait, if there is one. It is called with the lock held.
func (t *memoryTurn) state() (o crikeep.Outcome, err error, decided bool) {
	switch {
	case t.err != nil:
		return t.outcome, t.err, true
	case t.outcome != crikeep.Wait:
		return t.outcome, nil, true
	case t.m.closed, t.closed:
		return 0, crikeep.ErrClosed, true
	case t.left:
		return 0, fault(crikeep.CodeAbandoned, "the turn was left"), true
	}
	return 0, nil, false
}

func (t *memoryTurn) Wait(ctx context.Context) (crikeep.Outcome, error) {
	for {
		t.m.mu.Lock()
		o, err, decided := t.state()
		t.m.mu.Unlock()
		if decided {
			return o, err
		}
		select {
		case <-t.news:
			continue
		case <-ctx.Done():
		}
		t.m.mu.Lock()
		o, err, decided = t.state() // Create must not be lost
		t.m.mu.Unlock()
		if decided {
			return o, err
		}
		t.Leave()
		return 0, ctx.Err()
	}
}

func (t *memoryTurn) Stage(stage string) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if t.m.closed {
		return crikeep.ErrClosed
	}
	if t.entry == nil || t.entry.creator != t {
		return crikeep.ErrState
	}
	t.entry.stage = stage
	return nil
}

func (t *memoryTurn) Finish(r crikeep.Result) (o crikeep.Outcome, err error) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	e := t.entry
	switch {
	case t.m.closed, t.closed:
		return 0, crikeep.ErrClosed
	case e == nil || e.creator != t:
		return 0, crikeep.ErrState
	case r.ID == "" || len(r.ID) > idMax || strings.IndexByte(r.ID, 0) >= 0:
		return 0, fault(crikeep.CodeInvalid, "the id is missing, over %d bytes, or has a zero byte", idMax)
	}
	if other := t.m.byID[objectID{e.kind, r.ID}]; other != nil {
		if other.state != crikeep.StateCommitted && other.state != crikeep.StateEnded {
			return 0, fault(crikeep.CodeInvalid, "another result has this id")
		}
		t.m.gone(other, false) // it was removed, and nobody said so
	}
	e.id, e.creator = r.ID, nil
	t.m.byID[e.object()] = e
	if e.doomed != nil {
		err = e.doomed
		t.m.evict(e, "it was given up while it was being created")
	} else if o, err = t.m.finished(e, t); err == nil {
		t.outcome = o
	}
	t.m.settle()
	return o, err
}

func (t *memoryTurn) Fail(why error) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	e := t.entry
	switch {
	case t.m.closed, t.closed:
		return crikeep.ErrClosed
	case e == nil || e.creator != t:
		return crikeep.ErrState
	}
	e.creator = nil
	status := &crikeep.StatusError{GRPC: crikeep.GRPCCode(why), Message: why.Error()}
	var given *crikeep.StatusError
	if errors.As(why, &given) && given.GRPC != 0 {
		status.Details = given.Details
	}
	t.m.failWaiting(e, status)
	t.m.gone(e, false)
	t.m.settle()
	return nil
}

func (t *memoryTurn) Reply() (crikeep.Reply, error) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if t.outcome != crikeep.HandBack || t.entry == nil {
		return crikeep.Reply{}, crikeep.ErrState
	}
	return crikeep.Reply{ID: t.entry.id}, nil
}

func (t *memoryTurn) Answered(delivered bool) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if t.m.closed {
		return crikeep.ErrClosed
	}
	if t.outcome != crikeep.HandBack || t.answered {
		return crikeep.ErrState
	}
	t.settleAnswer(delivered)
	return nil
}

// settleAnswer: a container whose answer was lost is kept again (K7).
func (t *memoryTurn) settleAnswer(delivered bool) {
	t.answered = true
	e := t.entry
	e.open--
	e.got = e.got || delivered
	if !e.got && e.open == 0 && e.state == crikeep.StateCommitted && e.kind == crikeep.Container {
		t.m.keep(e)
		t.m.settle()
	}
}

func (t *memoryTurn) Leave() {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.leave()
}

func (t *memoryTurn) leave() {
	if t.left || t.m.closed {
		return
	}
	t.left = true
	t.m.disarm(&t.busy)
	t.m.disarm(&t.patience)
	t.m.waiting = slices.DeleteFunc(t.m.waiting, func(w *memoryTurn) bool { return w == t })
	if t.entry != nil {
		t.m.touch(t.entry)
	}
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// Close ends the turn. A creation that has not been reported has ended: it is this process's own.
func (t *memoryTurn) Close() error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	if t.m.closed {
		return nil
	}
	t.leave()
	switch e := t.entry; {
	case e == nil:
	case e.creator == t:
		e.creator = nil
		t.m.gone(e, false)
		t.m.settle()
	case t.outcome == crikeep.HandBack && !t.answered:
		t.settleAnswer(false)
	}
	return nil
}
