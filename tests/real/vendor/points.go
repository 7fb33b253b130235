// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"crikeep.io/go/crikeep"
)

// A Rule is what a scenario wants to happen at a point of the runtime's work: it stands still there
// until the rule is taken back, or it fails.
type Rule struct {
	Point  string // make, made, list, listed, inspect, destroy, stopped, destroyed, plugin, answer
	Target string // a key, a kind or an event; "": whatever it is
	Hold   bool
	Code   uint32 // fail with this, so many times; 0: for ever
	Times  int
	Text   string
}

// Points are where the runtime does as it is told. The scenario waits for what it expects, and
// nobody sleeps.
type Points struct {
	mu      sync.Mutex
	changed chan struct{} // closed and renewed with every change
	rules   []*Rule
	held    map[string]int // by point and target
}

func newPoints(rules []*Rule) *Points {
	return &Points{changed: make(chan struct{}), held: map[string]int{}, rules: rules}
}

func (p *Points) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Points) find(point, target string, hold bool) *Rule {
	for _, rule := range p.rules {
		if rule.Hold == hold && rule.Point == point && (rule.Target == "" || rule.Target == target) {
			return rule
		}
	}
	return nil
}

// At is called where something may be told to stand still or to fail.
func (p *Points) At(ctx context.Context, point, target string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.find(point, target, true) != nil {
		p.held[point+" "+target]++
		p.notify()
		changed := p.changed
		p.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		p.mu.Lock()
		p.held[point+" "+target]--
		if err != nil {
			return err
		}
	}
	rule := p.find(point, target, false)
	if rule == nil {
		return nil
	}
	if rule.Times > 0 {
		if rule.Times--; rule.Times == 0 {
			p.remove(func(r *Rule) bool { return r == rule })
		}
	}
	return &crikeep.StatusError{GRPC: rule.Code, Message: rule.Text}
}

func (p *Points) remove(which func(*Rule) bool) {
	kept := p.rules[:0:0]
	for _, rule := range p.rules {
		if !which(rule) {
			kept = append(kept, rule)
		}
	}
	p.rules = kept
	p.notify()
}

// Add has a rule obeyed from now on.
func (p *Points) Add(rule *Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, rule)
	p.notify()
}

// Release takes back the rules of a point that hold, or those that fail.
func (p *Points) Release(point, target string, hold bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(func(r *Rule) bool { return r.Hold == hold && r.Point == point && (target == "" || r.Target == target) })
}

// Arrived waits until so many stand still at a point.
func (p *Points) Arrived(ctx context.Context, point, target string, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held[point+" "+target] < n {
		changed := p.changed
		p.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// A Clock stands still until it is told to go on.
type Clock struct {
	mu     sync.Mutex
	now    time.Duration
	alarms map[chan struct{}]time.Duration
}

// Now is Options.Now.
func (c *Clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After is closed when that much time has been let pass.
func (c *Clock) After(d time.Duration) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	alarm := make(chan struct{})
	c.alarms[alarm] = c.now + d
	return alarm
}

// Advance lets time pass.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
	for alarm, at := range c.alarms {
		if at <= c.now {
			close(alarm)
			delete(c.alarms, alarm)
		}
	}
}
