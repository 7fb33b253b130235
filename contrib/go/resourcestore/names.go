// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"crikeep.io/go/crikeep"
)

// CRI-O makes the names of its objects from the kubelet's names, joined by '_', which no name in
// Kubernetes contains:
//
//	sandbox    k8s_POD_NAMESPACE_UID_ATTEMPT
//	container  k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT    (the infra container is called POD)
//
// Any other string is the name of its own sandbox, so every string can be used.
const (
	namePrefix       = "k8s"
	sandboxNameParts = 5
	// Names that are longer, or contain a NUL, are kept by their digest, because the library
	// accepts 1024 bytes per name.
	nameMax = 1000
	// The old calls of the store know no sandbox id. Within one pod uid, containers differ by
	// name and attempt.
	podSandboxPrefix = "pod:"
)

type parts struct {
	kind                 crikeep.Kind
	namespace, pod, uid  string
	sandboxID, container string
	attempt              uint32
}

func parseName(name string) parts {
	words := strings.Split(name, "_")
	attempt, err := strconv.ParseUint(words[len(words)-1], 10, 32)
	// if it would be written differently, like "+1" or "01", it is not a name of CRI-O
	if err != nil || strconv.FormatUint(attempt, 10) != words[len(words)-1] || words[0] != namePrefix ||
		len(name) > nameMax || strings.ContainsRune(name, 0) {
		return oddName(name)
	}
	for _, word := range words {
		if word == "" {
			return oddName(name)
		}
	}
	switch len(words) {
	case sandboxNameParts:
		return parts{kind: crikeep.Sandbox, pod: words[1], namespace: words[2], uid: words[3], attempt: uint32(attempt)}
	case sandboxNameParts + 1:
		return parts{kind: crikeep.Container, container: words[1], pod: words[2], namespace: words[3], uid: words[4],
			sandboxID: podSandboxPrefix + words[4], attempt: uint32(attempt)}
	}
	return oddName(name)
}

// A pod without a namespace. Kubernetes has none, so it is never mistaken for a real one.
func oddName(name string) parts {
	if name == "" || len(name) > nameMax || strings.ContainsRune(name, 0) {
		sum := sha256.Sum256([]byte(name))
		name = "sha256:" + hex.EncodeToString(sum[:])
	}
	return parts{kind: crikeep.Sandbox, pod: name, uid: name}
}

// nameOf returns the name of an entry of an earlier process.
func nameOf(e crikeep.Entry) string { return partsOf(e).name() }

// name is CRI-O's name.
func (p parts) name() string {
	attempt := strconv.FormatUint(uint64(p.attempt), 10)
	switch {
	case p.namespace == "" && p.uid == p.pod && p.kind == crikeep.Sandbox:
		return p.pod
	case p.kind == crikeep.Sandbox:
		return strings.Join([]string{namePrefix, p.pod, p.namespace, p.uid, attempt}, "_")
	default:
		return strings.Join([]string{namePrefix, p.container, p.pod, p.namespace, p.uid, attempt}, "_")
	}
}

// request returns the smallest CRI request with this key. Calls that know only a name begin their
// turns with it.
func (p parts) request() []byte {
	metadata := message(nil, 1, text(nil, 1, p.pod), text(nil, 2, p.uid), text(nil, 3, p.namespace),
		number(nil, 4, sandboxAttempt(p)))
	if p.kind == crikeep.Sandbox {
		return message(nil, 1, metadata) // RunPodSandboxRequest.config
	}
	container := message(nil, 1, text(nil, 1, p.container), number(nil, 2, p.attempt))
	b := text(nil, 1, p.sandboxID) // CreateContainerRequest.pod_sandbox_id
	b = message(b, 2, container)   // .config
	return message(b, 3, metadata) // .sandbox_config
}

func sandboxAttempt(p parts) uint32 {
	if p.kind == crikeep.Sandbox {
		return p.attempt
	}
	return 0 // not in a container's name, and not in its key
}

// partsOfRequest reads the key of a request that the library has accepted. If a field is repeated,
// the last one counts.
func partsOfRequest(kind crikeep.Kind, request []byte) parts {
	p := parts{kind: kind}
	sandbox := func(b []byte) { // PodSandboxConfig
		fields(b, func(field int, inside []byte, _ uint64) {
			if field != 1 {
				return
			}
			fields(inside, func(field int, s []byte, v uint64) {
				switch field {
				case 1:
					p.pod = string(s)
				case 2:
					p.uid = string(s)
				case 3:
					p.namespace = string(s)
				case 4:
					if kind == crikeep.Sandbox {
						p.attempt = uint32(v)
					}
				}
			})
		})
	}
	fields(request, func(field int, inside []byte, _ uint64) {
		switch {
		case kind == crikeep.Sandbox && field == 1, kind == crikeep.Container && field == 3:
			sandbox(inside)
		case kind == crikeep.Container && field == 1:
			p.sandboxID = string(inside)
		case kind == crikeep.Container && field == 2:
			fields(inside, func(field int, inside []byte, _ uint64) { // ContainerConfig
				if field != 1 {
					return
				}
				fields(inside, func(field int, s []byte, v uint64) {
					switch field {
					case 1:
						p.container = string(s)
					case 2:
						p.attempt = uint32(v)
					}
				})
			})
		}
	})
	return p
}

// fields calls fn with each field of a message: its bytes or its number. It stops if the message is
// invalid, which the library has refused before.
func fields(b []byte, fn func(field int, inside []byte, v uint64)) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return
		}
		b = b[n:]
		switch tag & 7 {
		case 0:
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return
			}
			fn(int(tag>>3), nil, v)
			b = b[n:]
		case 1, 5:
			size := 8
			if tag&7 == 5 {
				size = 4
			}
			if len(b) < size {
				return
			}
			b = b[size:]
		case 2:
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return
			}
			fn(int(tag>>3), b[n:n+int(length)], 0)
			b = b[n+int(length):]
		default:
			return
		}
	}
}

// The three kinds of protobuf fields that a key needs. Defaults are left out.

func varint(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

func number(b []byte, field int, v uint32) []byte {
	if v == 0 {
		return b
	}
	return varint(varint(b, uint64(field)<<3), uint64(v))
}

func text(b []byte, field int, s string) []byte {
	if s == "" {
		return b
	}
	b = varint(varint(b, uint64(field)<<3|2), uint64(len(s)))
	return append(b, s...)
}

func message(b []byte, field int, inside ...[]byte) []byte {
	n := 0
	for _, part := range inside {
		n += len(part)
	}
	b = varint(varint(b, uint64(field)<<3|2), uint64(n))
	for _, part := range inside {
		b = append(b, part...)
	}
	return b
}
