// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	crowd      = 20000
	maxThreads = 50
)

// status reads a number from /proc/self/status
func status(t *testing.T, name string) int {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) > 1 && fields[0] == name+":" {
			n, _ := strconv.Atoi(fields[1])
			return n
		}
	}
	t.Fatal("no", name)
	return 0
}

// fewThreads fails the test if there were many at any time until its end: Go keeps the threads that
// it started
func fewThreads(t *testing.T) {
	before := status(t, "Threads")
	t.Cleanup(func() {
		n := status(t, "Threads")
		t.Logf("%d threads, %d before", n, before)
		if n >= maxThreads {
			t.Errorf("%d threads", n)
		}
	})
}

// together calls f n times, all at once
func together(n int, f func(i int)) *sync.WaitGroup {
	var all sync.WaitGroup
	all.Add(n)
	for i := 0; i < n; i++ {
		go func(i int) {
			defer all.Done()
			f(i)
		}(i)
	}
	return &all
}

func TestStormOnOneCreation(t *testing.T) {
	fewThreads(t)
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "a"}
	goOn := make(chan struct{})
	var made, right atomic.Int32
	all := together(crowd, func(int) {
		reply, err := c.Do(background, a.request(), func(context.Context, *Turn) (Result, error) {
			made.Add(1)
			<-goOn
			return w.make(a)
		})
		if err != nil {
			t.Error(err)
		} else if reply.ID == "sandbox-1" {
			right.Add(1)
		}
	})
	w.waiting(c, crowd)
	close(goOn)
	all.Wait()
	if made.Load() != 1 || right.Load() != crowd {
		t.Errorf("made %d times, %d were answered", made.Load(), right.Load())
	}
}

// 2,000 creations at a time, each waited for by ten; they are called off, repeated and ended in any
// order
func TestStormOnMany(t *testing.T) {
	fewThreads(t)
	w := newWorld(t)
	c := w.open()
	goOn := make(chan struct{})
	var made, right atomic.Int32
	all := together(crowd, func(i int) {
		a := ask{pod: fmt.Sprint("pod-", i%(crowd/10))}
		reply, err := c.Do(background, a.request(), func(context.Context, *Turn) (Result, error) {
			made.Add(1)
			<-goOn
			return Result{ID: "id-" + a.pod}, nil
		})
		if err != nil {
			t.Error(err)
		} else if reply.ID == "id-"+a.pod {
			right.Add(1)
		}
	})
	w.waiting(c, crowd)
	close(goOn)
	all.Wait()
	if made.Load() != crowd/10 || right.Load() != crowd {
		t.Errorf("made %d times, %d were answered", made.Load(), right.Load())
	}
}

// callers that go at any moment, and come again until they have it: nothing is made twice
func TestStormOfCancellations(t *testing.T) {
	fewThreads(t)
	w := newWorld(t)
	c := w.open()
	const pods, callers = 20, 400
	var made [pods]atomic.Int32
	together(callers, func(i int) {
		random := rand.New(rand.NewSource(int64(i)))
		n := i % pods
		a := ask{pod: fmt.Sprint("pod-", n)}
		for {
			ctx, cancel := context.WithCancel(background)
			go func(spins int) {
				for ; spins > 0; spins-- {
					runtime.Gosched()
				}
				cancel()
			}(random.Intn(2000))
			reply, err := c.Do(ctx, a.request(), func(context.Context, *Turn) (Result, error) {
				made[n].Add(1)
				for spins := 300; spins > 0; spins-- {
					runtime.Gosched()
				}
				return w.make(a)
			})
			cancel()
			if err == nil {
				if o, ok := func() (Object, bool) { w.mu.Lock(); defer w.mu.Unlock(); o, ok := w.objects[reply.ID]; return o, ok }(); !ok ||
					o.PodName != a.pod {
					t.Error("an answer that is not it:", reply, o)
				}
				return
			}
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
				return
			}
		}
	}).Wait()
	for i := range made {
		if made[i].Load() != 1 {
			t.Errorf("pod-%d was made %d times", i, made[i].Load())
		}
	}
}

// all at once: begin, leave, finish, fail, stage, wait, close of turns, and the cache is closed
// among it
func TestStormAndClose(t *testing.T) {
	for round := 0; round < 5; round++ {
		w := newWorld(t)
		c := w.open()
		started := make(chan struct{}, 1000)
		all := together(200, func(i int) {
			random := rand.New(rand.NewSource(int64(round*1000 + i)))
			for {
				turn, err := c.Begin(background, pod(fmt.Sprint(random.Intn(20))))
				if errors.Is(err, ErrClosed) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				select {
				case started <- struct{}{}:
				default:
				}
				var hands sync.WaitGroup
				hands.Add(3)
				go func() {
					defer hands.Done()
					turn.Wait(background)
					turn.Reply()
				}()
				go func() {
					defer hands.Done()
					turn.Stage("x")
					if i%2 == 0 {
						turn.Finish(Result{ID: fmt.Sprint("id-", i, "-", random.Int63())})
					} else {
						turn.Fail(ErrInvalid)
					}
					turn.Answered(i%3 == 0)
				}()
				go func() {
					defer hands.Done()
					turn.Leave()
					turn.Close()
				}()
				hands.Wait()
				turn.Close()
			}
		})
		for i := 0; i < 500; i++ {
			<-started
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}

func TestCloseWhileThousandsWait(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	h := newHeld()
	first := w.begin(c, background, ask{pod: "a"}, h.creation(func() (Result, error) { return Result{ID: "x"}, nil }))
	<-h.begun
	var closed atomic.Int32
	all := together(2000, func(int) {
		if _, err := c.Do(background, pod("a"), never); errors.Is(err, ErrClosed) {
			closed.Add(1)
		} else {
			t.Error(err)
		}
	})
	w.waiting(c, 2001)
	c.Close()
	all.Wait()
	wantErr(t, (<-first).err, ErrClosed)
	close(h.goOn)
	if closed.Load() != 2000 {
		t.Error(closed.Load())
	}
}
