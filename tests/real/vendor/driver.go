// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"crikeep.io/go/crikeep"
)

// objectLife ends what a test that was killed has left behind.
const objectLife = 600

// A Play is one scenario's stage: a directory, the runtime as a child process, one life after the
// other, and the truth, which is read from the directory behind the runtime's back.
type Play struct {
	dir      string
	settings Settings
	patience time.Duration // for what has to come at once, on a machine that may be busy
	child    *exec.Cmd
	ended    chan struct{}
	store    *Store
	byDo     bool     // requests go through Cache.Do
	wrapper  []string // what the runtime is started through
	remarks  string   // for people

	mu    sync.Mutex
	calls int
}

// wrong ends a scenario.
type wrong struct{ what string }

func (p *Play) wrong(format string, args ...any) { panic(wrong{fmt.Sprintf(format, args...)}) }

// is checks.
func (p *Play) is(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.wrong("%s: %v, not %v", what, got, want)
	}
}

// yes checks, too.
func (p *Play) yes(what string, got bool) {
	if !got {
		p.wrong("not so: %s", what)
	}
}

// no checks that an error is none; of the stage, mostly.
func (p *Play) no(err error) {
	if err != nil {
		p.wrong("%v", err)
	}
}

// ---- lives --------------------------------------------------------------------------------------

