// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"crikeep.io/go/crikeep"
)

// StageUnknown is the stage of a resource whose stage was not set.
const StageUnknown = "unknown"

const (
	// The timeout of New. A result that is not requested lives twice as long.
	defaultTimeout = time.Minute
	// How long the caller of WatcherForResource may wait. A handler of CRI-O waits for 4
	// minutes and the rest of its own deadline, which is at most 4 more. A watcher cannot be
	// given back, so this is how long it counts.
	watcherHold = 8 * time.Minute
	// A creation without a sign of life is given up after this time. The library's own deadline
	// for a creation is 15 minutes.
	makingHold = 16 * time.Minute
	sweepEvery = time.Minute
	// Get has no context. It waits only while Options.Alive is called.
	getWait = 2 * time.Second
	// A Recover that does not answer is called again
	recoverWait = 30 * time.Second
)

// Statuses for calls that wait for a creation. They never reach a kubelet.
const (
	grpcUnknown  = 2
	grpcNotFound = 5
	grpcAborted  = 10
	deletedText  = "resourcestore: Delete: its own caller got the result, or there is none"
)

// IdentifiableCreatable is an object in the store. It has an id, and SetCreated() says that it may
// be listed and used from now on.
type IdentifiableCreatable interface {
	ID() string
	SetCreated()
}

// ErrExists is returned, wrapped, if a result is put under a name that already has one. The refused
// result is cleaned up.
var ErrExists = errors.New("the store has an entry of this name already")

// ResourceStore keeps results whose caller is gone, until they are requested again. Its methods may
// be called from any goroutine.
type ResourceStore struct {
	cache    engine
	opened   chan struct{} // closed when cache is set: the library makes calls before Open has returned
	started  chan struct{} // closed by Start: nothing is cleaned up before
	starting sync.Once
	options  Options
	log      *slog.Logger
	durable  bool
	ctx      context.Context // for clean-up outside of the library
	cancel   context.CancelFunc
	closing  sync.Once

	mu      sync.Mutex // guards the members below; never held during a call
	names   map[string]*record
	objects map[objectID]*object
	lost    map[objectID]*object // objects that List returned, and the library has not named yet
	held    [3]bool              // by kind: the library knows how long watchers wait
	swept   time.Duration
}

// The record of a name. Its lock is held during calls to the library, which do not block, and is
// taken before the lock of the store.
type record struct {
	name  string
	parts parts // for calls that know only a name

	mu       sync.Mutex
	gone     bool // removed from the map: look again
	turn     turn
	pending  bool // turn: the creation has begun, but an object of the same name must go first
	passed   bool // the kubelet moved on before the library began it: ignore later calls of its handler
	explicit bool // begun by GetForRequest: it is ended by an explicit call, and remembered until Removed
	object   *object
	stage    string
	watchers []chan struct{}
	touched  time.Duration
}

type objectID struct {
	kind crikeep.Kind
	id   string
}

// A result, which the store hands back or undoes.
type object struct {
	store *ResourceStore
	objectID
	name  string
	entry uint64 // of an unfinished creation of an earlier process

	asking    sync.Mutex // held during Recover, which may take long
	mu        sync.Mutex
	recovered bool // resource and cleaner are set
	resource  IdentifiableCreatable
	cleaner   *ResourceCleaner
	detached  bool // never clean it up
	shown     bool
	showing   sync.Once
}

// New returns a store with the default timeout.
func New() *ResourceStore {
	return NewWithTimeout(defaultTimeout)
}

// NewWithTimeout returns a store in memory: Open without a StateDir. A result is cleaned up twice
// the timeout after its last request. Nothing is opened and no goroutine begins before something
// has to be done.
func NewWithTimeout(timeout time.Duration) *ResourceStore {
	s := newInMemory(Options{TTL: 2 * timeout})
	s.Start()
	return s
}

// Close ends the store. The next Open finds the results of one with a StateDir; those of a store in
// memory are forgotten, as CRI-O's are. Nothing is cleaned up any more, and calls that wait in
// GetForRequest get an error that Is crikeep.ErrClosed.
func (s *ResourceStore) Close() {
	s.closing.Do(func() {
		s.cancel()
		if err := s.cache.Close(); err != nil {
			s.log.Warn("closing the resource store", "error", err)
		}
		s.abandon()
	})
}

// abandon ends the turns of running creations, to free their memory: the cache is closed. It does
// not wait for a lock, because the holder of a record may be in a function of the vendor.
func (s *ResourceStore) abandon() {
	end := func(rec *record) {
		s.endTurn(rec)
		rec.wake()
		rec.mu.Unlock()
	}
	for _, rec := range s.all() {
		if rec.mu.TryLock() {
			end(rec)
			continue
		}
		go func(rec *record) {
			rec.mu.Lock()
			end(rec)
		}(rec)
	}
}

