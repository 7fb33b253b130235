// SPDX-License-Identifier: Apache-2.0

// Benchstore sets resourcestore, in memory, on tmpfs and on disk, beside a map in memory with the
// rules of CRI-O's: what its rules cost, and what durability costs. All in one run, the stores in turn, because a number alone says more about the machine;
// beside the ratios stands the share of a RunPodSandbox. Nothing here is a test.
//
// usage: benchstore DIR: a directory on disk. CK_TEST_SCALE (per cent) makes it shorter or longer.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"crikeep.io/go/crikeep"
	"crikeep.io/go/internal/ramstore"
	"crikeep.io/go/resourcestore"
)

const (
	rounds = 7
	slice  = 50 * time.Millisecond // of one operation in one round
	many   = 64                    // goroutines at once
	// One RunPodSandbox with host network on an idle machine: 63 ms with containerd 1.6, 78 ms
	// with CRI-O 1.26.
	runPodSandbox = 70 * time.Millisecond
	stages        = 10 // CRI-O names as many on the way
)

type resource struct{ id string }

func (r *resource) ID() string  { return r.id }
func (r *resource) SetCreated() {}

// What both have.
type store interface {
	Get(name string) string
	put(name, id string) error
	Delete(name string)
	SetStageForResource(ctx context.Context, name, stage string)
	WatcherForResource(name string) (chan struct{}, string)
	Close()
}

type ram struct{ *ramstore.Store }

func (s ram) put(name, id string) error { return s.Put(name, &resource{id}, ramstore.NewCleaner()) }

type kept struct{ *resourcestore.ResourceStore }

func (s kept) put(name, id string) error {
	return s.Put(name, &resource{id}, resourcestore.NewResourceCleaner())
}

var ctx = context.Background()

var numbers atomic.Int64

func newName() (name, id string) {
	id = fmt.Sprintf("%08d", numbers.Add(1))
	return "k8s_web-" + id + "_default_0d5e1f7c-95c7-4a3a-9d3c-" + id + "_0", id
}

func must(ok bool, what string) {
	if !ok {
		fmt.Fprintln(os.Stderr, "benchstore: "+what)
		os.Exit(1)
	}
}

type operation struct {
	name string
	run  func(s store) (after func()) // after, if there is one, is not part of it
}

// only makes an operation of what needs nothing after it
func only(run func(s store)) func(s store) func() {
	return func(s store) func() {
		run(s)
		return nil
	}
}

// What CRI-O does for a sandbox in time, and for one that is late.
var operations = []operation{
	{"get, and there is nothing", only(func(s store) {
		must(s.Get("k8s_none_default_0d5e1f7c_0") == "", "something was there")
	})},
	{"in time: 1 stage, delete", only(func(s store) {
		name, _ := newName()
		s.SetStageForResource(ctx, name, "sandbox creating")
		s.Delete(name)
	})},
	{"in time: 10 stages, delete", only(func(s store) {
		name, _ := newName()
		for i := 0; i < stages; i++ {
			s.SetStageForResource(ctx, name, "sandbox network creation")
		}
		s.Delete(name)
	})},
	{"late: 1 stage, put, get", only(func(s store) {
		name, id := newName()
		s.SetStageForResource(ctx, name, "sandbox creating")
		must(s.put(name, id) == nil, "not taken")
		must(s.Get(name) == id, "not given back")
	})},
	{"woken: watch, put, wake-up, get", only(func(s store) {
		name, id := newName()
		s.SetStageForResource(ctx, name, "sandbox creating")
		watcher, _ := s.WatcherForResource(name)
		woken := make(chan struct{})
		go func() {
			<-watcher
			must(s.Get(name) == id, "not given back")
			close(woken)
		}()
		must(s.put(name, id) == nil, "not taken")
		<-woken
	})},
}

// A sandbox that is never late, by the whole request: what its caller waits for. The map in memory
// has no such calls: its work is compared with that of a handler in time. Its removal
// is not part of it.
func whole(s store) func() {
	name, id := newName()
	k, ok := s.(kept)
	if !ok {
		return operations[2].run(s)
	}
	got, err := k.GetForRequest(ctx, crikeep.Sandbox, name, request(id))
	must(got == "" && err == nil, "not ours to make")
	for i := 0; i < stages; i++ {
		s.SetStageForResource(ctx, name, "sandbox network creation")
	}
	got, err = k.Finish(ctx, name, &resource{id}, resourcestore.NewResourceCleaner())
	must(got == id && err == nil, "not handed over")
	return func() { must(k.Removed(ctx, crikeep.Sandbox, id) == nil, "not removed") }
}

// request is a RunPodSandboxRequest of some 2 KB, as a kubelet's is, for the pod of newName. To make
// one must not be a part of what is measured: the number is put into one that is there.
func request(id string) []byte { return bytes.ReplaceAll(template, []byte(noID), []byte(id)) }

const noID = "########"

var template = makeRequest(noID)

