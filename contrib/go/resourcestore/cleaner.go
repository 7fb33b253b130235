// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

const (
	cleanupTries    = 20                     // of Cleanup, for one step
	cleanupWait     = 500 * time.Millisecond // before the second try
	cleanupGrowth   = 1.5                    // of that pause, from try to try
	cleanupWaitMost = time.Minute            // of CleanupContext, which does not give up
)

// ResourceCleaner holds the steps that undo a creation. The step added last runs first. A step
// begins only after the steps added later have succeeded. A step that has succeeded is not run
// again: every later call, whichever it is, continues with the first step that has not. A step that
// panics has failed. The methods may be called from any goroutine; one step runs at a time.
type ResourceCleaner struct {
	mu      sync.Mutex
	steps   []*step // in the order they were added
	running *pass   // nil: no pass is running
	tries   int     // of Cleanup; 0: cleanupTries
	log     *slog.Logger
	wait    func(ctx context.Context, d time.Duration) error
}

type step struct {
	ctx         context.Context // only its values are used: a clean-up may outlive the call
	description string
	fn          func() error
}

// A pass through the steps. A call that comes while it runs waits for its end, and does not begin a
// step a second time.
type pass struct {
	done chan struct{}
	err  error // of the step at which it ended
}

// NewResourceCleaner returns an empty cleaner.
func NewResourceCleaner() *ResourceCleaner {
	return &ResourceCleaner{}
}

// SetTries sets how often Cleanup tries each step; 0 means 20 times. CleanupContext does not count.
func (c *ResourceCleaner) SetTries(tries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries = max(tries, 0)
}

// SetLogger sets where failed steps are logged. nil means slog.Default(), or the logger of the
// store that has the cleaner.
func (c *ResourceCleaner) SetLogger(log *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = log
}

// adopt gives the cleaner a store's logger if it has none.
func (c *ResourceCleaner) adopt(log *slog.Logger) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log == nil {
		c.log = log
	}
}

func (c *ResourceCleaner) logger() *slog.Logger {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log == nil {
		return slog.Default()
	}
	return c.log
}

// Add adds a step, which runs before all steps that were added earlier.
func (c *ResourceCleaner) Add(ctx context.Context, description string, fn func() error) {
	if ctx == nil {
		ctx = context.Background()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, &step{ctx: ctx, description: description, fn: fn})
}

// Cleanup runs the steps. Each is tried up to 20 times, or as SetTries says, with pauses of half a
// second that grow by half. Cleanup ends at the first step that gives up, and returns its error. Another call can
// continue with the remaining steps.
func (c *ResourceCleaner) Cleanup() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	tries := c.tries
	c.mu.Unlock()
	if tries == 0 {
		tries = cleanupTries
	}
	return c.clean(context.Background(), tries)
}

// CleanupContext runs the steps, and tries again until all have succeeded or ctx ends.
func (c *ResourceCleaner) CleanupContext(ctx context.Context) error {
	return c.clean(ctx, 0)
}

func (c *ResourceCleaner) clean(ctx context.Context, most int) error {
	if c == nil {
		return nil
	}
	delay, tries, left := cleanupWait, 0, c.left()
	for {
		err := c.once(ctx)
		if err == nil {
			return nil
		}
		if now := c.left(); now != left { // there is progress
			delay, tries, left = cleanupWait, 0, now
		}
		tries++
		if ctx.Err() != nil {
			return err
		}
		if most > 0 && tries >= most {
			c.logger().ErrorContext(ctx, "a cleanup step was tried too often, giving up", "tries", tries, "error", err)
			return err
		}
		if c.sleep(ctx, delay) != nil {
			return err
		}
		delay = time.Duration(float64(delay) * cleanupGrowth)
		if most == 0 && delay > cleanupWaitMost {
			delay = cleanupWaitMost
		}
	}
}

func (c *ResourceCleaner) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	wait := c.wait
	c.mu.Unlock()
	if wait != nil {
		return wait(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (c *ResourceCleaner) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.steps)
}

// once makes one pass, up to the first step that fails, or waits for the pass that is running. It
// returns when ctx ends. A step that hangs then continues, and blocks every later pass.
func (c *ResourceCleaner) once(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	p := c.running
	if p == nil {
		if len(c.steps) == 0 {
			c.mu.Unlock()
			return nil
		}
		p = &pass{done: make(chan struct{})}
		c.running = p
		go c.run(p)
	}
	c.mu.Unlock()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("cleanup step %q has not ended: %w", c.last(), ctx.Err())
	}
}

func (c *ResourceCleaner) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.steps) == 0 {
		return ""
	}
	return c.steps[len(c.steps)-1].description
}

func (c *ResourceCleaner) run(p *pass) {
	defer close(p.done)
	for {
		c.mu.Lock()
		if len(c.steps) == 0 {
			c.running = nil
			c.mu.Unlock()
			return
		}
		s := c.steps[len(c.steps)-1]
		c.mu.Unlock()
		if !c.try(p, s) {
			return
		}
	}
}

// try runs one step. A panic counts as a failure, and so does runtime.Goexit. The step runs again
// after every start, and would otherwise end the runtime each time.
func (c *ResourceCleaner) try(p *pass, s *step) (done bool) {
	err := errors.New("it ended its goroutine")
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a panic: %v", v)
			c.logger().ErrorContext(s.ctx, "a cleanup step panicked", "step", s.description, "stack", string(debug.Stack()))
		}
		if err != nil {
			c.logger().WarnContext(s.ctx, "a cleanup step failed", "step", s.description, "error", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			p.err = fmt.Errorf("cleanup step %q: %w", s.description, err)
			c.running = nil
			return
		}
		c.remove(s)
		done = true
	}()
	err = s.fn()
	return done
}

// Another step may have been added in the meantime.
func (c *ResourceCleaner) remove(done *step) {
	for i := len(c.steps) - 1; i >= 0; i-- {
		if c.steps[i] == done {
			c.steps = append(c.steps[:i:i], c.steps[i+1:]...)
			return
		}
	}
}

// drop forgets the steps: what they would undo is gone, or belongs to another owner by now.
func (c *ResourceCleaner) drop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = nil
}