// all returns all records.
func (s *ResourceStore) all() []*record {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*record, 0, len(s.names))
	for _, rec := range s.names {
		all = append(all, rec)
	}
	return all
}

// ---- records ------------------------------------------------------------------------------------

// find returns the record of a name, locked. It returns nil if there is none and none must be made.
func (s *ResourceStore) find(name string, kind crikeep.Kind, create bool) *record {
	for {
		s.mu.Lock()
		rec := s.names[name]
		if rec == nil {
			if !create {
				s.mu.Unlock()
				return nil
			}
			rec = &record{name: name, parts: parseName(name), touched: s.now()}
			if kind != 0 {
				rec.parts.kind = kind
			}
			s.names[name] = rec
		}
		s.mu.Unlock()
		rec.mu.Lock()
		if !rec.gone {
			return rec
		}
		rec.mu.Unlock()
	}
}

// forget removes a locked record from the map, and ends its turn.
func (s *ResourceStore) forget(rec *record) {
	if rec.gone {
		return
	}
	rec.gone = true
	s.endTurn(rec)
	rec.wake()
	s.mu.Lock()
	delete(s.names, rec.name)
	s.mu.Unlock()
}

func (s *ResourceStore) endTurn(rec *record) {
	if rec.turn != nil {
		rec.turn.Close()
		rec.turn, rec.pending = nil, false
	}
}

// wake signals every watcher of a locked record once.
func (rec *record) wake() {
	for _, watcher := range rec.watchers {
		watcher <- struct{}{} // it has room for one
	}
	rec.watchers = nil
}

// settle forgets a locked record that is no longer needed.
func (s *ResourceStore) settle(rec *record) {
	if rec.turn == nil && rec.object == nil && len(rec.watchers) == 0 {
		s.forget(rec)
	}
}

func (s *ResourceStore) now() time.Duration {
	if s.options.now != nil {
		return s.options.now()
	}
	return time.Since(epoch)
}

var epoch = time.Now() // only differences are used

// sweep gives up what was never ended: a watcher whose creation never came, and a creation without
// a sign of life for longer than a creation may take. It runs at most once a minute, from calls
// that could add to it.
func (s *ResourceStore) sweep() {
	now := s.now()
	s.mu.Lock()
	if now-s.swept < sweepEvery {
		s.mu.Unlock()
		return
	}
	s.swept = now
	s.mu.Unlock()
	for _, rec := range s.all() {
		if !rec.mu.TryLock() {
			continue // it is in use
		}
		hold := makingHold
		if rec.turn == nil && !rec.passed {
			hold = watcherHold
		}
		if !rec.gone && rec.object == nil && !rec.explicit && now-rec.touched > hold {
			s.log.Warn("gave up a creation that was never finished", "name", rec.name, "stage", rec.stage)
			s.forget(rec)
		}
		rec.mu.Unlock()
	}
}

// ---- objects ------------------------------------------------------------------------------------

// add registers a result before the library is told about it, because the library may ask about it
// at once.
func (s *ResourceStore) add(rec *record, r IdentifiableCreatable, c *ResourceCleaner) (*object, error) {
	c.adopt(s.log)
	o := &object{store: s, objectID: objectID{rec.parts.kind, r.ID()}, name: rec.name, recovered: true, resource: r,
		cleaner: c}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.objects[o.objectID]; other != nil {
		return other, fmt.Errorf("put %s %q: its id %q is in the store as %q: %w", o.kind, o.name, o.id, other.name,
			ErrExists)
	}
	s.objects[o.objectID] = o
	return o, nil
}

func (s *ResourceStore) object(kind crikeep.Kind, id string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[objectID{kind, id}]
}

// hiddenObject also finds objects that List returned.
func (s *ResourceStore) hiddenObject(kind crikeep.Kind, id string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objectLocked(objectID{kind, id})
}

func (s *ResourceStore) objectLocked(id objectID) *object {
	if o := s.lost[id]; o != nil {
		delete(s.lost, id)
		if s.objects[id] == nil {
			s.objects[id] = o
		}
	}
	return s.objects[id]
}

// objectOf also finds what an earlier process left: Options.Recover supplies its values when they
// are needed.
func (s *ResourceStore) objectOf(e crikeep.Entry) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objectLocked(objectID{e.Kind, e.ID})
	if o == nil {
		o = &object{store: s, objectID: objectID{e.Kind, e.ID}, name: nameOf(e)}
		s.objects[o.objectID] = o
	}
	return o
}

