// SPDX-License-Identifier: Apache-2.0

package crikeep

// #include "bridge.h"
import "C"

import "sync/atomic"

// maxInC is how many goroutines of the process are inside the library at once; the others wait in
// Go, where that costs no thread. A call that waits for a transaction keeps its thread, and Go
// starts another for those that want to run: unbounded, 20,000 callers are 20,000 threads. The
// library writes what comes together in one transaction, and 16 at a time already share most of its
// price.
const maxInC = 16

var tokens = make(chan struct{}, maxInC)

func enterC() { tokens <- struct{}{} }
func leaveC() { <-tokens }

// insiders counts callbacks that run inside the critical section of a cache
var insiders atomic.Int32

// inside tells whether this goroutine runs in such a callback. It must not wait there: for a lock
// of this package, for a token or for a round, all of which may be had by somebody who waits for
// it. The question costs a call of C, and is asked only while there is a callback at all.
func inside() bool {
	return insiders.Load() > 0 && C.ckgo_inside() > 0
}

// live counts what has to be given back to C; tests want zero at their end
var live struct{ caches, turns, views, jobs atomic.Int64 }
