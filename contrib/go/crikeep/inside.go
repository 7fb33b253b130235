// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

// #include "bridge.h"
import "C"

import "sync/atomic"

// maxInC is how many goroutines of the process may be inside the library at once. The others wait
// in Go, where waiting needs no thread. A call that waits for a transaction keeps its thread, and
// Go starts another one for other goroutines. Without a limit, 20,000 callers would be 20,000
// threads. The library writes simultaneous changes in one transaction, and 16 at a time already
// share most of its cost.
const maxInC = 16

var tokens = make(chan struct{}, maxInC)

func enterC() { tokens <- struct{}{} }
func leaveC() { <-tokens }

// insiders counts callbacks that run inside the critical section of a cache
var insiders atomic.Int32

// inside says whether this goroutine runs in such a callback. The callback must not wait for a lock
// of this package, for a token or for a round, because their holder may be waiting for the
// callback. The question costs a call of C, so it is asked only while such a callback runs.
func inside() bool {
	return insiders.Load() > 0 && C.ckgo_inside() > 0
}

// live counts what must be given back to C; tests require zero at their end
var live struct{ caches, turns, views, jobs atomic.Int64 }
