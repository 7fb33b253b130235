// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
	"strings"

	"crikeep.io/go/crikeep"
)

// What "the same request" means to the store in memory: chapter 4 of crikeep-rules(7). libcrikeep
// compares digests of single fields; here whole requests are compared, in a form in which all that
// does not count is the same.

const (
	requestMax = 16 << 20
	idMax      = 1024 // bytes of a name or an id
)

// form is a request in a form that can be compared.
type form struct {
	bytes     string
	image     string // of a container: another reference to the same image is the same
	userImage bool   // bytes contain the reference that the user wrote
	nameOnly  bool   // it is a call that knows only the name
}

// A shape names the fields of a message whose elements have no order, those that do not count, and
// the shapes of messages inside.
type shape struct {
	unordered, without []int
	inside             map[int]*shape
}

var (
	resourcesShape = &shape{unordered: []int{9}}
	sandboxShape   = &shape{unordered: []int{6, 7}, inside: map[int]*shape{ // PodSandboxConfig
		4: {unordered: []int{3}},
		8: {unordered: []int{3}, inside: map[int]*shape{4: resourcesShape, 5: resourcesShape}},
	}}
	// of a CreateContainerRequest: without what only RunPodSandbox uses (E4)
	sandboxOfContainer = &shape{unordered: []int{6, 7}, without: []int{4, 5}, inside: map[int]*shape{
		8: {without: []int{3, 4, 5}},
	}}
	containerShape = &shape{unordered: []int{6, 7, 8, 9, 10, 17}, inside: map[int]*shape{ // ContainerConfig
		2:  {unordered: []int{2}, without: []int{1}}, // the image is compared by itself (E5)
		15: {inside: map[int]*shape{1: resourcesShape}},
	}}
	requestShapes = map[crikeep.Kind]*shape{
		crikeep.Sandbox:   {inside: map[int]*shape{1: sandboxShape}},
		crikeep.Container: {inside: map[int]*shape{2: containerShape, 3: sandboxOfContainer}},
	}
)

const (
	annotationsOfPod       = 7
	annotationsOfContainer = 10
	mountsOfContainer      = 7
	terminationKey         = "io.kubernetes.container.terminationMessagePath"
	configSeen             = "kubernetes.io/config.seen"
)

// ignoredAnnotations are those that CNI plugins write while the call is running (E3).
var ignoredAnnotations = []string{"cni.projectcalico.org/*", "k8s.v1.cni.cncf.io/network-status",
	"k8s.v1.cni.cncf.io/networks-status", "k8s.ovn.org/pod-networks"}

func ignored(annotation string) bool {
	if annotation == configSeen { // E2
		return true
	}
	for _, pattern := range ignoredAnnotations {
		prefix, open := strings.CutSuffix(pattern, "*")
		if annotation == pattern || open && strings.HasPrefix(annotation, prefix) {
			return true
		}
	}
	return false
}

// formOf brings a request into its form, and refuses what is none.
func formOf(r crikeep.Request) (parts, form, error) {
	if len(r.Bytes) > requestMax {
		return parts{}, form{}, &crikeep.Error{Code: crikeep.CodeTooBig, Text: "a request of more than 16 MiB"}
	}
	if requestShapes[r.Kind] == nil {
		return parts{}, form{}, &crikeep.Error{Code: crikeep.CodeInvalid, Text: "neither sandbox nor container"}
	}
	p := partsOfRequest(r.Kind, r.Bytes)
	if what := p.lacks(); what != "" {
		return parts{}, form{}, &crikeep.Error{Code: crikeep.CodeMalformed, Text: what}
	}
	f := form{nameOnly: r.KeyOnly}
	if f.nameOnly {
		return p, f, nil
	}
	n := normalizer{}
	if r.Kind == crikeep.Container {
		n.termination = terminationPath(r.Bytes)
	}
	b, ok := n.message(r.Bytes, requestShapes[r.Kind], nil)
	if !ok {
		return parts{}, form{}, &crikeep.Error{Code: crikeep.CodeMalformed, Text: "it is no protobuf message"}
	}
	f.bytes, f.image, f.userImage = string(b), n.image, n.userImage
	return p, f, nil
}

// lacks says what a key lacks, or has too much of.
func (p parts) lacks() string {
	for _, c := range []struct {
		what, text string
		required   bool
	}{
		{"pod_sandbox_id", p.sandboxID, p.kind == crikeep.Container},
		{"the container's name", p.container, p.kind == crikeep.Container},
		{"the pod's name", p.pod, true},
		{"the pod's uid", p.uid, true},
		{"the pod's namespace", p.namespace, false},
	} {
		switch {
		case c.required && c.text == "":
			return c.what + " is missing"
		case len(c.text) > idMax:
			return c.what + " is too long"
		case strings.IndexByte(c.text, 0) >= 0:
			return c.what + " has a zero byte"
		}
	}
	return ""
}