// start begins a life of the runtime. What a life is told, the next one is not, but for its
// plugins.
func (p *Play) start(changes ...func(*Settings)) {
	p.settings.Rules = nil
	for _, change := range changes {
		change(&p.settings)
	}
	self, err := os.Executable()
	p.no(err)
	command := append(append([]string{}, p.wrapper...), self, "serve", p.dir, p.settings.flag())
	p.child = exec.Command(command[0], command[1:]...)
	p.child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.child.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // else each end in order takes a second
	stderr, err := os.OpenFile(filepath.Join(p.dir, "stderr"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	p.no(err)
	defer stderr.Close()
	p.child.Stderr = stderr
	stdout, err := p.child.StdoutPipe()
	p.no(err)
	p.no(p.child.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	ended := make(chan struct{})
	p.ended = ended
	child := p.child
	go func() {
		io.Copy(io.Discard, stdout)
		child.Wait()
		close(ended)
	}()
	if err != nil || line != "ready\n" {
		p.wrong("the runtime does not start")
	}
}

// kill is kill -9, in the middle of it.
func (p *Play) kill() {
	if p.child != nil {
		p.child.Process.Kill()
		<-p.ended
		p.child = nil
	}
}

// close ends a life in order.
func (p *Play) close() {
	p.do(Call{Op: "close"})
	<-p.ended
	p.is("the runtime's end", p.child.ProcessState.ExitCode(), 0)
	p.child = nil
}

// again is kill -9 and another life.
func (p *Play) again(changes ...func(*Settings)) {
	p.kill()
	p.start(changes...)
}

// reboot is kill -9 of everything, and a life with another boot id. Why it cannot be played here,
// or "".
func (p *Play) reboot() string {
	p.kill()
	objects, err := os.ReadDir(p.store.path(""))
	p.no(err)
	for _, o := range objects {
		p.die(o.Name())
	}
	boot := filepath.Join(p.dir, "boot_id")
	p.no(os.WriteFile(boot, []byte("01234567-89ab-cdef-0123-456789abcdef\n"), 0o644))
	mount := "mount --bind '" + boot + "' /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\""
	wrapper := []string{"unshare", "--mount", "sh", "-c", mount}
	if os.Geteuid() != 0 {
		wrapper = []string{"unshare", "--mount", "--map-root-user", "sh", "-c", mount}
	}
	if said, err := exec.Command(wrapper[0], append(wrapper[1:], "true")...).CombinedOutput(); err != nil {
		return strings.Join(strings.Fields(string(said)+" "+err.Error()), " ")
	}
	p.wrapper = wrapper
	p.start()
	return ""
}

// settled waits for the first lists of a life.
func (p *Play) settled() {
	p.until("the first lists are done", func() bool { return p.do(Call{Op: "entries"}).Yes })
}

// the changes to the settings of a life
func holding(point, target string) func(*Settings) {
	return func(s *Settings) { s.Rules = append(s.Rules, &Rule{Point: point, Target: target, Hold: true}) }
}

func failing(point, target string, code uint32) func(*Settings) {
	return func(s *Settings) {
		s.Rules = append(s.Rules, &Rule{Point: point, Target: target, Code: code, Text: "on command"})
	}
}

func plugged(names ...string) func(*Settings) {
	return func(s *Settings) { s.Plugins = append([]string{}, names...) }
}

func requiring(names ...string) func(*Settings) {
	return func(s *Settings) { s.Required = names }
}

// ---- calls --------------------------------------------------------------------------------------

// pending is a call whose answer is waited for, or not.
type pending struct {
	p      *Play
	number int
	conn   net.Conn
	answer chan *Answer // nil: none came
}

func (p *Play) call(call Call) *pending {
	conn, err := net.Dial("unix", filepath.Join(p.dir, "socket"))
	p.no(err)
	p.mu.Lock()
	p.calls++
	call.Number = p.calls
	p.mu.Unlock()
	c := &pending{p, call.Number, conn, make(chan *Answer, 1)}
	p.no(json.NewEncoder(conn).Encode(call))
	go func() {
		defer conn.Close()
		answer := &Answer{}
		if json.NewDecoder(conn).Decode(answer) != nil {
			answer = nil
		}
		c.answer <- answer
	}()
	return c
}

// get is the answer, or nil if the runtime was killed before.
func (c *pending) get() *Answer {
	select {
	case answer := <-c.answer:
		c.answer <- answer
		return answer
	case <-time.After(c.p.patience):
		c.p.wrong("call %d is not answered", c.number)
		return nil
	}
}

func (c *pending) answered() bool { return len(c.answer) > 0 }

// id is that of a call that succeeds.
func (c *pending) id() string {
	answer := c.get()
	if answer == nil || answer.Code != 0 || answer.Text != "" || answer.ID == "" {
		c.p.wrong("call %d is answered %s", c.number, answer)
	}
	return answer.ID
}

// fails is the text of a call that comes back with that code.
func (c *pending) fails(code uint32) string {
	answer := c.get()
	if answer == nil || answer.Code != code {
		c.p.wrong("call %d is answered %s, not with code %d", c.number, answer, code)
	}
	return answer.Text
}

// busy is the text of a call that hears in time that it cannot be answered in time.
func (c *pending) busy() string {
	answer := c.get()
	if answer == nil || !answer.Busy {
		c.p.wrong("call %d is answered %s, not that it is under way", c.number, answer)
	}
	return answer.Text
}

func (a *Answer) String() string {
	if a == nil {
		return "nothing"
	}
	return fmt.Sprintf("id %.8q code %d busy %t %q", a.ID, a.Code, a.Busy, a.Text)
}

// hangUp is a caller who goes; the cache knows of it when this returns.
func (c *pending) hangUp() {
	c.conn.Close()
	c.p.note(fmt.Sprintf("left %d", c.number))
}

// create is a request of a kubelet that has begun: it makes, waits or is answered.
func (p *Play) create(w Want) *pending { return p.ask(Call{Op: "create", Want: w}) }

// within is one with a deadline.
func (p *Play) within(timeout time.Duration, w Want) *pending {
	return p.ask(Call{Op: "create", Want: w, Timeout: timeout})
}

// short is one that the runtime passes through Do.
func (p *Play) short(w Want) *pending { return p.ask(Call{Op: "create", Want: w, Name: "do"}) }

func (p *Play) ask(call Call) *pending {
	if p.byDo {
		call.Name = "do"
	}
	c := p.call(call)
	mark := fmt.Sprintf("begun %d", c.number)
	p.until("the request is read", func() bool { return c.answered() || p.count(mark) > 0 })
	return c
}

// do is a call to the runtime that is answered at once.
func (p *Play) do(call Call) Answer {
	answer := p.call(call).get()
	if answer == nil || answer.Code != 0 || answer.Text != "" {
		p.wrong("%s: %s", call.Op, answer)
	}
	return *answer
}

func (p *Play) hold(point, target string) {
	p.do(Call{Op: "hold", Rule: &Rule{Point: point, Target: target, Hold: true}})
}

func (p *Play) fail(point, target string, times int, code uint32) {
	p.do(Call{Op: "fail", Rule: &Rule{Point: point, Target: target, Times: times, Code: code, Text: "on command"}})
}

func (p *Play) release(point, target string) {
	p.do(Call{Op: "release", Rule: &Rule{Point: point, Target: target, Hold: true}})
}

func (p *Play) mend(point, target string) {
	p.do(Call{Op: "release", Rule: &Rule{Point: point, Target: target}})
}

func (p *Play) arrived(point, target string) {
	p.do(Call{Op: "arrived", Rule: &Rule{Point: point, Target: target}, N: 1})
}

// made makes what is asked for, for a caller who is there.
func (p *Play) made(w Want) string { return p.create(w).id() }

// kept has something made whose caller has gone when it exists.
func (p *Play) kept(w Want) string {
	p.hold("made", w.Key())
	call := p.create(w)
	p.arrived("made", w.Key())
	call.hangUp()
	p.release("made", w.Key())
	p.become(w, crikeep.StateKept)
	return p.entry(w).ID
}

// needsTurn ends a scenario that Do cannot play: it takes every answer it returns in time for
// delivered, and tells no outcomes.
func (p *Play) needsTurn() {
	if p.byDo {
		panic(needsTurn{})
	}
}

type needsTurn struct{}

// told has a container made whose answer was lost: plugins know of it, the kubelet does not.
func (p *Play) told(w Want) string {
	p.needsTurn()
	p.hold("answer", w.Key())
	call := p.create(w)
	p.arrived("answer", w.Key())
	call.hangUp()
	p.release("answer", w.Key())
	p.become(w, crikeep.StateKept)
	return p.entry(w).ID
}

// ---- waiting, and time --------------------------------------------------------------------------

// until waits for what has to come without any time passing on the runtime's clock.
func (p *Play) until(what string, so func() bool) {
	for began := time.Now(); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Since(began) > p.patience {
			p.wrong("it never came: %s", what)
		}
	}
}

// kernelsClock has time pass by itself from the start on, as it does for a vendor.
func (p *Play) kernelsClock() { p.settings.Clock = 0 }

// passing waits for what has to come while time passes, step by step, if it does not by itself.
func (p *Play) passing(step time.Duration, what string, so func() bool) (passed time.Duration) {
	if p.settings.Clock == 0 {
		began := time.Now()
		p.until(what, so)
		return time.Since(began)
	}
	p.until(what, func() bool {
		if so() {
			return true
		}
		p.advance(step)
		passed += step
		p.quiet()
		return so()
	})
	return passed
}

// advance lets time pass at once.
func (p *Play) advance(by time.Duration) {
	p.settings.Clock += by
	p.do(Call{Op: "advance", By: by})
}

// quiet gives what is under way a moment to go on. Nothing depends on it being long enough: what
// comes later is only seen later.
func (p *Play) quiet() {
	for before := -1; before != len(p.diary()); time.Sleep(15 * time.Millisecond) {
		before = len(p.diary())
	}
}

// note waits for a line of the diary.
func (p *Play) note(line string) {
	p.until(fmt.Sprintf("%q in the diary", line), func() bool { return p.count(line) > 0 })
}

// ---- what is true -------------------------------------------------------------------------------

func (p *Play) diary() []string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "diary"))
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// lines are those of the diary that begin with these words.
func (p *Play) lines(begin string) (lines []string) {
	for _, line := range p.diary() {
		if line == begin || strings.HasPrefix(line, begin+" ") {
			lines = append(lines, line)
		}
	}
	return lines
}

