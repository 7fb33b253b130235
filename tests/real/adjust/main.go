// SPDX-License-Identifier: Apache-2.0

// Adjust compares two mergers of what NRI plugins want: containerd's own, pkg/adaptation with
// plugins inside this process, and crikeep's, behind a program that speaks frames on its standard
// input and output (tests/real/merge.c). Answers are made at random from a seed, with few keys, so
// that plugins meet; both must agree on who conflicts, on what comes out, on what each plugin was
// shown, on the owners, and on the updates of other containers.
//
//	adjust [-seed N] [-cases N] [-v] PROGRAM
//
// Where containerd's side is known to slip, the comparison looks away, or such answers are not
// made; each place says so ("slip:").
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/adaptation/builtin"
	"github.com/containerd/nri/pkg/api"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

var plugins = []string{"10-a", "20-b", "30-c"}

const self = "c1"

// script is one case: what there is, and what each plugin answers.
type script struct {
	container *api.Container      // of a creation
	resources *api.LinuxResources // of an update
	create    []*api.CreateContainerResponse
	update    []*api.UpdateContainerResponse
}

// outcome is what one of the two made of it.
type outcome struct {
	failed string            // the plugin that wanted what another had; "": nobody did
	why    string            // in words
	seen   []proto.Message   // what each plugin was shown
	result proto.Message     // ContainerAdjustment or LinuxResources
	owners map[string]string // "c1 Env A" -> "10-a"
	others []*api.ContainerUpdate
}

func main() {
	seed := flag.Int64("seed", 1, "of the random answers")
	cases := flag.Int("cases", 2000, "how many")
	verbose := flag.Bool("v", false, "say what was merged")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	theirs, err := newTheirs()
	check(err)
	ours, err := newOurs(flag.Arg(0))
	check(err)
	conflicts, merged := 0, 0
	for i := range *cases {
		s := random(rand.New(rand.NewSource(*seed + int64(i))))
		a, b := theirs.play(s), ours.play(s)
		if diff := compare(a, b); diff != "" {
			fmt.Printf("case %d (-seed %d -cases 1): %s\n%s\n", i, *seed+int64(i), diff, s)
			os.Exit(1)
		}
		if a.failed != "" {
			conflicts++
		} else {
			merged++
		}
		if *verbose {
			fmt.Printf("%s\n-> %s %v\n", s, a.why, a.result)
		}
	}
	// a run without either would compare little
	fmt.Printf("%d merged, %d conflicts\n", merged, conflicts)
	if conflicts < *cases/20 || merged < *cases/20 {
		fmt.Println("too few of one of them")
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "adjust:", err)
		os.Exit(2)
	}
}

func (s *script) String() string {
	var b strings.Builder
	text := func(name string, m proto.Message) { fmt.Fprintf(&b, "  %s: %s\n", name, prototext.Format(m)) }
	if s.container != nil {
		text("container", s.container)
	} else {
		text("resources", s.resources)
	}
	for i := range s.create {
		text(plugins[i], s.create[i])
	}
	for i := range s.update {
		text(plugins[i], s.update[i])
	}
	return b.String()
}

// ---- containerd's side --------------------------------------------------------------------------

type theirs struct {
	adaptation *adaptation.Adaptation
	script     *script
	seen       []proto.Message
	owners     *api.OwningPlugins
}

func newTheirs() (*theirs, error) {
	t := &theirs{}
	var all []*builtin.BuiltinPlugin
	for i, name := range plugins {
		index, base, _ := strings.Cut(name, "-")
		all = append(all, &builtin.BuiltinPlugin{Base: base, Index: index, Handlers: builtin.BuiltinHandlers{
			CreateContainer: func(_ context.Context, req *api.CreateContainerRequest) (*api.CreateContainerResponse, error) {
				t.seen = append(t.seen, proto.Clone(req.Container))
				return proto.Clone(t.script.create[i]).(*api.CreateContainerResponse), nil
			},
			UpdateContainer: func(_ context.Context, req *api.UpdateContainerRequest) (*api.UpdateContainerResponse, error) {
				t.seen = append(t.seen, proto.Clone(req.LinuxResources))
				return proto.Clone(t.script.update[i]).(*api.UpdateContainerResponse), nil
			},
		}})
	}
	all = append(all, &builtin.BuiltinPlugin{Base: "validator", Index: "99", Handlers: builtin.BuiltinHandlers{
		ValidateContainerAdjustment: func(_ context.Context, req *api.ValidateContainerAdjustmentRequest) error {
			t.owners = req.Owners
			return nil
		},
	}})
	none := os.TempDir() + "/no-such-directory-of-plugins"
	sync := func(ctx context.Context, fn adaptation.SyncCB) error {
		_, err := fn(ctx, nil, nil)
		return err
	}
	update := func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
		return nil, nil
	}
	a, err := adaptation.New("compare", "1", sync, update, adaptation.WithDisabledExternalConnections(),
		adaptation.WithPluginPath(none), adaptation.WithPluginConfigPath(none), adaptation.WithBuiltinPlugins(all...))
	if err != nil {
		return nil, err
	}
	t.adaptation = a
	return t, a.Start()
}

