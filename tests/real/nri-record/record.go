// SPDX-License-Identifier: Apache-2.0

// Package record is what the two recorders (../nri on the newest NRI, ../nri-v030 on an old one)
// have in common: a log of every call, and a script that says what to answer. The two speak
// different versions of NRI, which one program cannot hold.
//
// The log has one JSON object a line. A call is two lines, "call" when it comes in and "done" when
// it is answered, so that calls under way at the same time are seen. Keys are flat and always in
// the same order, for shell scripts.
//
// The script is a file that is read anew at each call; whoever writes it renames it into place. A
// line is
//
//	EVENT[/NAME] VERB [ARGUMENT...]      NAME: of the pod or the container only
//
// and all lines that fit are obeyed in order. Verbs of every event: "sleep SPAN", "wait FILE"
// (until there is such a file), "error TEXT", "exit [STATUS]", "close" (the connection, at once),
// "call-update CONTAINER SHARES" (UpdateContainers, from inside the call). Those that change the
// answer are the recorders'.
package record

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Line of the log.
type Line struct {
	At     float64 `json:"at"` // seconds since 1970
	Plugin string  `json:"plugin"`
	Conn   int     `json:"conn"` // 1: its first connection; tries that fail do not count
	What   string  `json:"what"` // call, done; start, up, refused, lost; has (one object of a Synchronize); rpc, env
	Event  string  `json:"event,omitempty"`
	Fields
}

// Fields of a line: what is told of the object, and of the call.
type Fields struct {
	Pod       string            `json:"pod,omitempty"` // id
	Name      string            `json:"name,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	UID       string            `json:"uid,omitempty"`
	Container string            `json:"container,omitempty"` // id
	CName     string            `json:"cname,omitempty"`
	State     string            `json:"state,omitempty"`
	Pid       uint32            `json:"pid,omitempty"` // of the container if there is one, else of the pod
	IPs       string            `json:"ips,omitempty"`
	Network   string            `json:"network,omitempty"` // path of the network namespace
	Cgroup    string            `json:"cgroup,omitempty"`
	Shares    uint64            `json:"shares,omitempty"`
	Asked     uint64            `json:"asked,omitempty"` // shares an update asks for
	Pods      int               `json:"pods,omitempty"`  // of a Synchronize
	Cs        int               `json:"containers,omitempty"`
	Left      int64             `json:"left,omitempty"` // ms until the call's own deadline
	More      bool              `json:"more,omitempty"`
	Text      string            `json:"text,omitempty"`
	Env       []string          `json:"env,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Mounts    []string          `json:"mounts,omitempty"`
	Notes     map[string]string `json:"annotations,omitempty"`
}

// Order is one line of the script that is not obeyed here.
type Order struct {
	Verb string
	Args []string
}

// Arg is the i-th argument, or "".
func (o Order) Arg(i int) string {
	if i < len(o.Args) {
		return o.Args[i]
	}
	return ""
}

// Number is the i-th argument as one.
func (o Order) Number(i int) int64 {
	n, err := strconv.ParseInt(o.Arg(i), 0, 64)
	if err != nil {
		log.Fatalf("%s %v: %v", o.Verb, o.Args, err)
	}
	return n
}

// Recorder is one plugin: its options, its log, its script.
type Recorder struct {
	Plugin    string // NN-name
	Socket    string
	Events    string
	Reconnect time.Duration
	// of the recorder: an unsolicited UpdateContainers, and the end of the connection
	Update func(container string, shares uint64) error
	Close  func()

	mu     sync.Mutex
	script string
	path   string
	out    *os.File
	before []Line // said before it was known where to
	conn   int
}

// Launched tells whether a runtime has started this program, with its socket as a descriptor.
func Launched() bool { return os.Getenv("NRI_PLUGIN_SOCKET") != "" }

// Options reads the command line: an external plugin has its options there, a launched one in its
// configuration.
func (r *Recorder) Options() (index, name string) {
	flag.StringVar(&name, "name", "recorder", "the plugin's name")
	flag.StringVar(&index, "idx", "10", "its index")
	flag.StringVar(&r.Socket, "socket", "/var/run/nri/nri.sock", "to dial")
	flag.StringVar(&r.path, "log", "", "every call goes in there")
	flag.StringVar(&r.script, "script", "", "what to answer")
	flag.StringVar(&r.Events, "events", "", "to subscribe to, with commas; all there are, but validation")
	flag.DurationVar(&r.Reconnect, "reconnect", 0, "dial again after a loss, and this pause")
	flag.Parse()
	log.SetFlags(0)
	if Launched() {
		index, name = os.Getenv("NRI_PLUGIN_IDX"), os.Getenv("NRI_PLUGIN_NAME")
	}
	r.Plugin = index + "-" + name
	log.SetPrefix(r.Plugin + ": ")
	if r.path != "" {
		r.open(r.path)
	}
	if Launched() {
		r.Note("env", "", Fields{Env: os.Environ(), Args: os.Args})
	}
	return index, name
}

