// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"crikeep.io/go/crikeep"
)

const ttl = 10 * time.Minute

// expire lets so much time pass that what is kept is given up.
func (p *Play) expire() { p.advance(ttl + time.Second) }

// tried waits for the n-th failed try to destroy it.
func (p *Play) tried(w Want, n uint32) {
	p.until(fmt.Sprintf("%d tries to destroy it have failed", n), func() bool { return p.entry(w).Tries == n })
}

func (p *Play) gone(w Want) { p.until(w.Key()+" is gone", func() bool { return p.unknown(w) }) }

// K17 to K23: giving it up
var destroying = []chapter{
	{"K17", scene{"who comes after it is served when its end is confirmed, not before", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.hold("destroyed", "web/0")
		b := p.create(changed(web))
		p.arrived("destroyed", "web/0")
		p.quiet()
		p.yes("it does not exist", !p.exists(id))
		p.become(web, crikeep.StateEvicting)
		p.is("creations", p.creations(web), 1)
		p.release("destroyed", "web/0")
		p.yes("it is another one", b.id() != id)
	}}, scene{"a destruction that says it failed is confirmed by a list without it", func(p *Play) {
		p.start()
		p.kept(web)
		p.fail("destroyed", "web/0", 1, codeInternal)
		p.expire()
		p.tried(web, 1)
		p.become(web, crikeep.StateEvicting)
		p.list(crikeep.Sandbox)
		p.gone(web)
		p.is("tries", p.count("destroy web/0"), 1)
	}}, scene{"one destroyed when the runtime died is found to be gone, and is forgotten", func(p *Play) {
		p.start()
		p.kept(web)
		p.hold("destroyed", "web/0")
		p.expire()
		p.arrived("destroyed", "web/0")
		p.again()
		p.gone(web)
		p.is("destructions", p.count("destroyed web/0"), 1)
		p.create(web).id()
	}}},

	{"K18", scene{"failed destructions are tried again after growing pauses, one per pod, and who waits is served", func(p *Play) {
		p.start()
		p.kept(web)
		p.fail("destroy", "web/0", 3, codeInternal)
		b := p.create(changed(web))
		for n, pause := uint32(1), time.Second; n <= 3; n, pause = n+1, 2*pause {
			p.tried(web, n)
			p.advance(pause * 85 / 100) // the jitter is an eighth
			p.quiet()
			p.is("tries before the pause is over", p.count("destroy web/0"), n)
			p.advance(pause * 28 / 100)
			p.note2("destroy web/0", int(n)+1)
		}
		p.is("what exists", []string{b.id()}, p.real(crikeep.Sandbox))
		p.kept(db)
		p.hold("destroy", "db/0")
		p.hold("made", "db/1")
		c := p.create(db.attempt(1))
		p.arrived("destroy", "db/0")
		p.advance(20 * time.Second)
		p.arrived("made", "db/1")
		c.hangUp()
		p.release("made", "db/1")
		p.become(db.attempt(1), crikeep.StateKept)
		p.create(db.attempt(2))
		p.become(db.attempt(1), crikeep.StateEvicting)
		p.quiet()
		p.is("a second destruction in the pod", p.count("destroy db/1"), 0)
		p.release("destroy", "db/0")
		p.gone(db.attempt(1))
		p.order("destroyed db/0", "destroy db/1")
	}}, scene{"with nobody waiting it is tried for ever, at most 8 at once, and no answer is a failure", func(p *Play) {
		p.start()
		var wants []Want
		for i := 0; i < 10; i++ {
			wants = append(wants, pod(fmt.Sprintf("pod-%d", i)))
			p.kept(wants[i])
		}
		p.hold("destroy", "")
		p.expire()
		p.until("8 are being destroyed", func() bool { return p.count("destroy") >= 8 })
		p.quiet()
		p.is("at once", p.count("destroy"), 8)
		p.advance(61 * time.Second)
		p.until("those without an answer count as failed, and others have their turn", func() bool { return p.count("destroy") >= 10 })
		p.fail("destroy", "", 0, codeInternal)
		p.release("destroy", "")
		p.passing(30*time.Second, "each was tried 10 times", func() bool {
			for _, w := range wants {
				if p.entry(w).Tries < 10 {
					return false
				}
			}
			return true
		})
		p.is("given up", p.number(crikeep.StateEvicting), 10)
		p.mend("destroy", "")
		p.passing(30*time.Second, "they are gone", func() bool { return len(p.real(crikeep.Sandbox)) == 0 })
	}}, scene{"the tries are counted on in the next life, and so is the pause", func(p *Play) {
		p.start()
		p.kept(web)
		p.fail("destroy", "web/0", 0, codeInternal)
		p.expire()
		for n := uint32(1); n < 4; n++ {
			p.tried(web, n)
			p.passing(time.Second, "the next try", func() bool { return p.entry(web).Tries > n })
		}
		p.again(failing("destroy", "web/0", codeInternal))
		p.settled()
		tries := p.entry(web).Tries
		p.is("tries", tries, 4)
		before := p.count("destroy web/0")
		p.advance(6500 * time.Millisecond) // of 8 s
		p.quiet()
		p.is("tries before the pause is over", p.count("destroy web/0"), before)
		p.advance(3 * time.Second)
		p.tried(web, 5)
	}}},

	{"K19", scene{"who waits for one destruction does not wait for another that fails", func(p *Play) {
		p.start()
		p.kept(web)
		p.kept(db)
		p.fail("destroy", "web/0", 0, codeInternal)
		a := p.create(changed(web))
		p.tried(web, 1)
		p.create(changed(db)).id()
		p.yes("the other waits", !a.answered() && p.in(web, crikeep.StateEvicting))
	}}, scene{"of two that expired one goes, though the other cannot", func(p *Play) {
		p.start()
		p.kept(web)
		p.kept(db)
		p.fail("destroy", "web/0", 0, codeInternal)
		p.expire()
		p.gone(db)
		p.tried(web, 1)
		p.is("what exists", p.real(crikeep.Sandbox), []string{p.entry(web).ID})
	}}, scene{"of two that were being destroyed one goes in the next life, though the other cannot", func(p *Play) {
		p.start()
		p.kept(web)
		p.kept(db)
		p.hold("destroy", "")
		p.expire()
		p.arrived("destroy", "web/0")
		p.arrived("destroy", "db/0")
		p.again(failing("destroy", "web/0", codeInternal))
		p.gone(db)
		p.passing(time.Second, "the other was tried", func() bool { return p.entry(web).Tries >= 1 })
		p.is("what exists", p.real(crikeep.Sandbox), []string{p.entry(web).ID})
	}}},

	{"K20", scene{"what a plugin refused goes: STOP, destroyed, REMOVE, and the caller hears why", func(p *Play) {
		p.start(plugged("10-log", "20-net"))
		p.fail("plugin", "20-net RUN web/0", 1, codeUnknown)
		text := p.create(web).fails(codeUnknown)
		p.yes("it names the plugin: "+text, strings.Contains(text, "plugin 20-net: "))
		p.gone(web)
		for _, plugin := range []string{"10-log#1", "20-net#2"} {
			p.order("plugin "+plugin+" RUN web/0", "plugin "+plugin+" STOP web/0", "destroy web/0", "destroyed web/0",
				"plugin "+plugin+" REMOVE web/0")
		}
		p.create(web).id()
	}}, scene{"what nobody came for, and plugins know of, goes: STOP, destroyed, REMOVE", func(p *Play) {
		p.start(plugged("10-log"))
		main := container("web", p.made(web))
		p.told(main)
		p.fail("plugin", "10-log STOP web/main/0", 1, codeInternal) // whatever anybody answers
		p.fail("destroy", "web/main/0", 2, codeInternal)
		p.expire()
		p.passing(time.Second, "it is gone", func() bool { return p.unknown(main) })
		p.order("plugin 10-log#1 RUN web/main/0", "plugin 10-log#1 STOP web/main/0", "destroy web/main/0", "destroyed web/main/0",
			"plugin 10-log#1 REMOVE web/main/0")
		p.is("STOPs", p.count("plugin 10-log#1 STOP web/main/0"), 1)
		p.is("REMOVEs", p.count("plugin 10-log#1 REMOVE web/main/0"), 1)
	}}, scene{"killed between STOP and the destruction: no second STOP, and REMOVE at the end", func(p *Play) {
		p.start(plugged("10-log"))
		main := container("web", p.made(web))
		p.told(main)
		p.hold("destroy", "web/main/0")
		p.expire()
		p.arrived("destroy", "web/main/0")
		p.again()
		p.gone(main)
		p.order("plugin 10-log#1 RUN web/main/0", "plugin 10-log#1 STOP web/main/0", "destroy web/main/0",
			"plugin 10-log#1 SYNC", "destroyed web/main/0", "plugin 10-log#1 REMOVE web/main/0")
		p.is("STOPs", p.count("plugin 10-log#1 STOP web/main/0"), 1)
		p.is("REMOVEs", p.count("plugin 10-log#1 REMOVE web/main/0"), 1)
	}}},

	{"K21", scene{"a list that was read before a kept one went does not show it, nor does the next", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.do(Call{Op: "view-open", Kind: crikeep.Sandbox, Name: "early"})
		p.create(changed(web)).id()
		p.yes("it is gone", !p.exists(id))
		p.is("what the early list shows", p.do(Call{Op: "view-shown", Name: "early"}).IDs, []string{})
		p.do(Call{Op: "view-open", Kind: crikeep.Sandbox, Name: "late", ID: "early"})
		p.is("what a late one of what was read early shows", p.do(Call{Op: "view-shown", Name: "late"}).IDs, []string{})
	}}, scene{"a list that takes minutes does not show what expired meanwhile", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.do(Call{Op: "view-open", Kind: crikeep.Sandbox, Name: "slow"})
		p.expire()
		p.gone(web)
		p.advance(5 * time.Minute)
		p.quiet()
		p.is("what it shows", p.do(Call{Op: "view-shown", Name: "slow"}).IDs, []string{})
		p.do(Call{Op: "view-close", Name: "slow"})
		p.advance(2 * time.Minute)
		p.advance(2 * time.Minute)
		p.do(Call{Op: "view-open", Kind: crikeep.Sandbox, Name: "later", ID: "slow"})
		p.is("what is known of it for ever", p.do(Call{Op: "view-shown", Name: "later"}).IDs, []string{id})
	}}, scene{"an id that was destroyed is hidden in the next life, too, for a minute", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.expire()
		p.gone(web)
		p.again()
		p.settled()
		_, err := p.store.Make(web, id) // as in a list that was read long ago
		p.no(err)
		p.advance(30 * time.Second)
		p.is("what a list shows", p.list(crikeep.Sandbox), []string{})
		p.advance(31 * time.Second)
		p.quiet()
		p.is("what a list shows when it cannot be older", p.list(crikeep.Sandbox), []string{id})
	}}},

	{"K22", scene{"a kept sandbox in which somebody's container runs is not destroyed for a changed request", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.run(p.plant(container("web", id)))
		p.create(changed(web)).fails(codeAlreadyExists)
		p.become(web, crikeep.StateCommitted)
		p.yes("it exists, and is seen", p.exists(id) && p.shows(crikeep.Sandbox, id))
		p.is("tries to destroy it", p.count("destroy"), 0)
	}}, scene{"nor when its time is over; and while nobody can say, it waits", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.run(p.plant(container("web", id)))
		p.fail("list", "container", 0, codeUnavailable)
		p.expire()
		p.tried(web, 1)
		p.passing(time.Second, "it was asked for again", func() bool { return p.entry(web).Tries > 2 })
		p.is("tries to destroy it", p.count("destroy"), 0)
		p.mend("list", "container")
		p.passing(time.Second, "it is committed", func() bool { return p.in(web, crikeep.StateCommitted) })
		p.yes("it exists, and is seen", p.exists(id) && p.shows(crikeep.Sandbox, id))
		p.is("tries to destroy it", p.count("destroy"), 0)
	}}, scene{"nor in the next life, if somebody took it meanwhile", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.fail("list", "container", 0, codeUnavailable)
		p.expire()
		p.tried(web, 1)
		p.kill()
		p.run(p.plant(container("web", id)))
		p.start()
		p.passing(time.Second, "it is committed", func() bool { return p.in(web, crikeep.StateCommitted) })
		p.yes("it exists, and is seen", p.exists(id) && p.shows(crikeep.Sandbox, id))
		p.is("tries to destroy it", p.count("destroy"), 0)
	}}},

	{"K23", scene{"what is being destroyed is not given to the request that it was made for", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.hold("destroy", "web/0")
		b := p.create(changed(web))
		p.arrived("destroy", "web/0")
		c := p.create(web)
		p.quiet()
		p.yes("nobody is served", !b.answered() && !c.answered())
		p.release("destroy", "web/0")
		p.yes("it is another one", c.id() != id)
		b.fails(codeAborted)
	}}, scene{"what was finished when nobody may have it any more is destroyed, not served", func(p *Play) {
		p.start()
		p.hold("made", "web/0")
		a := p.create(web)
		p.arrived("made", "web/0")
		a.hangUp()
		late := p.real(crikeep.Sandbox)[0]
		b := p.create(web1)
		c := p.create(web) // the kubelet moves on once more, back
		p.release("made", "web/0")
		b.fails(codeAborted)
		p.yes("it is another one", c.id() != late)
		p.is("what exists", p.real(crikeep.Sandbox), []string{c.id()})
		p.order("made sandbox web/0 "+late, "destroyed web/0 "+late)
	}}, scene{"what was being destroyed when the runtime died is not served by the next life", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.hold("destroy", "web/0")
		p.expire()
		p.arrived("destroy", "web/0")
		p.again()
		c := p.create(web).id()
		p.yes("it is another one", c != id)
		p.is("what exists", p.real(crikeep.Sandbox), []string{c})
	}}},
}
