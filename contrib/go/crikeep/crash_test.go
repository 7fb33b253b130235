// SPDX-License-Identifier: Apache-2.0

package crikeep

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const childEnv = "CRIKEEP_TEST_CHILD" // a state directory

// childHost knows nothing, so that what the child begins stays as it is
type childHost struct{}

func (childHost) Destroy(context.Context, Entry, func()) error { return ErrBusy }

// child has one sandbox committed, one kept and one that is being made, says so, and waits for its end
func child() {
	c, err := Open(Options{StateDir: os.Getenv(childEnv), Host: childHost{}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	make := func(id string) func(context.Context, *Turn) (Result, error) {
		return func(context.Context, *Turn) (Result, error) { return Result{ID: id}, nil }
	}
	c.Do(background, pod("committed"), make("id-of-committed"))
	turn, _ := c.Begin(background, pod("kept"))
	turn.Leave()
	turn.Finish(Result{ID: "id-of-kept"})
	turn, _ = c.Begin(background, pod("making"))
	turn.Stage("half way")
	fmt.Println("ready")
	select {}
}

func TestKilledAndBackAgain(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+w.o.StateDir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatal(line, err)
	}
	_, err = Open(w.o)
	wantErr(t, err, ErrOwned)
	if !strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) {
		t.Error("it does not name the owner:", err)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()

	w.objects["id-of-committed"] = Object{Kind: Sandbox, Condition: Ready, ID: "id-of-committed", PodName: "committed",
		PodNamespace: "ns", PodUID: "uid-committed"}
	w.objects["id-of-kept"] = Object{Kind: Sandbox, Condition: Ready, ID: "id-of-kept", PodName: "kept", PodNamespace: "ns",
		PodUID: "uid-kept"}
	w.objects["id-of-making"] = Object{Kind: Sandbox, Condition: Ready, ID: "id-of-making", PodName: "making", PodNamespace: "ns",
		PodUID: "uid-making"}
	c := w.open()
	for _, name := range []string{"committed", "kept", "making"} { // the last one exists by now, and a list tells
		if reply := must[Reply](t)(c.Do(background, pod(name), never)); reply.ID != "id-of-"+name {
			t.Error(reply)
		}
	}
}
