// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"crikeep.io/go/crikeep"
)

// Settings are what one life of the runtime is started with.
type Settings struct {
	Clock    time.Duration // where its clock stands; 0: the kernel's
	Rules    []*Rule
	Plugins  []string // connected from the start
	Required []string
	Forget   []string // calls this vendor leaves out, though a vendor must make them: see broken.go
	HandBack crikeep.HandBackMode
}

// Runtime is a vendor's container runtime: slow on command, and with crikeep in the place of its
// own reservations.
type Runtime struct {
	settings Settings
	store    *Store
	diary    *Diary
	points   *Points
	clock    *Clock // nil: the kernel's
	plugins  *Plugins
	cache    *crikeep.Cache
	plugged  chan struct{} // closed when the plugins of the start are connected

	mu    sync.Mutex
	views map[string]*crikeep.View // opened by name, for a list that takes its time
	stale map[string][]crikeep.Object
}

// A Call is one line to the runtime, an Answer the one that comes back. Who closes the connection
// before has gone.
type Call struct {
	Op      string
	Number  int // of the call, for the diary
	Want    Want
	Timeout time.Duration `json:",omitempty"`
	Expired bool
	Kind    crikeep.Kind
	ID      string
	Rule    *Rule
	Name    string
	By      time.Duration
	N       int
	Seen    crikeep.Condition
}

// Answer is what a call comes to.
type Answer struct {
	ID      string `json:",omitempty"`
	Bytes   []byte `json:",omitempty"`
	Busy    bool   `json:",omitempty"`
	Code    uint32 `json:",omitempty"` // gRPC's
	Text    string `json:",omitempty"`
	IDs     []string
	Entries []crikeep.Entry
	Yes     bool
}

// codes of gRPC that the runtime uses itself
const (
	codeCancelled     = 1
	codeDeadline      = 4
	codeNotFound      = 5
	codeAlreadyExists = 6
	codeUnavailable   = 14
)

func (r *Runtime) forgets(what string) bool {
	for _, forgotten := range r.settings.Forget {
		if forgotten == what {
			return true
		}
	}
	return false
}

// serve is one life of the runtime: until it is told to close, or killed.
func serve(dir string, settings Settings) error {
	signal.Ignore(syscall.SIGXFSZ) // a file that may not grow is an error like others (K32)
	diary, err := openDiary(dir)
	if err != nil {
		return err
	}
	r := &Runtime{
		settings: settings, diary: diary, store: &Store{dir: dir, diary: diary}, points: newPoints(settings.Rules),
		views: map[string]*crikeep.View{}, stale: map[string][]crikeep.Object{}, plugged: make(chan struct{}),
	}
	logFile, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	options := crikeep.Options{
		StateDir: filepath.Join(dir, "state"),
		Host:     host{r},
		Logger:   slog.New(slog.NewTextHandler(logFile, &slog.HandlerOptions{Level: slog.LevelDebug})),
		HandBack: settings.HandBack,
	}
	if settings.Clock != 0 {
		r.clock = &Clock{now: settings.Clock, alarms: map[chan struct{}]time.Duration{}}
		options.Now = r.clock.Now
	}
	r.plugins = newPlugins(r, settings.Required)
	if settings.Plugins != nil || settings.Required != nil {
		options.Hooks = r.plugins
	}
	if r.forgets("state") {
		if err := os.RemoveAll(options.StateDir); err != nil {
			return err
		}
	}
	if r.cache, err = crikeep.Open(options); err != nil {
		return err
	}
	for _, name := range settings.Plugins {
		if err := r.plugins.Connect(name); err != nil {
			return err
		}
	}
	close(r.plugged)
	path := filepath.Join(dir, "socket")
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go r.answer(conn)
	}
}

func (r *Runtime) after(d time.Duration) <-chan struct{} {
	if r.clock != nil {
		return r.clock.After(d)
	}
	alarm := make(chan struct{})
	time.AfterFunc(d, func() { close(alarm) })
	return alarm
}

