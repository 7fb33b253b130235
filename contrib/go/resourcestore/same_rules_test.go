// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"crikeep.io/go/crikeep"
)

// Both engines get the same random history, step by step, and must be in the same state after each
// step: the same entries, and the same answers to who waits.

// side is one engine with the turns of a history.
type side struct {
	store *ours
	stuck *sync.Map // ids that cannot be destroyed
	turns []*sideTurn
}

type sideTurn struct {
	turn
	request string
	leave   context.CancelFunc

	mu      sync.Mutex
	outcome crikeep.Outcome
	err     error
}

func (t *sideTurn) set(o crikeep.Outcome, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcome, t.err = o, err
}

func (t *sideTurn) get() (crikeep.Outcome, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.outcome, t.err
}

// wait waits beside the history.
func (t *sideTurn) wait() {
	ctx, cancel := context.WithCancel(context.Background())
	t.leave = cancel
	go func() {
		o, err := t.Wait(ctx)
		t.set(o, err)
	}()
}

func newSide(t *testing.T, store string) *side {
	s := &side{store: newOurs(t, store), stuck: &sync.Map{}}
	s.store.reopen(Options{
		Alive: func(context.Context, crikeep.Kind, string, string) (bool, error) { return true, nil },
		Recover: func(_ context.Context, _ crikeep.Kind, _, id string) (IdentifiableCreatable, *ResourceCleaner, error) {
			c := NewResourceCleaner()
			c.Add(context.Background(), "undo", func() error {
				if _, is := s.stuck.Load(id); is {
					return errors.New("not ever")
				}
				return nil
			})
			return &resource{id: id}, c, nil
		}})
	return s
}

func code(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "left"
	}
	return fmt.Sprint(crikeep.GRPCCode(err))
}

// at returns a turn when it has an outcome, which it has on the other side.
func (s *side) at(i int, want crikeep.Outcome) *sideTurn {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		if o, err := s.turns[i].get(); o == want && err == nil {
			break
		}
	}
	return s.turns[i]
}

// state is what must be the same in both. quiet: nothing is being destroyed for the first time.
func (s *side) state() (state string, quiet bool) {
	entries, err := s.store.cache.Entries()
	var lines []string
	quiet = true
	for _, e := range entries {
		quiet = quiet && (e.State != crikeep.StateEvicting || e.ID == "" || e.Tries > 0)
		lines = append(lines, fmt.Sprintf("%v %s/%s %s/%s/%d %q %v", e.Kind, e.PodUID, e.PodName, e.SandboxID, e.ContainerName,
			e.Attempt, e.ID, e.State))
	}
	sort.Strings(lines)
	for i, t := range s.turns {
		o, err := t.get()
		lines = append(lines, fmt.Sprintf("turn %d of %s: %v %s", i, t.request, o, code(err)))
	}
	return strings.Join(append(lines, code(err)), "\n"), quiet
}

// settle waits until both are in the same state, and stay there for a moment.
func settle(sides []*side) (a, b string, same bool) {
	still := 0
	for end := time.Now().Add(10 * time.Second); still < 3 && time.Now().Before(end); time.Sleep(300 * time.Microsecond) {
		var quietA, quietB bool
		a, quietA = sides[0].state()
		b, quietB = sides[1].state()
		if still++; a != b || !quietA || !quietB {
			still = 0
		}
	}
	return a, b, still > 0
}

