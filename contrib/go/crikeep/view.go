// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

// #include "bridge.h"
import "C"

import (
	"context"
	"io"
	"sync"
)

func (c *Cache) beginRemoval(ctx context.Context, k Kind, id string) (*Turn, error) {
	cid := cstring(id)
	if cid == nil {
		return nil, invalid("a zero byte in an id")
	}
	ns, expired := timeout(ctx)
	if expired {
		return nil, &Error{Code: CodeDeadline}
	}
	return c.begin(func(t *Turn, cerr *C.struct_ck_error) C.int {
		return C.ckgo_remove(c.c, C.int(k), cid, ns, C.uintptr_t(t.handle), &t.t, cerr)
	})
}

// View is one consistent filter for one list, status or event. Begin it before the objects are
// read, and ask it afterwards. The first question to a view fixes all its answers.
type View struct {
	mu sync.Mutex
	v  *C.struct_ck_view // nil: closed
}

var _ io.Closer = (*View)(nil)

// View begins a view.
func (c *Cache) View() (*View, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	v := &View{}
	cerr := newError()
	if err := wrap(C.ck_view_begin(c.c, &v.v, cerr), cerr); err != nil {
		return nil, err
	}
	live.views.Add(1)
	return v, nil
}

func (v *View) enter() error {
	if inside() {
		return ErrDeadlock
	}
	v.mu.Lock()
	if v.v == nil {
		v.mu.Unlock()
		return ErrClosed
	}
	enterC()
	return nil
}

func (v *View) leave() {
	leaveC()
	v.mu.Unlock()
}

// Hides says whether to leave an object out. An object whose id the cache does not know yet is
// hidden by its names.
func (v *View) Hides(o Object) (bool, error) {
	p, err := pack(o)
	if err != nil {
		return false, err
	}
	if err := v.enter(); err != nil {
		return false, err
	}
	defer v.leave()
	r := C.ckgo_view_hides(v.v, p.first(), p.chars())
	return r > 0, check(r)
}

// Resolve returns the id that a prefix means, and whether it is known to be committed: the full id
// and true, or the prefix itself and false if it fits nothing that the cache knows, or several
// objects. ErrNotFound means that it fits hidden ids only: the caller must be told that nothing of
// that name exists. Of an object of which only the id is known, it says whether to show it.
func (v *View) Resolve(k Kind, prefix string) (id string, known bool, err error) {
	cprefix := cstring(prefix)
	if cprefix == nil {
		return "", false, invalid("a zero byte in an id")
	}
	if err := v.enter(); err != nil {
		return "", false, err
	}
	defer v.leave()
	var full *C.char
	r := C.ck_view_resolve(v.v, uint32(k), cprefix, &full)
	if r < 0 {
		return "", false, check(r)
	}
	return C.GoString(full), r == 1, nil
}

// Listed gives the cache the whole, unfiltered, successful list of one kind, to reconcile with (K24
// to K27).
func (v *View) Listed(k Kind, objects []Object) error {
	p, err := pack(objects...)
	if err != nil {
		return err
	}
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	return check(C.ckgo_view_listed(v.v, C.int(k), p.first(), C.size_t(len(objects)), p.chars()))
}

// Close ends the view. Closing again does nothing.
func (v *View) Close() error {
	if inside() {
		return ErrDeadlock
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.v == nil {
		return nil
	}
	enterC()
	C.ck_view_free(v.v)
	leaveC()
	v.v = nil
	live.views.Add(-1)
	return nil
}
