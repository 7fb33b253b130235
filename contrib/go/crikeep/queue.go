// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import "sync"

// queue calls f for one item after the other, in order, in a goroutine that lives as long as there
// are items
type queue[T any] struct {
	f     func(T)
	limit int       // 0: none
	lost  func(int) // called with the number of items that were over the limit

	mu      sync.Mutex
	idle    sync.Cond
	items   []T
	over    int
	running bool
}

func newQueue[T any](limit int, f func(T), lost func(int)) *queue[T] {
	q := &queue[T]{f: f, limit: limit, lost: lost}
	q.idle.L = &q.mu
	return q
}

func (q *queue[T]) put(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limit > 0 && len(q.items) >= q.limit {
		q.over++
		return
	}
	q.items = append(q.items, item)
	if !q.running {
		q.running = true
		go q.drain()
	}
}

func (q *queue[T]) drain() {
	for {
		q.mu.Lock()
		items, over := q.items, q.over
		q.items, q.over = nil, 0
		if len(items) == 0 && over == 0 {
			q.running = false
			q.idle.Broadcast()
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		for _, item := range items {
			q.f(item)
		}
		if over > 0 {
			q.lost(over)
		}
	}
}

// wait returns when f has been called for all items
func (q *queue[T]) wait() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.running {
		q.idle.Wait()
	}
}