func (p *Play) count(begin string) int { return len(p.lines(begin)) }

// order checks that lines came one after the other.
func (p *Play) order(begins ...string) {
	at := 0
	for _, line := range p.diary() {
		if at < len(begins) && (line == begins[at] || strings.HasPrefix(line, begins[at]+" ")) {
			at++
		}
	}
	if at < len(begins) {
		p.wrong("%q did not come, or not in this order", begins[at])
	}
}

// creations is how often the runtime began to make it.
func (p *Play) creations(w Want) int { return p.count(fmt.Sprintf("begin %s %s", w.Kind, w.Key())) }

// entry is what the cache knows of it; the newest that is not on its way out, or else one that is.
func (p *Play) entry(w Want) (found crikeep.Entry) {
	for _, e := range p.do(Call{Op: "entries"}).Entries {
		same := e.Kind == w.Kind && entryKey(e) == w.Key() && (w.Kind == crikeep.Container || e.PodUID == w.uid())
		if same && (found.Number == 0 || found.State == crikeep.StateEvicting) {
			found = e
		}
	}
	return found
}

func (p *Play) number(state crikeep.State) (n int) {
	for _, e := range p.do(Call{Op: "entries"}).Entries {
		if e.State == state {
			n++
		}
	}
	return n
}

func (p *Play) in(w Want, state crikeep.State) bool {
	e := p.entry(w)
	return e.Number != 0 && e.State == state
}

