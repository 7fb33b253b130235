// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"crikeep.io/go/crikeep"
)

func (p *Play) state(name string) string { return filepath.Join(p.dir, "state", name) }

// forgetAll is a database that is new, while all that was made still runs.
func (p *Play) forgetAll() { p.no(os.RemoveAll(p.state(""))) }

// otherKey has the next life compare requests under another key.
func (p *Play) otherKey() { p.no(os.Remove(p.state("key"))) }

// scribble writes over what lies in the database's files, from there on.
func (p *Play) scribble(from int64) {
	for _, name := range []string{"crikeep.db", "crikeep.db-wal"} {
		file, err := os.OpenFile(p.state(name), os.O_WRONLY, 0)
		if os.IsNotExist(err) {
			continue
		}
		p.no(err)
		defer file.Close()
		info, err := file.Stat()
		p.no(err)
		if info.Size() > from {
			_, err = file.WriteAt([]byte(strings.Repeat("x", int(info.Size()-from))), from)
			p.no(err)
		}
	}
}

// afresh is a restart after which the database has nothing in its own memory; all of it but its
// head is overwritten then.
func (p *Play) afresh() {
	p.close()
	p.start()
	p.settled()
	p.scribble(4096)
}

// setAside are the damaged databases.
func (p *Play) setAside() int {
	names, err := filepath.Glob(p.state("crikeep.db.damaged-*Z")) // beside them lie their -wal and -shm
	p.no(err)
	return len(names)
}

// full limits the size of the files the runtime may write, so that its database finds no room; 0:
// no limit.
func (p *Play) full(bytes uint64) {
	limit := syscall.Rlimit{Cur: ^uint64(0), Max: ^uint64(0)}
	if bytes != 0 {
		limit.Cur = bytes
	}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.child.Process.Pid), syscall.RLIMIT_FSIZE,
		uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		p.no(errno)
	}
}

// nothing of a page fits into that, but the diary does
const noRoom = 8000

func sorted(ids []string) []string {
	sort.Strings(ids)
	return ids
}

// known is all that the cache knows, without what changes with time.
func (p *Play) known() (all []string) {
	for _, e := range p.do(Call{Op: "entries"}).Entries {
		all = append(all, fmt.Sprint(e.Number, e.Kind, entryKey(e), e.ID, e.PodUID, e.SandboxID, e.State, e.Lost, e.Requests,
			e.Tries, e.Why, e.Stage))
	}
	sort.Strings(all)
	return all
}