type normalizer struct {
	termination string // path of the termination log in the container
	image       string
	userImage   bool
}

type wireField struct {
	number int
	bytes  []byte // with its tag
}

// message writes a message with its fields in the order of their numbers. path are the numbers of
// the messages that it is in.
func (n *normalizer) message(b []byte, s *shape, path []int) ([]byte, bool) {
	var all []wireField
	for len(b) > 0 {
		number, inside, size := wireNext(b)
		if size == 0 {
			return nil, false
		}
		whole := b[:size]
		b = b[size:]
		switch at := append(slices.Clip(path), number); {
		case slices.Equal(at, []int{2, 2, 1}):
			n.image = string(inside)
			continue
		case slices.Equal(at, []int{2, 2, 18}):
			n.userImage = len(inside) > 0
		case s == nil: // nothing is known about it
		case slices.Contains(s.without, number):
			continue
		case s.inside[number] != nil && inside != nil:
			inner, ok := n.message(inside, s.inside[number], at)
			if !ok {
				return nil, false
			}
			whole = message(nil, number, inner)
		case n.drops(s, number, inside):
			continue
		case s == containerShape && number == mountsOfContainer:
			whole = message(nil, number, n.mount(inside))
		}
		all = append(all, wireField{number, whole})
	}
	sort.SliceStable(all, func(i, j int) bool {
		if all[i].number != all[j].number || s == nil || !slices.Contains(s.unordered, all[i].number) {
			return all[i].number < all[j].number
		}
		return bytes.Compare(all[i].bytes, all[j].bytes) < 0
	})
	var out []byte
	for _, f := range all {
		out = append(out, f.bytes...)
	}
	return out, true
}

// drops: an annotation of the pod that does not count
func (n *normalizer) drops(s *shape, number int, entry []byte) bool {
	return (s == sandboxShape || s == sandboxOfContainer) && number == annotationsOfPod && ignored(mapKey(entry))
}

// mount leaves out the random name of the termination log's file (E1).
func (n *normalizer) mount(b []byte) []byte {
	path, host := "", ""
	fields(b, func(field int, inside []byte, _ uint64) {
		switch field {
		case 1:
			path = string(inside)
		case 2:
			host = string(inside)
		}
	})
	slash := strings.LastIndexByte(host, '/')
	if n.termination == "" || strings.TrimPrefix(path, "/") != strings.TrimPrefix(n.termination, "/") ||
		slash < 0 || !randomName(host[slash+1:]) {
		return b
	}
	var out []byte
	for len(b) > 0 {
		number, _, size := wireNext(b)
		if size == 0 {
			return b
		}
		if number == 2 {
			out = text(out, 2, host[:slash+1])
		} else {
			out = append(out, b[:size]...)
		}
		b = b[size:]
	}
	return out
}

func randomName(name string) bool {
	return len(name) == 8 && strings.Trim(name, "0123456789abcdef") == ""
}

func terminationPath(request []byte) (path string) {
	fields(request, func(field int, config []byte, _ uint64) {
		if field != 2 {
			return
		}
		fields(config, func(field int, entry []byte, _ uint64) {
			if field == annotationsOfContainer && mapKey(entry) == terminationKey {
				fields(entry, func(field int, value []byte, _ uint64) {
					if field == 2 {
						path = string(value)
					}
				})
			}
		})
	})
	return path
}

func mapKey(entry []byte) (key string) {
	fields(entry, func(field int, inside []byte, _ uint64) {
		if field == 1 {
			key = string(inside)
		}
	})
	return key
}

// wireNext returns the first field of a message, and its size with the tag; size 0: it is broken.
// inside is nil if the field is a number.
func wireNext(b []byte) (number int, inside []byte, size int) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return 0, nil, 0
	}
	number = int(tag >> 3)
	switch tag & 7 {
	case 0:
		_, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return 0, nil, 0
		}
		return number, nil, n + m
	case 1, 5:
		size = n + 8
		if tag&7 == 5 {
			size = n + 4
		}
		if len(b) < size {
			return 0, nil, 0
		}
		return number, nil, size
	case 2:
		length, m := binary.Uvarint(b[n:])
		if m <= 0 || length > uint64(len(b)-n-m) {
			return 0, nil, 0
		}
		n += m
		return number, b[n : n+int(length) : n+int(length)], n + int(length)
	}
	return 0, nil, 0
}