func (p *Play) become(w Want, state crikeep.State) {
	p.until(fmt.Sprintf("%s is %v", w.Key(), state), func() bool { return p.in(w, state) })
}

func (p *Play) unknown(w Want) bool { return p.entry(w).Number == 0 }

// real is what exists, with a living process, behind the runtime's back.
func (p *Play) real(kind crikeep.Kind) (ids []string) {
	objects, err := p.store.List(kind)
	p.no(err)
	for _, o := range objects {
		if o.Condition != crikeep.Dead {
			ids = append(ids, o.ID)
		}
	}
	sort.Strings(ids)
	return ids
}

func (p *Play) exists(id string) bool {
	_, condition, err := p.store.Read(id)
	return err == nil && condition != crikeep.Dead
}

// list is what the kubelet sees.
func (p *Play) list(kind crikeep.Kind) []string {
	ids := p.do(Call{Op: "list", Kind: kind}).IDs
	sort.Strings(ids)
	return ids
}

func (p *Play) shows(kind crikeep.Kind, id string) bool {
	for _, shown := range p.list(kind) {
		if shown == id {
			return true
		}
	}
	return false
}

// hidden checks that nobody is told of it, by list or by the beginning of its id.
func (p *Play) hidden(kind crikeep.Kind, id string) {
	p.yes("it exists", p.exists(id))
	p.yes("it is in no list", !p.shows(kind, id))
	p.call(Call{Op: "status", Kind: kind, ID: id[:12]}).fails(codeNotFound)
}

// plant makes an object behind the runtime's back: another hand's, or an older one's.
func (p *Play) plant(w Want) string {
	id, err := p.store.Make(w, "")
	p.no(err)
	return id
}

// die ends an object's process.
func (p *Play) die(id string) { p.no(p.store.Kill(id)) }

// run starts a container behind the runtime's back.
func (p *Play) run(id string) { p.no(os.WriteFile(p.store.path(id, "running"), nil, 0o600)) }

// ---- the stage ----------------------------------------------------------------------------------

// stage builds one, plays, and clears it away: what went wrong, and what may help to see why.
func stage(play func(*Play), patience time.Duration, forget []string, byDo bool) (r result) {
	dir, err := os.MkdirTemp("", "v")
	if err != nil {
		return result{failure: err.Error()}
	}
	diary, err := openDiary(dir)
	if err != nil {
		return result{failure: err.Error()}
	}
	defer diary.file.Close()
	p := &Play{
		dir: dir, patience: patience, byDo: byDo, store: &Store{dir: dir, diary: &Diary{diary.file}},
		settings: Settings{Clock: 1000 * time.Hour, Forget: forget},
	}
	defer p.clear()
	defer func() {
		what := recover()
		if what == nil {
			return
		}
		switch what := what.(type) {
		case needsTurn:
			r.none = true
			return
		case wrong:
			r.failure = what.what
		default:
			panic(what)
		}
		for _, name := range []string{"diary", "stderr", "log"} {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			if len(lines) > 60 {
				lines = lines[len(lines)-60:]
			}
			for _, line := range lines {
				r.help += "# " + name + ": " + line + "\n"
			}
		}
	}()
	play(p)
	if p.child != nil {
		p.kill()
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "stderr")); len(text) > 0 { // of the race detector, too
		p.wrong("the runtime wrote to its stderr")
	}
	return result{help: p.remarks}
}

// clear ends what holds a lock in this directory: also what was started when the runtime died, and
// is no object yet.
func (p *Play) clear() {
	p.kill()
	processes, _ := filepath.Glob("/proc/[0-9]*/fd/3")
	for _, lock := range processes {
		held, err := os.Readlink(lock)
		pid, _ := strconv.Atoi(strings.Split(lock, "/")[2])
		if err == nil && strings.HasPrefix(held, p.dir+"/") && pid != os.Getpid() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	os.RemoveAll(p.dir)
}
