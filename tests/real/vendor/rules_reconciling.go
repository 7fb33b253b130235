// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"crikeep.io/go/crikeep"
)

var cache, queue = pod("cache"), pod("queue")

// K24 to K28: what the runtime lists, and time
var reconciling = []chapter{
	{"K24", scene{"lists that fail end nothing, however long; the first that succeeds tells", func(p *Play) {
		p.start()
		p.settled()
		p.fail("list", "sandbox", 0, codeUnavailable)
		p.fail("made", "web/0", 1, codeUnavailable)
		a := p.create(web)
		p.until("it is lost", func() bool { return p.entry(web).Lost })
		for times := 0; times < 20; times++ { // longer than absence would be borne
			asked := p.count("list sandbox")
			p.passing(2*time.Second, "it is asked for", func() bool { return p.count("list sandbox") > asked })
		}
		p.quiet()
		p.yes("the caller waits, and it is lost", !a.answered() && p.entry(web).Lost)
		p.mend("list", "sandbox")
		p.passing(time.Second, "the caller is answered", a.answered)
		p.is("what exists", p.real(crikeep.Sandbox), []string{a.id()})
	}}, scene{"a list that began before something was committed says nothing of it", func(p *Play) {
		p.start()
		p.settled()
		p.do(Call{Op: "view-open", Kind: crikeep.Sandbox, Name: "early"}) // there is nothing yet
		id := p.made(web)
		kept := p.kept(db)
		p.do(Call{Op: "view-listed", Kind: crikeep.Sandbox, Name: "early"})
		p.yes("both are known", p.in(web, crikeep.StateCommitted) && p.in(db, crikeep.StateKept))
		p.yes("and exist", p.exists(id) && p.exists(kept))
		p.is("the id", p.create(web).id(), id)
	}}, scene{"until the next life's first lists succeed nothing is dropped, cleaned or served", func(p *Play) {
		p.start()
		id := p.made(web)
		p.kept(db)
		p.kept(queue)
		p.fail("destroy", "queue/0", 0, codeInternal)
		p.create(changed(queue)).hangUp()
		p.tried(queue, 1)
		p.again(failing("list", "", codeUnavailable))
		a, b := p.create(web), p.create(db)
		before := p.count("destroy")
		for asked := 0; asked < 4; asked++ {
			n := p.count("list sandbox")
			p.passing(time.Second, "lists are asked for again", func() bool { return p.count("list sandbox") > n })
		}
		p.yes("it says that it does not know yet", !p.do(Call{Op: "entries"}).Yes)
		p.yes("nobody is served", !a.answered() && !b.answered())
		p.become(web, crikeep.StateCommitted) // nothing is dropped
		p.become(db, crikeep.StateKept)
		p.become(queue, crikeep.StateEvicting)
		p.is("tries to destroy", p.count("destroy"), before)
		p.mend("list", "")
		p.passing(time.Second, "both are answered", func() bool { return a.answered() && b.answered() })
		p.is("the id of the committed one", a.id(), id)
		p.passing(time.Second, "what was to go is gone", func() bool { return p.unknown(queue) })
	}}},

	{"K25", scene{"what was answered stays committed over a restart", func(p *Play) {
		p.start()
		id := p.made(web)
		p.close()
		p.start()
		p.settled()
		p.become(web, crikeep.StateCommitted)
		p.yes("the kubelet sees it", p.shows(crikeep.Sandbox, id))
		p.is("the id", p.create(web).id(), id)
	}}, scene{"what was kept stays kept over a restart", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.close()
		p.start()
		p.settled()
		p.become(web, crikeep.StateKept)
		p.hidden(crikeep.Sandbox, id)
		p.is("the id", p.create(web).id(), id)
	}}, scene{"each state goes on as what it was; of another boot all is a leftover", func(p *Play) {
		p.start(plugged("10-log"))
		sandbox := p.made(web)
		main := container("web", sandbox)
		p.kept(db)
		p.kept(queue)
		p.fail("destroy", "queue/0", 0, codeInternal)
		p.create(changed(queue)).hangUp()
		p.tried(queue, 1)
		p.hold("plugin", "10-log RUN web/main/0")
		p.create(main)
		p.arrived("plugin", "10-log RUN web/main/0")
		p.hold("make", "cache/0")
		p.create(cache)
		p.arrived("make", "cache/0")
		states := map[crikeep.State]int{crikeep.StateCommitted: 1, crikeep.StateKept: 1, crikeep.StateEvicting: 1,
			crikeep.StateCommitting: 1, crikeep.StateCreating: 1}
		for state, n := range states {
			p.is(state.String(), p.number(state), n)
		}
		p.again(failing("destroy", "queue/0", codeInternal))
		p.settled()
		p.yes("made: its end is unknown", p.entry(cache).Lost)
		p.yes("committed", p.in(web, crikeep.StateCommitted))
		p.yes("kept", p.in(db, crikeep.StateKept))
		p.yes("told: kept, and known to a plugin", p.in(main, crikeep.StateKept))
		p.yes("being destroyed", p.in(queue, crikeep.StateEvicting) && p.entry(queue).Tries == 1)
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), []string{sandbox})
		p.is("the container", p.create(main).id(), p.real(crikeep.Container)[0])
		p.is("events", p.events("10-log#1", "RUN", main), 1)
		p.create(db).id()
		p.is("events of what was only kept", p.events("10-log#1", "RUN", db), 1)
		p.kept(pod("late"))
		if why := p.reboot(); why != "" {
			p.remarks += "# without another boot: " + why + "\n"
			return
		}
		p.settled()
		for _, w := range []Want{cache, pod("late"), queue} {
			p.passing(time.Second, w.Key()+" is gone", func() bool { return p.unknown(w) })
		}
		p.yes("what was committed is there", p.in(web, crikeep.StateEnded))
		p.create(web).fails(codeAlreadyExists) // the runtime's own word for what it has still
	}}},

	{"K26", scene{"of two results of a lost creation the caller gets the newer when the other is gone", func(p *Play) {
		p.start()
		p.settled()
		p.fail("made", "web/0", 1, codeUnavailable)
		p.hold("destroy", "web/0")
		a := p.create(web)
		p.until("it is lost", func() bool { return p.entry(web).Lost })
		newer := p.plant(web)
		p.passing(250*time.Millisecond, "the other is being destroyed", func() bool { return p.count("destroy web/0") > 0 })
		p.quiet()
		p.yes("nobody has it before", !a.answered())
		p.hidden(crikeep.Sandbox, newer)
		p.release("destroy", "web/0")
		p.is("the id", a.id(), newer)
		p.is("what exists", p.real(crikeep.Sandbox), []string{newer})
	}}, scene{"beside a kept one another of its key is destroyed, and hidden until then", func(p *Play) {
		p.start()
		p.settled()
		id := p.kept(web)
		p.plant(web)
		p.hold("destroy", "web/0")
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), []string{})
		p.arrived("destroy", "web/0")
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), []string{})
		p.release("destroy", "web/0")
		p.is("the id", p.create(web).id(), id)
		p.is("what exists", p.real(crikeep.Sandbox), []string{id})
		second := p.plant(web1) // ready, and of the same uid: only ever spoken of
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), sorted([]string{id, second}))
		p.until("the log tells of two", func() bool { return p.said("WARN", "web attempt", "two objects of one key") })
	}}, scene{"of two results of a creation of the last life the next one hands back the newer", func(p *Play) {
		p.kernelsClock()
		p.start()
		p.hold("made", "web/0")
		p.create(web)
		p.arrived("made", "web/0")
		p.kill()
		newer := p.plant(web)
		p.start()
		a := p.create(web)
		p.passing(250*time.Millisecond, "the caller is answered", a.answered)
		p.is("the id", a.id(), newer)
		p.is("what exists", p.real(crikeep.Sandbox), []string{newer})
	}}},

	{"K27", scene{"what was there before the cache is seen, and given to no request", func(p *Play) {
		id := p.plant(web)
		p.start()
		p.settled()
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), []string{id})
		text := p.create(web).fails(codeAlreadyExists)
		p.yes("it says why: "+text, strings.Contains(text, "before this cache"))
		p.is("creations", p.creations(web), 0)
	}}, scene{"what was there before the cache is not destroyed, however long nobody asks", func(p *Play) {
		id := p.plant(web)
		p.start(plugged("10-log"))
		p.settled()
		p.advance(24 * time.Hour)
		p.made(web1)
		p.advance(24 * time.Hour)
		p.quiet()
		p.yes("it is seen", p.shows(crikeep.Sandbox, id))
		p.is("tries to destroy it", p.count("destroy"), 0)
		p.yes("plugins know of it", has(p.plug("20-net"), web, id, ""))
	}}, scene{"when the database is gone, too, all that exists is seen and left alone", func(p *Play) {
		p.start()
		ids := []string{p.made(web), p.kept(db)}
		p.kill()
		p.forgetAll()
		p.start()
		p.settled()
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), sorted(ids))
		p.advance(time.Hour)
		p.quiet()
		p.is("what exists", p.real(crikeep.Sandbox), sorted(ids))
		p.create(db).fails(codeAlreadyExists)
	}}},

	{"K28", scene{"a deadline is heard of when its margin is reached, by the cache's clock and no other", func(p *Play) {
		p.start()
		p.hold("make", "web/0")
		p.create(web)
		p.arrived("make", "web/0")
		b := p.within(1000*time.Second, web) // begun up to some seconds ago, on a machine that is busy
		p.advance(900 * time.Second)
		p.quiet()
		p.yes("not yet", !b.answered())
		p.advance(99 * time.Second)
		b.busy()
	}}, scene{"each kept one has a time of its own", func(p *Play) {
		p.start()
		p.kept(web)
		p.advance(time.Second)
		p.kept(db)
		p.advance(ttl - time.Second - time.Millisecond)
		p.quiet()
		p.yes("both are there", p.in(web, crikeep.StateKept) && p.in(db, crikeep.StateKept))
		p.advance(51 * time.Millisecond)
		p.gone(web)
		p.become(db, crikeep.StateKept)
		p.advance(time.Second)
		p.gone(db)
	}}, scene{"what has passed of a time is not begun anew by the next life", func(p *Play) {
		p.start()
		p.kept(web)
		p.advance(ttl / 2)
		p.again()
		p.settled()
		p.advance(ttl/2 - time.Millisecond)
		p.quiet()
		p.become(web, crikeep.StateKept)
		p.advance(51 * time.Millisecond)
		p.gone(web)
	}}},
}
