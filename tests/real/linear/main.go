// SPDX-License-Identifier: Apache-2.0

// linear records histories of real processes, and has porcupine check that they are linearizable:
// clients ask crikeepd for sandboxes, list and remove them; crikeepd stands before the simulated
// runtime and is killed (SIGKILL) every second or so.
//
//	linear -crikeepd FILE -sim FILE -dir DIR [-histories N] [-seed N] [-kill=false] [-plant]
//
// A history is all that happens to one pod: several clients with the same request, and what the
// runtime's log says. Other pods live at the same time, in other histories. A client repeats a call
// until it has a definite answer, so an operation may take several calls and several lives of
// crikeepd. What must hold (struct state):
//
//	one creation  the runtime makes a sandbox of a pod only when there is none
//	one owner     everybody gets the one that exists, alive and not removed
//	seen          what somebody got or was shown is in every list until it is removed
//
// With -plant something asks the runtime itself for a second sandbox of every tenth pod. Then
// exactly these histories must not be linearizable.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	podsAtOnce   = 40
	clientsOfPod = 3
	rounds       = 3
	plantEvery   = 10
	patience     = 2 * time.Minute // for a definite answer
	checkTimeout = time.Minute     // for one history
)

// ---- the model ----------------------------------------------------------------------------------

type kind int

const (
	made   kind = iota // by the runtime's log: the creation, from its beginning to its end
	gone               // by the runtime's log
	run                // a client got this id
	remove             // a client has removed it
	list               // a client was shown these
)

type input struct {
	pod  string
	kind kind
	id   string // made, gone, remove
}

type state struct {
	live  string // the sandbox that exists; "": there is none
	known bool   // somebody got it, or was shown it
	gone  string // all that were removed, each with a ',' behind it
}

func (s state) wasRemoved(id string) bool { return strings.Contains(s.gone, id+",") }

func (s state) lists(shown string) (bool, state) {
	if shown == "" {
		return s.live == "" || !s.known, s
	}
	s.known = true
	return shown == s.live, s
}

func step(s state, in input, out string) (bool, state) {
	switch in.kind {
	case made:
		ok := s.live == "" && !s.wasRemoved(in.id)
		return ok, state{live: in.id, gone: s.gone}
	case gone:
		return s.live == in.id, state{gone: s.gone + in.id + ","}
	case run:
		ok := s.live == out
		s.known = true
		return ok, s
	case remove:
		return s.wasRemoved(in.id), s
	default:
		return s.lists(out)
	}
}

var model = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(s, in, out interface{}) (bool, interface{}) {
		return wrap(step(s.(state), in.(input), out.(string)))
	},
}

func wrap(ok bool, s state) (bool, interface{}) { return ok, s }

// ---- recording ----------------------------------------------------------------------------------

type recorder struct {
	sync.Mutex
	pods map[string][]porcupine.Operation
}

func (r *recorder) add(client int, in input, out string, call, end int64) {
	r.Lock()
	defer r.Unlock()
	r.pods[in.pod] = append(r.pods[in.pod], porcupine.Operation{
		ClientId: client, Input: in, Output: out, Call: call, Return: end})
}

// the runtime's log: seconds since its start, what, kind, id, name. It began between two readings of
// the clock, so each event has a span
func (r *recorder) addLog(file string, from, to int64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	begun := map[string]int64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var seconds float64
		var what, of, id, name string
		if _, err := fmt.Sscan(lines.Text(), &seconds, &what, &of, &id, &name); err != nil ||
			of != "sandbox" {
			continue
		}
		at := int64(seconds * 1e9)
		in := input{pod: strings.SplitN(name, "_", 2)[0], kind: made, id: id}
		switch what {
		case "begin":
			begun[id] = at
		case "create":
			r.add(clientsOfPod, in, "", from+begun[id], to+at+1e6)
		case "remove":
			in.kind = gone
			r.add(clientsOfPod+1, in, "", from+at, to+at+1e6)
		}
	}
	return nil
}

// ---- clients ------------------------------------------------------------------------------------

type stage struct {
	*recorder
	kubelet, runtime *client
	plant            bool // a second creation
}

func (s *stage) do(number int, in input, call func() string) string {
	from := now()
	out := call()
	s.add(number, in, out, from, now())
	return out
}