func (r *Runtime) answer(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		return
	}
	var call Call
	if err := json.Unmarshal(line, &call); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	ctx, gone := context.WithCancel(context.Background())
	defer gone()
	go func() { // who asks says nothing more but that he has gone
		reader.ReadByte()
		gone()
	}()
	if call.Op == "create" {
		r.create(ctx, &call, conn)
		return
	}
	result, err := r.do(ctx, &call)
	if err != nil {
		result.Code, result.Text = crikeep.GRPCCode(err), err.Error()
	}
	json.NewEncoder(conn).Encode(result)
	if call.Op == "close" {
		os.Exit(0)
	}
}

// ---- creating -----------------------------------------------------------------------------------

// create is RunPodSandbox and CreateContainer: the short way, through Do, or through a turn of its
// own, by which the runtime can say whether the answer arrived (K7).
func (r *Runtime) create(ctx context.Context, call *Call, conn net.Conn) {
	if call.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, call.Timeout)
		defer cancel()
	}
	request := crikeep.Request{Kind: call.Want.Kind, Bytes: call.Want.Bytes(), Expired: call.Expired}
	asked := ctx
	if r.forgets("leave") {
		asked = context.WithoutCancel(ctx)
	}
	if r.forgets("cache") {
		result, err := r.make(ctx, nil, call.Want)
		r.tell(ctx, call, conn, crikeep.Reply{ID: result.ID}, err)
		return
	}
	if call.Name == "do" {
		r.diary.Note("begun %d", call.Number)
		reply, err := r.cache.Do(asked, request, func(ctx context.Context, turn *crikeep.Turn) (crikeep.Result, error) {
			return r.make(ctx, turn, call.Want)
		})
		if ctx.Err() != nil {
			r.diary.Note("left %d", call.Number)
		}
		r.tell(ctx, call, conn, reply, err)
		return
	}
	turn, err := r.cache.Begin(asked, request)
	r.diary.Note("begun %d", call.Number)
	if err != nil {
		r.tell(ctx, call, conn, crikeep.Reply{}, err)
		return
	}
	defer turn.Close()
	// A creation goes on when its caller has gone, and so does its turn.
	stay := context.AfterFunc(ctx, func() {
		if !r.forgets("leave") {
			turn.Leave()
		}
		r.diary.Note("left %d", call.Number)
	})
	var once sync.Once
	delivered := false
	tell := func(reply crikeep.Reply, err error) {
		once.Do(func() { delivered = r.tell(ctx, call, conn, reply, err) })
	}
	outcome := turn.Outcome()
	for err == nil && (outcome == crikeep.Create || outcome == crikeep.Wait) {
		if outcome == crikeep.Wait {
			outcome, err = turn.Wait(asked)
			continue
		}
		making, ended := context.WithCancel(context.Background())
		go func() {
			select {
			case <-turn.Abandoned(): // whoever asked hears so at once, whatever becomes of the creation
				tell(crikeep.Reply{}, crikeep.ErrAbandoned)
			case <-making.Done():
			}
			ended()
		}()
		result, failed := r.make(making, turn, call.Want)
		ended()
		switch {
		case failed == nil:
			outcome, err = turn.Finish(result)
			r.diary.Note("finish %d %v", call.Number, outcome)
		case uncertain(failed) && !r.forgets("lost"):
			outcome, err = crikeep.Wait, turn.Lost()
		case r.forgets("fail"):
			err = failed
		default:
			err = failed
			if ended := turn.Fail(failed); ended != nil {
				err = ended
			} else if turn.Outcome() == crikeep.Wait { // the first request may still run (K8)
				outcome, err = crikeep.Wait, nil
			}
		}
	}
	var reply crikeep.Reply
	if err == nil && outcome == crikeep.HandBack {
		reply, err = turn.Reply()
	} else if err == nil {
		err = &outcomeError{outcome}
	}
	tell(reply, err)
	if err == nil && !r.forgets("answered") {
		turn.Answered(delivered)
	}
	r.diary.Note("told %d %t", call.Number, delivered)
	if stay() && ctx.Err() != nil { // Wait has heard of it first
		r.diary.Note("left %d", call.Number)
	}
}

