// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"sync"
	"time"

	"crikeep.io/go/crikeep"
)

// The engine in memory. It follows crikeep-rules(7), whose numbers stand below, as far as a process
// can that keeps nothing: there are no lists, and nothing after a restart. It needs no file, no
// descriptor, and no goroutine but for calls of the host.
//
// One lock guards everything. It is never held during a call of the host or of hooks. After each
// change, settle looks at every request that waits, and decides what can be decided.
type memory struct {
	host    crikeep.Host
	hooks   crikeep.Hooks
	log     *slog.Logger
	ttl     time.Duration
	now     func() time.Duration
	resolve func(ctx context.Context, image string) (string, error)
	clock   bool // now is a clock for tests: Step rings the alarms
	ctx     context.Context
	cancel  context.CancelFunc

	mu         sync.Mutex
	closed     bool
	number     uint64 // of the newest entry or turn
	entries    map[string]map[*entry]struct{}
	byID       map[objectID]*entry
	waiting    []*memoryTurn    // oldest first
	longest    [3]time.Duration // deadline that a caller had, by kind (K15)
	stopping   map[string]bool  // sandboxes (K16)
	tombs      []tomb           // oldest first (K21)
	alarms     map[*alarm]struct{}
	order      uint64 // of the newest alarm
	destroying int
	evicted    []*entry // to be destroyed, oldest first
}

const (
	memoryTTL      = 10 * time.Minute
	supersedeWait  = 20 * time.Second // K10
	tombTime       = time.Minute      // K21
	inspectAgain   = 500 * time.Millisecond
	destroysAtMost = 8
	destroyPause   = time.Second
	destroyPauses  = time.Minute // at most
	marginLeast    = 250 * time.Millisecond
	marginMost     = time.Second
)

// stateGone is the state of what turns may still point to.
const stateGone crikeep.State = 6

// entry is what is known of one creation and its result.
type entry struct {
	parts
	form
	number   uint64 // also the order of requests
	state    crikeep.State
	id       string
	creator  *memoryTurn // it has not reported yet
	doomed   error       // given up, but its creator or a hook has to end first
	stage    string
	since    time.Duration
	requests uint32
	open     int  // answers of which it is not known whether they arrived
	got      bool // an answer has arrived
	known    bool // plugins were told
	told     []string
	asking   bool // whether it is alive
	why      string
	tries    uint32
	alarm    alarm
}

type tomb struct {
	objectID
	until time.Duration
}

