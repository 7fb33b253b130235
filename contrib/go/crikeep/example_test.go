// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"crikeep.io/go/crikeep"
)

// runtimeOfOne is a container runtime with a map of sandboxes.
type runtimeOfOne struct {
	mu        sync.Mutex
	sandboxes map[string]string // name by id
}

func (r *runtimeOfOne) create(name string) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id = fmt.Sprintf("%s-%d", name, len(r.sandboxes))
	r.sandboxes[id] = name
	return id, nil
}

func (r *runtimeOfOne) Destroy(_ context.Context, e crikeep.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.sandboxes[e.ID]; !ok {
		return crikeep.ErrNotFound
	}
	delete(r.sandboxes, e.ID)
	return nil
}

func open(r *runtimeOfOne) (*crikeep.Cache, func()) {
	dir, err := os.MkdirTemp("", "crikeep")
	if err != nil {
		log.Fatal(err)
	}
	cache, err := crikeep.Open(crikeep.Options{StateDir: filepath.Join(dir, "state"), Host: r})
	if err != nil {
		log.Fatal(err)
	}
	return cache, func() {
		cache.Close()
		os.RemoveAll(dir)
	}
}

// sandboxRequest is what a CRI server gets from its own message by Marshal.
func sandboxRequest(name string) []byte {
	field := func(number byte, s string) string { return string([]byte{number<<3 | 2, byte(len(s))}) + s }
	metadata := field(1, name) + field(2, "uid-of-"+name) + field(3, "default")
	return []byte(field(1, field(1, metadata)))
}

// The kubelet gives up while the sandbox is being made, and asks again: it gets the one that
// exists.
func ExampleCache_Do() {
	runtime := &runtimeOfOne{sandboxes: map[string]string{}}
	cache, end := open(runtime)
	defer end()
	request := crikeep.Request{Kind: crikeep.Sandbox, Bytes: sandboxRequest("web")}

	kubelet, giveUp := context.WithCancel(context.Background())
	finished := make(chan struct{})
	_, err := cache.Do(kubelet, request, func(ctx context.Context, t *crikeep.Turn) (crikeep.Result, error) {
		defer close(finished)
		t.Stage("sandbox network creation")
		giveUp()
		id, err := runtime.create("web") // ctx is alive still
		return crikeep.Result{ID: id}, err
	})
	fmt.Println("first:", errors.Is(err, context.Canceled))
	<-finished

	reply, err := cache.Do(context.Background(), request, func(context.Context, *crikeep.Turn) (crikeep.Result, error) {
		return crikeep.Result{}, errors.New("made once more")
	})
	fmt.Println("second:", reply.ID, err)
	// Output:
	// first: true
	// second: web-0 <nil>
}

// What is kept for nobody yet is left out of every list.
func ExampleCache_View() {
	runtime := &runtimeOfOne{sandboxes: map[string]string{}}
	cache, end := open(runtime)
	defer end()
	for _, name := range []string{"web", "late"} {
		turn, err := cache.Begin(context.Background(), crikeep.Request{Kind: crikeep.Sandbox, Bytes: sandboxRequest(name)})
		if err != nil {
			log.Fatal(err)
		}
		if name == "late" {
			turn.Leave() // its caller is gone
		}
		id, _ := runtime.create(name)
		if _, err := turn.Finish(crikeep.Result{ID: id}); err != nil {
			log.Fatal(err)
		}
		turn.Close()
	}

	view, err := cache.View() // before the runtime is asked
	if err != nil {
		log.Fatal(err)
	}
	defer view.Close()
	for id, name := range runtime.sandboxes {
		hidden, err := view.Hides(crikeep.Object{Kind: crikeep.Sandbox, ID: id, PodName: name, PodNamespace: "default",
			PodUID: "uid-of-" + name})
		if err == nil && !hidden {
			fmt.Println(id)
		}
	}
	// Output: web-0
}
