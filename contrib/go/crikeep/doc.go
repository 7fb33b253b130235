// SPDX-License-Identifier: Apache-2.0

// Package crikeep binds libcrikeep, which keeps the result of a RunPodSandbox or CreateContainer
// call whose caller has timed out, and hands it back when the kubelet repeats the request.
// libcrikeep(3) tells the whole story; rules are named K1 to K33 and H1 to H10 as in
// crikeep-rules(7).
//
// A runtime opens one Cache and passes every create through Cache.Do:
//
//	reply, err := cache.Do(ctx, crikeep.Request{Kind: crikeep.Sandbox, Bytes: bytes},
//		func(ctx context.Context, t *crikeep.Turn) (crikeep.Result, error) {
//			t.Stage("sandbox network creation")
//			id, err := runtime.makeSandbox(ctx, request)
//			return crikeep.Result{ID: id}, err
//		})
//
// It leaves what a View hides out of every list, status, event and statistic, calls Stopping and
// Remove where the kubelet stops and removes, and implements Host.
//
// # Goroutines and threads
//
// Waiting costs a goroutine, not a thread: one goroutine turns the library's crank, woken by Go's
// own poller, and tells the others over channels. At most 16 goroutines of the process are inside
// the library at once. Calls of Host and of Hooks.Fire have goroutines of their own.
//
// Hooks.Choose, Hooks.Cancel, Hooks.Released, Options.Now and the function given to Cache.Snapshot
// run inside the library: they must be quick, and must not wait for a lock that anybody holds while
// calling this package: that call waits for them. A call of this package from there returns
// ErrDeadlock. runtime.Goexit (and so testing.T.FailNow) in one of them ends the process.
//
// A panic never goes through the library. One in a Host or in Hooks is logged with its stack and
// counts as a failure; one in a function given to Do or Snapshot is passed on to their caller as a
// *Panic.
//
// # Closing
//
// Cache, Turn and View are io.Closers. Closing twice does nothing, and use after Close returns
// ErrClosed. There are no finalizers: what is not closed stays in memory. Cache.Close wakes whoever
// waits. A call of Host may end after it.
//
// # What else is in the process
//
// A child made with fork and without exec (Go makes none) has a cache it cannot use. A runtime with
// an SQLite driver of its own needs nothing for it: the library checks at Open that the SQLite it
// finds is one it can use. NRI is not bound, because runtimes in Go have Go's own adaptation: Hooks
// is the place to call it from.
package crikeep