func (t *theirs) play(s *script) *outcome {
	t.script, t.seen, t.owners = s, nil, nil
	out := &outcome{}
	pod := &api.PodSandbox{Id: "p1"}
	if s.container != nil {
		reply, err := t.adaptation.CreateContainer(context.Background(), &api.CreateContainerRequest{
			Pod: pod, Container: proto.Clone(s.container).(*api.Container)})
		out.seen = t.seen
		if err != nil {
			return out.refused(err.Error())
		}
		out.result, out.others = reply.Adjust, reply.Update
		out.owners = ownersOf(t.owners)
		return out
	}
	reply, err := t.adaptation.UpdateContainer(context.Background(), &api.UpdateContainerRequest{
		Pod: pod, Container: &api.Container{Id: self}, LinuxResources: proto.Clone(s.resources).(*api.LinuxResources)})
	out.seen = t.seen
	if err != nil {
		return out.refused(err.Error())
	}
	out.result = s.resources // nobody has changed them
	for _, u := range reply.Update {
		switch {
		case u == nil:
		case u.ContainerId == self:
			out.result = u.Linux.Resources
		default:
			out.others = append(out.others, u)
		}
	}
	return out
}

// refused keeps of `plugins "20-b" and "10-a" both tried to set ...` who came second. What it is
// that both want depends on the order of a map.
func (o *outcome) refused(why string) *outcome {
	o.why = why
	_, rest, found := strings.Cut(why, "plugins \"")
	o.failed, _, _ = strings.Cut(rest, "\"")
	if !found {
		o.failed = why
	}
	return o
}

// ---- crikeep's side -----------------------------------------------------------------------------

type ours struct {
	in  io.Writer
	out *bufio.Reader
}

func newOurs(program string) (*ours, error) {
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &ours{in, bufio.NewReader(out)}, cmd.Start()
}

func (o *ours) send(frame []byte) {
	check(binary.Write(o.in, binary.BigEndian, uint32(len(frame))))
	_, err := o.in.Write(frame)
	check(err)
}

func (o *ours) receive() []byte {
	var n uint32
	check(binary.Read(o.out, binary.BigEndian, &n))
	frame := make([]byte, n)
	_, err := io.ReadFull(o.out, frame)
	check(err)
	return frame
}

func (o *ours) into(m proto.Message) proto.Message {
	check(proto.Unmarshal(o.receive(), m))
	return m
}

func marshal(m proto.Message) []byte {
	bytes, err := proto.Marshal(m)
	check(err)
	return bytes
}

func (o *ours) play(s *script) *outcome {
	out := &outcome{}
	var replies []proto.Message
	if s.container != nil {
		o.send([]byte("create"))
		o.send(marshal(s.container))
		for _, r := range s.create {
			replies = append(replies, r)
		}
	} else {
		o.send([]byte("update"))
		o.send(marshal(s.resources))
		for _, r := range s.update {
			replies = append(replies, r)
		}
	}
	for i, r := range replies {
		var shown proto.Message = &api.Container{}
		if s.container == nil {
			shown = &api.LinuxResources{}
		}
		o.send([]byte(plugins[i]))
		o.send(marshal(r))
		out.seen = append(out.seen, o.into(shown))
		if why := string(o.receive()); why != "" {
			return out.refused(why)
		}
	}
	o.send(nil)
	if s.container != nil {
		out.result = o.into(&api.ContainerAdjustment{})
	} else {
		out.result = o.into(&api.LinuxResources{})
	}
	out.owners = ownersOf(o.into(&api.OwningPlugins{}).(*api.OwningPlugins))
	out.others = o.into(&api.UpdateContainersRequest{}).(*api.UpdateContainersRequest).Update
	if s.container == nil {
		out.owners = nil // containerd's are not to be had for updates
	}
	return out
}

