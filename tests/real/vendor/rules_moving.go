// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"crikeep.io/go/crikeep"
)

var web1 = web.attempt(1)

// K8: nobody knows how it ends
var unknown = []chapter{
	{"K8", scene{"a creation whose end is unknown is asked for by name, and its caller gets it", func(p *Play) {
		p.start()
		p.fail("made", "web/0", 1, codeUnavailable)
		a := p.create(web)
		p.until("it is lost", func() bool { return p.entry(web).Lost })
		p.yes("the caller has not heard that it failed", !a.answered())
		p.passing(250*time.Millisecond, "the caller is answered", a.answered)
		p.is("what exists", p.real(crikeep.Sandbox), []string{a.id()})
		p.is("creations", p.creations(web), 1)
	}}, scene{"with nobody waiting, absence counts when the creation's own time is over", func(p *Play) {
		p.start()
		p.hold("make", "web/0")
		p.fail("make", "web/0", 1, codeUnavailable)
		a := p.create(web)
		p.arrived("make", "web/0")
		a.hangUp()
		p.release("make", "web/0")
		p.until("it is lost", func() bool { return p.entry(web).Lost })
		p.advance(10 * time.Minute)
		p.quiet()
		p.yes("it is lost still", p.entry(web).Lost)
		p.passing(20*time.Second, "it is given up", func() bool { return p.unknown(web) })
		p.create(web).id()
	}}, scene{"a creation that died with the runtime is asked for once more", func(p *Play) {
		p.start()
		p.hold("make", "web/0")
		p.create(web)
		p.arrived("make", "web/0")
		p.again()
		p.settled()
		p.yes("it is lost", p.entry(web).Lost)
		a := p.create(web)
		passed := p.passing(250*time.Millisecond, "the caller is answered", a.answered)
		p.yes("not before it was absent for 5 s: "+passed.String(), passed > 5*time.Second)
		p.is("what exists", p.real(crikeep.Sandbox), []string{a.id()})
		p.is("creations", p.creations(web), 2)
	}}},
}