func makeRequest(id string) []byte {
	field := func(number byte, b string) string {
		size := ""
		n := len(b)
		for ; n >= 0x80; n >>= 7 {
			size += string([]byte{byte(n) | 0x80})
		}
		return string([]byte{number<<3 | 2}) + size + string([]byte{byte(n)}) + b
	}
	metadata := field(1, "web-"+id) + field(2, "0d5e1f7c-95c7-4a3a-9d3c-"+id) + field(3, "default")
	config := field(1, metadata) + field(2, "web-"+id) + field(3, "/var/log/pods/default_web-"+id)
	for i := 0; i < 10; i++ {
		config += field(6, field(1, "app.kubernetes.io/label-"+strconv.Itoa(i))+field(2, "a value of an ordinary length"))
		config += field(7, field(1, "example.com/annotation-"+strconv.Itoa(i))+
			field(2, "another value, which is a little longer than that of a label"))
	}
	return []byte(field(1, config))
}

// alone is what one goroutine waits for one operation: the median, and the fastest tenth, because
// others use the machine, too. What takes less than reading the clock twice is measured in batches.
func alone(s store, run func(store) func(), length time.Duration) (middle, quiet float64) {
	const tries, short, most = 20, 5 * time.Microsecond, 64
	batch := 1
	begin := time.Now()
	for i := 0; i < tries; i++ {
		then(run(s))
	}
	if time.Since(begin)/tries < short {
		batch = most
	}
	var times []float64
	for begin = time.Now(); time.Since(begin) < length || len(times) == 0; {
		var after func()
		at := time.Now()
		for i := 0; i < batch; i++ {
			after = run(s)
		}
		times = append(times, float64(time.Since(at))/float64(batch))
		then(after) // batches are of operations that need nothing after them
	}
	middle = median(times) // sorts them
	return middle, times[len(times)/10]
}

// together is the time in which n goroutines get one operation done.
func together(s store, run func(store) func(), n int, length time.Duration) float64 {
	var wg sync.WaitGroup
	var done atomic.Int64
	begin := time.Now()
	for i := 0; i < n; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			mine := int64(0)
			for time.Since(begin) < length || mine == 0 {
				then(run(s))
				mine++
			}
			done.Add(mine)
		}()
	}
	wg.Wait()
	return float64(time.Since(begin)) / float64(done.Load())
}

func then(after func()) {
	if after != nil {
		after()
	}
}

func median(numbers []float64) float64 {
	sort.Float64s(numbers)
	return numbers[len(numbers)/2]
}

func nothing(context.Context, crikeep.Kind, string, string) (r resourcestore.IdentifiableCreatable, c *resourcestore.ResourceCleaner, err error) {
	return nil, nil, nil
}

func open(dir string) store {
	s, err := resourcestore.Open(resourcestore.Options{
		StateDir: dir,
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Recover:  nothing,

		CleansAtStart: true,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchstore:", err)
		os.Exit(1)
	}
	return kept{s}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: benchstore DIR")
		os.Exit(2)
	}
	scale := 100
	if n, err := strconv.Atoi(os.Getenv("CK_TEST_SCALE")); err == nil && n > 0 {
		scale = n
	}
	memory, err := os.MkdirTemp("/dev/shm", "benchstore-")
	if err != nil {
		fmt.Println("skip - benchstore: no tmpfs at /dev/shm")
		return
	}
	defer os.RemoveAll(memory)
	disk := filepath.Join(os.Args[1], "state")
	defer os.RemoveAll(disk)

	stores := []store{ram{ramstore.New(time.Minute)}, open(""), open(filepath.Join(memory, "state")), open(disk)}
	names := []string{"map", "in memory", "tmpfs", "disk"}
	fmt.Printf("x: compared with the map in memory; %%: of a RunPodSandbox of %v, and of the fastest tenth\n", runPodSandbox)
	for _, n := range []int{1, many} {
		title := "one caller: how long it waits"
		if n > 1 {
			title = fmt.Sprintf("%d callers: how often one is done", n)
		}
		fmt.Printf("\n%-36s %12s", title, names[0])
		for _, name := range names[1:] {
			fmt.Printf(" %*s", map[bool]int{true: 38, false: 28}[n == 1], name)
		}
		fmt.Println()
		for _, op := range append(operations, operation{"never late: get, 10 stages, finish", whole}) {
			times, quiet := make([][]float64, len(stores)), make([][]float64, len(stores))
			for round := 0; round < rounds; round++ {
				for i := range stores {
					i := (i + round) % len(stores) // nobody is always first
					length := slice * time.Duration(scale) / 100
					if n == 1 {
						middle, fast := alone(stores[i], op.run, length)
						times[i], quiet[i] = append(times[i], middle), append(quiet[i], fast)
					} else {
						times[i] = append(times[i], together(stores[i], op.run, n, length))
					}
				}
			}
			base := median(times[0])
			fmt.Printf("%-36s %9.2f us", op.name, base/1000)
			for i, t := range times[1:] {
				m := median(t)
				fmt.Printf(" %9.1f us x%-6.0f %7.4f%%", m/1000, m/base, 100*m/float64(runPodSandbox))
				if n == 1 {
					fmt.Printf(" (%6.4f%%)", 100*median(quiet[i+1])/float64(runPodSandbox))
				}
			}
			fmt.Println()
		}
	}
	for _, s := range stores {
		s.Close()
	}
}