// outcomeError is a turn that ended otherwise than with a result.
type outcomeError struct{ outcome crikeep.Outcome }

func (e *outcomeError) Error() string { return e.outcome.String() }

func (r *Runtime) tell(ctx context.Context, call *Call, conn net.Conn, reply crikeep.Reply, err error) bool {
	r.points.At(context.Background(), "answer", call.Want.Key())
	result := Answer{ID: reply.ID, Bytes: reply.Bytes}
	var ended *outcomeError
	if err != nil {
		result.Code, result.Text = crikeep.GRPCCode(err), err.Error()
		result.Busy = errors.Is(err, crikeep.ErrBusy)
	}
	if errors.As(err, &ended) {
		result.Busy, result.Code = ended.outcome == crikeep.Busy, codeUnavailable
	}
	if ctx.Err() != nil {
		r.diary.Note("gone %d", call.Number)
		return false
	}
	return json.NewEncoder(conn).Encode(result) == nil
}

// uncertain: the creation may have happened all the same (K8)
func uncertain(err error) bool {
	switch crikeep.GRPCCode(err) {
	case codeCancelled, codeDeadline, codeUnavailable:
		return true
	}
	return errors.Is(err, context.Canceled)
}

func (r *Runtime) make(ctx context.Context, turn *crikeep.Turn, want Want) (crikeep.Result, error) {
	r.diary.Note("begin %s %s", want.Kind, want.Key())
	if turn != nil && !r.forgets("stage") {
		turn.Stage("sandbox network creation")
	}
	if err := r.points.At(ctx, "make", want.Key()); err != nil {
		return crikeep.Result{}, err
	}
	objects, err := r.store.List(want.Kind)
	if err != nil {
		return crikeep.Result{}, err
	}
	if r.forgets("reserve") {
		objects = nil
	}
	for _, o := range objects { // as runtimes do: the name is reserved until it is removed
		if key(o.PodName, o.ContainerName, o.Attempt) == want.Key() && o.PodUID == want.uid() {
			r.diary.Note("reserved %s", want.Key())
			return crikeep.Result{}, &crikeep.StatusError{GRPC: codeAlreadyExists, Message: "the name is reserved"}
		}
	}
	id, err := r.store.Make(want, "")
	if err != nil {
		return crikeep.Result{}, err
	}
	if err := r.points.At(context.Background(), "made", want.Key()); err != nil {
		return crikeep.Result{}, err
	}
	return crikeep.Result{ID: id}, nil
}

// ---- what the cache asks of its host ------------------------------------------------------------

type host struct{ r *Runtime }

// Destroy stops and removes.
func (h host) Destroy(ctx context.Context, e crikeep.Entry) error {
	r, key := h.r, entryKey(e)
	r.diary.Note("destroy %s %s", key, e.ID)
	if err := r.points.At(ctx, "destroy", key); err != nil {
		if r.forgets("errors") {
			return nil
		}
		return err
	}
	if r.forgets("destroy") {
		return nil // and says that it did
	}
	if _, _, err := r.store.Read(e.ID); errors.Is(err, fs.ErrNotExist) {
		r.diary.Note("not-found %s %s", key, e.ID)
		return crikeep.ErrNotFound
	}
	if err := r.store.Kill(e.ID); err != nil {
		return err
	}
	if err := r.store.Remove(e.ID); err != nil {
		return err
	}
	r.diary.Note("destroyed %s %s", key, e.ID)
	return r.points.At(ctx, "destroyed", key)
}

