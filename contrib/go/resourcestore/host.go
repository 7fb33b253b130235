// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"crikeep.io/go/crikeep"
)

// The functions that the library calls. A private store needs fewer of them.

type privateHost struct{ s *ResourceStore }

type durableHost struct{ privateHost }

type imageHost struct{ durableHost }

func (s *ResourceStore) host() crikeep.Host {
	private := privateHost{s}
	switch {
	case s.options.ResolveImage != nil:
		return imageHost{durableHost{private}}
	case s.durable || s.options.Alive != nil:
		return durableHost{private}
	}
	return private
}

const destroyTimeout = time.Minute // the library's default

// Destroy makes one pass of the cleaner. The library calls it again, with back-off, for ever, and
// after a restart, too.
func (h privateHost) Destroy(ctx context.Context, e crikeep.Entry) error {
	select {
	case <-h.s.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	o := h.s.objectOf(e)
	h.s.unname(o)
	there, err := o.recover(ctx)
	if err != nil {
		return err
	}
	if there && !o.isDetached() {
		timeout := h.s.options.DestroyTimeout
		if timeout <= 0 {
			timeout = destroyTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		_, cleaner := o.parts()
		if err := cleaner.once(ctx); err != nil {
			return err
		}
	}
	h.s.drop(o)
	return nil
}

// startedHooks are told nothing before Start.
type startedHooks struct {
	crikeep.Hooks
	s *ResourceStore
}

func (h startedHooks) Fire(ctx context.Context, event crikeep.HookEvent, e crikeep.Entry) (told []string, refusal string) {
	select {
	case <-h.s.started:
		return h.Hooks.Fire(ctx, event, e)
	case <-ctx.Done():
		return nil, "the store is closing"
	}
}

// unname frees the name of a result that is given up. A request for it then starts anew, and waits
// for its destruction.
func (s *ResourceStore) unname(o *object) {
	rec := s.find(o.name, 0, false)
	if rec == nil {
		return
	}
	if rec.object == o {
		rec.object = nil
		s.forget(rec)
	}
	rec.mu.Unlock()
}

// Committed is called for every result, even if no caller waited until its end. The store does not
// show what was deleted or removed: Delete lets the library commit a result only to forget it.
func (h privateHost) Committed(e crikeep.Entry) {
	if o := h.s.hiddenObject(e.Kind, e.ID); o != nil && !o.isDetached() {
		o.show()
	}
}

// What an unfinished creation left has no id of the runtime. No id begins like this.
const unfinishedPrefix = "unfinished:"

// Inspect is called before a result is handed back, and before a container is destroyed.
func (h durableHost) Inspect(ctx context.Context, e crikeep.Entry) (crikeep.Condition, error) {
	o := h.s.objectOf(e)
	there, err := o.recover(ctx)
	switch {
	case err != nil:
		return crikeep.Unknown, err
	case !there:
		return crikeep.Absent, nil
	}
	resource, _ := o.parts()
	if o.isDetached() {
		return crikeep.Ready, nil
	}
	if resource == nil { // only a cleaner: it can be undone, but not handed back
		return crikeep.Dead, nil
	}
	if h.s.options.Alive != nil {
		alive, err := h.s.options.Alive(ctx, o.kind, o.name, o.id)
		if err != nil {
			return crikeep.Unknown, err
		}
		if !alive {
			return crikeep.Dead, nil
		}
	}
	return crikeep.Ready, nil
}

// List returns what exists: everything that the store itself knows, and what Recover says about
// creations that an earlier process did not end.
func (h durableHost) List(ctx context.Context, f crikeep.Filter) ([]crikeep.Object, error) {
	s := h.s
	if s.options.List != nil {
		return s.options.List(ctx, f)
	}
	select {
	case <-s.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	entries, err := s.cache.Entries()
	if err != nil {
		return nil, err
	}
	s.unfind(entries)
	var objects []crikeep.Object
	for _, e := range entries {
		if e.Kind != f.Kind || (f.PodUID != "" && e.PodUID != f.PodUID) ||
			(f.SandboxID != "" && e.SandboxID != f.SandboxID) {
			continue
		}
		object := crikeep.Object{Kind: e.Kind, Condition: crikeep.Ready, ID: e.ID, PodName: e.PodName,
			PodNamespace: e.PodNamespace, PodUID: e.PodUID, SandboxID: e.SandboxID, ContainerName: e.ContainerName,
			Attempt: e.Attempt}
		if e.ID == "" {
			if err := s.askLost(ctx, e, &object); err != nil {
				return nil, err
			}
		}
		if object.ID != "" {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// askLost asks about a creation with an unknown outcome. A creation of this process is still
// running. A creation of an earlier process is not: either its object exists, or its remains are
// undone before its name is used again.
func (s *ResourceStore) askLost(ctx context.Context, e crikeep.Entry, object *crikeep.Object) error {
	name := nameOf(e)
	if rec := s.find(name, 0, false); rec != nil {
		running := rec.turn != nil && !rec.pending
		rec.mu.Unlock()
		if running {
			return nil // the library waits for it
		}
	}
	if !e.Lost || s.options.Recover == nil {
		return nil
	}
	resource, cleaner, err := s.options.Recover(ctx, e.Kind, name, "")
	if err != nil {
		return fmt.Errorf("recover %s %q: %w", e.Kind, name, err)
	}
	if resource != nil {
		object.ID = resource.ID()
	} else {
		object.ID, object.Condition = unfinishedPrefix+strconv.FormatUint(e.Number, 10), crikeep.Dead
	}
	s.found(e, object.ID, name, resource, cleaner)
	return nil
}

// found remembers what Recover said about a creation, until the library names the creation. The
// library may not need the answer any more.
func (s *ResourceStore) found(e crikeep.Entry, id, name string, resource IdentifiableCreatable, cleaner *ResourceCleaner) {
	o := &object{store: s, objectID: objectID{e.Kind, id}, name: name, entry: e.Number, recovered: true, resource: resource,
		cleaner: cleaner}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[o.objectID] == nil && s.lost[o.objectID] == nil {
		s.lost[o.objectID] = o
	}
}

// unfind forgets what the library did not need.
func (s *ResourceStore) unfind(entries []crikeep.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, o := range s.lost {
		there := false
		for _, e := range entries {
			there = there || e.Number == o.entry
		}
		if !there {
			delete(s.lost, id)
		}
	}
}

// ResolveImage exists only if the vendor has one.
func (h imageHost) ResolveImage(ctx context.Context, image string) (string, error) {
	return h.s.options.ResolveImage(ctx, image)
}