func (r *Recorder) open(path string) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	r.mu.Lock()
	r.out = out
	before := r.before
	r.before = nil
	r.mu.Unlock()
	for _, line := range before {
		r.write(line)
	}
}

// Configured obeys a drop-in configuration: lines "log FILE", "script FILE" and "events LIST".
func (r *Recorder) Configured(config string) {
	for _, line := range strings.Split(config, "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "log":
			r.open(value)
		case "script":
			r.script = value
		case "events":
			r.Events = value
		}
	}
}

func (r *Recorder) write(line Line) {
	for key, value := range line.Notes {
		if len(value) > 1000 {
			line.Notes[key] = value[:1000]
		}
	}
	text, err := json.Marshal(line)
	if err != nil {
		log.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		r.before = append(r.before, line)
	} else if _, err := r.out.Write(append(text, '\n')); err != nil {
		log.Fatal(err)
	}
}

// Note writes one line.
func (r *Recorder) Note(what, event string, fields Fields) {
	r.mu.Lock()
	conn := r.conn
	r.mu.Unlock()
	at := float64(time.Now().UnixMicro()) / 1e6
	r.write(Line{At: at, Plugin: r.Plugin, Conn: conn, What: what, Event: event, Fields: fields})
}

// orders of the script for this event of an object with one of these names
func (r *Recorder) orders(event string, names ...string) (orders []Order) {
	if r.script == "" {
		return nil
	}
	text, err := os.ReadFile(r.script)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		what, of, named := strings.Cut(words[0], "/")
		fits := !named
		for _, name := range names {
			fits = fits || name == of
		}
		if what == event && fits {
			orders = append(orders, Order{words[1], words[2:]})
		}
	}
	return orders
}

// Call writes down that a call has come in and obeys the script as far as every call can. @done
// writes down its end.
func (r *Recorder) Call(event string, fields Fields) (rest []Order, done func() error) {
	var err error
	r.Note("call", event, fields)
	for _, order := range r.orders(event, fields.Name, fields.CName) {
		switch order.Verb {
		case "sleep":
			span, err := time.ParseDuration(order.Arg(0))
			if err != nil {
				log.Fatal(err)
			}
			time.Sleep(span)
		case "wait":
			for {
				if _, err := os.Stat(order.Arg(0)); err == nil {
					break
				}
				time.Sleep(2 * time.Millisecond)
			}
		case "error":
			err = errors.New(strings.Join(order.Args, " "))
		case "exit":
			status, _ := strconv.Atoi(order.Arg(0))
			os.Exit(status)
		case "close":
			r.Close()
		case "call-update":
			began := time.Now()
			answer := "done"
			if err := r.Update(order.Arg(0), uint64(order.Number(1))); err != nil {
				answer = err.Error()
			}
			r.Note("updated", event, Fields{Container: order.Arg(0), Text: answer, Left: time.Since(began).Milliseconds()})
		default:
			rest = append(rest, order)
		}
	}
	return rest, func() error {
		end := Fields{Pod: fields.Pod, Name: fields.Name, Container: fields.Container, CName: fields.CName}
		if err != nil {
			end.Text = err.Error()
		}
		r.Note("done", event, end)
		return err
	}
}

// Run connects, and again when it is to. @connect returns when the plugin is registered and
// configured, or why it is not; @lost blocks until the connection is gone.
func (r *Recorder) Run(connect func() (lost func(), err error)) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals { // out of the blue: lines "SIGUSR1 ..." of the script
			_, done := r.Call("SIGUSR1", Fields{})
			done()
		}
	}()
	r.conn = 1
	for {
		r.Note("start", "", Fields{})
		lost, err := connect()
		if err == nil {
			r.Note("up", "", Fields{})
			lost()
			r.Note("lost", "", Fields{})
			r.mu.Lock()
			r.conn++
			r.mu.Unlock()
		} else {
			r.Note("refused", "", Fields{Text: err.Error()})
		}
		if r.Reconnect == 0 || Launched() {
			if err != nil {
				log.Fatal(err)
			}
			return
		}
		time.Sleep(r.Reconnect)
	}
}

// Self is the name this program was started by.
func Self() string { return filepath.Base(os.Args[0]) }

// Joined is a list as one text.
func Joined(list []string) string { return strings.Join(list, ",") }

// Mounted is one mount as text.
func Mounted(source, destination string, options []string) string {
	return fmt.Sprintf("%s:%s:%s", source, destination, strings.Join(options, ","))
}