// Inspect asks whether one is alive.
func (h host) Inspect(ctx context.Context, e crikeep.Entry) (crikeep.Condition, error) {
	h.r.diary.Note("inspect %s %s", entryKey(e), e.ID)
	if h.r.forgets("inspect") {
		return crikeep.Ready, nil
	}
	if err := h.r.points.At(ctx, "inspect", entryKey(e)); err != nil {
		if h.r.forgets("errors") {
			return crikeep.Dead, nil
		}
		return crikeep.Unknown, err
	}
	_, condition, err := h.r.store.Read(e.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return crikeep.Absent, nil
	}
	return condition, err
}

// List tells what there is.
func (h host) List(ctx context.Context, f crikeep.Filter) ([]crikeep.Object, error) {
	<-h.r.plugged // what is destroyed after the first lists is told to those who are owed it (H3)
	h.r.diary.Note("list %s", f.Kind)
	if err := h.r.points.At(ctx, "list", f.Kind.String()); err != nil {
		if h.r.forgets("errors") {
			return nil, nil
		}
		return nil, err
	}
	all, err := h.r.store.List(f.Kind)
	if err != nil {
		return nil, err
	}
	if h.r.forgets("list") {
		all = nil
	}
	var objects []crikeep.Object
	for _, o := range all {
		if (f.PodUID == "" || f.PodUID == o.PodUID) && (f.SandboxID == "" || f.SandboxID == o.SandboxID) {
			objects = append(objects, o)
		}
	}
	return objects, h.r.points.At(ctx, "listed", f.Kind.String())
}

// Committed is when a runtime would send its events.
func (h host) Committed(e crikeep.Entry) {
	h.r.diary.Note("committed %s %s", entryKey(e), e.ID)
}

// ---- everything else ----------------------------------------------------------------------------

func (r *Runtime) do(ctx context.Context, call *Call) (Answer, error) {
	switch call.Op {
	case "hold", "fail":
		r.points.Add(call.Rule)
	case "release":
		r.points.Release(call.Rule.Point, call.Rule.Target, call.Rule.Hold)
	case "arrived":
		return Answer{}, r.points.Arrived(ctx, call.Rule.Point, call.Rule.Target, call.N)
	case "advance":
		r.clock.Advance(call.By)
		r.cache.Step()
	case "entries":
		entries, err := r.cache.Entries()
		return Answer{Entries: entries, Yes: r.cache.Reconciled()}, err
	case "list":
		return r.list(ctx, call.Kind)
	case "view-open": // a list as a slow runtime makes it: what it will show is read now
		view, err := r.cache.View()
		if err != nil {
			return Answer{}, err
		}
		objects, err := r.store.List(call.Kind)
		r.mu.Lock()
		defer r.mu.Unlock()
		if call.ID != "" { // what another list read, long ago
			objects = r.stale[call.ID]
		}
		r.views[call.Name], r.stale[call.Name] = view, objects
		return Answer{}, err
	case "view-listed", "view-shown":
		r.mu.Lock()
		view, objects := r.views[call.Name], r.stale[call.Name]
		r.mu.Unlock()
		if call.Op == "view-listed" {
			return Answer{}, view.Listed(call.Kind, objects)
		}
		return r.shown(view, objects)
	case "view-close":
		r.mu.Lock()
		defer r.mu.Unlock()
		return Answer{}, r.views[call.Name].Close()
	case "status":
		return r.status(call)
	case "stop":
		return Answer{}, r.stop(ctx, call.ID)
	case "remove":
		if call.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, call.Timeout)
			defer cancel()
		}
		return Answer{}, r.remove(ctx, call)
	case "seen":
		return Answer{}, r.cache.ObjectSeen(call.Kind, call.ID, call.Seen)
	case "used":
		return Answer{}, r.cache.ObjectUsed(call.Kind, call.ID)
	case "plug":
		return Answer{}, r.plugins.Connect(call.Name)
	case "unplug":
		r.plugins.Drop(call.Name)
	case "close":
		return Answer{}, r.cache.Close()
	default:
		return Answer{}, fmt.Errorf("no call is named %q", call.Op)
	}
	return Answer{}, nil
}

