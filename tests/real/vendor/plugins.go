// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"crikeep.io/go/crikeep"
)

// Plugins is the vendor's own plugin side behind crikeep.Hooks: connections with names, one event
// at a time for each, and who knows of what. A real one speaks NRI; the rules H1 to H6 are about
// what is said, not how.
type Plugins struct {
	runtime  *Runtime
	required []string

	mu        sync.Mutex
	conns     []*conn // by name
	dialled   int
	chosen    map[uint64][]*conn // who gets the entry's RUN; in this life
	cancelled map[uint64]bool
}

type conn struct {
	name   string
	number int // of the connection: one that returns is another (H3)
	knows  map[uint64]bool
	synced map[uint64]bool // knows it from its snapshot
	queue  chan *delivery
	left   chan struct{}
}

type delivery struct {
	event crikeep.HookEvent
	entry crikeep.Entry
	ctx   context.Context
	done  chan error
}

var eventNames = map[crikeep.HookEvent]string{
	crikeep.HookRun: "RUN", crikeep.HookStop: "STOP", crikeep.HookRemove: "REMOVE",
}

func newPlugins(r *Runtime, required []string) *Plugins {
	return &Plugins{runtime: r, required: required, chosen: map[uint64][]*conn{}, cancelled: map[uint64]bool{}}
}

// Connect is a plugin that dials: it is told what exists, and of what comes.
func (p *Plugins) Connect(name string) error {
	p.mu.Lock()
	p.dialled++
	c := &conn{
		name: name, number: p.dialled, knows: map[uint64]bool{}, synced: map[uint64]bool{},
		queue: make(chan *delivery, 1024), left: make(chan struct{}),
	}
	p.conns = append(p.conns, c)
	sort.Slice(p.conns, func(i, j int) bool { return p.conns[i].name < p.conns[j].name })
	p.mu.Unlock()
	var held []string
	// Whatever is chosen from now on has this connection among its recipients; what the
	// snapshot holds, needs no RUN.
	err := p.runtime.cache.Snapshot(func(e crikeep.Entry) error {
		if p.runtime.forgets("snapshot") {
			return nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		c.knows[e.Number], c.synced[e.Number] = true, true
		held = append(held, fmt.Sprintf("%s=%s@%s", entryKey(e), e.ID, e.SandboxID))
		return nil
	})
	if err != nil {
		return err
	}
	sort.Strings(held)
	go p.deliver(c)
	return p.runtime.diary.Note("plugin %s#%d SYNC %s", name, c.number, strings.Join(held, " "))
}

// Drop ends a plugin's connection.
func (p *Plugins) Drop(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.conns[:0:0]
	for _, c := range p.conns {
		if c.name == name {
			close(c.left)
		} else {
			kept = append(kept, c)
		}
	}
	p.conns = kept
}

// one event at a time, in order (H5)
func (p *Plugins) deliver(c *conn) {
	for {
		var d *delivery
		select {
		case d = <-c.queue:
		case <-c.left:
			return
		}
		p.mu.Lock()
		skip := d.event == crikeep.HookRun && c.synced[d.entry.Number]
		p.mu.Unlock()
		if skip {
			d.done <- nil
			continue
		}
		what := fmt.Sprintf("%s %s %s", c.name, eventNames[d.event], entryKey(d.entry))
		p.runtime.diary.Note("plugin %s#%d %s %s %s", c.name, c.number, eventNames[d.event], entryKey(d.entry), d.entry.ID)
		err := p.runtime.points.At(d.ctx, "plugin", what)
		if d.ctx.Err() != nil {
			p.runtime.diary.Note("cancelled %s", what)
		}
		p.runtime.diary.Note("answered %s", what)
		d.done <- err
	}
}

// send has an event go to the recipients, one after another; who takes too long is not waited for
// any more.
func (p *Plugins) send(ctx context.Context, event crikeep.HookEvent, e crikeep.Entry, to []*conn) (told []string,
	refusal string) {
	for i, c := range to {
		p.mu.Lock()
		cancelled := event == crikeep.HookRun && p.cancelled[e.Number]
		for _, unasked := range to[i:] {
			if cancelled { // K13: only who was told hears that it is undone
				delete(unasked.knows, e.Number)
			}
		}
		p.mu.Unlock()
		if cancelled {
			break
		}
		d := &delivery{event, e, ctx, make(chan error, 1)}
		c.queue <- d
		told = append(told, c.name)
		select {
		case err := <-d.done:
			if err != nil && event == crikeep.HookRun {
				return told, fmt.Sprintf("plugin %s: %s", c.name, err.Error())
			}
		case <-c.left:
		case <-p.runtime.after(pluginDeadline):
		}
	}
	return told, ""
}

// recipients of STOP and REMOVE: the know-set, and after a restart whoever has the name of one that
// was told (H2, H3)
func (p *Plugins) knowing(e crikeep.Entry) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ours := p.chosen[e.Number]
	var to []*conn
	for _, c := range p.conns {
		debt := false
		for _, name := range e.Told {
			debt = debt || (!ours && name == c.name)
		}
		if c.knows[e.Number] || debt {
			to = append(to, c)
		}
	}
	return to
}

// Choose is of crikeep.Hooks.
func (p *Plugins) Choose(e crikeep.Entry) (names []string, absent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.required {
		there := false
		for _, c := range p.conns {
			there = there || c.name == name
		}
		if !there {
			return nil, name
		}
	}
	for _, c := range p.conns {
		c.knows[e.Number] = true
		names = append(names, c.name)
	}
	p.chosen[e.Number] = append([]*conn(nil), p.conns...)
	return names, ""
}

// Fire is of crikeep.Hooks.
func (p *Plugins) Fire(ctx context.Context, event crikeep.HookEvent, e crikeep.Entry) (told []string, refusal string) {
	if p.runtime.forgets("hooks") {
		return nil, ""
	}
	if event != crikeep.HookRun {
		return p.send(ctx, event, e, p.knowing(e))
	}
	p.mu.Lock()
	to := p.chosen[e.Number]
	p.mu.Unlock()
	return p.send(ctx, event, e, to)
}

// Cancel is of crikeep.Hooks.
func (p *Plugins) Cancel(entry uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelled[entry] = !p.runtime.forgets("cancel")
}

// Released is of crikeep.Hooks.
func (p *Plugins) Released(e crikeep.Entry, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		delete(c.knows, e.Number)
		delete(c.synced, e.Number)
	}
	delete(p.chosen, e.Number)
	delete(p.cancelled, e.Number)
}

func entryKey(e crikeep.Entry) string { return key(e.PodName, e.ContainerName, e.Attempt) }

// what a plugin may take for an event
const pluginDeadline = 2 * time.Second
