// SPDX-License-Identifier: Apache-2.0

// A plugin on the newest NRI that writes down every call and answers as its script says; see
// ../nri-record. Beyond the verbs named there, in the answer to
//
//	CreateContainer    annotate KEY=VALUE | unannotate KEY | env KEY=VALUE | unenv KEY | args WORD... | mount SOURCE DESTINATION [OPTION...]
//	                   rlimit TYPE HARD SOFT | oom SCORE | shares NUMBER
//	UpdateContainer    shares NUMBER                                 of the container it is about
//	these, StopContainer and Synchronize     update CONTAINER SHARES [ignore]     of another one
//	CreateContainer, UpdateContainer         evict CONTAINER REASON...
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"strings"
	"sync"
	"time"

	"crikeep.test/nri-record"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
)

type plugin struct {
	record.Recorder
	stub stub.Stub

	mu    sync.Mutex
	conn  net.Conn
	evict []*api.ContainerEviction // the stub has no way to say it: it goes into the answer on its way out
}

func (p *plugin) object(ctx context.Context, pod *api.PodSandbox, c *api.Container) record.Fields {
	f := record.Fields{
		Pod: pod.GetId(), Name: pod.GetName(), Namespace: pod.GetNamespace(), UID: pod.GetUid(), Pid: pod.GetPid(),
		IPs: record.Joined(pod.GetIps()), Cgroup: pod.GetLinux().GetCgroupsPath(), Notes: pod.GetAnnotations(),
	}
	for _, namespace := range pod.GetLinux().GetNamespaces() {
		if namespace.Type == "network" {
			f.Network = namespace.Path
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		f.Left = time.Until(deadline).Milliseconds()
	}
	if c != nil {
		f.Container, f.CName, f.State, f.Pid = c.GetId(), c.GetName(), c.GetState().String(), c.GetPid()
		if f.Pod == "" {
			f.Pod = c.GetPodSandboxId()
		}
		f.Cgroup, f.Notes, f.Env, f.Args = c.GetLinux().GetCgroupsPath(), c.GetAnnotations(), c.GetEnv(), c.GetArgs()
		f.Shares = c.GetLinux().GetResources().GetCpu().GetShares().GetValue()
		for _, m := range c.GetMounts() {
			f.Mounts = append(f.Mounts, record.Mounted(m.GetSource(), m.GetDestination(), m.GetOptions()))
		}
	}
	return f
}

func update(order record.Order) *api.ContainerUpdate {
	u := &api.ContainerUpdate{}
	u.SetContainerId(order.Arg(0))
	u.SetLinuxCPUShares(uint64(order.Number(1)))
	if order.Arg(2) == "ignore" {
		u.SetIgnoreFailure()
	}
	return u
}

// others obeys what may stand in several answers
func (p *plugin) others(orders []record.Order) (updates []*api.ContainerUpdate) {
	for _, order := range orders {
		switch order.Verb {
		case "update":
			updates = append(updates, update(order))
		case "evict":
			p.mu.Lock()
			p.evict = append(p.evict, &api.ContainerEviction{ContainerId: order.Arg(0), Reason: strings.Join(order.Args[1:], " ")})
			p.mu.Unlock()
		}
	}
	return updates
}

func (p *plugin) Configure(ctx context.Context, config, runtime, version string) (api.EventMask, error) {
	p.Configured(config)
	_, done := p.Call("Configure", record.Fields{Text: runtime + " " + version + " " + p.stub.RuntimeNRIVersion()})
	mask := api.ValidEvents &^ (1 << (api.Event_VALIDATE_CONTAINER_ADJUSTMENT - 1))
	if p.Events != "" {
		var err error
		if mask, err = api.ParseEventMask(p.Events); err != nil {
			log.Fatal(err)
		}
	}
	return mask, done()
}

func (p *plugin) Synchronize(ctx context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	f := p.object(ctx, nil, nil)
	f.Pods, f.Cs = len(pods), len(containers)
	byID := map[string]*api.PodSandbox{}
	for _, pod := range pods {
		byID[pod.GetId()] = pod
		p.Note("has", "Synchronize", p.object(ctx, pod, nil))
	}
	for _, c := range containers {
		p.Note("has", "Synchronize", p.object(ctx, byID[c.GetPodSandboxId()], c))
	}
	rest, done := p.Call("Synchronize", f)
	return p.others(rest), done()
}

func (p *plugin) Shutdown(ctx context.Context) {
	_, done := p.Call("Shutdown", p.object(ctx, nil, nil))
	done()
}

func (p *plugin) event(ctx context.Context, event string, pod *api.PodSandbox, c *api.Container) error {
	_, done := p.Call(event, p.object(ctx, pod, c))
	return done()
}

func (p *plugin) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return p.event(ctx, "RunPodSandbox", pod, nil)
}
func (p *plugin) StopPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return p.event(ctx, "StopPodSandbox", pod, nil)
}
func (p *plugin) RemovePodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return p.event(ctx, "RemovePodSandbox", pod, nil)
}
func (p *plugin) UpdatePodSandbox(ctx context.Context, pod *api.PodSandbox, _, resources *api.LinuxResources) error {
	f := p.object(ctx, pod, nil)
	f.Asked = resources.GetCpu().GetShares().GetValue()
	_, done := p.Call("UpdatePodSandbox", f)
	return done()
}
func (p *plugin) PostUpdatePodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return p.event(ctx, "PostUpdatePodSandbox", pod, nil)
}
func (p *plugin) PostCreateContainer(ctx context.Context, pod *api.PodSandbox, c *api.Container) error {
	return p.event(ctx, "PostCreateContainer", pod, c)
}
func (p *plugin) StartContainer(ctx context.Context, pod *api.PodSandbox, c *api.Container) error {
	return p.event(ctx, "StartContainer", pod, c)
}
func (p *plugin) PostStartContainer(ctx context.Context, pod *api.PodSandbox, c *api.Container) error {
	return p.event(ctx, "PostStartContainer", pod, c)
}
func (p *plugin) PostUpdateContainer(ctx context.Context, pod *api.PodSandbox, c *api.Container) error {
	return p.event(ctx, "PostUpdateContainer", pod, c)
}
func (p *plugin) RemoveContainer(ctx context.Context, pod *api.PodSandbox, c *api.Container) error {
	return p.event(ctx, "RemoveContainer", pod, c)
}