func newMemory(o Options, host crikeep.Host, log *slog.Logger) *memory {
	m := &memory{host: host, hooks: o.Hooks, log: log, ttl: o.TTL, now: o.now, clock: o.now != nil, resolve: o.ResolveImage,
		entries: map[string]map[*entry]struct{}{}, byID: map[objectID]*entry{}, stopping: map[string]bool{},
		alarms: map[*alarm]struct{}{}}
	if m.ttl <= 0 {
		m.ttl = memoryTTL
	}
	if !m.clock {
		m.now = func() time.Duration { return time.Since(epoch) }
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

func fault(code crikeep.Code, format string, a ...any) error {
	return &crikeep.Error{Code: code, Text: fmt.Sprintf(format, a...)}
}

// ---- which entries concern a request ------------------------------------------------------------

// places under which an entry is found: its pod's uid, its pod's name, and its sandbox
func (p parts) places() []string {
	places := []string{"uid " + p.uid, "name " + p.namespace + "/" + p.pod}
	if p.kind == crikeep.Container {
		places = append(places, "sandbox "+p.sandboxID)
	}
	return places
}

func (m *memory) insert(e *entry) {
	for _, place := range e.places() {
		if m.entries[place] == nil {
			m.entries[place] = map[*entry]struct{}{}
		}
		m.entries[place][e] = struct{}{}
	}
}

func (m *memory) remove(e *entry) {
	m.disarm(&e.alarm)
	for _, place := range e.places() {
		delete(m.entries[place], e)
		if len(m.entries[place]) == 0 {
			delete(m.entries, place)
		}
	}
	if m.byID[e.object()] == e {
		delete(m.byID, e.object())
	}
}

func (e *entry) object() objectID { return objectID{e.kind, e.id} }

// concerned returns the entries that a request may collide with.
func (m *memory) concerned(p parts) (all []*entry) {
	for _, place := range p.places() {
		for e := range m.entries[place] {
			if !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
	}
	return all
}

// sameSlot: the kubelet wants one of the two at most.
func (p parts) sameSlot(q parts) bool {
	if p.kind != q.kind {
		return false
	}
	if p.kind == crikeep.Sandbox { // another uid of the same name is another pod, which follows (K9)
		return p.namespace == q.namespace && p.pod == q.pod
	}
	return p.sandboxID == q.sandboxID && p.container == q.container
}

// sameRuntimeName: a runtime names a container without its sandbox (K1).
func (p parts) sameRuntimeName(q parts) bool {
	p.sandboxID, q.sandboxID = "", ""
	return p == q
}

// refusal: one uid has one name, and a sandbox belongs to one pod (K9).
func (m *memory) refusal(p parts) error {
	for _, e := range m.concerned(p) {
		if e.uid == p.uid && (e.pod != p.pod || e.namespace != p.namespace) {
			return fault(crikeep.CodeInvalid, "the uid of the pod belongs to a pod of another name")
		}
		if e.uid != p.uid && e.kind == crikeep.Container && p.kind == crikeep.Container && e.sandboxID == p.sandboxID {
			return fault(crikeep.CodeInvalid, "the sandbox belongs to another pod")
		}
	}
	return nil
}

// ---- placing requests ---------------------------------------------------------------------------

// settle decides what can be decided about requests that wait: the newest first (K14).
func (m *memory) settle() {
	for i := len(m.waiting) - 1; i >= 0; i-- {
		if t := m.waiting[i]; t.waits() {
			m.place(t, false)
		}
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(t *memoryTurn) bool { return !t.waits() })
}

func (t *memoryTurn) waits() bool { return t.outcome == crikeep.Wait && t.err == nil && !t.left }

// place decides about one request, or returns true if it has to wait.
func (m *memory) place(t *memoryTurn, first bool) (waits bool) {
	t.entry = nil
	if t.kind == crikeep.Container && m.stopping[t.sandboxID] { // K16
		t.decide(0, crikeep.ErrPrecondition)
		return false
	}
	concerned := m.concerned(t.parts)
	for _, e := range concerned {
		if first && e.sameSlot(t.parts) && e.parts != t.parts {
			m.giveUp(e, fault(crikeep.CodeAbandoned, "superseded: the kubelet asked for another attempt"))
		}
	}
	blocked, ports := false, false
	for _, e := range concerned {
		switch {
		case e.parts == t.parts:
			if decided, waits := m.meet(t, e); decided {
				return false
			} else if waits {
				blocked = true
			}
		case e.sameSlot(t.parts):
			ports = ports || t.kind == crikeep.Sandbox && (e.state == crikeep.StateEvicting || e.doomed != nil)
		case e.sameRuntimeName(t.parts):
			blocked = blocked || e.state == crikeep.StateCreating || e.state == crikeep.StateEvicting
		}
	}
	if blocked || ports && m.supersedes(t) { // K10
		return true
	}
	e := &entry{parts: t.parts, form: t.form, number: t.number, state: crikeep.StateCreating, creator: t, since: m.now(),
		requests: 1}
	t.entry = e
	m.insert(e)
	t.decide(crikeep.Create, nil)
	return false
}

// supersedes: the request still waits for the end of an earlier attempt.
func (m *memory) supersedes(t *memoryTurn) bool {
	if !t.patient && !t.impatient {
		t.patient = true
		m.arm(&t.patience, m.now()+supersedeWait, func() { t.impatient = true }) // it is placed again
	}
	return !t.impatient
}

// meet decides about a request of which there is an entry with its key.
func (m *memory) meet(t *memoryTurn, e *entry) (decided, waits bool) {
	same := m.same(t, e)
	if !same && e.number > t.number && e.state != crikeep.StateEvicting && e.state != crikeep.StateEnded { // K14
		t.decide(0, fault(crikeep.CodeAbandoned, "superseded: a newer request differs"))
		return true, false
	}
	switch e.state {
	case crikeep.StateEnded:
		return false, false
	case crikeep.StateEvicting:
		return false, true
	case crikeep.StateCommitted:
		if !same {
			t.decide(0, crikeep.ErrConflict)
			return true, false
		}
		e.open++
		t.entry = e
		t.decide(crikeep.HandBack, nil)
		return true, false
	case crikeep.StateKept, crikeep.StateCommitting:
		if !same {
			m.giveUp(e, fault(crikeep.CodeAbandoned, "superseded: a newer request differs"))
			return false, true
		}
		if e.doomed == nil {
			t.entry = e
		}
		if e.state == crikeep.StateKept && m.ask(e) { // it has been committed
			return m.meet(t, e)
		}
		return false, true
	}
	if e.doomed == nil { // it is being created: compared again at the end (K11)
		t.entry = e
	}
	return false, true
}

func (m *memory) same(t *memoryTurn, e *entry) bool {
	switch {
	case t.nameOnly:
		return true
	case e.nameOnly, t.bytes != e.bytes:
		return false
	case t.image == e.image, t.images[e.image] != "" && t.images[e.image] == t.images[t.image]:
		return true
	}
	return t.userImage && e.userImage && (t.images[e.image] == "" || t.images[t.image] == "")
}

// ---- what becomes of a result -------------------------------------------------------------------

// finished decides about the result of a creation (K2).
func (m *memory) finished(e *entry, t *memoryTurn) (crikeep.Outcome, error) {
	var newest *memoryTurn
	if !t.left && !t.late() {
		newest = t
	}
	for _, w := range m.waiting {
		if w.parts == e.parts && !w.left && (newest == nil || w.number > newest.number) {
			newest = w
		}
	}
	switch {
	case newest == nil:
		m.keep(e)
		return crikeep.Kept, nil
	case newest != t && !m.same(newest, e):
		why := fault(crikeep.CodeAbandoned, "superseded: a newer request differs")
		m.evict(e, "a newer request differs") // who waits and differs from the newest is told when that begins (K14)
		return 0, why
	}
	m.commit(e)
	switch {
	case t.left || t.late():
		return crikeep.Kept, nil
	case e.state == crikeep.StateCommitted:
		e.open++
		return crikeep.HandBack, nil
	}
	m.waiting = append(m.waiting, t)
	return crikeep.Wait, nil
}

func (m *memory) set(e *entry, state crikeep.State) {
	e.state, e.since = state, m.now()
	m.disarm(&e.alarm)
}

func (m *memory) keep(e *entry) {
	m.set(e, crikeep.StateKept)
	m.touch(e)
}

// touch begins the life of a kept result anew (K15).
func (m *memory) touch(e *entry) {
	if e.state != crikeep.StateKept || e.asking {
		return
	}
	m.arm(&e.alarm, m.now()+max(m.ttl, m.longest[e.kind]), func() {
		if m.wanted(e) {
			m.touch(e)
			return
		}
		m.evict(e, "its time was over")
	})
}

// wanted: a caller waits for it.
func (m *memory) wanted(e *entry) bool {
	return slices.ContainsFunc(m.waiting, func(t *memoryTurn) bool { return t.entry == e && !t.left && m.same(t, e) })
}

// commit tells plugins, once, and then shows the result (K7).
func (m *memory) commit(e *entry) {
	if m.hooks == nil || e.known {
		m.committed(e)
		return
	}
	m.set(e, crikeep.StateCommitting)
	m.tell(e)
}

func (m *memory) committed(e *entry) {
	m.set(e, crikeep.StateCommitted)
	if w, ok := m.host.(crikeep.CommitWatcher); ok {
		told := m.info(e)
		go m.guard("Committed", func() { w.Committed(told) })
	}
}

// giveUp ends what is not committed. Who waits for it is told why.
func (m *memory) giveUp(e *entry, why error) {
	if e.doomed != nil {
		return
	}
	switch e.state {
	case crikeep.StateCreating:
		e.doomed = why
		close(e.creator.abandoned)
	case crikeep.StateCommitting:
		e.doomed = why
		number := e.number
		go m.guard("Hooks.Cancel", func() { m.hooks.Cancel(number) })
	case crikeep.StateKept:
		m.evict(e, why.(*crikeep.Error).Text)
	default:
		return
	}
	m.failWaiting(e, why)
}

// failWaiting tells all that wait for this entry, or for the end of it, why they wait in vain. Who
// asks for something else goes on.
func (m *memory) failWaiting(e *entry, why error) {
	for _, t := range m.waiting {
		if t.entry == e && m.same(t, e) {
			t.decide(0, why)
		}
	}
}

// gone forgets an entry. hidden: what is destroyed stays hidden for a while (K21).
func (m *memory) gone(e *entry, hidden bool) {
	m.remove(e)
	e.state = stateGone
	now := m.now()
	for len(m.tombs) > 0 && m.tombs[0].until <= now {
		m.tombs = m.tombs[1:]
	}
	if hidden && e.id != "" {
		m.tombs = append(m.tombs, tomb{e.object(), now + tombTime})
	}
	if m.hooks != nil {
		told := m.info(e)
		go m.guard("Hooks.Released", func() { m.hooks.Released(told, true) })
	}
}

// ---- calls of the store -------------------------------------------------------------------------

func (m *memory) SandboxStopping(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return crikeep.ErrClosed
	}
	m.stop(id)
	m.settle()
	return nil
}

func (m *memory) stop(sandboxID string) {
	m.stopping[sandboxID] = true
	for e := range m.entries["sandbox "+sandboxID] {
		if e.state == crikeep.StateCommitted { // it ends with its sandbox
			m.set(e, crikeep.StateEnded)
		}
		m.giveUp(e, fault(crikeep.CodeAbandoned, "superseded: the sandbox is being stopped"))
	}
}

func (m *memory) ObjectRemoved(kind crikeep.Kind, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return crikeep.ErrClosed
	}
	e := m.byID[objectID{kind, id}]
	removed := e != nil && (e.state == crikeep.StateCommitted || e.state == crikeep.StateEnded)
	if kind == crikeep.Sandbox && (removed || e == nil) {
		m.stop(id)
		for in := range m.entries["sandbox "+id] {
			if in.state == crikeep.StateCommitted || in.state == crikeep.StateEnded {
				m.gone(in, false)
			}
		}
		delete(m.stopping, id)
	}
	if removed {
		m.gone(e, false)
	}
	m.settle()
	if !removed {
		return crikeep.ErrNotFound
	}
	return nil
}

func (m *memory) ObjectSeen(kind crikeep.Kind, id string, condition crikeep.Condition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return crikeep.ErrClosed
	}
	e := m.byID[objectID{kind, id}]
	if e == nil {
		return crikeep.ErrNotFound
	}
	if condition == crikeep.Dead || condition == crikeep.Absent {
		if e.state == crikeep.StateCommitted {
			m.set(e, crikeep.StateEnded)
		} else {
			m.giveUp(e, fault(crikeep.CodeAbandoned, "it is dead"))
		}
	}
	m.settle()
	return nil
}