func (s *ResourceStore) drop(o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[o.objectID] == o {
		delete(s.objects, o.objectID)
	}
}

// recover asks once for the Go values of what an earlier process left, and again if that failed. It
// returns false if nothing is left.
func (o *object) recover(ctx context.Context) (bool, error) {
	o.asking.Lock()
	defer o.asking.Unlock()
	o.mu.Lock()
	detached, recovered, there := o.detached, o.recovered, o.resource != nil || o.cleaner != nil
	o.mu.Unlock()
	switch {
	case detached:
		return true, nil
	case recovered:
		return there, nil
	case o.store.options.Recover == nil:
		return false, nil
	}
	id := o.id
	if strings.HasPrefix(id, unfinishedPrefix) { // List named it in an earlier process
		id = ""
	}
	resource, cleaner, err := o.store.options.Recover(ctx, o.kind, o.name, id)
	if err != nil {
		return false, fmt.Errorf("recover %s %q: %w", o.kind, o.name, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	cleaner.adopt(o.store.log)
	o.resource, o.cleaner, o.recovered = resource, cleaner, true
	return resource != nil || cleaner != nil, nil
}

func (o *object) parts() (IdentifiableCreatable, *ResourceCleaner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.resource, o.cleaner
}

// show makes it visible once. When it returns, SetCreated and Committed have returned, whichever
// call made them.
func (o *object) show() {
	o.showing.Do(func() {
		if resource, _ := o.parts(); resource != nil {
			resource.SetCreated()
		}
		o.setShown(true) // before its events, or they would be those of a hidden object
		if o.store.options.Committed != nil {
			o.store.options.Committed(o.store.ctx, o.kind, o.name, o.id)
		}
	})
	o.setShown(true)
}

func (o *object) setShown(shown bool) {
	o.mu.Lock()
	o.shown = shown
	o.mu.Unlock()
}

// detach: its cleaner never runs, whatever happens to it.
func (o *object) detach() {
	o.mu.Lock()
	o.detached = true
	cleaner := o.cleaner
	o.mu.Unlock()
	cleaner.drop()
}

func (o *object) isDetached() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.detached
}

// adopt cleans up a result that the store had to refuse, or whose entry does not exist any more:
// the store alone holds its cleaner. It does nothing after Close, because the process may end in
// the middle of a step.
func (s *ResourceStore) adopt(name, id string, c *ResourceCleaner) {
	if c == nil || s.ctx.Err() != nil {
		return
	}
	s.log.Info("cleaning up a resource that could not be stored", "name", name, "id", id)
	go func() {
		if err := c.CleanupContext(s.ctx); err != nil && s.ctx.Err() == nil {
			s.log.Error("cleaning up a resource that could not be stored", "name", name, "error", err)
		}
	}()
}

// ---- the calls CRI-O's store has ----------------------------------------------------------------

// A context of which only the deadline is used. It never ends, because the work continues when the
// caller is gone.
type deadlineOnly struct {
	context.Context
	deadline time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.deadline, true }

func deadlineOf(ctx context.Context) context.Context {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) > 0 {
		return deadlineOnly{context.Background(), deadline}
	}
	return context.Background()
}

// request returns the request of calls that know only a name.
func (rec *record) request() crikeep.Request {
	return crikeep.Request{Kind: rec.parts.kind, Bytes: rec.parts.request(), KeyOnly: true}
}

// begin tells the library about a creation with this name.
func (s *ResourceStore) begin(ctx context.Context, rec *record) error {
	if rec.passed { // its handler has ended, and another one may begin
		rec.passed = false
		return crikeep.ErrAbandoned
	}
	turn, err := s.cache.Begin(deadlineOf(ctx), rec.request())
	if err != nil {
		return err
	}
	switch turn.Outcome() {
	case crikeep.Create:
		rec.turn = turn
		s.hold(rec)
	case crikeep.Wait:
		rec.turn, rec.pending = turn, true
		go s.await(rec, turn)
	default: // there is a result, but SetStage, Put and Finish do not take it
		turn.Answered(false)
		turn.Close()
		return ErrExists
	}
	return nil
}

