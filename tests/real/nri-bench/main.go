// SPDX-License-Identifier: Apache-2.0

// For tests/bench/bench-nri: a plugin on the newest NRI that does nothing, and Go's own runtime
// side, driven over standard input.
//
//	nri-bench plugin SOCKET INDEX    until its connection ends
//	nri-bench drive DIR              listens at DIR/go.sock, writes the messages it will send to DIR/pod and DIR/container, says
//	                                 "ready", and answers each line:
//	  plugins N                      once N are synchronized: "ready"
//	  RunPodSandbox N                sends N of them, one after the other, each of a new pod: its processor time in ns for all,
//	  PostCreateContainer N          and the time that each took
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	nrilog "github.com/containerd/nri/pkg/log"
	"github.com/containerd/nri/pkg/stub"
	"google.golang.org/protobuf/proto"
)

type silent struct{}

func (silent) Debugf(context.Context, string, ...interface{}) {}
func (silent) Infof(context.Context, string, ...interface{})  {}
func (silent) Warnf(_ context.Context, format string, args ...interface{}) {
	log.Printf(format, args...)
}
func (silent) Errorf(_ context.Context, format string, args ...interface{}) {
	log.Printf(format, args...)
}

// ---- the plugin

type plugin struct{}

func (plugin) RunPodSandbox(context.Context, *api.PodSandbox) error                       { return nil }
func (plugin) PostCreateContainer(context.Context, *api.PodSandbox, *api.Container) error { return nil }

func runPlugin(socket, index string) {
	s, err := stub.New(plugin{}, stub.WithPluginName("nothing"), stub.WithPluginIdx(index), stub.WithSocketPath(socket),
		stub.WithOnClose(func() { os.Exit(0) }))
	if err != nil {
		log.Fatal(err)
	}
	if err = s.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// ---- what is sent: a pod of about 2 KB, a container of about 12 KB

func strings64(n int, format string) map[string]string {
	m := map[string]string{}
	for i := 0; i < n; i++ {
		m[fmt.Sprintf(format, i)] = strings.Repeat("x", 48)
	}
	return m
}

func namespaces() (all []*api.LinuxNamespace) {
	for _, kind := range []string{"pid", "ipc", "uts", "mount", "network"} {
		all = append(all, &api.LinuxNamespace{Type: kind, Path: "/var/run/netns/cni-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"})
	}
	return all
}

func thePod() *api.PodSandbox {
	return &api.PodSandbox{
		Id: strings.Repeat("0", 64), Name: "web-7d9c5b8f6d-x2x7q", Namespace: "default", Pid: 12345, Ips: []string{"10.244.1.17"},
		Uid:    "3f1c2d4e-5a6b-7c8d-9e0f-112233445566",
		Labels: strings64(8, "app.kubernetes.io/label-%d"), Annotations: strings64(8, "example.com/annotation-%d"),
		RuntimeHandler: "runc",
		Linux: &api.LinuxPodSandbox{
			CgroupParent: "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod3f1c2d4e.slice",
			CgroupsPath:  "kubepods-burstable-pod3f1c2d4e.slice:cri-containerd:" + strings.Repeat("0", 64),
			Namespaces:   namespaces(), Resources: &api.LinuxResources{Cpu: &api.LinuxCPU{Shares: api.UInt64(uint64(1024))}},
		},
	}
}

func theContainer(pod *api.PodSandbox) *api.Container {
	c := &api.Container{
		Id: strings.Repeat("1", 64), PodSandboxId: pod.Id, Name: "server", State: api.ContainerState_CONTAINER_CREATED,
		Labels: strings64(8, "io.kubernetes.container.label-%d"), Annotations: strings64(16, "example.com/annotation-%d"),
		Args: []string{"/usr/bin/server", "--config=/etc/server/config.yaml", "--listen=:8443"},
		Linux: &api.LinuxContainer{
			CgroupsPath: pod.Linux.CgroupsPath, Namespaces: namespaces(),
			Resources: &api.LinuxResources{
				Cpu:    &api.LinuxCPU{Shares: api.UInt64(uint64(512)), Quota: api.Int64(int64(50000)), Period: api.UInt64(uint64(100000))},
				Memory: &api.LinuxMemory{Limit: api.Int64(int64(512 << 20))}},
		},
	}
	for i := 0; i < 60; i++ {
		c.Env = append(c.Env, fmt.Sprintf("SERVICE_%02d_PORT_8443_TCP_ADDRESS=%s", i, strings.Repeat("y", 32)))
	}
	for i := 0; i < 30; i++ {
		c.Mounts = append(c.Mounts, &api.Mount{Type: "bind", Options: []string{"rbind", "rprivate", "ro"},
			Source:      fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~configmap/volume-%02d", pod.Uid, i),
			Destination: fmt.Sprintf("/etc/server/volume-%02d", i)})
	}
	return c
}

// ---- the runtime side

func write(path string, m proto.Message) {
	bytes, err := proto.Marshal(m)
	if err == nil {
		err = os.WriteFile(path, bytes, 0o600)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func processorTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func drive(dir string) {
	var synchronized atomic.Int64
	pod := thePod()
	container := theContainer(pod)
	write(filepath.Join(dir, "pod"), pod)
	write(filepath.Join(dir, "container"), container)
	r, err := adaptation.New("bench", "v1",
		func(ctx context.Context, sync adaptation.SyncCB) error {
			_, err := sync(ctx, nil, nil)
			synchronized.Add(1)
			return err
		},
		func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
			return nil, nil
		},
		adaptation.WithSocketPath(filepath.Join(dir, "go.sock")), adaptation.WithPluginPath(filepath.Join(dir, "none")),
		adaptation.WithPluginConfigPath(filepath.Join(dir, "none")))
	if err == nil {
		err = r.Start()
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	ctx := context.Background()
	out := bufio.NewWriter(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); out.Flush() {
		var what string
		var n int64
		if _, err := fmt.Sscan(lines.Text(), &what, &n); err != nil {
			log.Fatal(err)
		}
		if what == "plugins" {
			for synchronized.Load() < n {
				time.Sleep(time.Millisecond)
			}
			r.BlockPluginSync().Unblock() // the last one is in the list of those who are called
			fmt.Fprintln(out, "ready")
			continue
		}
		took := make([]int64, n)
		before := processorTime()
		for i := range took {
			began := time.Now()
			if what == "RunPodSandbox" {
				pod.Id = fmt.Sprintf("%064x", i)
				err = r.RunPodSandbox(ctx, &adaptation.RunPodSandboxRequest{Pod: pod})
			} else {
				err = r.PostCreateContainer(ctx, &adaptation.PostCreateContainerRequest{Pod: pod, Container: container})
			}
			took[i] = time.Since(began).Nanoseconds()
			if err != nil {
				log.Fatal(err)
			}
		}
		fmt.Fprint(out, processorTime()-before)
		for _, ns := range took {
			fmt.Fprint(out, " ", ns)
		}
		fmt.Fprintln(out)
	}
}

func main() {
	nrilog.Set(silent{})
	switch {
	case len(os.Args) == 4 && os.Args[1] == "plugin":
		runPlugin(os.Args[2], os.Args[3])
	case len(os.Args) == 3 && os.Args[1] == "drive":
		drive(os.Args[2])
	default:
		log.Fatal("usage: nri-bench plugin SOCKET INDEX | drive DIR")
	}
}
