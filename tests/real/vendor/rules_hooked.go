// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"crikeep.io/go/crikeep"
)

// said tells whether some line of the diary, or of the log, has all these words.
func (p *Play) said(words ...string) bool {
	log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	for _, line := range append(p.diary(), strings.Split(string(log), "\n")...) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return true
		}
	}
	return false
}

// sync is what a plugin that connects is told of all at once.
func (p *Play) plug(name string) string {
	before := p.count("plugin")
	p.do(Call{Op: "plug", Name: name})
	for _, line := range p.lines("plugin")[before:] {
		if strings.Contains(line, " SYNC ") && strings.HasPrefix(line, "plugin "+name+"#") {
			return line
		}
	}
	return ""
}

// events is how often a connection was told of something.
func (p *Play) events(connection, event string, w Want) int {
	return p.count(fmt.Sprintf("plugin %s %s %s", connection, event, w.Key()))
}

// note2 waits for the n-th line that begins so.
func (p *Play) note2(begin string, n int) {
	p.until(fmt.Sprintf("%q %d times in the diary", begin, n), func() bool { return p.count(begin) >= n })
}

func has(snapshot string, w Want, id, sandbox string) bool {
	return strings.Contains(snapshot, fmt.Sprintf(" %s=%s@%s", w.Key(), id, sandbox))
}