// await waits with a turn that an object of the same name blocks, mostly an earlier attempt that is
// being destroyed.
func (s *ResourceStore) await(rec *record, turn turn) {
	outcome, err := turn.Wait(s.ctx)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.gone || rec.turn != turn {
		turn.Close() // whoever replaced it has already done so, which does no harm
		return
	}
	if err == nil && outcome == crikeep.Create {
		rec.pending = false
		if rec.stage != "" {
			s.warn(turn.Stage(rec.stage), "stage", rec.name)
		}
		s.hold(rec)
		if rec.object != nil {
			_ = s.keep(rec) // it is logged
		}
		return
	}
	if err == nil && outcome == crikeep.HandBack {
		turn.Answered(false)
	}
	s.endTurn(rec)
	if s.ctx.Err() != nil {
		return
	}
	s.warn(err, "a creation could not be entered", rec.name)
	rec.passed = errors.Is(err, crikeep.ErrAbandoned)
	if o := rec.object; o != nil {
		_, cleaner := o.parts()
		s.drop(o)
		s.forget(rec)
		s.adopt(o.name, o.id, cleaner)
	}
}

// hold tells the library, once per kind, how long watchers may wait: results of that kind are kept
// as long (K15). It uses a turn with that deadline, which it ends at once.
func (s *ResourceStore) hold(rec *record) {
	if len(rec.watchers) == 0 || rec.turn == nil || rec.pending {
		return
	}
	s.mu.Lock()
	done := s.held[rec.parts.kind]
	s.held[rec.parts.kind] = true
	s.mu.Unlock()
	if done {
		return
	}
	turn, err := s.cache.Begin(deadlineOnly{context.Background(), time.Now().Add(watcherHold)}, rec.request())
	if err != nil {
		s.warn(err, "watch", rec.name)
		return
	}
	turn.Leave()
	turn.Close()
}

func (s *ResourceStore) warn(err error, what, name string) {
	if err != nil && !errors.Is(err, crikeep.ErrClosed) {
		s.log.Warn(what, "name", name, "error", err)
	}
}

// SetStageForResource sets the stage of a creation. The first call for a name begins the creation.
func (s *ResourceStore) SetStageForResource(ctx context.Context, name, stage string) {
	s.sweep()
	rec := s.find(name, 0, true)
	defer rec.mu.Unlock()
	rec.stage, rec.touched = stage, s.now()
	if rec.object != nil || rec.passed {
		return
	}
	if rec.turn == nil {
		if err := s.begin(ctx, rec); err != nil {
			s.warn(err, "a creation could not be entered", name) // Put tries again
			return
		}
	}
	if !rec.pending {
		s.warn(rec.turn.Stage(stage), "stage", name)
	}
}

// WatcherForResource returns the stage of the creation, and a channel that receives once when there
// is news: the resource was Put, or its creation has ended otherwise. An unknown name is remembered
// for 8 minutes.
func (s *ResourceStore) WatcherForResource(name string) (watcher chan struct{}, stage string) {
	s.sweep()
	watcher = make(chan struct{}, 1)
	rec := s.find(name, 0, true)
	defer rec.mu.Unlock()
	rec.touched = s.now()
	stage = rec.stage
	if stage == "" {
		stage = StageUnknown
	}
	rec.watchers = append(rec.watchers, watcher)
	if rec.object != nil {
		rec.wake() // it came after a Get that found nothing and before this call
	} else {
		s.hold(rec)
	}
	return watcher, stage
}

// Stage returns the stage of a creation, or StageUnknown. Unlike WatcherForResource it leaves
// nothing behind, and no result lives longer because of it.
func (s *ResourceStore) Stage(name string) string {
	rec := s.find(name, 0, false)
	if rec == nil {
		return StageUnknown
	}
	defer rec.mu.Unlock()
	if rec.stage == "" {
		return StageUnknown
	}
	return rec.stage
}

// NewCleaner returns an empty cleaner with the logger and the tries of the store.
func (s *ResourceStore) NewCleaner() *ResourceCleaner {
	return &ResourceCleaner{tries: max(s.options.CleanupTries, 0), log: s.log}
}

// Put stores a resource whose caller is gone, with its cleaner. If a call waits for it in
// GetForRequest, it gets the resource now. An error means that the resource was not stored. It is
// then cleaned up, unless the store has this very resource, or the error Is crikeep.ErrClosed.
func (s *ResourceStore) Put(name string, r IdentifiableCreatable, c *ResourceCleaner) error {
	rec := s.find(name, 0, true)
	defer rec.mu.Unlock()
	if _, err := s.take(context.Background(), rec, r, c); err != nil {
		return err
	}
	defer rec.wake()
	if !rec.pending {
		if err := s.keep(rec); err != nil {
			return fmt.Errorf("put %q: %w", name, err)
		}
	}
	return nil
}

