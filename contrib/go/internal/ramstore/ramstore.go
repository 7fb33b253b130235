// SPDX-License-Identifier: Apache-2.0

// Package ramstore is a store of created resources in memory, with the documented rules of CRI-O's.
// The tests of resourcestore run against it to show that they can fail, and the benchmark compares
// with it. The rules:
//
//   - one entry per name; only the name is compared;
//   - Put fills the entry and signals each watcher once; if the entry is filled, Put is refused, and nothing else happens;
//   - Get of a filled entry removes it, calls SetCreated and returns the id; Delete removes an entry, whatever it holds;
//   - a sweep marks filled entries, removes those that were marked, and runs their cleaners, one after the other;
//   - a cleaner runs its steps, the one added last first, each up to 20 times, and ends at the first step that gives up;
//   - entries that are not filled stay; everything is lost when the process ends.
package ramstore

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// StageUnknown is the stage of a resource of which nobody has said one.
const StageUnknown = "unknown"

// IdentifiableCreatable is what is stored.
type IdentifiableCreatable interface {
	ID() string
	SetCreated()
}

// Store is the store.
type Store struct {
	mu      sync.Mutex
	entries map[string]*entry
	stop    chan struct{}
	once    sync.Once
}

type entry struct {
	resource IdentifiableCreatable
	cleaner  *Cleaner
	watchers []chan struct{}
	marked   bool
	stage    string
}

// New makes a store that sweeps at every interval; 0: only when Sweep is called.
func New(interval time.Duration) *Store {
	s := &Store{entries: make(map[string]*entry), stop: make(chan struct{})}
	if interval > 0 {
		go func() {
			for {
				select {
				case <-s.stop:
					return
				case <-time.After(interval):
					s.Sweep()
				}
			}
		}()
	}
	return s
}

// Close ends the sweeps.
func (s *Store) Close() { s.once.Do(func() { close(s.stop) }) }

// Len is the number of entries.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// Sweep does what is done once per interval.
func (s *Store) Sweep() {
	var stale []*entry
	s.mu.Lock()
	for name, e := range s.entries {
		switch {
		case e.resource == nil:
		case e.marked:
			stale = append(stale, e)
			delete(s.entries, name)
		default:
			e.marked = true
		}
	}
	s.mu.Unlock()
	for _, e := range stale {
		_ = e.cleaner.Cleanup() // logged there
	}
}

func (s *Store) entry(name string) (e *entry, found bool) {
	e, found = s.entries[name]
	if !found {
		e = &entry{}
		s.entries[name] = e
	}
	return e, found
}

// Get takes a resource out of the store.
func (s *Store) Get(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	if e == nil || e.resource == nil {
		return ""
	}
	delete(s.entries, name)
	e.resource.SetCreated()
	return e.resource.ID()
}

// Put stores a resource.
func (s *Store) Put(name string, r IdentifiableCreatable, c *Cleaner) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, _ := s.entry(name)
	if e.resource != nil {
		return fmt.Errorf("%q is stored already", name)
	}
	e.resource, e.cleaner = r, c
	for _, watcher := range e.watchers {
		watcher <- struct{}{}
	}
	e.watchers = nil
	return nil
}

// Delete removes an entry.
func (s *Store) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, name)
}

// WatcherForResource returns a channel that receives when the resource is Put, and its stage.
func (s *Store) WatcherForResource(name string) (watcher chan struct{}, stage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.entry(name)
	if !found {
		e.stage = StageUnknown
	}
	watcher = make(chan struct{}, 1)
	e.watchers = append(e.watchers, watcher)
	return watcher, e.stage
}

// SetStageForResource says how far the creation is.
func (s *Store) SetStageForResource(_ context.Context, name, stage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, _ := s.entry(name)
	e.stage = stage
}

// Cleaner undoes a creation.
type Cleaner struct {
	steps []func() error
	Wait  func(time.Duration) // time.Sleep if nil
}

// NewCleaner makes an empty one.
func NewCleaner() *Cleaner { return &Cleaner{} }

// Add adds a step that runs before the others.
func (c *Cleaner) Add(_ context.Context, _ string, fn func() error) { c.steps = append(c.steps, fn) }

// Cleanup runs the steps.
func (c *Cleaner) Cleanup() error {
	for i := len(c.steps) - 1; i >= 0; i-- {
		delay := 500 * time.Millisecond
		for try := 1; ; try++ {
			err := c.steps[i]()
			if err == nil {
				break
			}
			if try == 20 {
				return err
			}
			if c.Wait != nil {
				c.Wait(delay)
			} else {
				time.Sleep(delay)
			}
			delay = delay * 3 / 2
		}
	}
	return nil
}