func (m *memory) Hides(kind crikeep.Kind, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false, crikeep.ErrClosed
	}
	if e := m.byID[objectID{kind, id}]; e != nil {
		return e.state != crikeep.StateCommitted && e.state != crikeep.StateEnded, nil
	}
	now := m.now()
	return slices.ContainsFunc(m.tombs, func(t tomb) bool { return t.objectID == objectID{kind, id} && t.until > now }), nil
}

func (m *memory) Entries() ([]crikeep.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, crikeep.ErrClosed
	}
	var all []crikeep.Entry
	for place, entries := range m.entries {
		for e := range entries {
			if place == e.places()[0] {
				all = append(all, m.info(e))
			}
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Number < all[j].Number })
	return all, nil
}

func (m *memory) info(e *entry) crikeep.Entry {
	info := crikeep.Entry{Number: e.number, Kind: e.kind, ID: e.id, PodName: e.pod, PodNamespace: e.namespace, PodUID: e.uid,
		SandboxID: e.sandboxID, ContainerName: e.container, Attempt: e.attempt, Told: slices.Clone(e.told), State: e.state,
		Stage: e.stage, Known: e.known || e.state == crikeep.StateCommitting, Ended: e.state == crikeep.StateEnded,
		Requests: e.requests, Tries: e.tries, Since: m.now() - e.since}
	if e.doomed != nil { // its creator or a hook has to end first
		info.State = crikeep.StateEvicting
	}
	if info.State == crikeep.StateEvicting {
		info.Why = e.why
	}
	return info
}

func (m *memory) Reconciled() bool { return true }

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.cancel()
	for a := range m.alarms {
		m.disarm(a)
	}
	for _, t := range m.waiting {
		t.decide(0, crikeep.ErrClosed)
	}
	m.waiting = nil
	return nil
}