// H1 to H6: who is told of what. H7 to H10 are about NRI's own messages, which Go runtimes speak by
// themselves.
var hooked = []chapter{
	{"H1", scene{"a plugin that connects is told of all that was handed over, whole", func(p *Play) {
		p.start(plugged())
		sandbox := p.made(web)
		main := container("web", sandbox)
		id := p.made(main)
		p.hold("made", "db/0")
		p.create(db)
		p.arrived("made", "db/0")
		all := p.plug("10-log")
		p.yes("the sandbox: "+all, has(all, web, sandbox, ""))
		p.yes("the container: "+all, has(all, main, id, sandbox))
		p.yes("not what is being made: "+all, !strings.Contains(all, "db/0"))
	}}, scene{"what is kept is told of if plugins know it already, until it is destroyed", func(p *Play) {
		p.start(plugged("10-log"))
		sandbox := p.made(web)
		main := container("web", sandbox)
		id := p.told(main)
		p.kept(db)
		all := p.plug("20-net")
		p.yes("the told one: "+all, has(all, main, id, sandbox))
		p.yes("not the other: "+all, !strings.Contains(all, "db/0"))
		p.hold("destroy", "web/main/0")
		p.expire()
		p.arrived("destroy", "web/main/0")
		all = p.plug("30-mem")
		p.yes("what is on its way out: "+all, has(all, main, id, sandbox))
		p.yes("and its sandbox: "+all, has(all, web, sandbox, ""))
	}}, scene{"what was being told of when the runtime died is in the next life's first answer to a plugin", func(p *Play) {
		p.start(plugged("10-log"))
		sandbox := p.made(web)
		main := container("web", sandbox)
		p.hold("plugin", "10-log RUN web/main/0")
		p.create(main)
		p.arrived("plugin", "10-log RUN web/main/0")
		p.again(plugged())
		all := p.plug("10-log")
		p.yes("the sandbox: "+all, has(all, web, sandbox, ""))
		p.yes("the container: "+all, has(all, main, p.real(crikeep.Container)[0], sandbox))
	}}},

	{"H2", scene{"the end of what was handed over is told to who was chosen and to who had it in a snapshot, once", func(p *Play) {
		p.start(plugged("10-log"))
		id := p.made(web)
		p.plug("20-net")
		p.fail("plugin", "10-log STOP web/0", 1, codeInternal) // whatever anybody answers
		p.do(Call{Op: "stop", ID: id})
		p.do(Call{Op: "remove", Kind: crikeep.Sandbox, ID: id})
		p.order("plugin 10-log#1 RUN web/0", "plugin 10-log#1 STOP web/0", "plugin 20-net#2 STOP web/0",
			"plugin 10-log#1 REMOVE web/0", "plugin 20-net#2 REMOVE web/0")
		p.is("what came by snapshot", p.events("20-net#2", "RUN", web), 0)
		p.is("REMOVEs", p.count("plugin 10-log#1 REMOVE")+p.count("plugin 20-net#2 REMOVE"), 2)
	}}, scene{"the end of what nobody came for is told to both, too", func(p *Play) {
		p.start(plugged("10-log"))
		main := container("web", p.made(web))
		p.told(main)
		p.plug("20-net")
		p.expire()
		p.gone(main)
		for _, plugin := range []string{"10-log#1", "20-net#2"} {
			p.order("plugin "+plugin+" STOP web/main/0", "destroyed web/main/0", "plugin "+plugin+" REMOVE web/main/0")
			p.is("STOPs", p.events(plugin, "STOP", main), 1)
			p.is("REMOVEs", p.events(plugin, "REMOVE", main), 1)
		}
	}}, scene{"in the next life it is told to who has it from the snapshot, whatever the name, once", func(p *Play) {
		p.start(plugged("10-log"))
		main := container("web", p.made(web))
		p.told(main)
		p.again(plugged("10-log", "30-mem"))
		p.settled()
		p.expire()
		p.gone(main)
		for _, plugin := range []string{"10-log#1", "30-mem#2"} {
			p.is("STOPs", p.events(plugin, "STOP", main), 1)
			p.is("REMOVEs", p.events(plugin, "REMOVE", main), 1)
		}
	}}},

	{"H3", scene{"a plugin that returns is another: it has a snapshot and no RUN, and hears the end once", func(p *Play) {
		p.start(plugged("10-log"))
		id := p.made(web)
		p.do(Call{Op: "unplug", Name: "10-log"})
		p.yes("the snapshot has it", has(p.plug("10-log"), web, id, ""))
		p.create(web).id()
		p.do(Call{Op: "stop", ID: id})
		p.is("RUNs", fmt.Sprint(p.events("10-log#1", "RUN", web), p.events("10-log#2", "RUN", web)), "1 0")
		p.is("STOPs", fmt.Sprint(p.events("10-log#1", "STOP", web), p.events("10-log#2", "STOP", web)), "0 1")
	}}, scene{"a plugin that returns when the end has begun has it in its list, and hears the rest", func(p *Play) {
		p.start(plugged("10-log"))
		main := container("web", p.made(web))
		p.told(main)
		p.do(Call{Op: "unplug", Name: "10-log"})
		p.hold("destroy", "web/main/0")
		p.expire()
		p.arrived("destroy", "web/main/0")
		all := p.plug("10-log")
		p.yes("the snapshot has it: "+all, strings.Contains(all, "web/main/0"))
		p.release("destroy", "web/main/0")
		p.gone(main)
		for event, times := range map[string]int{"RUN": 0, "STOP": 0, "REMOVE": 1} {
			p.is(event, p.events("10-log#2", event, main), times)
		}
	}}, scene{"what a plugin of that name was told in the last life, it hears the end of in this one", func(p *Play) {
		p.start(plugged("10-log"))
		main := container("web", p.made(web))
		p.told(main)
		p.hold("plugin", "10-log STOP web/main/0")
		p.expire()
		p.arrived("plugin", "10-log STOP web/main/0")
		p.again(plugged("10-log", "20-net"))
		p.gone(main)
		p.order("plugin 10-log#1 SYNC", "plugin 10-log#1 STOP web/main/0", "destroyed web/main/0", "plugin 10-log#1 REMOVE web/main/0")
		p.order("plugin 20-net#2 SYNC", "plugin 20-net#2 STOP web/main/0", "destroyed web/main/0", "plugin 20-net#2 REMOVE web/main/0")
	}}},

	{"H4", scene{"without a required plugin nobody is told and nothing handed over; with it, it is", func(p *Play) {
		p.start(plugged("10-log"), requiring("20-net"))
		text := p.create(web).fails(codeUnavailable)
		p.yes("it names the plugin: "+text, strings.Contains(text, "20-net"))
		p.become(web, crikeep.StateKept)
		p.is("events", p.events("10-log#1", "RUN", web), 0)
		id := p.entry(web).ID
		p.plug("20-net")
		p.is("the id", p.create(web).id(), id)
		p.is("events", fmt.Sprint(p.events("10-log#1", "RUN", web), p.events("20-net#2", "RUN", web)), "1 1")
	}}, scene{"a refusal after the first event undoes it, though the caller has gone", func(p *Play) {
		p.start(plugged("10-log", "20-net"))
		p.hold("plugin", "20-net RUN web/0")
		p.fail("plugin", "20-net RUN web/0", 1, codeUnknown)
		a := p.create(web)
		p.arrived("plugin", "20-net RUN web/0")
		a.hangUp()
		p.release("plugin", "20-net RUN web/0")
		p.gone(web)
		p.order("plugin 10-log#1 RUN web/0", "plugin 20-net#2 RUN web/0", "plugin 10-log#1 STOP web/0", "plugin 20-net#2 STOP web/0",
			"destroyed web/0", "plugin 10-log#1 REMOVE web/0", "plugin 20-net#2 REMOVE web/0")
		p.is("what exists", len(p.real(crikeep.Sandbox)), 0)
	}}, scene{"a required plugin that is absent is waited for in the next life, too", func(p *Play) {
		p.start(plugged(), requiring("20-net"))
		p.create(web).fails(codeUnavailable)
		id := p.entry(web).ID
		p.again()
		p.create(web).fails(codeUnavailable)
		p.become(web, crikeep.StateKept)
		p.plug("20-net")
		p.is("the id", p.create(web).id(), id)
		p.is("events", p.events("20-net#1", "RUN", web), 1)
		p.is("creations", p.creations(web), 1)
	}}},

	{"H5", scene{"one event at a time for a plugin, and the commits of both callers wait their turn", func(p *Play) {
		p.start(plugged("10-log"))
		p.hold("plugin", "10-log RUN web/0")
		a := p.create(web)
		p.arrived("plugin", "10-log RUN web/0")
		b := p.create(db)
		p.quiet()
		p.is("what the plugin was sent", p.count("plugin 10-log#1 RUN"), 1)
		p.yes("both wait", !a.answered() && !b.answered())
		p.release("plugin", "10-log RUN web/0")
		a.id()
		b.id()
		p.order("plugin 10-log#1 RUN web/0", "answered 10-log RUN web/0", "plugin 10-log#1 RUN db/0")
	}}, scene{"a plugin that is late holds a commit up for its time only; it is sent the rest when it answers", func(p *Play) {
		p.start(plugged("10-log"))
		p.hold("plugin", "10-log RUN web/0")
		a := p.create(web)
		p.arrived("plugin", "10-log RUN web/0")
		b := p.create(db)
		p.quiet()
		p.yes("both wait", !a.answered() && !b.answered())
		p.passing(pluginDeadline, "both are answered", func() bool { return a.answered() && b.answered() })
		a.id()
		b.id()
		p.is("what the plugin was sent", p.count("plugin 10-log#1 RUN"), 1)
		p.release("plugin", "10-log RUN web/0")
		p.note("plugin 10-log#1 RUN db/0 " + b.id())
	}}, scene{"a plugin that was at it when the runtime died holds nothing up in the next life", func(p *Play) {
		p.start(plugged("10-log"))
		p.hold("plugin", "10-log RUN web/0")
		p.create(web)
		p.arrived("plugin", "10-log RUN web/0")
		p.create(db)
		p.become(db, crikeep.StateCommitting)
		p.again()
		p.create(web).id()
		p.create(db).id()
		p.is("RUNs of what it was being told", p.events("10-log#1", "RUN", web), 1)
	}}},

	{"H6", scene{"a deadline that passes while a plugin is at it does not reach the plugin", func(p *Play) {
		p.start(plugged("10-log"))
		p.hold("plugin", "10-log RUN web/0")
		a := p.within(100*time.Second, web)
		p.arrived("plugin", "10-log RUN web/0")
		p.until("the deadline is near", func() bool {
			if !a.answered() {
				p.advance(time.Second)
			}
			return a.answered() || p.in(web, crikeep.StateCommitted)
		})
		p.release("plugin", "10-log RUN web/0")
		p.become(web, crikeep.StateCommitted)
		p.note("answered 10-log RUN web/0")
		p.is("cancelled", p.count("cancelled"), 0)
	}}, scene{"nor does a caller who goes; the commit goes on", func(p *Play) {
		p.start(plugged("10-log", "20-net"))
		p.hold("plugin", "10-log RUN web/0")
		a := p.create(web)
		p.arrived("plugin", "10-log RUN web/0")
		a.hangUp()
		p.quiet()
		p.is("cancelled", p.count("cancelled"), 0)
		p.release("plugin", "10-log RUN web/0")
		p.become(web, crikeep.StateCommitted)
		p.is("events", p.events("20-net#2", "RUN", web), 1)
		p.yes("the kubelet sees it", p.shows(crikeep.Sandbox, p.entry(web).ID))
	}}, scene{"a caller who went and a runtime that died are no reason to tell a plugin anything again", func(p *Play) {
		p.start(plugged("10-log"))
		p.hold("plugin", "10-log RUN web/0")
		a := p.create(web)
		p.arrived("plugin", "10-log RUN web/0")
		a.hangUp()
		p.again()
		p.create(web).id()
		p.is("cancelled", p.count("cancelled"), 0)
		p.is("events", p.count("plugin 10-log#1 RUN"), 1)
		p.is("ends", p.count("plugin 10-log#1 STOP")+p.count("plugin 10-log#1 REMOVE"), 0)
	}}},
}
