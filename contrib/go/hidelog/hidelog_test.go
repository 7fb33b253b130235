// SPDX-License-Identifier: Apache-2.0

package hidelog

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// attempt is what a newer kubelet asks for when it is shown no container: one more than the highest
// log it finds.
func attempt(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, e := range entries {
		m := regexp.MustCompile(`^(\d+)\.log(\..*)?`).FindStringSubmatch(e.Name())
		if e.IsDir() || m == nil {
			continue
		}
		var n int
		fmt.Sscan(m[1], &n)
		next = max(next, n+1)
	}
	return next
}

type place struct{ run, dir, log string }

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{run: t.TempDir(), dir: filepath.Join(t.TempDir(), "web")}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.log = filepath.Join(p.dir, "0.log")
	return p
}

// monitor does with its log what conmon does: appends to what it opened first, and to open it again
// renames a new file over it.
type monitor struct {
	path string
	f    *os.File
}

func (m *monitor) open(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(m.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	m.f = f
	t.Cleanup(func() { m.f.Close() })
}

func (m *monitor) reopen(t *testing.T) {
	t.Helper()
	m.f.Close()
	f, err := os.OpenFile(m.path+".tmp", os.O_WRONLY|os.O_TRUNC|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	m.f = f
	if err := os.Rename(m.path+".tmp", m.path); err != nil {
		t.Fatal(err)
	}
}

func (m *monitor) write(t *testing.T, s string) {
	t.Helper()
	if _, err := m.f.WriteString(s); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s: %q, %v, want %q", filepath.Base(path), got, err, want)
	}
}

// Without this package a container that is only created takes attempt 0 from its successor: what
// the others rely on.
func TestPlainLogBumpsTheAttempt(t *testing.T) {
	p := newPlace(t)
	m := &monitor{path: p.log}
	m.open(t)
	if n := attempt(t, p.dir); n != 1 {
		t.Errorf("the next attempt is %d, want 1", n)
	}
}

func TestHiddenUntilShown(t *testing.T) {
	p := newPlace(t)
	path, err := Prepare(p.run, p.log, "abc")
	if err != nil {
		t.Fatal(err)
	}
	m := &monitor{path: path}
	m.open(t)
	m.write(t, "created\n")
	if n := attempt(t, p.dir); n != 0 {
		t.Errorf("while it is created the next attempt is %d, want 0", n)
	}
	if err := Show(p.run, p.log, "abc"); err != nil {
		t.Fatal(err)
	}
	m.write(t, "started\n")
	content(t, p.log, "created\nstarted\n")
	if n := attempt(t, p.dir); n != 1 {
		t.Errorf("started, the next attempt is %d, want 1", n)
	}

	// a rotation: the kubelet renames the file and has it opened again
	if err := os.Rename(p.log, p.log+".20260101-000000"); err != nil {
		t.Fatal(err)
	}
	m.reopen(t)
	m.write(t, "rotated\n")
	content(t, p.log, "rotated\n")
	if entries, _ := os.ReadDir(p.dir); len(entries) != 2 {
		t.Errorf("left in the log directory: %v", entries)
	}
}

func TestRepeatedAfterACrashAnywhere(t *testing.T) {
	for step := 0; step < 4; step++ {
		p := newPlace(t)
		path, err := Prepare(p.run, p.log, "abc")
		if err != nil {
			t.Fatal(err)
		}
		m := &monitor{path: path}
		m.open(t)
		m.write(t, "x")
		dir := hidden(p.log, "abc")
		if step > 0 {
			os.Rename(filepath.Join(dir, "0.log"), p.log)
		}
		if step > 1 {
			point(p.run, p.dir)
		}
		if step > 2 {
			os.Remove(dir)
		}
		for i := 0; i < 2; i++ {
			if err := Show(p.run, p.log, "abc"); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
		}
		content(t, p.log, "x")
		m.reopen(t)
		m.write(t, "y")
		content(t, p.log, "y")
	}
}

func TestOlderFileOfTheAttemptIsKept(t *testing.T) {
	p := newPlace(t)
	if err := os.WriteFile(p.log, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := Prepare(p.run, p.log, "abc")
	if err != nil {
		t.Fatal(err)
	}
	m := &monitor{path: path}
	m.open(t)
	m.write(t, "newer")
	if err := Show(p.run, p.log, "abc"); err != nil {
		t.Fatal(err)
	}
	content(t, p.log, "newer")
	old, _ := filepath.Glob(p.log + ".*")
	if len(old) != 1 {
		t.Fatalf("rotated: %v", old)
	}
	content(t, old[0], "older")
}

func TestDropOfANeverStarted(t *testing.T) {
	p := newPlace(t)
	path, err := Prepare(p.run, p.log, "abc")
	if err != nil {
		t.Fatal(err)
	}
	(&monitor{path: path}).open(t)
	for i := 0; i < 2; i++ {
		if err := Drop(p.run, p.log, "abc"); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{p.run, p.dir} {
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("left in %s: %v", dir, left)
		}
	}
	if n := attempt(t, p.dir); n != 0 {
		t.Errorf("the next attempt is %d, want 0", n)
	}
}

func TestDropLeavesTheLogOfAStarted(t *testing.T) {
	p := newPlace(t)
	path, err := Prepare(p.run, p.log, "abc")
	if err != nil {
		t.Fatal(err)
	}
	m := &monitor{path: path}
	m.open(t)
	m.write(t, "x")
	if err := Show(p.run, p.log, "abc"); err != nil {
		t.Fatal(err)
	}
	if err := Drop(p.run, p.log, "abc"); err != nil {
		t.Fatal(err)
	}
	content(t, p.log, "x")
}

func TestNotPreparedIsLeftAlone(t *testing.T) {
	p := newPlace(t)
	m := &monitor{path: p.log}
	m.open(t)
	m.write(t, "x")
	if err := Show(p.run, p.log, "abc"); err != nil {
		t.Fatal(err)
	}
	content(t, p.log, "x")
}

func TestBadArguments(t *testing.T) {
	for _, c := range [][3]string{{"run", "/l/0.log", "a"}, {"/run", "0.log", "a"}, {"/run", "/l/0.log", ""}, {"/run", "/l/0.log", "../a"}} {
		if _, err := Prepare(c[0], c[1], c[2]); err == nil {
			t.Errorf("%v: taken", c)
		}
	}
}

// A runtime starts and removes containers whose paths Prepare refuses, too: without a log, say.
func TestWhatPrepareRefusesIsNoObstacle(t *testing.T) {
	for _, c := range [][2]string{{"", ""}, {t.TempDir(), ""}, {"", filepath.Join(t.TempDir(), "0.log")}, {"run", "log/0.log"}} {
		if _, err := Prepare(c[0], c[1], "a"); err == nil {
			t.Errorf("%q: taken", c)
		}
		if err := Show(c[0], c[1], "a"); err != nil {
			t.Errorf("%q: Show: %v", c, err)
		}
		if err := Drop(c[0], c[1], "a"); err != nil {
			t.Errorf("%q: Drop: %v", c, err)
		}
	}
}

// The monitor that CRI-O starts, unchanged, before a runtime that is a script.
func TestConmon(t *testing.T) {
	conmon, err := exec.LookPath("conmon")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("conmon is not installed")
		}
		t.Skip("conmon is not installed")
	}
	p := newPlace(t)
	for _, dir := range []string{"bundle", "exits", "attach", "persist"} {
		if err := os.Mkdir(filepath.Join(p.run, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(p.run, name) }
	if err := syscall.Mkfifo(in("say"), 0o600); err != nil {
		t.Fatal(err)
	}
	// create leaves a process that says what it is told, until its standard input ends
	script := fmt.Sprintf("#!/bin/sh\nfor a; do [ \"$p\" = --pid-file ] && f=$a; p=$a; done\n( exec cat <%s ) &\necho $! >\"$f\"\n", in("say"))
	if err := os.WriteFile(in("runtime"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := Prepare(p.run, p.log, "abc")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(conmon, "-b", in("bundle"), "-c", "abc", "-u", "abc", "-n", "web", "-r", in("runtime"), "-l", path,
		"--exit-dir", in("exits"), "-P", in("conmon.pid"), "-p", in("bundle/pidfile"), "--persist-dir", in("persist"), "--socket-dir-path", in("attach"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	say, err := os.OpenFile(in("say"), os.O_WRONLY, 0) // returns when the container's process is there, so conmon has its log
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		say.Close() // the container ends, and conmon after it
		await(t, "the exit file", func() bool { _, err := os.Stat(in("exits/abc")); return err == nil })
	}()
	if _, err := os.Stat(filepath.Join(hidden(p.log, "abc"), "0.log")); err != nil {
		t.Errorf("conmon's log: %v", err)
	}
	if n := attempt(t, p.dir); n != 0 {
		t.Errorf("while it is created the next attempt is %d, want 0", n)
	}

	if err := Show(p.run, p.log, "abc"); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(say, "first")
	await(t, "the first line", func() bool { return lines(p.log, "first") })

	if err := os.Rename(p.log, p.log+".20260101-000000"); err != nil {
		t.Fatal(err)
	}
	ctl, err := os.OpenFile(in("bundle/ctl"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(ctl, "2 0 0") // open the log again
	ctl.Close()
	await(t, "a new log", func() bool { _, err := os.Stat(p.log); return err == nil })
	fmt.Fprintln(say, "second")
	await(t, "the second line", func() bool { return lines(p.log, "second") })
	if lines(p.log, "first") || lines(p.log+".20260101-000000", "second") {
		t.Error("a line is in the wrong file")
	}
}

func lines(path, want string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasSuffix(s.Text(), " stdout F "+want) {
			return true
		}
	}
	return false
}

// await looks again until it is so: conmon tells nobody when it has written. Whoever waits for a
// minute has failed.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}
