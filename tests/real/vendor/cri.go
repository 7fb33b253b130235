// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sort"

	"crikeep.io/go/crikeep"
)

// A Want is what a kubelet asks for, before it is a CRI message.
type Want struct {
	Kind      crikeep.Kind
	Pod       string            // its uid is "u-" and this, unless UID is set
	UID       string            // of a pod that replaced one of the same name
	Attempt   uint32            // of the sandbox or the container
	Container string            // containers only
	Sandbox   string            // containers only: the id
	Env       map[string]string // containers only
	Labels    map[string]string // of the sandbox
	Hostname  string            // of the sandbox: a difference that matters
}

const namespace = "default"

func pod(name string) Want { return Want{Kind: crikeep.Sandbox, Pod: name} }

func container(name, sandbox string) Want {
	return Want{Kind: crikeep.Container, Pod: name, Container: "main", Sandbox: sandbox}
}

func (w Want) attempt(n uint32) Want { w.Attempt = n; return w }

func (w Want) uid() string {
	if w.UID != "" {
		return w.UID
	}
	return "u-" + w.Pod
}

// Key is how the scenarios and the runtime's diary call it: "web/0", "web/main/0".
func (w Want) Key() string { return key(w.Pod, w.Container, w.Attempt) }

func key(pod, container string, attempt uint32) string {
	if container != "" {
		pod += "/" + container
	}
	return fmt.Sprintf("%s/%d", pod, attempt)
}

// A message is protobuf's wire format, put together by hand: a vendor has generated code for it.
type message []byte

func (m *message) number(n uint64) {
	for ; n >= 0x80; n >>= 7 {
		*m = append(*m, byte(n)|0x80)
	}
	*m = append(*m, byte(n))
}

func (m *message) uint(field int, value uint64) {
	if value != 0 {
		m.number(uint64(field) << 3)
		m.number(value)
	}
}

func (m *message) bytes(field int, value []byte) {
	m.number(uint64(field)<<3 | 2)
	m.number(uint64(len(value)))
	*m = append(*m, value...)
}

func (m *message) text(field int, value string) {
	if value != "" {
		m.bytes(field, []byte(value))
	}
}

func (m *message) texts(field int, values map[string]string) {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		var pair message
		pair.text(1, name)
		pair.text(2, values[name])
		m.bytes(field, pair)
	}
}

// sandboxConfig is a PodSandboxConfig; the field numbers are CRI's.
func (w Want) sandboxConfig(attempt uint32) []byte {
	var config, metadata message
	metadata.text(1, w.Pod)
	metadata.text(2, w.uid())
	metadata.text(3, namespace)
	metadata.uint(4, uint64(attempt))
	config.bytes(1, metadata)
	config.text(2, w.Hostname)
	config.text(3, "/var/log/pods/"+namespace+"_"+w.Pod+"_"+w.uid())
	labels := map[string]string{
		"io.kubernetes.pod.name": w.Pod, "io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.uid": w.uid(),
	}
	for name, value := range w.Labels {
		labels[name] = value
	}
	config.texts(6, labels)
	return config
}

// Bytes is the RunPodSandboxRequest or CreateContainerRequest.
func (w Want) Bytes() []byte {
	var request message
	if w.Kind == crikeep.Sandbox {
		request.bytes(1, w.sandboxConfig(w.Attempt))
		request.text(2, "vendor")
		return request
	}
	var config, metadata, image message
	metadata.text(1, w.Container)
	metadata.uint(2, uint64(w.Attempt))
	image.text(1, "registry.example/"+w.Container+":1")
	config.bytes(1, metadata)
	config.bytes(2, image)
	config.texts(6, w.Env)
	config.text(11, fmt.Sprintf("%s/%d.log", w.Container, w.Attempt))
	request.text(1, w.Sandbox)
	request.bytes(2, config)
	request.bytes(3, w.sandboxConfig(0))
	return request
}