func (r *Runtime) shown(view *crikeep.View, objects []crikeep.Object) (answer Answer, err error) {
	for _, o := range objects {
		hidden, err := view.Hides(o)
		if err != nil {
			return answer, err
		}
		if !hidden || r.forgets("view") {
			answer.IDs = append(answer.IDs, o.ID)
		}
	}
	return answer, nil
}

// list is ListPodSandbox and ListContainers.
func (r *Runtime) list(ctx context.Context, kind crikeep.Kind) (Answer, error) {
	view, err := r.cache.View()
	if err != nil {
		return Answer{}, err
	}
	defer view.Close()
	objects, err := r.store.List(kind)
	if err != nil {
		return Answer{}, err
	}
	if !r.forgets("listed") {
		if err := view.Listed(kind, objects); err != nil {
			return Answer{}, err
		}
	}
	return r.shown(view, objects)
}

// status is PodSandboxStatus and ContainerStatus; like crictl's users, it takes the beginning of an
// id.
func (r *Runtime) status(call *Call) (Answer, error) {
	view, err := r.cache.View()
	if err != nil {
		return Answer{}, err
	}
	defer view.Close()
	id, _, err := view.Resolve(call.Kind, call.ID)
	if errors.Is(err, crikeep.ErrNotFound) && r.forgets("view") {
		id, err = call.ID, nil
	}
	if errors.Is(err, crikeep.ErrNotFound) {
		return Answer{}, &crikeep.StatusError{GRPC: codeNotFound, Message: "there is none"}
	}
	if err != nil {
		return Answer{}, err
	}
	if _, _, err := r.store.Read(id); err != nil {
		return Answer{}, &crikeep.StatusError{GRPC: codeNotFound, Message: "there is none"}
	}
	r.cache.ObjectUsed(call.Kind, id)
	return Answer{ID: id}, nil
}

func (r *Runtime) entry(kind crikeep.Kind, id string) (crikeep.Entry, error) {
	entries, err := r.cache.Entries()
	for _, e := range entries {
		if e.Kind == kind && e.ID == id {
			return e, nil
		}
	}
	return crikeep.Entry{Kind: kind, ID: id}, err
}

// stop is StopPodSandbox.
func (r *Runtime) stop(ctx context.Context, id string) error {
	if !r.forgets("stopping") {
		if err := r.cache.SandboxStopping(id); err != nil {
			return err
		}
	}
	containers, err := r.store.List(crikeep.Container)
	if err != nil {
		return err
	}
	if err := r.tellOf(ctx, crikeep.HookStop, crikeep.Sandbox, id); err != nil {
		return err
	}
	for _, c := range containers {
		if c.SandboxID == id {
			if err := r.store.Kill(c.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	r.diary.Note("stop %s", id)
	return r.store.Kill(id)
}

// remove is RemovePodSandbox and RemoveContainer.
func (r *Runtime) remove(ctx context.Context, call *Call) error {
	return r.cache.Remove(ctx, call.Kind, call.ID, func(ctx context.Context) error {
		r.diary.Note("remove %s", call.ID)
		if err := r.points.At(ctx, "remove", call.ID); err != nil {
			return err
		}
		if err := r.store.Remove(call.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return r.tellOf(ctx, crikeep.HookRemove, call.Kind, call.ID)
	})
}

// the plugins of a committed one are told by the runtime itself, for it is the kubelet that wants
// its end
func (r *Runtime) tellOf(ctx context.Context, event crikeep.HookEvent, kind crikeep.Kind, id string) error {
	e, err := r.entry(kind, id)
	if err != nil || e.Number == 0 {
		return err
	}
	r.plugins.send(ctx, event, e, r.plugins.knowing(e))
	return nil
}

// flags are the settings of this life, as one argument.
func (s Settings) flag() string {
	var text strings.Builder
	json.NewEncoder(&text).Encode(s)
	return text.String()
}
