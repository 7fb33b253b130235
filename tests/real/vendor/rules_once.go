// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"crikeep.io/go/crikeep"
)

// codes of gRPC that callers hear
const (
	codeUnknown      = 2
	codeInvalid      = 3
	codePrecondition = 9
	codeAborted      = 10
	codeInternal     = 13
)

var web, db = pod("web"), pod("db")

// changed is another request for the same, with a difference that matters; relabelled one with a
// difference that does not.
func changed(w Want) Want { w.Hostname += "h"; return w }

func relabelled(w Want, value string) Want {
	w.Labels = map[string]string{"colour": value}
	return w
}

// K1 to K7: one creation, and what becomes of its result
var once = []chapter{
	{"K1", scene{"who asks for the same at once gets the one that is made", func(p *Play) {
		p.kernelsClock()
		p.start()
		p.hold("made", "web/0")
		a := p.create(web)
		p.arrived("made", "web/0")
		b, c := p.create(web), p.short(web)
		p.release("made", "web/0")
		p.is("the second caller's id", b.id(), a.id())
		p.is("the third one's", c.id(), a.id())
		p.is("creations", p.creations(web), 1)
		p.is("what exists", p.real(crikeep.Sandbox), []string{a.id()})
	}}, scene{"when all who asked have gone, the next gets the one that was made", func(p *Play) {
		p.kernelsClock()
		p.start()
		p.hold("made", "web/0")
		a, b := p.short(web), p.create(web)
		p.arrived("made", "web/0")
		a.hangUp()
		b.hangUp()
		p.release("made", "web/0")
		p.become(web, crikeep.StateKept)
		id := p.entry(web).ID
		p.is("the next one's id", p.create(web).id(), id)
		p.is("creations", p.creations(web), 1)
	}}, scene{"a creation in the middle is taken up, and not made twice for two who ask", func(p *Play) {
		p.kernelsClock()
		p.start()
		p.hold("made", "web/0")
		p.create(web)
		p.arrived("made", "web/0")
		p.create(web)
		p.again()
		a, b := p.create(web), p.short(web)
		p.passing(250*time.Millisecond, "both are answered", func() bool { return a.answered() && b.answered() })
		p.is("the second caller's id", b.id(), a.id())
		p.is("creations", p.creations(web), 1)
		p.is("what exists", p.real(crikeep.Sandbox), []string{a.id()})
	}}},

	{"K2", scene{"with more than the margin left the result is the caller's", func(p *Play) {
		p.start()
		p.hold("made", "web/0")
		a := p.within(100*time.Second, web)
		p.arrived("made", "web/0")
		p.advance(60 * time.Second)
		p.release("made", "web/0")
		id := a.id()
		p.become(web, crikeep.StateCommitted)
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), []string{id})
	}}, scene{"in the margin of the only caller the result is kept, and hidden; a sandbox may be offered instead", func(p *Play) {
		p.start()
		p.hold("made", "web/0")
		a := p.within(100*time.Second, web)
		p.arrived("made", "web/0")
		p.advance(99500 * time.Millisecond)
		p.release("made", "web/0")
		a.fails(codeUnavailable)
		p.become(web, crikeep.StateKept)
		p.hidden(crikeep.Sandbox, p.entry(web).ID)
		p.is("what there is for who comes next", p.real(crikeep.Sandbox), []string{p.create(web).id()})
		p.is("creations", p.creations(web), 1)
		p.again(func(s *Settings) { s.HandBack = crikeep.Offer })
		p.hold("made", "db/0")
		b := p.create(db)
		p.arrived("made", "db/0")
		b.hangUp()
		p.release("made", "db/0")
		p.become(db, crikeep.StateCommitted)
		p.yes("the kubelet sees it", p.shows(crikeep.Sandbox, p.entry(db).ID))
		p.kept(container("db", p.entry(db).ID))
	}}, scene{"what was kept is kept and hidden in the next life, too", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.again()
		p.settled()
		p.become(web, crikeep.StateKept)
		p.hidden(crikeep.Sandbox, id)
		p.is("the id for who comes next", p.create(web).id(), id)
		p.is("creations", p.creations(web), 1)
	}}},

	{"K3", scene{"the creator's caller has gone, and the waiter takes the result", func(p *Play) {
		p.needsTurn()
		p.start()
		p.hold("made", "web/0")
		a := p.create(web)
		p.arrived("made", "web/0")
		b := p.create(web)
		a.hangUp()
		p.release("made", "web/0")
		id := b.id()
		p.become(web, crikeep.StateCommitted)
		p.note(fmt.Sprintf("finish %d %v", a.number, crikeep.Kept))
		p.yes("the kubelet sees it", p.shows(crikeep.Sandbox, id))
	}}, scene{"a waiter near its deadline hears the stage, the creator nothing early", func(p *Play) {
		p.start()
		p.hold("make", "web/0")
		a := p.within(100*time.Second, web)
		p.arrived("make", "web/0")
		b := p.within(20*time.Second, web)
		p.advance(19900 * time.Millisecond)
		text := b.busy()
		p.yes("it names the stage: "+text, strings.Contains(text, `"sandbox network creation"`))
		p.yes("the creator's caller waits", !a.answered())
		p.release("make", "web/0")
		a.id()
	}}, scene{"a waiter of the next life hears the stage of the last one", func(p *Play) {
		p.start()
		p.hold("make", "web/0")
		p.create(web)
		p.arrived("make", "web/0")
		p.again()
		p.settled()
		b := p.within(4*time.Second, web)
		p.passing(250*time.Millisecond, "the waiter is answered", b.answered)
		text := b.busy()
		p.yes("it names the stage: "+text, strings.Contains(text, `"sandbox network creation"`))
	}}},

	{"K4", scene{"a failure comes to all who wait, and is not remembered", func(p *Play) {
		p.start()
		p.hold("make", "web/0")
		p.fail("make", "web/0", 1, codeInternal)
		a := p.create(web)
		p.arrived("make", "web/0")
		b, c := p.create(web), p.short(web)
		p.release("make", "web/0")
		for _, call := range []*pending{a, b} {
			text := call.fails(codeInternal)
			p.yes("in the runtime's own words: "+text, strings.Contains(text, "on command"))
		}
		c.get() // it may have come after the failure
		d := p.create(web)
		d.id()
		p.is("the creations", p.creations(web), 2)
	}}, scene{"a failure that nobody hears frees the key", func(p *Play) {
		p.start()
		p.hold("make", "web/0")
		p.fail("make", "web/0", 1, codeInternal)
		a := p.create(web)
		p.arrived("make", "web/0")
		a.hangUp()
		p.release("make", "web/0")
		p.until("nothing is known of it", func() bool { return p.unknown(web) })
		p.create(web).id()
		p.is("creations", p.creations(web), 2)
	}}, scene{"the failure of a creation asked for again is the caller's, and frees the key", func(p *Play) {
		p.start()
		p.hold("make", "web/0")
		p.create(web)
		p.arrived("make", "web/0")
		p.again(failing("make", "web/0", codeInternal))
		a := p.create(web)
		p.passing(time.Second, "it is asked for again", a.answered)
		p.yes("in the runtime's own words", strings.Contains(a.fails(codeInternal), "on command"))
		p.yes("nothing is known of it", p.unknown(web))
		p.mend("make", "web/0")
		p.create(web).id()
		p.is("creations", p.creations(web), 3)
	}}},

	{"K5", scene{"the same request again has the same answer, and no plugin is told twice", func(p *Play) {
		p.start(plugged("10-log"))
		a := p.create(web)
		id := a.id()
		b, c := p.create(web), p.short(web)
		p.is("the second answer", string(b.get().Bytes), string(a.get().Bytes))
		p.is("the third answer", string(c.get().Bytes), string(a.get().Bytes))
		p.yes("it is a message with the id", strings.Contains(string(a.get().Bytes), id))
		p.is("creations", p.creations(web), 1)
		p.is("events", p.count("plugin 10-log#1 RUN"), 1)
	}}, scene{"one that has ended is not handed out; the request waits for its removal", func(p *Play) {
		p.start()
		id := p.made(web)
		p.die(id)
		p.do(Call{Op: "seen", Kind: crikeep.Sandbox, ID: id, Seen: crikeep.Dead})
		p.create(web).fails(codeAlreadyExists) // the runtime's own word for it
		p.is("creations", p.creations(web), 2)
		p.hold("remove", id)
		removal := p.call(Call{Op: "remove", Kind: crikeep.Sandbox, ID: id})
		p.arrived("remove", id)
		b := p.create(web)
		p.quiet()
		p.is("creations during the removal", p.creations(web), 2)
		p.release("remove", id)
		removal.fails(0)
		p.yes("it is another one", b.id() != id)
	}}, scene{"what was answered is answered again in the next life, and no plugin is told twice", func(p *Play) {
		p.start(plugged("10-log"))
		id := p.made(web)
		p.again()
		p.is("the answer", p.create(web).id(), id)
		p.is("creations", p.creations(web), 1)
		p.is("events", p.count("plugin 10-log#1 RUN"), 1)
	}}},

	{"K6", scene{"a kept one is handed back when the runtime says that it lives", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.hold("inspect", "web/0")
		a := p.create(web)
		p.arrived("inspect", "web/0")
		b := p.create(web)
		p.quiet()
		p.yes("nobody has it before", !a.answered() && !b.answered())
		p.hidden(crikeep.Sandbox, id)
		p.release("inspect", "web/0")
		p.is("the ids", []string{a.id(), b.id()}, []string{id, id})
		p.is("questions", p.count("inspect web/0"), 1)
	}}, scene{"while nobody can say whether it lives it stays kept, and is asked for again; the dead go", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.fail("inspect", "web/0", 0, codeUnavailable)
		a := p.within(10*time.Second, web)
		p.passing(500*time.Millisecond, "the caller is answered", a.answered)
		a.busy()
		p.yes("it was asked again and again", p.count("inspect web/0") > 3)
		p.become(web, crikeep.StateKept)
		p.mend("inspect", "web/0")
		p.is("the id for who comes next", p.create(web).id(), id)
		dead := p.kept(db)
		p.die(dead)
		b := p.create(db).id()
		p.yes("one that is found dead is not handed back", b != dead)
		p.is("what exists", p.real(crikeep.Sandbox), sorted([]string{b, id}))
	}}, scene{"one that died with the question under way is never handed back", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.hold("inspect", "web/0")
		p.create(web)
		p.arrived("inspect", "web/0")
		p.kill()
		p.die(id)
		p.start()
		a := p.create(web).id()
		p.yes("it is another one", a != id)
		p.is("what exists", p.real(crikeep.Sandbox), []string{a})
		p.is("creations", p.creations(web), 2)
	}}},

	{"K7", scene{"a container whose answer arrives is committed, and told of once", func(p *Play) {
		p.needsTurn()
		p.start(plugged("10-log"))
		main := container("web", p.made(web))
		a := p.create(main)
		id := a.id()
		p.note(fmt.Sprintf("told %d true", a.number))
		p.become(main, crikeep.StateCommitted)
		p.yes("the kubelet sees it", p.shows(crikeep.Container, id))
		p.is("events", p.count("plugin 10-log#1 RUN web/main/0"), 1)
		p.is("what the runtime heard of it", p.count("committed web/main/0"), 1)
		p.again()
		p.settled()
		p.yes("the next life knows that it arrived", p.in(main, crikeep.StateCommitted) && p.shows(crikeep.Container, id))
	}}, scene{"a container whose answer was lost goes back to KEPT, and is told of once; a sandbox is committed", func(p *Play) {
		p.start(plugged("10-log"))
		p.hold("plugin", "10-log RUN web/0")
		gone := p.create(web)
		p.arrived("plugin", "10-log RUN web/0")
		gone.hangUp()
		p.release("plugin", "10-log RUN web/0")
		p.become(web, crikeep.StateCommitted)
		sandbox := p.entry(web).ID
		p.yes("the kubelet sees the sandbox", p.shows(crikeep.Sandbox, sandbox))
		main := container("web", sandbox)
		id := p.told(main)
		p.hidden(crikeep.Container, id)
		p.is("the id for who comes next", p.made(main), id)
		p.become(main, crikeep.StateCommitted)
		p.yes("the kubelet sees the container", p.shows(crikeep.Container, id))
		p.is("events", p.count("plugin 10-log#1 RUN web/main/0"), 1)
		side := main
		side.Container = "side"
		p.hold("plugin", "10-log RUN web/side/0")
		gone = p.create(side)
		p.arrived("plugin", "10-log RUN web/side/0")
		gone.hangUp()
		p.release("plugin", "10-log RUN web/side/0")
		p.become(side, crikeep.StateKept) // the plugins agreed, and nobody was left
		p.hidden(crikeep.Container, p.entry(side).ID)
		p.made(side)
		p.is("events", p.count("plugin 10-log#1 RUN web/side/0"), 1)
	}}, scene{"a container committed with its answer under way is KEPT in the next life, and told of once", func(p *Play) {
		p.needsTurn()
		p.start(plugged("10-log"))
		main := container("web", p.made(web))
		p.hold("answer", "web/main/0")
		p.create(main)
		p.arrived("answer", "web/main/0")
		p.again()
		p.become(main, crikeep.StateKept)
		id := p.entry(main).ID
		p.hidden(crikeep.Container, id)
		p.is("the id for who comes next", p.made(main), id)
		p.is("events", p.count("plugin 10-log#1 RUN web/main/0"), 1)
		p.is("creations", p.creations(main), 1)
	}}},
}
