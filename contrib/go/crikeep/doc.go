// SPDX-License-Identifier: Apache-2.0

// Package crikeep binds libcrikeep, which keeps the result of a RunPodSandbox or CreateContainer
// call whose caller has timed out, and hands it back when the kubelet repeats the request.
// libcrikeep(3) explains it. crikeep-rules(7) is the rule book: rules are named K1 to K33 and H1 to
// H10 as there.
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
// It leaves everything that a View hides out of every list, status, event and statistic. It calls
// ContainerStarting, SandboxStopping and Remove when the kubelet starts, stops and removes, and it
// implements Host.
//
// # Goroutines and threads
//
// Waiting costs a goroutine, not a thread. One goroutine runs the event loop of the library, woken
// by Go's own poller, and tells the others over channels. At most 16 goroutines of the process are
// inside the library at once. Calls of Host and of Hooks.Fire have their own goroutines.
//
// Hooks.Choose, Hooks.Cancel, Hooks.Released, Options.Now and the function given to Cache.Snapshot
// run inside the library. They must be fast. They must not wait for a lock that is held during a
// call of this package, because that call waits for them. A call of this package from one of them
// returns ErrDeadlock. runtime.Goexit (and so testing.T.FailNow) in one of them ends the process.
//
// A panic never passes through the library. A panic in a Host or in Hooks is logged with its stack
// and counts as a failure. A panic in a function given to Do or Snapshot is passed on to their
// caller as a *Panic.
//
// # Closing
//
// Cache, Turn and View are io.Closers. Closing twice does nothing, and use after Close returns
// ErrClosed. There are no finalizers: an object that is not closed stays in memory. Cache.Close
// wakes waiting callers. A call of Host may end after it.
//
// # Without the library
//
// On other systems than Linux, without cgo, and with the build tag no_libcrikeep, this package has
// its types, errors and interfaces, but no Cache. Package resourcestore has a store in memory then.
//
// # Other parts of the process
//
// A child made by fork without exec (Go makes none) cannot use the cache. If the runtime has its
// own SQLite driver, nothing needs to be done: Open checks that the library can use the SQLite that
// it finds. There is no binding for NRI, because runtimes in Go have Go's own adaptation. Call that
// from Hooks.
package crikeep
