// SPDX-License-Identifier: Apache-2.0

// vendor is a small container runtime as somebody else would write it, with crikeep inside: nothing
// of crikeep's tree is used but the Go binding and the installed library. Its sandboxes and
// containers are directories with a process each, which outlive it.
//
//	vendor play [-only TEXT] [-jobs N] [-do] [-forget WHAT]
//	                            every rule x (in time, late, killed), one line each
//	vendor broken               the same vendor, each time without one call it owes: which lines go red
//	vendor serve DIR SETTINGS   one life of the runtime; what the scenarios start and kill
//
// "In time": the caller is there when the result comes. "Late": it came too late. "Killed": kill -9
// in the middle of it, at the point that is interesting for the rule, and a second life.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A scene says what holds, and plays it.
type scene struct {
	says string
	play func(*Play)
}

// A chapter plays one rule of the rule book, crikeep-rules(7).
type chapter struct {
	rule                 string
	inTime, late, killed scene
}

type line struct {
	rule, when string
	scene
}

func (l line) String() string { return fmt.Sprintf("%s %s: %s", l.rule, l.when, l.says) }

func lines() (all []line) {
	for _, part := range [][]chapter{once, unknown, moving, destroying, reconciling, storing, hooked} {
		for _, c := range part {
			all = append(all, line{c.rule, "in time", c.inTime}, line{c.rule, "late", c.late}, line{c.rule, "killed", c.killed})
		}
	}
	return all
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: vendor play [-only TEXT] [-jobs N] [-forget WHAT] [-do]\n"+
			"       vendor broken\n       vendor serve DIR SETTINGS")
		os.Exit(2)
	}
	options := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	only := options.String("only", "", "lines that contain this")
	forget := options.String("forget", "", "what this vendor leaves out: see broken.go")
	do := options.Bool("do", false, "the vendor's requests go through Do, but for scenes that need a turn")
	jobs := options.Int("jobs", 4*runtime.NumCPU(), "scenarios at a time; they mostly wait")
	switch os.Args[1] {
	case "serve":
		var settings Settings
		err := json.Unmarshal([]byte(os.Args[3]), &settings)
		if err == nil {
			err = serve(os.Args[2], settings)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case "play":
		options.Parse(os.Args[2:])
		var some []line
		for _, l := range lines() {
			if strings.Contains(l.String(), *only) {
				some = append(some, l)
			}
		}
		os.Exit(playAll(some, *jobs, strings.Fields(*forget), *do))
	case "broken":
		options.Parse(os.Args[2:])
		os.Exit(playBroken(*jobs))
	}
	os.Exit(2)
}

type result struct {
	failure, help string
	none          bool // not a scenario for Do
}

// each plays some at a time, and gives their results in order.
func each(n, jobs int, play func(int) result, tell func(int, result)) {
	results := make([]chan result, n)
	slots := make(chan struct{}, jobs)
	var players sync.WaitGroup
	for i := range results {
		results[i] = make(chan result, 1)
	}
	players.Add(1)
	go func() {
		defer players.Done()
		for i := range results {
			slots <- struct{}{}
			go func(i int) {
				results[i] <- play(i)
				<-slots
			}(i)
		}
	}()
	for i := range results {
		tell(i, <-results[i])
	}
	players.Wait()
}

// patience with a machine that is busy
func patience(d time.Duration) time.Duration {
	if slow, err := strconv.Atoi(os.Getenv("CK_TEST_SLOW")); err == nil && slow > 1 {
		d *= time.Duration(slow)
	}
	return d
}

func playAll(some []line, jobs int, forget []string, do bool) (status int) {
	most, how := patience(30*time.Second), ""
	if len(forget) > 0 {
		most = patience(brokenPatience)
	}
	if do {
		how = ", through Do"
	}
	each(len(some), jobs, func(i int) result {
		return stage(some[i].play, most, forget, do)
	}, func(i int, r result) {
		l := fmt.Sprintf("%s %s%s: %s", some[i].rule, some[i].when, how, some[i].says)
		switch {
		case r.none:
		case r.failure == "":
			fmt.Printf("%sok - %s\n", r.help, l)
		default:
			fmt.Printf("%s# %s\nnot ok - %s\n", r.help, r.failure, l)
			status = 1
		}
	})
	return status
}