// K29 to K33: the database
var storing = []chapter{
	{"K29", scene{"what a caller has been answered is on disk before", func(p *Play) {
		p.start()
		id := p.made(web)
		p.again()
		p.settled()
		p.become(web, crikeep.StateCommitted)
		p.is("the id", p.create(web).id(), id)
	}}, scene{"what is being destroyed is on disk as such before", func(p *Play) {
		p.start()
		p.kept(web)
		p.hold("destroy", "web/0")
		p.expire()
		p.arrived("destroy", "web/0")
		p.again(holding("destroy", "web/0"))
		p.settled()
		p.become(web, crikeep.StateEvicting)
	}}, scene{"what is being made, and what plugins are told, is on disk before they are asked", func(p *Play) {
		p.start(plugged("10-log"))
		p.hold("make", "web/0")
		p.create(web)
		p.arrived("make", "web/0")
		p.hold("plugin", "10-log RUN db/0")
		p.create(db)
		p.arrived("plugin", "10-log RUN db/0")
		p.again()
		p.settled()
		p.yes("made", p.in(web, crikeep.StateUnknown))
		p.become(db, crikeep.StateKept)
		p.create(db).id()
		p.is("events", p.events("10-log#1", "RUN", db), 1)
	}}},

	{"K30", scene{"a repeated request is answered from memory, whatever became of the files", func(p *Play) {
		p.start()
		id := p.made(web)
		hidden := p.kept(db)
		p.afresh()
		p.is("the committed one's id", p.create(web).id(), id)
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), []string{id})
		p.yes("the kept one exists, unseen", p.exists(hidden))
	}}, scene{"what is kept is handed back from memory, whatever became of the files", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.afresh()
		p.is("the id", p.create(web).id(), id)
		p.is("creations", p.creations(web), 1)
	}}, scene{"the next life knows all that the last one had in memory", func(p *Play) {
		p.start(plugged("10-log"))
		sandbox := p.made(web)
		p.told(container("web", sandbox))
		p.kept(db)
		p.kept(queue)
		p.fail("destroy", "queue/0", 0, codeInternal)
		p.create(changed(queue)).hangUp()
		p.tried(queue, 1)
		before := p.known()
		p.again(failing("destroy", "queue/0", codeInternal))
		p.settled()
		p.is("what it knows", strings.Join(p.known(), "\n"), strings.Join(before, "\n"))
	}}},

	{"K31", scene{"what was made under another key is not given to who asks, but made anew", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.kill()
		p.otherKey()
		p.start()
		b := p.create(web).id()
		p.yes("it is another one", b != id)
		p.is("what exists", p.real(crikeep.Sandbox), []string{b})
	}}, scene{"what was made under another key stays until its time is over, if nobody asks", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.kill()
		p.otherKey()
		p.start()
		p.settled()
		p.advance(9 * time.Minute)
		p.quiet()
		p.become(web, crikeep.StateKept)
		p.hidden(crikeep.Sandbox, id)
		p.advance(2 * time.Minute)
		p.gone(web)
		p.yes("it is destroyed", !p.exists(id))
	}}, scene{"a committed one under another key is seen and not destroyed; a kept one goes through a kill", func(p *Play) {
		p.start()
		id := p.made(web)
		p.kept(db)
		p.kill()
		p.otherKey()
		p.start(holding("destroy", "db/0"))
		p.create(web).fails(codeAlreadyExists)
		p.create(db)
		p.arrived("destroy", "db/0")
		p.again()
		b := p.create(db).id()
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), sorted([]string{id, b}))
		p.is("what exists", p.real(crikeep.Sandbox), sorted([]string{id, b}))
	}}},

	{"K32", scene{"a full disk stops no pod: it is made, and answered", func(p *Play) {
		p.start()
		p.settled()
		p.full(noRoom)
		id := p.create(web).id()
		p.is("the id again", p.create(web).id(), id)
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), []string{id})
		p.yes("the log says so", p.said("going on in memory"))
	}}, scene{"what is kept on a disk that is full now is handed over, and that is written when there is room", func(p *Play) {
		p.start()
		id := p.kept(web)
		p.full(noRoom)
		p.is("the id", p.create(web).id(), id)
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), []string{id})
		p.full(0)
		p.advance(1100 * time.Millisecond)
		p.again()
		p.settled()
		p.become(web, crikeep.StateCommitted)
		p.is("creations", p.creations(web), 1)
	}}, scene{"what was made with the disk full is on it when there is room again", func(p *Play) {
		p.start()
		p.settled()
		p.full(noRoom)
		id := p.kept(web)
		other := p.made(db)
		p.full(0)
		p.advance(1100 * time.Millisecond)
		p.again()
		p.settled()
		p.yes("both are known", p.in(web, crikeep.StateKept) && p.in(db, crikeep.StateCommitted))
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), []string{other})
		p.is("the id", p.create(web).id(), id)
	}}},

	{"K33", scene{"damage found for a caller: he is answered, the file is set aside, and nothing else is lost", func(p *Play) {
		p.start()
		id := p.kept(web)
		other := p.kept(db)
		p.afresh()
		b := p.create(changed(web)).id() // in what it differs lies in the database only
		p.is("files set aside", p.setAside(), 1)
		p.is("the id of the other", p.create(db).id(), other)
		p.yes("it is another one", b != id)
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), sorted([]string{b, other}))
		p.is("what exists", p.real(crikeep.Sandbox), sorted([]string{b, other}))
	}}, scene{"damage while results are kept: none is lost or seen, and the next life knows them", func(p *Play) {
		p.start()
		p.kept(web)
		other := p.kept(db)
		p.afresh()
		id := p.kept(changed(web))
		p.is("files set aside", p.setAside(), 1)
		p.hidden(crikeep.Sandbox, id)
		p.hidden(crikeep.Sandbox, other)
		p.again()
		p.is("the ids", []string{p.create(changed(web)).id(), p.create(db).id()}, []string{id, other})
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), sorted([]string{id, other}))
	}}, scene{"damage found by the next life: set aside, nothing is destroyed, and nothing given out twice", func(p *Play) {
		p.start()
		ids := sorted([]string{p.made(web), p.kept(db)})
		p.kill()
		p.scribble(0)
		p.start()
		p.settled()
		p.is("files set aside", p.setAside(), 1)
		p.is("what the kubelet sees", p.list(crikeep.Sandbox), ids)
		p.create(db).fails(codeAlreadyExists)
		p.advance(time.Hour)
		p.quiet()
		p.is("what exists", p.real(crikeep.Sandbox), ids)
	}}},
}
