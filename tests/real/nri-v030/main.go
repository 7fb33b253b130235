// SPDX-License-Identifier: Apache-2.0

// A plugin on NRI v0.3.0, the oldest with today's socket, that writes down every call and answers
// as its script says; see ../nri-record. It knows no method of its own for most events (StateChange
// brings them), and no lists in pieces. CreateContainer takes "annotate KEY=VALUE".
package main

import (
	"context"
	"log"
	"net"
	"strings"
	"sync"

	"crikeep.test/nri-record"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

type plugin struct {
	record.Recorder
	stub stub.Stub
	conn net.Conn
}

func object(pod *api.PodSandbox, c *api.Container) record.Fields {
	f := record.Fields{
		Pod: pod.GetId(), Name: pod.GetName(), Namespace: pod.GetNamespace(), UID: pod.GetUid(), Pid: pod.GetPid(),
		Cgroup: pod.GetLinux().GetCgroupsPath(), Notes: pod.GetAnnotations(),
	}
	for _, namespace := range pod.GetLinux().GetNamespaces() {
		if namespace.Type == "network" {
			f.Network = namespace.Path
		}
	}
	if c != nil {
		f.Container, f.CName, f.State, f.Pid = c.GetId(), c.GetName(), c.GetState().String(), c.GetPid()
		if f.Pod == "" {
			f.Pod = c.GetPodSandboxId()
		}
		f.Cgroup, f.Notes, f.Env, f.Args = c.GetLinux().GetCgroupsPath(), c.GetAnnotations(), c.GetEnv(), c.GetArgs()
	}
	return f
}

func (p *plugin) Configure(config, runtime, version string) (api.EventMask, error) {
	p.Configured(config)
	_, done := p.Call("Configure", record.Fields{Text: runtime + " " + version})
	mask := api.ValidEvents
	if p.Events != "" {
		var err error
		if mask, err = api.ParseEventMask(p.Events); err != nil {
			log.Fatal(err)
		}
	}
	return mask, done()
}

func (p *plugin) Synchronize(pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	byID := map[string]*api.PodSandbox{}
	for _, pod := range pods {
		byID[pod.GetId()] = pod
		p.Note("has", "Synchronize", object(pod, nil))
	}
	for _, c := range containers {
		p.Note("has", "Synchronize", object(byID[c.GetPodSandboxId()], c))
	}
	_, done := p.Call("Synchronize", record.Fields{Pods: len(pods), Cs: len(containers)})
	return nil, done()
}

func (p *plugin) Shutdown(*api.ShutdownRequest) {
	_, done := p.Call("Shutdown", record.Fields{})
	done()
}

func (p *plugin) event(event string, pod *api.PodSandbox, c *api.Container) error {
	_, done := p.Call(event, object(pod, c))
	return done()
}

func (p *plugin) RunPodSandbox(pod *api.PodSandbox) error { return p.event("RunPodSandbox", pod, nil) }
func (p *plugin) StopPodSandbox(pod *api.PodSandbox) error {
	return p.event("StopPodSandbox", pod, nil)
}
func (p *plugin) RemovePodSandbox(pod *api.PodSandbox) error {
	return p.event("RemovePodSandbox", pod, nil)
}
func (p *plugin) PostCreateContainer(pod *api.PodSandbox, c *api.Container) error {
	return p.event("PostCreateContainer", pod, c)
}
func (p *plugin) StartContainer(pod *api.PodSandbox, c *api.Container) error {
	return p.event("StartContainer", pod, c)
}
func (p *plugin) PostStartContainer(pod *api.PodSandbox, c *api.Container) error {
	return p.event("PostStartContainer", pod, c)
}
func (p *plugin) PostUpdateContainer(pod *api.PodSandbox, c *api.Container) error {
	return p.event("PostUpdateContainer", pod, c)
}
func (p *plugin) RemoveContainer(pod *api.PodSandbox, c *api.Container) error {
	return p.event("RemoveContainer", pod, c)
}
func (p *plugin) StopContainer(pod *api.PodSandbox, c *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, p.event("StopContainer", pod, c)
}
func (p *plugin) UpdateContainer(pod *api.PodSandbox, c *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, p.event("UpdateContainer", pod, c)
}

func (p *plugin) CreateContainer(pod *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	rest, done := p.Call("CreateContainer", object(pod, c))
	var a *api.ContainerAdjustment
	for _, order := range rest {
		if order.Verb == "annotate" {
			if a == nil {
				a = &api.ContainerAdjustment{}
			}
			key, value, _ := strings.Cut(order.Arg(0), "=")
			a.AddAnnotation(key, value)
		}
	}
	return a, nil, done()
}

func main() {
	p := &plugin{}
	index, name := p.Options()
	p.Update = func(container string, shares uint64) error {
		u := &api.ContainerUpdate{}
		u.SetContainerId(container)
		u.SetLinuxCPUShares(shares)
		_, err := p.stub.UpdateContainers([]*api.ContainerUpdate{u})
		return err
	}
	p.Close = func() {
		if p.conn != nil {
			p.conn.Close()
		}
	}
	p.Run(func() (func(), error) {
		gone, once := make(chan struct{}), sync.Once{}
		options := []stub.Option{stub.WithOnClose(func() { once.Do(func() { close(gone) }) })}
		if !record.Launched() {
			options = append(options, stub.WithPluginName(name), stub.WithPluginIdx(index), stub.WithSocketPath(p.Socket),
				stub.WithDialer(func(path string) (conn net.Conn, err error) {
					p.conn, err = net.Dial("unix", path)
					return p.conn, err
				}))
		}
		var err error
		if p.stub, err = stub.New(p, options...); err == nil {
			err = p.stub.Start(context.Background())
		}
		return func() { <-gone }, err
	})
}