func (s *stage) work(number int, pod string, random *rand.Rand) {
	for round := 0; round < rounds; round++ {
		id := s.do(number, input{pod: pod, kind: run}, func() string {
			return s.kubelet.run(pod, 0, random)
		})
		if s.plant && number == 0 && round == 0 {
			s.runtime.run(pod, 9, random)
		}
		if random.Intn(2) == 0 {
			s.do(number, input{pod: pod, kind: list}, func() string {
				return s.kubelet.list(pod)
			})
		}
		if random.Intn(2) == 0 {
			s.do(number, input{pod: pod, kind: remove, id: id}, func() string {
				s.kubelet.remove(id)
				return ""
			})
		}
	}
}

func (s *stage) live(pod string, seed int64) {
	var clients sync.WaitGroup
	for i := 0; i < clientsOfPod; i++ {
		clients.Add(1)
		go func(i int) {
			defer clients.Done()
			s.work(i, pod, rand.New(rand.NewSource(seed*clientsOfPod+int64(i))))
		}(i)
	}
	clients.Wait()
}

// ---- a batch ------------------------------------------------------------------------------------

type options struct {
	crikeepd, sim, dir string
	histories          int
	seed               int64
	kill, plant        bool
}

type verdicts struct{ right, planted, wrong, operations, kills int }

func (v *verdicts) check(pod string, history []porcupine.Operation, planted bool, dir string) {
	v.operations += len(history)
	result, info := porcupine.CheckOperationsVerbose(model, history, checkTimeout)
	switch {
	case result == porcupine.Ok && !planted:
		v.right++
	case result == porcupine.Illegal && planted:
		v.planted++
	default:
		v.wrong++
		fmt.Printf("not ok - %s: %s, planted: %v\n", pod, result, planted)
		sort.Slice(history, func(i, j int) bool { return history[i].Call < history[j].Call })
		for _, o := range history {
			fmt.Printf("  %d..%d ms client %d: %+v -> %q\n", o.Call/1e6, o.Return/1e6,
				o.ClientId, o.Input, o.Output)
		}
		file := filepath.Join(dir, pod+".html")
		if err := porcupine.VisualizePath(model, info, file); err == nil {
			fmt.Printf("  drawn in %s\n", file)
		}
	}
}

func batch(o *options, random *rand.Rand, first, n int, v *verdicts) error {
	p, err := start(o, random)
	if err != nil {
		return err
	}
	defer p.end()
	s := stage{recorder: &recorder{pods: map[string][]porcupine.Operation{}},
		kubelet: dial(p.cri), runtime: dial(p.runtime)}
	var pods sync.WaitGroup
	planted := map[string]bool{}
	for i := first; i < first+n; i++ {
		pod := fmt.Sprintf("p%d", i)
		planted[pod] = o.plant && i%plantEvery == 0
		one := s
		one.plant = planted[pod]
		pods.Add(1)
		go func(one stage, pod string, seed int64) {
			defer pods.Done()
			one.live(pod, seed)
		}(one, pod, random.Int63()>>8)
	}
	pods.Wait()
	v.kills += p.stopKilling()
	if err := s.addLog(p.log, p.from, p.to); err != nil {
		return err
	}
	for pod, history := range s.pods {
		v.check(pod, history, planted[pod], o.dir)
	}
	return nil
}

func main() {
	var o options
	var v verdicts
	flag.StringVar(&o.crikeepd, "crikeepd", "", "")
	flag.StringVar(&o.sim, "sim", "", "")
	flag.StringVar(&o.dir, "dir", "", "for sockets and files; short")
	flag.IntVar(&o.histories, "histories", 400, "")
	flag.Int64Var(&o.seed, "seed", 1, "of the clients' choices; the processes are not replayed")
	flag.BoolVar(&o.kill, "kill", true, "")
	flag.BoolVar(&o.plant, "plant", false, "")
	flag.Parse()
	random := rand.New(rand.NewSource(o.seed))
	for done := 0; done < o.histories; done += podsAtOnce {
		n := o.histories - done
		if n > podsAtOnce {
			n = podsAtOnce
		}
		if err := batch(&o, random, done, n, &v); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("# %d histories are linearizable, %d with a planted creation are not, %d are wrong; "+
		"%d operations, %d kills\n", v.right, v.planted, v.wrong, v.operations, v.kills)
	if v.wrong > 0 || (o.plant && v.planted == 0) {
		os.Exit(1)
	}
}