func (p *plugin) StopContainer(ctx context.Context, pod *api.PodSandbox, c *api.Container) ([]*api.ContainerUpdate, error) {
	rest, done := p.Call("StopContainer", p.object(ctx, pod, c))
	return p.others(rest), done()
}

func (p *plugin) CreateContainer(ctx context.Context, pod *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment,
	[]*api.ContainerUpdate, error) {
	rest, done := p.Call("CreateContainer", p.object(ctx, pod, c))
	a := &api.ContainerAdjustment{}
	changed := false
	for _, order := range rest {
		changed = changed || order.Verb != "update" && order.Verb != "evict"
		key, value, _ := strings.Cut(order.Arg(0), "=")
		switch order.Verb {
		case "annotate":
			a.AddAnnotation(key, value)
		case "unannotate":
			a.RemoveAnnotation(key)
		case "env":
			a.AddEnv(key, value)
		case "unenv":
			a.RemoveEnv(key)
		case "args":
			a.SetArgs(order.Args)
		case "mount":
			a.AddMount(&api.Mount{Source: order.Arg(0), Destination: order.Arg(1), Type: "bind", Options: order.Args[2:]})
		case "rlimit":
			a.AddRlimit(order.Arg(0), uint64(order.Number(1)), uint64(order.Number(2)))
		case "oom":
			score := int(order.Number(0))
			a.SetLinuxOomScoreAdj(&score)
		case "shares":
			a.SetLinuxCPUShares(uint64(order.Number(0)))
		}
	}
	if !changed {
		a = nil
	}
	return a, p.others(rest), done()
}

