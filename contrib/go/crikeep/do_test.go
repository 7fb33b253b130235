// SPDX-License-Identifier: Apache-2.0

package crikeep

import (
	"context"
	"testing"
)

func TestDoInTime(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "web-0"}
	reply, err := c.Do(context.Background(), a.request(), w.maker(a))
	if err != nil || reply.ID != "sandbox-1" || len(reply.Bytes) == 0 {
		t.Fatal(reply, err)
	}
	again, err := c.Do(context.Background(), a.request(), w.maker(a))
	if err != nil || again.ID != reply.ID || w.made != 1 {
		t.Fatal(again, err, w.made)
	}
}

func TestDoLate(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "web-0"}
	ctx, cancel := context.WithCancel(context.Background())
	begun, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		<-begun
		cancel()
	}()
	_, err := c.Do(ctx, a.request(), func(ctx context.Context, turn *Turn) (Result, error) {
		defer close(ended)
		turn.Stage("network")
		close(begun)
		<-goOn
		if ctx.Err() != nil {
			t.Error("the creation's context ended with its caller's")
		}
		return w.make(a)
	})
	wantErr(t, err, context.Canceled)
	close(goOn)
	<-ended
	reply, err := c.Do(context.Background(), a.request(), w.maker(a))
	if err != nil || reply.ID != "sandbox-1" || w.made != 1 {
		t.Fatal(reply, err, w.made)
	}
}
