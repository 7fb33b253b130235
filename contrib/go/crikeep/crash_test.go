// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

const childEnv = "CRIKEEP_TEST_CHILD" // a state directory; with "goexit:" before it, see TestGoexitInside

// childHost knows nothing, so that what the child begins stays as it is
type childHost struct{}

func (childHost) Destroy(context.Context, Entry) error { return ErrBusy }

// child has one sandbox committed, one kept and one that is being made, says so, and waits for its
// end
func child() {
	dir, exits := strings.CutPrefix(os.Getenv(childEnv), "goexit:")
	c, err := Open(Options{StateDir: dir, Host: childHost{}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	make := func(id string) func(context.Context, *Turn) (Result, error) {
		return func(context.Context, *Turn) (Result, error) { return Result{ID: id}, nil }
	}
	c.Do(background, pod("committed"), make("id-of-committed"))
	if exits {
		c.Snapshot(func(Entry) error { runtime.Goexit(); return nil })
		os.Exit(0)
	}
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

// the library's locks would be held for ever: better an end with a reason
func TestGoexitInside(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"=goexit:"+newWorld(t).o.StateDir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "runtime.Goexit in the function given to Snapshot") {
		t.Errorf("%v: %s", err, out)
	}
}