// ---- the comparison -----------------------------------------------------------------------------

// ownersOf leaves out what was removed: slip: of it, containerd knows owners only if somebody had
// set it before.
func ownersOf(all *api.OwningPlugins) map[string]string {
	owners := map[string]string{}
	put := func(key, owner string) {
		if !strings.HasPrefix(owner, "-") {
			owners[key] = owner
		}
	}
	for id, f := range all.GetOwners() {
		for field, owner := range f.Simple {
			if field != int32(api.Field_None) { // rules for devices, which containerd has no owner for
				put(fmt.Sprint(id, " ", api.Field(field)), owner)
			}
		}
		for field, keys := range f.Compound {
			for key, owner := range keys.Owners {
				put(fmt.Sprint(id, " ", api.Field(field), " ", key), owner)
			}
		}
	}
	return owners
}

func compare(a, b *outcome) string {
	if a.failed != b.failed {
		return fmt.Sprintf("conflict: containerd's side: %q, ours: %q", a.why, b.why)
	}
	if len(a.seen) != len(b.seen) {
		return fmt.Sprintf("containerd's side asked %d plugins, ours %d", len(a.seen), len(b.seen))
	}
	for i := range a.seen {
		if d := differ("what "+plugins[i]+" is shown", a.seen[i], b.seen[i]); d != "" {
			return d
		}
	}
	if a.failed != "" {
		return ""
	}
	if d := differ("the result", a.result, b.result); d != "" {
		return d
	}
	if fmt.Sprint(a.owners) != fmt.Sprint(b.owners) {
		return fmt.Sprintf("owners: containerd's side: %v, ours: %v", a.owners, b.owners)
	}
	if len(a.others) != len(b.others) {
		return fmt.Sprintf("others: containerd's side: %v, ours: %v", a.others, b.others)
	}
	for i := range a.others {
		if d := differ("an update", a.others[i], b.others[i]); d != "" {
			return d
		}
	}
	return ""
}

func differ(what string, a, b proto.Message) string {
	a, b = proto.Clone(a), proto.Clone(b)
	tidy(a)
	tidy(b)
	if proto.Equal(a, b) {
		return ""
	}
	return fmt.Sprintf("%s:\ncontainerd's side: %s\nours: %s", what, prototext.Format(a), prototext.Format(b))
}

