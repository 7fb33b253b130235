// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// the clock of the runtime's log; ns
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

type processes struct {
	cri, runtime, log string
	from, to          int64 // the runtime's log began in between
	sim, crikeepd     *exec.Cmd
	stop              chan struct{}
	kills             chan int
}

func spawn(dir, name string, args ...string) (*exec.Cmd, error) {
	out, err := os.OpenFile(filepath.Join(dir, filepath.Base(name)+".err"),
		os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, cmd.Start()
}

func kill(cmd *exec.Cmd) {
	if cmd != nil && cmd.Process != nil {
		cmd.Process.Kill()
		cmd.Wait()
	}
}

func await(socket string) error {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.Dial("unix", socket); err == nil {
			return conn.Close()
		}
	}
	return err
}

// start - a runtime that is fast or slow, and finishes or undoes what nobody waits for
func start(o *options, random *rand.Rand) (*processes, error) {
	dir, err := os.MkdirTemp(o.dir, "l")
	if err != nil {
		return nil, err
	}
	p := &processes{
		cri:     filepath.Join(dir, "cri.sock"),
		runtime: filepath.Join(dir, "sim.sock"),
		log:     filepath.Join(dir, "log"),
		stop:    make(chan struct{}),
		kills:   make(chan int, 1),
	}
	cancel := []string{"finish", "rollback"}[random.Intn(2)]
	p.from = now()
	p.sim, err = spawn(dir, o.sim, fmt.Sprintf(
		"listen=%s,log=%s,cancel=%s,create=%dms,stop=%dms,remove=%dms,list=%dms", p.runtime, p.log,
		cancel, 1+random.Intn(300), random.Intn(50), random.Intn(50), random.Intn(20)))
	if err != nil {
		return nil, err
	}
	if err = await(p.runtime); err != nil {
		return nil, err
	}
	p.to = now()
	launch := func() error {
		p.crikeepd, err = spawn(dir, o.crikeepd, "--runtime", "unix://"+p.runtime, "--listen",
			p.cri, "--unfiltered", "", "--metrics", "", "--state-dir",
			filepath.Join(dir, "state"), "--set", "confine=false")
		return err
	}
	if err = launch(); err == nil {
		err = await(p.cri)
	}
	if err == nil {
		go p.killing(o.kill, launch, random.Int63())
	}
	return p, err
}

func (p *processes) killing(really bool, launch func() error, seed int64) {
	random := rand.New(rand.NewSource(seed))
	for n := 0; ; n++ {
		select {
		case <-p.stop:
			p.kills <- n
			return
		case <-time.After(time.Duration(300+random.Intn(2000)) * time.Millisecond):
		}
		if !really {
			n--
			continue
		}
		kill(p.crikeepd)
		if err := launch(); err != nil {
			panic(err)
		}
	}
}

func (p *processes) stopKilling() int {
	close(p.stop)
	return <-p.kills
}

func (p *processes) end() {
	kill(p.crikeepd)
	kill(p.sim)
	os.RemoveAll(filepath.Dir(p.log))
}