// K9 to K16: the kubelet has moved on
var moving = []chapter{
	{"K9", scene{"the next attempt ends the one that is being made, and whoever waits for it hears so at once", func(p *Play) {
		p.start()
		p.hold("made", "web/0")
		a := p.create(web)
		p.arrived("made", "web/0")
		b := p.create(web1)
		a.fails(codeAborted)
		p.release("made", "web/0")
		id := b.id()
		p.until("the first one is gone", func() bool { return p.unknown(web) })
		p.is("what exists", p.real(crikeep.Sandbox), []string{id})
	}}, scene{"the next attempt, or another pod of the name, ends a kept one; a request read too late ends nothing", func(p *Play) {
		p.start()
		p.kept(web)
		p.call(Call{Op: "create", Want: web1, Expired: true}).fails(codeDeadline)
		p.become(web, crikeep.StateKept)
		p.kept(web1)
		p.until("the first attempt is gone", func() bool { return p.unknown(web) })
		other := web
		other.UID = "u-2"
		id := p.made(other)
		p.until("the second attempt is gone", func() bool { return p.unknown(web1) })
		p.is("what exists", p.real(crikeep.Sandbox), []string{id})
	}}, scene{"what was being made in the last life is ended by the next attempt in this one", func(p *Play) {
		p.start()
		p.hold("made", "web/0")
		p.create(web)
		p.arrived("made", "web/0")
		p.again()
		b := p.create(web1)
		p.passing(250*time.Millisecond, "the next attempt is answered", b.answered)
		p.until("the first one is gone", func() bool { return p.unknown(web) })
		p.is("what exists", p.real(crikeep.Sandbox), []string{b.id()})
		p.order("made sandbox web/0", "destroy web/0", "destroyed web/0")
	}}},

	{"K10", scene{"the new sandbox is made as soon as the old one has stopped", func(p *Play) {
		p.start()
		p.kept(web)
		p.hold("destroy", "web/0")
		p.hold("stopped", "web/0")
		b := p.create(web1)
		p.arrived("destroy", "web/0")
		p.quiet()
		p.is("creations while ports may be taken", p.creations(web1), 0)
		p.release("destroy", "web/0")
		p.arrived("stopped", "web/0")
		b.id() // the removal is not over
		p.become(web, crikeep.StateEvicting)
		p.release("stopped", "web/0")
		p.until("the old one is gone", func() bool { return p.unknown(web) })
	}}, scene{"an old one that does not stop is waited for only so long", func(p *Play) {
		p.start()
		p.kept(web)
		p.hold("destroy", "web/0")
		b := p.create(web1)
		p.arrived("destroy", "web/0")
		p.advance(19 * time.Second)
		p.quiet()
		p.is("creations after 19 s", p.creations(web1), 0)
		p.advance(time.Second)
		p.yes("it is another one", b.id() != p.entry(web).ID)
		p.release("destroy", "web/0")
		p.until("the old one is gone", func() bool { return p.unknown(web) })
		p.is("what exists", p.real(crikeep.Sandbox), []string{b.id()})
	}}, scene{"an old one that was being stopped is waited for in the next life, too", func(p *Play) {
		p.start()
		p.kept(web)
		p.hold("destroy", "web/0")
		p.create(web1)
		p.arrived("destroy", "web/0")
		p.again(holding("destroy", "web/0"))
		b := p.create(web1)
		p.arrived("destroy", "web/0")
		p.quiet()
		p.is("creations while ports may be taken", p.creations(web1), 0)
		p.release("destroy", "web/0")
		p.until("the old one is gone", func() bool { return p.unknown(web) })
		p.is("what exists", []string{b.id()}, p.real(crikeep.Sandbox))
	}}},

	{"K11", scene{"a changed request waits for the creation, and the result is compared with the newest", func(p *Play) {
		p.start()
		p.hold("made", "web/0")
		a := p.create(web)
		p.arrived("made", "web/0")
		b := p.create(changed(web))
		p.quiet()
		p.yes("nothing is abandoned meanwhile", !a.answered() && p.in(web, crikeep.StateCreating))
		p.release("made", "web/0")
		a.fails(codeAborted)
		p.is("what exists", []string{b.id()}, p.real(crikeep.Sandbox))
		p.is("creations", p.creations(web), 2)
	}}, scene{"a kept one is destroyed for a changed request, which has its own made", func(p *Play) {
		p.start()
		id := p.kept(web)
		b := p.create(changed(web)).id()
		p.yes("it is another one", b != id)
		p.is("what exists", p.real(crikeep.Sandbox), []string{b})
		p.order("made sandbox web/0 "+id, "destroyed web/0 "+id, "made sandbox web/0 "+b)
	}}, scene{"a committed one of the last life is not given to a changed request, which hears the difference", func(p *Play) {
		p.start()
		p.hold("answer", "web/0")
		p.create(web)
		p.arrived("answer", "web/0")
		p.again()
		w := web
		w.Hostname = "a-secret-name"
		text := p.create(w).fails(codeAlreadyExists)
		p.yes("it names the path: "+text, strings.Contains(text, "hostname"))
		p.yes("and no value: "+text, !strings.Contains(text, "secret"))
		p.is("creations", p.creations(web), 1)
	}}},

	{"K12", scene{"labels that change during a creation cost it once, and then no more", func(p *Play) {
		p.start()
		p.hold("made", "web/0")
		p.create(web)
		p.arrived("made", "web/0")
		b := p.create(relabelled(web, "red"))
		p.hold("make", "web/0")
		p.release("made", "web/0")
		p.arrived("make", "web/0")
		c := p.create(relabelled(web, "blue"))
		p.release("make", "web/0")
		p.is("the ids", c.id(), b.id())
		p.is("creations", p.creations(web), 2)
	}}, scene{"labels that change while it is kept cost it once, and then no more", func(p *Play) {
		p.start()
		p.kept(web)
		id := p.kept(relabelled(web, "red"))
		p.is("creations", p.creations(web), 2)
		p.is("the id for other labels", p.create(relabelled(web, "blue")).id(), id)
		p.is("creations", p.creations(web), 2)
	}}, scene{"that labels cost it once already is known in the next life", func(p *Play) {
		p.start()
		p.kept(web)
		id := p.kept(relabelled(web, "red"))
		p.again()
		p.is("the id for other labels", p.create(relabelled(web, "blue")).id(), id)
		p.is("creations", p.creations(web), 2)
	}}},

	{"K13", scene{"moving on while plugins are being told: the rest is not asked, who was told hears the end", func(p *Play) {
		p.start(plugged("10-log", "20-net"))
		p.hold("plugin", "10-log RUN web/0")
		a := p.create(web)
		p.arrived("plugin", "10-log RUN web/0")
		b := p.create(web1)
		a.fails(codeAborted)
		p.quiet()
		p.is("destroyed while a plugin is at it", p.count("destroy web/0"), 0)
		p.release("plugin", "10-log RUN web/0")
		b.id()
		p.until("the first one is gone", func() bool { return p.unknown(web) })
		p.order("plugin 10-log#1 RUN web/0", "plugin 10-log#1 STOP web/0", "destroyed web/0", "plugin 10-log#1 REMOVE web/0")
		p.order("plugin 10-log#1 STOP web/0", "plugin 10-log#1 RUN web/1")
		for _, event := range []string{"RUN", "STOP", "REMOVE"} {
			p.is(event+" of what it was not told", p.count("plugin 20-net#2 "+event+" web/0"), 0)
		}
	}}, scene{"the same with the first caller gone", func(p *Play) {
		p.start(plugged("10-log"))
		p.hold("plugin", "10-log RUN web/0")
		a := p.create(web)
		p.arrived("plugin", "10-log RUN web/0")
		a.hangUp()
		b := p.create(changed(web))
		p.release("plugin", "10-log RUN web/0")
		b.id()
		p.order("plugin 10-log#1 RUN web/0", "plugin 10-log#1 STOP web/0", "destroyed web/0", "plugin 10-log#1 REMOVE web/0",
			"plugin 10-log#1 RUN web/0")
		p.is("what exists", p.real(crikeep.Sandbox), []string{b.id()})
	}}, scene{"who was being told when the runtime died hears the end from the next life", func(p *Play) {
		p.start(plugged("10-log"))
		p.hold("plugin", "10-log RUN web/0")
		p.create(web)
		p.arrived("plugin", "10-log RUN web/0")
		p.again()
		b := p.create(web1)
		b.id()
		p.until("the first one is gone", func() bool { return p.unknown(web) })
		p.order("plugin 10-log#1 RUN web/0", "plugin 10-log#1 SYNC", "plugin 10-log#1 STOP web/0", "destroyed web/0",
			"plugin 10-log#1 REMOVE web/0")
		p.is("what exists", p.real(crikeep.Sandbox), []string{b.id()})
	}}},

	{"K14", scene{"who comes after a destruction gets his own when it succeeds; of two the newest", func(p *Play) {
		p.start()
		p.kept(web)
		p.fail("destroy", "web/0", 1, codeInternal)
		b := p.create(changed(web))
		p.until("a try has failed", func() bool { return p.entry(web).Tries == 1 })
		c := p.create(changed(changed(web)))
		p.passing(500*time.Millisecond, "the newest is answered", c.answered)
		p.is("what exists", p.real(crikeep.Sandbox), []string{c.id()})
		b.fails(codeAborted)
		p.is("tries", p.count("destroy web/0"), 2)
		p.is("creations", p.creations(web), 2)
	}}, scene{"who comes after a destruction that fails hears by his deadline which try, and why", func(p *Play) {
		p.start()
		p.kept(web)
		p.fail("destroy", "web/0", 0, codeInternal)
		b := p.within(20*time.Second, changed(web))
		p.passing(500*time.Millisecond, "the caller is answered", b.answered)
		text := b.fails(codeUnavailable)
		p.yes("it says so: "+text, strings.Contains(text, "removing the earlier result, try ") && strings.Contains(text, ": INTERNAL"))
		p.is("creations", p.creations(web), 1)
	}}, scene{"who comes after a destruction of the last life gets his own when it succeeds", func(p *Play) {
		p.start()
		p.kept(web)
		p.fail("destroy", "web/0", 0, codeInternal)
		p.create(changed(web))
		p.until("a try has failed", func() bool { return p.entry(web).Tries == 1 })
		p.again()
		p.settled()
		p.is("successors that are rows", p.number(crikeep.StateCreating), 0)
		c := p.create(web) // the same as what is being destroyed
		p.passing(500*time.Millisecond, "the caller is answered", c.answered)
		p.is("what exists", p.real(crikeep.Sandbox), []string{c.id()})
		p.is("creations", p.creations(web), 2)
	}}},

	{"K15", scene{"just before its time is over a kept one is handed back", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.advance(10*time.Minute - time.Second)
		p.is("the id", p.create(web).id(), id)
		p.advance(time.Hour)
		p.quiet()
		p.yes("a committed one has no such time", p.in(web, crikeep.StateCommitted) && p.exists(id))
	}}, scene{"when nobody came for 10 minutes it is destroyed; who asked in vain began them anew", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.advance(9 * time.Minute)
		p.fail("inspect", "web/0", 0, codeUnavailable)
		p.create(web).hangUp()
		p.advance(9 * time.Minute)
		p.quiet()
		p.become(web, crikeep.StateKept)
		p.advance(61 * time.Second)
		p.mend("inspect", "web/0")
		p.passing(time.Second, "it is gone", func() bool { return p.unknown(web) })
		p.yes("it is destroyed", !p.exists(id))
	}}, scene{"its time goes on in the next life, but nothing expires in the first minute", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.advance(9 * time.Minute)
		p.kill()
		p.settings.Clock += time.Hour // it was down for long
		p.start()
		p.settled()
		p.advance(59 * time.Second)
		p.quiet()
		p.become(web, crikeep.StateKept)
		passed := p.passing(250*time.Millisecond, "it is gone", func() bool { return p.unknown(web) })
		p.yes("soon: "+passed.String(), passed < time.Minute)
		p.yes("it is destroyed", !p.exists(id))
	}}},

	{"K16", scene{"a sandbox that stops ends the creation in it, and refuses the next", func(p *Play) {
		p.start()
		sandbox := p.made(web)
		main := container("web", sandbox)
		p.hold("made", "web/main/0")
		a := p.create(main)
		p.arrived("made", "web/main/0")
		p.do(Call{Op: "stop", ID: sandbox})
		a.fails(codeAborted)
		p.create(main.attempt(1)).fails(codePrecondition)
		removal := p.call(Call{Op: "remove", Kind: crikeep.Sandbox, ID: sandbox})
		p.quiet()
		p.yes("the removal waits for the creation", p.count("remove") == 0)
		p.release("made", "web/main/0")
		removal.fails(0)
		p.order("stop "+sandbox, "destroyed web/main/0", "remove "+sandbox)
		p.yes("nothing is left", len(p.real(crikeep.Container))+len(p.real(crikeep.Sandbox)) == 0)
	}}, scene{"a sandbox that stops ends what is kept in it", func(p *Play) {
		p.start()
		sandbox := p.made(web)
		main := container("web", sandbox)
		p.kept(main)
		p.do(Call{Op: "stop", ID: sandbox})
		p.until("the container is gone", func() bool { return p.unknown(main) })
		p.is("containers", len(p.real(crikeep.Container)), 0)
		p.create(main).fails(codePrecondition)
	}}, scene{"what was being made in it in the last life is destroyed before it is removed in this one", func(p *Play) {
		p.start()
		sandbox := p.made(web)
		main := container("web", sandbox)
		p.hold("made", "web/main/0")
		p.create(main)
		p.arrived("made", "web/main/0")
		p.again()
		p.settled()
		p.do(Call{Op: "stop", ID: sandbox})
		removal := p.call(Call{Op: "remove", Kind: crikeep.Sandbox, ID: sandbox, Timeout: 100 * time.Second})
		p.passing(250*time.Millisecond, "the removal ends", removal.answered)
		removal.fails(0)
		p.order("made container web/main/0", "destroyed web/main/0", "remove "+sandbox)
		p.yes("nothing is left", len(p.real(crikeep.Container))+len(p.real(crikeep.Sandbox)) == 0)
	}}},
}
