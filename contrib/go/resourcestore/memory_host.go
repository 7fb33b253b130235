// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"crikeep.io/go/crikeep"
)

// What the engine in memory does outside of its lock: it calls the host and the hooks, and waits.

// ---- alarms -------------------------------------------------------------------------------------

// alarm calls a function, with the lock held, when its time has come.
type alarm struct {
	due   time.Duration
	order uint64 // in which they were set
	ring  func()
	timer *time.Timer
}

func (m *memory) arm(a *alarm, due time.Duration, ring func()) {
	m.disarm(a)
	m.order++
	a.due, a.ring, a.order = due, ring, m.order
	m.alarms[a] = struct{}{}
	if !m.clock {
		var timer *time.Timer
		timer = time.AfterFunc(max(due-m.now(), 0), func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if _, armed := m.alarms[a]; armed && a.timer == timer {
				m.fire(a)
			}
		})
		a.timer = timer
	}
}

func (m *memory) disarm(a *alarm) {
	delete(m.alarms, a)
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

func (m *memory) fire(a *alarm) {
	m.disarm(a)
	a.ring()
	m.settle()
}

// Step is for tests: it rings what is due by their clock, in order.
func (m *memory) Step() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	for !m.closed {
		var next *alarm
		for a := range m.alarms {
			if next == nil || a.due < next.due || a.due == next.due && a.order < next.order {
				next = a
			}
		}
		if next == nil {
			break
		}
		if next.due > m.now() {
			return next.due - m.now()
		}
		m.fire(next)
	}
	return -1
}

// ---- calls --------------------------------------------------------------------------------------

// guard runs a function of the vendor, which may panic or end its goroutine.
func (m *memory) guard(where string, f func()) (whole bool) {
	done := make(chan bool)
	go func() {
		whole := false
		defer func() {
			if v := recover(); v != nil {
				m.log.Error("a panic in "+where, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
			done <- whole
		}()
		f()
		whole = true
	}()
	return <-done
}

// ask begins to ask whether a kept result is alive (K6), and commits it if nobody can be asked. It
// returns true if it has committed it.
func (m *memory) ask(e *entry) bool {
	inspector, ok := m.host.(crikeep.Inspector)
	if !ok {
		m.commit(e)
		return e.state == crikeep.StateCommitted
	}
	if e.asking || e.doomed != nil {
		return false
	}
	e.asking = true
	m.disarm(&e.alarm)
	told := m.info(e)
	go func() {
		condition, err := crikeep.Unknown, error(nil)
		if !m.guard("Inspect", func() { condition, err = inspector.Inspect(m.ctx, told) }) || err != nil {
			condition = crikeep.Unknown
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		e.asking = false
		if m.closed || e.state != crikeep.StateKept {
			return
		}
		switch {
		case condition == crikeep.Dead || condition == crikeep.Absent:
			m.evict(e, "it is dead")
		case !m.wanted(e):
			m.touch(e)
		case condition == crikeep.Unknown:
			m.arm(&e.alarm, m.now()+inspectAgain, func() { m.touch(e) }) // settle asks again
			return
		default:
			m.commit(e)
		}
		m.settle()
	}()
	return false
}

// tell tells hooks about a result that is about to be committed.
func (m *memory) tell(e *entry) {
	info := m.info(e)
	go func() {
		var names, told []string
		absent, refusal := "Hooks.Choose, which panicked", "the hooks panicked"
		m.guard("Hooks.Choose", func() { names, absent = m.hooks.Choose(info) })
		if absent == "" {
			info.Told = names
			m.guard("Hooks.Fire", func() { told, refusal = m.hooks.Fire(m.ctx, crikeep.HookRun, info) })
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.closed {
			return
		}
		if e.known = absent == ""; e.known {
			if e.told = told; told == nil {
				e.told = names
			}
		}
		switch {
		case e.doomed != nil:
			m.evict(e, e.doomed.Error())
		case absent != "":
			why := fault(crikeep.CodeUnavailable, "a required plugin is absent: %s", absent)
			m.failWaiting(e, why)
			m.keep(e)
		case refusal != "":
			m.failWaiting(e, fault(crikeep.CodeRefused, "%s", refusal))
			m.evict(e, refusal)
		case e.kind == crikeep.Container && !m.wanted(e): // K7
			m.keep(e)
		default:
			m.committed(e)
		}
		m.settle()
	}()
}

// ---- destroying ---------------------------------------------------------------------------------

func (m *memory) evict(e *entry, why string) {
	m.set(e, crikeep.StateEvicting)
	e.why = why
	m.log.Info("a resource is given up", "name", nameOf(m.info(e)), "id", e.id, "why", why)
	m.evicted = append(m.evicted, e)
	m.destroyNext()
}

// destroyNext begins to destroy what waits for it, some at a time (K18).
func (m *memory) destroyNext() {
	for len(m.evicted) > 0 && m.destroying < destroysAtMost && !m.closed {
		e := m.evicted[0]
		m.evicted = m.evicted[1:]
		m.destroying++
		go m.destroy(e, m.info(e))
	}
}

// destroy tries once. It is tried again for ever, with growing pauses.
func (m *memory) destroy(e *entry, info crikeep.Entry) {
	if info.Known && info.Tries == 0 { // K20
		m.guard("Hooks.Fire", func() { m.hooks.Fire(m.ctx, crikeep.HookStop, info) })
	}
	err := errors.New("a panic")
	m.guard("Destroy", func() { err = m.host.Destroy(m.ctx, info) })
	destroyed := err == nil || errors.Is(err, crikeep.ErrNotFound)
	if destroyed && info.Known {
		m.guard("Hooks.Fire", func() { m.hooks.Fire(m.ctx, crikeep.HookRemove, info) })
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.destroying--
	if m.closed {
		return
	}
	if destroyed {
		m.gone(e, true)
	} else {
		pause := min(destroyPause<<min(e.tries, 10), destroyPauses)
		e.tries++
		m.arm(&e.alarm, m.now()+pause, func() {
			m.evicted = append(m.evicted, e)
			m.destroyNext()
		})
	}
	m.destroyNext()
	m.settle()
}