// withoutNumbers is a state in which equal requests are not told apart.
func withoutNumbers(state string) string {
	lines := strings.Split(state, "\n")
	for i, line := range lines {
		if _, request, ok := strings.Cut(line, " of "); ok {
			lines[i] = request
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// A step of a history, and what it answers.
type historyStep struct {
	text string
	do   func(s *side) string
}

func nextStep(r *rand.Rand, sides []*side, n int) historyStep {
	pick := func(want ...crikeep.Outcome) int { // a turn that has this outcome
		var all []int
		for i, t := range sides[0].turns {
			o, err := t.get()
			for _, w := range want {
				if o == w && err == nil {
					all = append(all, i)
				}
			}
		}
		if len(all) == 0 {
			return -1
		}
		return all[r.Intn(len(all))]
	}
	id := fmt.Sprintf("id%d", n)
	switch what := r.Intn(20); {
	case what < 9:
		p := parts{kind: crikeep.Sandbox, pod: "web", namespace: "ns", uid: "uid", attempt: uint32(r.Intn(3))}
		content := "a"
		if r.Intn(4) == 0 {
			content = "b"
		}
		bytes := append(p.request(), text(nil, 2, content)...)
		if r.Intn(2) == 0 {
			in := r.Intn(2)
			p = parts{kind: crikeep.Container, pod: "web", namespace: "ns", uid: "uid", sandboxID: fmt.Sprint("s", in),
				container: fmt.Sprint("c", in), attempt: uint32(r.Intn(2))}
			bytes = append(p.request(), message(nil, 2, text(nil, 5, content))...)
		} else if r.Intn(10) == 0 {
			p.uid = "other uid"
			bytes = append(p.request(), text(nil, 2, content)...)
		}
		request := fmt.Sprintf("%v %s", p, content)
		return historyStep{"begin " + request, func(s *side) string {
			s.store.clock.advance(time.Millisecond) // no two become impatient at the same time
			begun, err := s.store.cache.Begin(context.Background(), crikeep.Request{Kind: p.kind, Bytes: bytes})
			if err != nil {
				t := &sideTurn{request: request}
				t.set(0, err)
				s.turns = append(s.turns, t)
				return ""
			}
			t := &sideTurn{turn: begun, request: request}
			o := begun.Outcome() // once: it may be decided at any time
			t.set(o, nil)
			s.turns = append(s.turns, t)
			if o == crikeep.Wait {
				t.wait()
			}
			return "" // what it waits for may be gone on one side, and just about to go on the other
		}}
	case what < 13:
		if i := pick(crikeep.Create); i >= 0 {
			stuck := r.Intn(4) == 0
			return historyStep{fmt.Sprintf("finish %d as %s, stuck %v", i, id, stuck), func(s *side) string {
				if stuck {
					s.stuck.Store(id, true)
				}
				t := s.at(i, crikeep.Create)
				o, err := t.Finish(crikeep.Result{ID: id})
				t.set(o, err)
				return fmt.Sprint(o, " ", code(err))
			}}
		}
	case what < 14:
		if i := pick(crikeep.Create); i >= 0 {
			return historyStep{fmt.Sprintf("fail %d", i), func(s *side) string {
				err := s.at(i, crikeep.Create).Fail(&crikeep.StatusError{GRPC: 13, Message: "boom"})
				s.turns[i].set(0, errors.New("failed"))
				return code(err)
			}}
		}
	case what < 15:
		if i := pick(crikeep.Create); i >= 0 {
			return historyStep{fmt.Sprintf("leave %d", i), func(s *side) string { s.at(i, crikeep.Create).Leave(); return "" }}
		}
	case what < 16:
		if i := pick(crikeep.Wait); i >= 0 {
			return historyStep{fmt.Sprintf("leave waiting %d", i), func(s *side) string { s.at(i, crikeep.Wait).leave(); return "" }}
		}
	case what < 18:
		if i := pick(crikeep.HandBack); i >= 0 {
			delivered := r.Intn(3) > 0
			return historyStep{fmt.Sprintf("answered %d %v", i, delivered), func(s *side) string {
				t := s.at(i, crikeep.HandBack)
				reply, err := t.Reply()
				err = errors.Join(err, t.Answered(delivered))
				t.set(0, errors.New("answered"))
				t.Close()
				return reply.ID + " " + code(err)
			}}
		}
	case what < 19:
		kind, of := crikeep.Kind(1+r.Intn(2)), fmt.Sprintf("id%d", r.Intn(n+1))
		return historyStep{fmt.Sprintf("removed %v %s", kind, of), func(s *side) string {
			return code(s.store.cache.ObjectRemoved(kind, of))
		}}
	default:
		if r.Intn(2) == 0 {
			of := fmt.Sprint("s", r.Intn(2))
			return historyStep{"stop " + of, func(s *side) string { return code(s.store.cache.SandboxStopping(of)) }}
		}
	}
	d := time.Duration(1+r.Intn(90)) * time.Second
	return historyStep{fmt.Sprint("advance ", d), func(s *side) string { s.store.advance(d); return "" }}
}

func seeds() int64 {
	if n, err := strconv.ParseInt(os.Getenv("CK_TEST_SCALE"), 10, 64); err == nil {
		return max(30*n/100, 1)
	}
	return 30
}

func TestBothStoresFollowTheSameRules(t *testing.T) {
	for seed := int64(1); seed <= seeds(); seed++ {
		r := rand.New(rand.NewSource(seed))
		sides := []*side{newSide(t, "durable"), newSide(t, "memory")}
		var history []string
		for n := 0; n < 40; n++ {
			step := nextStep(r, sides, n)
			answers := []string{step.do(sides[0]), step.do(sides[1])}
			history = append(history, step.text+": "+answers[0])
			a, b, same := settle(sides)
			if !same && answers[0] == answers[1] && withoutNumbers(a) == withoutNumbers(b) {
				break // two equal requests became due at the same time, and either may create
			}
			if !same || answers[0] != answers[1] {
				t.Fatalf("seed %d, after\n%s\nmemory answered %s\n--- durable\n%s\n--- memory\n%s", seed,
					strings.Join(history, "\n"), answers[1], a, b)
			}
		}
		for _, s := range sides {
			for _, t := range s.turns {
				if t.leave != nil {
					t.leave()
				}
				if t.turn != nil {
					t.Close()
				}
			}
			s.store.Close()
		}
	}
}
