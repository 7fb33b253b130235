// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ---- requests, byte by byte ---------------------------------------------------------------------

type pb []byte

func (b pb) text(field int, s string) pb {
	if s == "" {
		return b
	}
	b = binary.AppendUvarint(b, uint64(field)<<3|2)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func (b pb) number(field int, n uint64) pb {
	if n == 0 {
		return b
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3), n)
}

func (b pb) pair(field int, k, v string) pb {
	if k == "" {
		return b
	}
	return b.text(field, string(pb{}.text(1, k).text(2, v)))
}

// ask is what a request says
type ask struct {
	pod       string // of this name; namespace "ns" and uid "uid-" + name
	uid       string // another uid
	attempt   uint32
	sandbox   string // makes it a container's
	container string
	env       string // a value
	label     string // of the sandbox or container
}

func (a ask) request() Request {
	uid := a.uid
	if uid == "" {
		uid = "uid-" + a.pod
	}
	attempt := uint64(a.attempt)
	metadata := pb{}.text(1, a.pod).text(2, uid).text(3, "ns")
	if a.sandbox == "" {
		metadata = metadata.number(4, attempt)
	}
	config := pb{}.text(1, string(metadata))
	if a.sandbox == "" {
		if a.label != "" {
			config = config.pair(6, "label", a.label)
		}
		return Request{Kind: Sandbox, Bytes: pb{}.text(1, string(config))}
	}
	c := pb{}.text(1, string(pb{}.text(1, a.container).number(2, attempt)))
	if a.env != "" {
		c = c.pair(6, "SECRET", a.env)
	}
	if a.label != "" {
		c = c.pair(9, "label", a.label)
	}
	return Request{Kind: Container, Bytes: pb{}.text(1, a.sandbox).text(2, string(c)).text(3, string(config))}
}

func pod(name string) Request { return ask{pod: name}.request() }

// ---- a runtime that is a table in memory --------------------------------------------------------

type world struct {
	t    *testing.T
	dir  string
	o    Options
	now  atomic.Int64 // of the clock, if it is set
	jobs int64        // of earlier tests, which may end still
	logs syncBuffer

	mu        sync.Mutex
	objects   map[string]Object
	made      int
	destroyed []string
	committed []Entry
	fail      func(call string) error // nil: nothing fails
	changed   chan struct{}           // closed and renewed when anything above changes
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), objects: map[string]Object{}, changed: make(chan struct{}), jobs: live.jobs.Load()}
	w.o = Options{StateDir: w.dir + "/state", Host: w}
	w.o.Logger = slog.New(slog.NewTextHandler(&w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return w
}

// clock makes time stand still until advance
func (w *world) clock() *world {
	w.now.Store(int64(1000 * time.Second))
	w.o.Now = func() time.Duration { return time.Duration(w.now.Load()) }
	return w
}

func (w *world) advance(c *Cache, d time.Duration) {
	w.now.Add(int64(d))
	c.Step()
}

// tick advances by a second and has the host's answers in: the clock must not run ahead of them, or
// what is absent is so for too long at once
func (w *world) tick(c *Cache) {
	w.advance(c, time.Second)
	eventually(w.t, "the host has answered", func() bool { return live.jobs.Load() <= w.jobs })
}

func (w *world) open() *Cache {
	w.t.Helper()
	c, err := Open(w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// until waits until the world looks so
func (w *world) until(what string, f func() bool) {
	w.t.Helper()
	end := time.After(time.Minute)
	for {
		w.mu.Lock()
		ok, changed := f(), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-end:
			w.t.Fatalf("not in time: %s\n%s", what, w.logs.String())
		}
	}
}

func (w *world) failing(call string) error {
	w.mu.Lock()
	f := w.fail
	w.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(call)
}

// make is a creation
func (w *world) make(a ask) (Result, error) {
	o := Object{Kind: Sandbox, Condition: Ready, PodName: a.pod, PodNamespace: "ns", PodUID: a.uid, Attempt: a.attempt,
		SandboxID: a.sandbox, ContainerName: a.container}
	if o.PodUID == "" {
		o.PodUID = "uid-" + a.pod
	}
	if a.sandbox != "" {
		o.Kind = Container
	}
	w.change(func() {
		w.made++
		o.ID = fmt.Sprintf("%s-%d", o.Kind, w.made)
		o.CreatedAt = time.Unix(int64(w.made), 0)
		w.objects[o.ID] = o
	})
	return Result{ID: o.ID}, nil
}

func (w *world) maker(a ask) func(context.Context, *Turn) (Result, error) {
	return func(context.Context, *Turn) (Result, error) { return w.make(a) }
}

func (w *world) Destroy(_ context.Context, e Entry) error {
	if err := w.failing("destroy"); err != nil {
		return err
	}
	w.change(func() {
		delete(w.objects, e.ID)
		w.destroyed = append(w.destroyed, e.ID)
	})
	return nil
}

func (w *world) Inspect(_ context.Context, e Entry) (Condition, error) {
	if err := w.failing("inspect"); err != nil {
		return Unknown, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.objects[e.ID]
	if !ok {
		return Absent, nil
	}
	return o.Condition, nil
}

func (w *world) List(_ context.Context, f Filter) ([]Object, error) {
	if err := w.failing("list"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var objects []Object
	for _, o := range w.objects {
		if o.Kind == f.Kind {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

func (w *world) ResolveImage(_ context.Context, image string) (string, error) {
	return "", errors.New("no such image")
}

func (w *world) Committed(e Entry) {
	w.change(func() { w.committed = append(w.committed, e) })
}

// ---- around every test --------------------------------------------------------------------------

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
	}
	if runtime.GOMAXPROCS(0) > 8 {
		runtime.GOMAXPROCS(8) // threads are counted
	}
	code := m.Run()
	for end := time.Now().Add(10 * time.Second); code == 0 && live.turns.Load() > 0 && time.Now().Before(end); {
		runtime.Gosched() // creations whose caller had gone
	}
	if n := live.caches.Load() + live.turns.Load() + live.views.Load(); code == 0 && n != 0 {
		fmt.Printf("%d caches, %d turns, %d views were not closed\n", live.caches.Load(), live.turns.Load(), live.views.Load())
		code = 1
	}
	os.Exit(code)
}

// eventually looks again and again, for a minute, at what nobody tells of; f may also bring it on
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

func (w *world) logged(text string) {
	w.t.Helper()
	eventually(w.t, "in the log: "+text, func() bool { return strings.Contains(w.logs.String(), text) })
}

func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Fatalf("%v is not %v", err, target)
		}
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
