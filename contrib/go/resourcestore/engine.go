// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"context"
	"time"

	"crikeep.io/go/crikeep"
)

// An engine decides what is created, kept, handed back and destroyed. There are two: libcrikeep's,
// with a database, in durable.go; and one in memory, in memory.go. Both follow crikeep-rules(7),
// and all that is above them is the same.
type engine interface {
	Begin(ctx context.Context, r crikeep.Request) (turn, error)
	SandboxStopping(id string) error
	ObjectRemoved(kind crikeep.Kind, id string) error
	ObjectSeen(kind crikeep.Kind, id string, condition crikeep.Condition) error
	Hides(kind crikeep.Kind, id string) (bool, error)
	Entries() ([]crikeep.Entry, error)
	Reconciled() bool
	Step() time.Duration
	Close() error
}

// turn is one caller's request, as crikeep.Turn is.
type turn interface {
	Outcome() crikeep.Outcome
	Wait(ctx context.Context) (crikeep.Outcome, error)
	Abandoned() <-chan struct{}
	Stage(stage string) error
	Finish(r crikeep.Result) (crikeep.Outcome, error)
	Fail(why error) error
	Reply() (crikeep.Reply, error)
	Answered(delivered bool) error
	Leave()
	Close() error
}