// byKey sorts a list, keeps of each key the last, and no removal of what is also set.
func byKey[T any](list []T, key func(T) string) []T {
	last := map[string]T{}
	for _, item := range list {
		last[key(item)] = item
	}
	keys := []string{}
	for k := range last {
		if target, removal := strings.CutPrefix(k, "-"); removal {
			if _, set := last[target]; set {
				continue
			}
		}
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := []T{}
	for _, k := range keys {
		out = append(out, last[k])
	}
	return out
}

// only leaves the removals out of a map of which the key is also set: containerd's side keeps both,
// ours what is set.
func only[V any](m map[string]V) {
	for k := range m {
		if _, set := m["-"+k]; set {
			delete(m, "-"+k)
		}
	}
}

// withoutRemovals: slip: containerd's side loses them from the merged variables and devices.
func withoutRemovals[T any](list []T, key func(T) string) []T {
	return slices.DeleteFunc(list, func(item T) bool { return strings.HasPrefix(key(item), "-") })
}

func tidyResources(r *api.LinuxResources) {
	if r == nil {
		return
	}
	if proto.Size(r.Memory) == 0 {
		r.Memory = nil
	}
	if proto.Size(r.Cpu) == 0 {
		r.Cpu = nil
	}
	// slip: containerd's side appends a limit of a size that is there
	r.HugepageLimits = byKey(r.HugepageLimits, (*api.HugepageLimit).GetPageSize)
}

func tidy(m proto.Message) {
	switch m := m.(type) {
	case *api.LinuxResources:
		tidyResources(m)
	case *api.ContainerUpdate:
		tidyResources(m.GetLinux().GetResources())
	case *api.Container:
		if proto.Size(m.Hooks) == 0 {
			m.Hooks = nil
		}
		m.Rlimits = byKey(m.Rlimits, (*api.POSIXRlimit).GetType) // slip: as huge pages
		if m.Linux != nil {
			m.Linux.Namespaces = byKey(m.Linux.Namespaces, (*api.LinuxNamespace).GetType) // in the order of a map
			tidyResources(m.Linux.Resources)
			if proto.Size(m.Linux.Resources) == 0 {
				m.Linux.Resources = nil
			}
			if proto.Size(m.Linux) == 0 {
				m.Linux = nil
			}
		}
	case *api.ContainerAdjustment:
		if proto.Size(m.Hooks) == 0 {
			m.Hooks = nil
		}
		only(m.Annotations)
		m.Env = withoutRemovals(m.Env, (*api.KeyValue).GetKey)
		m.Mounts = byKey(m.Mounts, (*api.Mount).GetDestination)
		l := m.Linux
		if l == nil {
			return
		}
		only(l.Sysctl)
		only(l.NetDevices)
		l.Devices = withoutRemovals(l.Devices, (*api.LinuxDevice).GetPath)
		l.Namespaces = byKey(l.Namespaces, (*api.LinuxNamespace).GetType)
		tidyResources(l.Resources)
		if proto.Size(l.Resources) == 0 {
			l.Resources = nil
		}
		if proto.Size(l.Rdt) == 0 { // slip: containerd's side adds an empty one
			l.Rdt = nil
		}
		if proto.Size(l) == 0 {
			m.Linux = nil
		}
	}
}

// ---- answers at random --------------------------------------------------------------------------

type maker struct {
	*rand.Rand
	rare    float64         // how often a field is there
	removed map[string]bool // keys that an earlier plugin removed without setting them
}

func (m *maker) now() bool             { return m.Float64() < m.rare }
func (m *maker) of(s ...string) string { return s[m.Intn(len(s))] }

// key is one of few. A second plugin that removes what another has removed already, and sets it, is
// left out: slip: containerd's side takes that for a conflict in mounts, variables and devices, and
// not in annotations.
func (m *maker) keys(list string, pure bool, fn func(key string, set, remove bool)) {
	if !m.now() {
		return
	}
	for _, k := range m.Perm(4)[:1+m.Intn(3)] {
		key := string(rune('A' + k))
		switch what := m.Intn(6); {
		case what == 0 && pure:
			fn(key, false, true)
			m.removed[list+key] = true
		case what <= 2 && !m.removed[list+key]:
			fn(key, true, true)
		default:
			fn(key, true, false)
		}
	}
}

func (m *maker) memory() *api.LinuxMemory {
	r := &api.LinuxMemory{}
	number := func() *api.OptionalInt64 {
		if !m.now() {
			return nil
		}
		return api.Int64(int64(m.Intn(3)))
	}
	r.Limit, r.Reservation, r.Swap, r.Kernel, r.KernelTcp = number(), number(), number(), number(), number()
	if m.now() {
		r.Swappiness = api.UInt64(uint64(m.Intn(2)))
	}
	if m.now() {
		r.DisableOomKiller = api.Bool(m.Intn(2) == 0)
	}
	if m.now() {
		r.UseHierarchy = api.Bool(m.Intn(2) == 0)
	}
	return r
}

func (m *maker) cpu() *api.LinuxCPU {
	r := &api.LinuxCPU{}
	if m.now() {
		r.Shares = api.UInt64(uint64(m.Intn(3)))
	}
	if m.now() {
		r.Quota = api.Int64(int64(m.Intn(3) - 1))
	}
	if m.now() {
		r.Period = api.UInt64(uint64(m.Intn(3)))
	}
	if m.now() {
		r.RealtimeRuntime = api.Int64(int64(m.Intn(3)))
	}
	if m.now() {
		r.RealtimePeriod = api.UInt64(uint64(m.Intn(3)))
	}
	if m.now() {
		r.Cpus = m.of("", "0", "1-2")
	}
	if m.now() {
		r.Mems = m.of("", "0", "1")
	}
	return r
}

// resources of an update have neither pids nor rules for devices: slip: containerd's side ignores
// both there.
func (m *maker) resources(update bool) *api.LinuxResources {
	r := &api.LinuxResources{}
	if m.Intn(2) == 0 {
		r.Memory = m.memory()
	}
	if m.Intn(2) == 0 {
		r.Cpu = m.cpu()
	}
	if m.now() {
		r.HugepageLimits = append(r.HugepageLimits, &api.HugepageLimit{PageSize: m.of("2Mi", "1Gi"), Limit: uint64(m.Intn(3))})
	}
	if m.now() {
		r.Unified = map[string]string{m.of("u", "v", "w"): m.of("1", "2")}
	}
	if m.now() {
		r.BlockioClass = api.String(m.of("", "b"))
	}
	if m.now() {
		r.RdtClass = api.String(m.of("", "r"))
	}
	if !update && m.now() {
		r.Pids = &api.LinuxPids{Limit: int64(m.Intn(3) - 1)}
	}
	if !update && m.now() {
		r.Devices = append(r.Devices, &api.LinuxDeviceCgroup{Allow: m.Intn(2) == 0, Access: m.of("r", "rwm")})
	}
	return r
}

func (m *maker) hooks() *api.Hooks {
	h := &api.Hooks{}
	for _, kind := range []*[]*api.Hook{&h.Prestart, &h.CreateRuntime, &h.CreateContainer, &h.StartContainer, &h.Poststart, &h.Poststop} {
		if m.now() {
			*kind = append(*kind, &api.Hook{Path: m.of("/x", "/y"), Args: []string{m.of("1", "2")}})
		}
	}
	return h
}

func (m *maker) linux() *api.LinuxContainerAdjustment {
	l := &api.LinuxContainerAdjustment{}
	m.keys("devices", true, func(k string, set, remove bool) {
		if remove {
			l.Devices = append(l.Devices, &api.LinuxDevice{Path: "-/dev/" + k})
		}
		if set {
			l.Devices = append(l.Devices, &api.LinuxDevice{Path: "/dev/" + k, Type: "c", Major: int64(m.Intn(3))})
		}
	})
	// slip: of these, containerd's side leaves what an earlier plugin has set when a later one
	// removes it, and takes the removal of a sysctl for that of an annotation
	m.keys("sysctl", false, func(k string, set, remove bool) {
		if l.Sysctl == nil {
			l.Sysctl = map[string]string{}
		}
		if remove {
			l.Sysctl["-"+k] = ""
		}
		if set {
			l.Sysctl[k] = m.of("1", "2")
		}
	})
	m.keys("net", false, func(k string, set, remove bool) {
		if l.NetDevices == nil {
			l.NetDevices = map[string]*api.LinuxNetDevice{}
		}
		if remove {
			l.NetDevices["-"+k] = &api.LinuxNetDevice{}
		}
		if set {
			l.NetDevices[k] = &api.LinuxNetDevice{Name: m.of("e1", "e2")}
		}
	})
	if m.now() {
		l.Namespaces = append(l.Namespaces, &api.LinuxNamespace{Type: m.of("ipc", "network", "-ipc", "-network"), Path: m.of("", "/p")})
	}
	if m.now() {
		l.Resources = m.resources(false)
	}
	if m.now() {
		l.CgroupsPath = m.of("", "/c")
	}
	if m.now() {
		l.OomScoreAdj = &api.OptionalInt{Value: int64(m.Intn(3) - 1)}
	}
	if m.now() {
		l.IoPriority = &api.LinuxIOPriority{Class: api.IOPrioClass(m.Intn(4)), Priority: int32(m.Intn(3))}
	}
	if m.now() {
		l.SeccompPolicy = &api.LinuxSeccomp{DefaultAction: m.of("a", "b")}
	}
	if m.now() {
		l.Scheduler = &api.LinuxScheduler{Policy: api.LinuxSchedulerPolicy(m.Intn(4)), Flags: []api.LinuxSchedulerFlag{1, 2}}
	}
	if m.now() {
		l.MemoryPolicy = &api.LinuxMemoryPolicy{Mode: api.MpolMode(m.Intn(3)), Nodes: "0"}
	}
	if m.now() {
		l.Rdt = &api.LinuxRdt{Remove: m.Intn(3) == 0}
		if m.now() {
			l.Rdt.ClosId = api.String(m.of("", "x"))
		}
		if m.now() {
			l.Rdt.Schemata = api.RepeatedString([]string{"s"})
		}
		if m.now() {
			l.Rdt.EnableMonitoring = api.Bool(m.Intn(2) == 0)
		}
	}
	return l
}

func (m *maker) adjustment() *api.ContainerAdjustment {
	a := &api.ContainerAdjustment{}
	m.keys("annotations", false, func(k string, set, remove bool) { // slip: as sysctls
		if a.Annotations == nil {
			a.Annotations = map[string]string{}
		}
		if remove {
			a.Annotations["-"+k] = ""
		}
		if set {
			a.Annotations[k] = m.of("", "1", "2")
		}
	})
	m.keys("mounts", true, func(k string, set, remove bool) {
		if remove {
			a.Mounts = append(a.Mounts, &api.Mount{Destination: "-/" + k})
		}
		if set {
			a.Mounts = append(a.Mounts, &api.Mount{Destination: "/" + k, Source: m.of("/s", "/t"), Options: []string{"ro"}})
		}
	})
	m.keys("env", true, func(k string, set, remove bool) {
		if remove {
			a.Env = append(a.Env, &api.KeyValue{Key: "-" + k})
		}
		if set {
			a.Env = append(a.Env, &api.KeyValue{Key: k, Value: m.of("", "1", "=")})
		}
	})
	if m.now() {
		a.Args = []string{"x", m.of("y", "z")}
		if m.Intn(2) == 0 {
			a.Args = append([]string{""}, a.Args...)
		}
	}
	if m.now() {
		a.Hooks = m.hooks()
	}
	if m.Intn(3) > 0 {
		a.Linux = m.linux()
	}
	if m.now() {
		a.Rlimits = append(a.Rlimits, &api.POSIXRlimit{Type: m.of("R1", "R2", "R3"), Hard: uint64(m.Intn(3))})
	}
	if m.now() {
		a.CDIDevices = append(a.CDIDevices, &api.CDIDevice{Name: m.of("v/c=1", "v/c=2", "v/c=3")})
	}
	return a
}

// updates that may fail change one thing each: slip: of one that fails, containerd's side keeps
// what it has claimed until then
func (m *maker) updates(ids ...string) []*api.ContainerUpdate {
	var all []*api.ContainerUpdate
	for range m.Intn(3) {
		u := &api.ContainerUpdate{ContainerId: m.of(ids...), Linux: &api.LinuxContainerUpdate{}}
		if m.Intn(4) == 0 {
			u.IgnoreFailure = true
			u.Linux.Resources = &api.LinuxResources{Memory: &api.LinuxMemory{Limit: api.Int64(int64(m.Intn(3)))}}
		} else {
			u.Linux.Resources = m.resources(true)
			if tidyResources(u.Linux.Resources); proto.Size(u.Linux.Resources) == 0 {
				continue // slip: containerd's side names containers of which nothing is to be changed
			}
		}
		all = append(all, u)
	}
	return all
}

func random(r *rand.Rand) *script {
	m := &maker{Rand: r, rare: []float64{0.03, 0.1, 0.25}[r.Intn(3)], removed: map[string]bool{}}
	s := &script{}
	if r.Intn(4) == 0 {
		s.resources = m.resources(true)
		for range plugins {
			s.update = append(s.update, &api.UpdateContainerResponse{Update: m.updates(self, self, "x", "y")})
		}
		return s
	}
	s.container = &api.Container{
		Id:          self,
		Annotations: map[string]string{"A": "a", "B": "b", "E": "e"},
		Args:        []string{"own"},
		Env:         []string{"A=a", "B=", "E=e", "F"},
		Mounts:      []*api.Mount{{Destination: "/A", Source: "/own"}, {Destination: "/E"}},
		Rlimits:     []*api.POSIXRlimit{{Type: "R1", Hard: 9}},
		Linux: &api.LinuxContainer{
			Devices:    []*api.LinuxDevice{{Path: "/dev/A"}, {Path: "/dev/E"}},
			Namespaces: []*api.LinuxNamespace{{Type: "network", Path: "/own"}, {Type: "uts"}},
			Sysctl:     map[string]string{"A": "a"},
			NetDevices: map[string]*api.LinuxNetDevice{"B": {Name: "own"}},
			Resources:  m.resources(false),
		},
	}
	if r.Intn(5) == 0 {
		s.container = &api.Container{Id: self}
	}
	for range plugins {
		s.create = append(s.create, &api.CreateContainerResponse{Adjust: m.adjustment(), Update: m.updates("x", "y")})
	}
	if r.Intn(10) == 0 {
		s.create[r.Intn(len(s.create))].Adjust = nil
	}
	return s
}