func (p *plugin) UpdateContainer(ctx context.Context, pod *api.PodSandbox, c *api.Container, resources *api.LinuxResources) (
	[]*api.ContainerUpdate, error) {
	f := p.object(ctx, pod, c)
	f.Asked = resources.GetCpu().GetShares().GetValue()
	rest, done := p.Call("UpdateContainer", f)
	updates := p.others(rest)
	for _, order := range rest {
		if order.Verb == "shares" {
			updates = append(updates, update(record.Order{Verb: "update", Args: []string{c.GetId(), order.Arg(0)}}))
		}
	}
	return updates, done()
}

func (p *plugin) ValidateContainerAdjustment(ctx context.Context, r *api.ValidateContainerAdjustmentRequest) error {
	f := p.object(ctx, r.GetPod(), r.GetContainer())
	for _, one := range r.GetPlugins() {
		f.Args = append(f.Args, one.GetIndex()+"-"+one.GetName())
	}
	for _, owners := range r.GetOwners().GetOwners() {
		for field, owner := range owners.GetSimple() {
			f.Mounts = append(f.Mounts, api.Field(field).String()+"="+owner)
		}
		for field, compound := range owners.GetCompound() {
			for key, owner := range compound.GetOwners() {
				f.Mounts = append(f.Mounts, api.Field(field).String()+"."+key+"="+owner)
			}
		}
	}
	_, done := p.Call("ValidateContainerAdjustment", f)
	return done()
}

// intercept sees every call as it is on the wire: which method it came by, and each piece of a
// Synchronize
func (p *plugin) intercept(ctx context.Context, unmarshal ttrpc.Unmarshaler, info *ttrpc.UnaryServerInfo, method ttrpc.Method) (
	interface{}, error) {
	f := record.Fields{}
	answer, err := method(ctx, func(v interface{}) error {
		err := unmarshal(v)
		if r, ok := v.(*api.SynchronizeRequest); ok {
			f.Pods, f.Cs, f.More = len(r.GetPods()), len(r.GetContainers()), r.GetMore()
		}
		p.Note("rpc", info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:], f)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r := answer.(type) {
	case *api.CreateContainerResponse:
		r.Evict, p.evict = p.evict, nil
	case *api.UpdateContainerResponse:
		r.Evict, p.evict = p.evict, nil
	}
	return answer, err
}

func (p *plugin) dial(path string) (net.Conn, error) {
	conn, err := net.Dial("unix", path)
	p.mu.Lock()
	p.conn = conn
	p.mu.Unlock()
	return conn, err
}

func main() {
	p := &plugin{}
	policy := &api.FailurePolicy{}
	flag.BoolVar(&policy.FailRequest, "fail-request", false, "its failure policy: no answer in time fails the request")
	flag.BoolVar(&policy.KeepConnected, "keep-connected", false, "its failure policy: do not disconnect it when it is late")
	index, name := p.Options()
	p.Update = func(container string, shares uint64) error {
		u := &api.ContainerUpdate{}
		u.SetContainerId(container)
		u.SetLinuxCPUShares(shares)
		failed, err := p.stub.UpdateContainers([]*api.ContainerUpdate{u})
		if err == nil && len(failed) > 0 {
			log.Print("failed: ", failed[0].GetContainerId())
		}
		return err
	}
	p.Close = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.conn != nil {
			p.conn.Close()
		}
	}
	p.Run(func() (func(), error) {
		gone, once := make(chan struct{}), sync.Once{}
		options := []stub.Option{
			stub.WithFailurePolicy(policy),
			stub.WithOnClose(func() { once.Do(func() { close(gone) }) }),
			stub.WithTTRPCOptions(nil, []ttrpc.ServerOpt{ttrpc.WithUnaryServerInterceptor(p.intercept)}),
		}
		if !record.Launched() {
			options = append(options, stub.WithPluginName(name), stub.WithPluginIdx(index), stub.WithSocketPath(p.Socket),
				stub.WithDialer(p.dial))
		}
		var err error
		if p.stub, err = stub.New(p, options...); err == nil {
			err = p.stub.Start(context.Background())
		}
		return func() { <-gone }, err
	})
}
