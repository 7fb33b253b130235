// SPDX-License-Identifier: Apache-2.0

package crikeep

import "context"

// Host is the runtime: what the cache asks it to do. Each call has its own goroutine, and a context
// that ends when the cache is closed. Close does not wait for calls. A panic is logged with its
// stack and counts as a failed call. If it ended the process, it would do so again after every
// start, because the same call is made again.
//
// A Host may also be an Inspector, a Lister, an ImageResolver and a CommitWatcher.
type Host interface {
	// Destroy stops and removes a resource. It is confirmed by nil, or by an error that is
	// ErrNotFound or whose GRPCCode is NotFound. Any other error means that the resource may
	// still exist: Destroy is called again, for ever, with growing pauses (K17, K18). The text of
	// the error goes into log and history, redacted as libcrikeep(3) says.
	Destroy(ctx context.Context, e Entry) error
}

// Inspector is asked whether a kept resource is still alive before it is handed back (K6). Without
// an Inspector, every resource counts as alive.
type Inspector interface {
	Inspect(ctx context.Context, e Entry) (Condition, error)
}

// Lister lists the runtime's objects, including hidden ones. It is called at the start, and if the
// outcome of a creation is unknown (K8, K22, K24). Without a Lister, lost creations are given up
// after a while, and nothing is reconciled.
type Lister interface {
	List(ctx context.Context, f Filter) ([]Object, error)
}

// ImageResolver returns the id of an image reference. Without it, two references are the same image
// only if they are equal.
type ImageResolver interface {
	ResolveImage(ctx context.Context, image string) (id string, err error)
}

// CommitWatcher is told, in order, about every entry that was hidden and is visible from now on.
// This is the time to send pod events. One goroutine calls it, and it may block that goroutine.
type CommitWatcher interface {
	Committed(e Entry)
}

// Hooks are told what is committed, and about the end of what they were told about (H1 to H6 of
// crikeep-rules(7)). For each entry the order is Choose, and Fire with HookRun, HookStop and
// HookRemove.
type Hooks interface {
	// Choose returns the names of those that will be told. If a required one is absent, absent
	// is its name, and nothing is committed now. Choose runs inside the cache's critical
	// section: it must be fast, and must not call this package.
	Choose(e Entry) (names []string, absent string)
	// Fire tells them, in its own goroutine. told are the names of those to which the event was
	// really sent; nil: unknown. refusal is "" or "plugin NN-name: its text", which undoes the
	// commit.
	Fire(ctx context.Context, event HookEvent, e Entry) (told []string, refusal string)
	// Cancel says that this entry's HookRun must not be sent to anybody else. Fire must still
	// return. Cancel must be fast, and must not call this package.
	Cancel(entry uint64)
	// Released says that the entry is gone, whether hooks were told about it or not. If gone is
	// false, its commit was not written. It has the same limits as Choose.
	Released(e Entry, gone bool)
}