// take makes r the result of a locked record. The record has a turn afterwards.
func (s *ResourceStore) take(ctx context.Context, rec *record, r IdentifiableCreatable, c *ResourceCleaner) (*object, error) {
	if has := rec.object; has != nil {
		resource, cleaner := has.parts()
		same := has.id == r.ID() || (cleaner != nil && cleaner == c) || sameResource(resource, r)
		if !same {
			s.adopt(rec.name, r.ID(), c)
		}
		return nil, fmt.Errorf("put %q: %w", rec.name, ErrExists)
	}
	o, err := s.add(rec, r, c)
	if err != nil {
		if _, cleaner := o.parts(); cleaner != c {
			s.log.Warn("put", "error", err) // two names have one id: the store cannot decide
		}
		s.settle(rec)
		return nil, err
	}
	if rec.turn == nil {
		if err := s.begin(ctx, rec); err != nil {
			s.drop(o)
			rec.wake()
			s.settle(rec)
			s.adopt(rec.name, o.id, c)
			return nil, fmt.Errorf("put %q: %w", rec.name, err)
		}
	}
	rec.object = o
	return o, nil
}

// Comparing interfaces panics if their types cannot be compared.
func sameResource(a, b IdentifiableCreatable) (same bool) {
	defer func() { _ = recover() }()
	return a == b
}

// keep finishes the turn of a locked record whose caller is gone.
func (s *ResourceStore) keep(rec *record) error {
	rec.turn.Leave()
	_, err := rec.turn.Finish(crikeep.Result{ID: rec.object.id})
	return s.finish(rec, err)
}

// finish records the library's answer to a result. An error means that the result is not kept.
func (s *ResourceStore) finish(rec *record, err error) error {
	s.endTurn(rec)
	switch {
	case errors.Is(err, crikeep.ErrUnavailable):
		s.warn(err, "kept, but not more", rec.name)
		return nil
	case errors.Is(err, crikeep.ErrAbandoned): // Destroy will be called
		rec.object = nil
		s.forget(rec)
		return nil
	case errors.Is(err, crikeep.ErrClosed): // the next process looks for it
	case err != nil: // not accepted: mostly because it took too long and the entry was given up
		_, cleaner := rec.object.parts()
		s.drop(rec.object)
		s.warn(err, "a result came too late", rec.name)
		s.adopt(rec.name, rec.object.id, cleaner)
		rec.object = nil
		s.forget(rec)
	}
	return err
}

// Get takes a resource out of the store: it calls its SetCreated() and returns its ID(). It returns
// "" if there is none yet.
func (s *ResourceStore) Get(name string) string {
	rec := s.find(name, 0, false)
	if rec == nil {
		return ""
	}
	defer rec.mu.Unlock()
	if rec.object == nil {
		return ""
	}
	o := rec.object
	if !s.claim(rec) {
		return ""
	}
	o.show()
	return o.id
}

// claim takes the committed result of a locked record out of the library.
func (s *ResourceStore) claim(rec *record) bool {
	o := rec.object
	if rec.pending { // the library does not know it
		s.drop(o)
		s.forget(rec)
		return true
	}
	ctx, cancel := context.WithTimeout(s.ctx, getWait)
	defer cancel()
	turn, err := s.cache.Begin(ctx, rec.request())
	if err != nil {
		s.warn(err, "get", rec.name)
		return false
	}
	defer turn.Close()
	outcome := turn.Outcome()
	if outcome == crikeep.Wait {
		if outcome, err = turn.Wait(ctx); err != nil {
			s.warn(err, "get", rec.name)
			return false
		}
	}
	switch outcome {
	case crikeep.HandBack:
		s.warn(turn.Answered(true), "get", rec.name)
		s.warn(s.cache.ObjectRemoved(o.kind, o.id), "get", rec.name)
		s.drop(o)
		s.forget(rec)
		return true
	case crikeep.Create: // it has just been given up and is gone
		s.warn(turn.Fail(&crikeep.StatusError{GRPC: grpcNotFound, Message: "it is not being created"}), "get", rec.name)
		rec.object = nil
		s.forget(rec)
	}
	return false
}

// Delete ends the record of a name. If a creation is running, its result went to its own caller or
// will not come, and waiting callers look again. If a result is kept, it now belongs to the caller
// and is not cleaned up.
func (s *ResourceStore) Delete(name string) {
	rec := s.find(name, 0, false)
	if rec == nil {
		return
	}
	defer rec.mu.Unlock()
	if rec.object != nil {
		rec.object.detach()
		s.claim(rec)
		return
	}
	if rec.turn != nil && !rec.pending {
		s.warn(rec.turn.Fail(&crikeep.StatusError{GRPC: grpcAborted, Message: deletedText}), "delete", name)
	}
	s.forget(rec)
}
