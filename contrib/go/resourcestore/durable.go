// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package resourcestore

import (
	"context"
	"sync"
	"time"

	"crikeep.io/go/crikeep"
)

// Durable says whether libcrikeep is built in. Without it, Open refuses a StateDir.
const Durable = true

// durable is libcrikeep as an engine.
type durable struct{ *crikeep.Cache }

func (s *ResourceStore) openDurable(dir string) (engine, error) {
	cache, err := crikeep.Open(crikeep.Options{
		StateDir:       dir,
		Host:           s.host(),
		Hooks:          s.options.Hooks,
		Logger:         s.log,
		TTL:            s.options.TTL,
		DestroyTimeout: s.options.DestroyTimeout,
		Now:            s.options.now,
		IsRuntime:      s.options.CleansAtStart,
		// CRI-O takes a pod's annotations from the sandbox when it creates a container. A
		// sandbox with old ones would pass them on.
		OnAnnotationChange: crikeep.AnnotationEvict,
	})
	if err != nil {
		return nil, err
	}
	return durable{cache}, nil
}

func (d durable) Begin(ctx context.Context, r crikeep.Request) (turn, error) {
	t, err := d.Cache.Begin(ctx, r)
	if err != nil {
		return nil, err
	}
	return &durableTurn{Turn: t}, nil
}

// stageDelay is how long a stage lasts before it is written to the database. It is shown to those
// who wait, and to crikeep(1). A creation in time has ten stages and no reader.
const stageDelay = 300 * time.Millisecond

// durableTurn writes the newest stage at most every stageDelay.
type durableTurn struct {
	*crikeep.Turn
	mu    sync.Mutex
	stage string
	timer *time.Timer // nil: everything is written
	ended bool
}

func (t *durableTurn) Stage(stage string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage = stage
	if t.timer == nil && !t.ended {
		t.timer = time.AfterFunc(stageDelay, t.write)
	}
	return nil
}

func (t *durableTurn) write() {
	t.mu.Lock()
	stage, ended := t.stage, t.ended
	t.timer = nil
	t.mu.Unlock()
	if !ended {
		_ = t.Turn.Stage(stage) // it may have ended
	}
}

// end: no stage is written any more.
func (t *durableTurn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

func (t *durableTurn) Finish(r crikeep.Result) (crikeep.Outcome, error) {
	t.end()
	return t.Turn.Finish(r)
}

func (t *durableTurn) Fail(why error) error {
	t.end()
	return t.Turn.Fail(why)
}

func (t *durableTurn) Close() error {
	t.end()
	return t.Turn.Close()
}

func (d durable) Hides(kind crikeep.Kind, id string) (bool, error) {
	view, err := d.View()
	if err != nil {
		return false, err
	}
	defer view.Close()
	return view.Hides(crikeep.Object{Kind: kind, ID: id})
}
