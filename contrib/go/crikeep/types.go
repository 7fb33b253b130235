// SPDX-License-Identifier: Apache-2.0

package crikeep

// #include "bridge.h"
import "C"

import (
	"fmt"
	"strings"
	"time"
	"unsafe"
)

// Kind of a resource.
type Kind int

const (
	Sandbox   Kind = C.CK_SANDBOX
	Container Kind = C.CK_CONTAINER
)

func (k Kind) String() string {
	return name(int(k), map[int]string{int(Sandbox): "sandbox", int(Container): "container"})
}

// Condition is the condition of a resource in the runtime.
type Condition int

const (
	Unknown Condition = C.CK_CONDITION_UNKNOWN // the question failed; nothing is concluded
	Ready   Condition = C.CK_CONDITION_READY   // sandbox READY, container CREATED
	Running Condition = C.CK_CONDITION_RUNNING // container RUNNING
	Dead    Condition = C.CK_CONDITION_DEAD    // sandbox NOTREADY, container EXITED
	Absent  Condition = C.CK_CONDITION_ABSENT  // NOT_FOUND
)

func (c Condition) String() string {
	return name(int(c), map[int]string{int(Unknown): "unknown", int(Ready): "ready", int(Running): "running", int(Dead): "dead",
		int(Absent): "absent"})
}

// Outcome of a turn: what its caller must do now.
type Outcome int

const (
	Create   Outcome = C.CK_CREATE    // create it; then call Finish, Fail or Lost
	Wait     Outcome = C.CK_WAIT      // not decided yet; call Turn.Wait
	HandBack Outcome = C.CK_HAND_BACK // it exists; call Turn.Reply
	Busy     Outcome = C.CK_BUSY      // the deadline is near, and it is still being created
	Kept     Outcome = C.CK_KEPT      // finished, but your caller is gone or out of time: kept for the repeated request
	Drained  Outcome = C.CK_DRAINED   // of a removal: the cache has nothing left of the sandbox
)

func (o Outcome) String() string {
	return name(int(o), map[int]string{int(Create): "create", int(Wait): "wait", int(HandBack): "hand back", int(Busy): "busy",
		int(Kept): "kept", int(Drained): "drained"})
}

// Mode says how two requests are compared; see libcrikeep(3), "THE SAME REQUEST".
type Mode int

const (
	Normalized Mode = C.CK_MODE_NORMALIZED
	Identity   Mode = C.CK_MODE_IDENTITY
	Strict     Mode = C.CK_MODE_STRICT
)

// HandBackMode says what to do with a late sandbox.
type HandBackMode int

const (
	Repeat HandBackMode = C.CK_REPEAT // kept until the request is repeated
	Offer  HandBackMode = C.CK_OFFER  // visible at once: the kubelet adopts it from its next list
)

// AnnotationChange says what to do with a kept result if a repeated request differs only in labels
// and annotations.
type AnnotationChange int

const (
	AnnotationHandBack AnnotationChange = C.CK_ANNOTATION_HAND_BACK
	AnnotationEvict    AnnotationChange = C.CK_ANNOTATION_EVICT
)

// HookEvent is an event of hooks.
type HookEvent int

const (
	HookRun    HookEvent = C.CK_HOOK_RUN
	HookStop   HookEvent = C.CK_HOOK_STOP
	HookRemove HookEvent = C.CK_HOOK_REMOVE
)

func (e HookEvent) String() string {
	return name(int(e), map[int]string{int(HookRun): "run", int(HookStop): "stop", int(HookRemove): "remove"})
}

func name(n int, names map[int]string) string {
	if s, ok := names[n]; ok {
		return s
	}
	return fmt.Sprint(n)
}

// State of an entry.
type State int

const (
	StateCreating   State = C.CK_STATE_CREATING   // a creation is running
	StateUnknown    State = C.CK_STATE_UNKNOWN    // the outcome of its creation is unknown
	StateKept       State = C.CK_STATE_KEPT       // it exists, but is hidden until its request is repeated
	StateCommitting State = C.CK_STATE_COMMITTING // hooks are being told
	StateCommitted  State = C.CK_STATE_COMMITTED  // it belongs to the kubelet and is visible
	StateEnded      State = C.CK_STATE_ENDED      // it was committed and has stopped or exited since
	StateEvicting   State = C.CK_STATE_EVICTING   // it was given up and is being destroyed
)

func (s State) String() string {
	return name(int(s), map[int]string{int(StateCreating): "creating", int(StateUnknown): "unknown", int(StateKept): "kept",
		int(StateCommitting): "committing", int(StateCommitted): "committed", int(StateEnded): "ended", int(StateEvicting): "evicting"})
}

// Entry is what the cache knows about one sandbox or container.
type Entry struct {
	Number        uint64 // does not change
	Kind          Kind
	ID            string // "" if it is unknown
	PodName       string
	PodNamespace  string
	PodUID        string
	SandboxID     string // containers only, like ContainerName
	ContainerName string
	Attempt       uint32
	Told          []string // names of the plugins that know about it; not set by Cache.Entries

	// set by Cache.Entries only
	State    State
	Stage    string        // the last known stage of the creation
	Lost     bool          // State is Unknown (K8)
	Known    bool          // plugins know about it, or are being told
	Ended    bool          // State is Ended
	Requests uint32        // how often it was requested
	Why      string        // Evicting: the reason in a few words
	Tries    uint32        // Evicting: destroys that failed
	Since    time.Duration // how long it has been in this state
}

// Object is one sandbox or container in the runtime. For a container, the names of the pod are
// those of its io.kubernetes.pod.* labels.
type Object struct {
	Kind          Kind
	Condition     Condition
	ID            string
	PodName       string
	PodNamespace  string
	PodUID        string
	SandboxID     string // containers only, like ContainerName
	ContainerName string
	Attempt       uint32
	CreatedAt     time.Time // only compared with that of another object
}

// Filter says which objects are needed; "" does not restrict. A longer list does no harm.
type Filter struct {
	Kind      Kind
	PodUID    string // for sandboxes
	SandboxID string // for containers: of this sandbox
}

// Request is one create, as it came.
type Request struct {
	Kind Kind
	// Bytes of the RunPodSandboxRequest or CreateContainerRequest, of runtime.v1 or v1alpha2;
	// at most 16 MiB.
	Bytes []byte
	// Expired: the caller's deadline had passed, or the call was cancelled, before the request
	// was read. Such a request abandons nothing (K9). A context that is over implies it.
	Expired bool
	// KeyOnly: compare by name and attempt only, for a caller that knows nothing else.
	KeyOnly bool
}

// Result is the result of a creation.
type Result struct {
	ID    string // the runtime's id
	Reply []byte // the bytes of the response, handed out unchanged; nil: made from the id
}

// Reply is the answer for the kubelet.
type Reply struct {
	ID    string
	Bytes []byte // RunPodSandboxResponse or CreateContainerResponse
}

// ---- to and from C ------------------------------------------------------------------------------

func bytesPointer(b []byte) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(b))
}

func entryOf(told *C.struct_ck_told) Entry {
	return Entry{
		Number:        uint64(told.entry),
		Kind:          Kind(told.kind),
		ID:            C.GoString(told.id),
		PodName:       C.GoString(told.pod_name),
		PodNamespace:  C.GoString(told.pod_namespace),
		PodUID:        C.GoString(told.pod_uid),
		SandboxID:     C.GoString(told.sandbox_id),
		ContainerName: C.GoString(told.container_name),
		Attempt:       uint32(told.attempt),
		Told:          strings.Fields(C.GoString(told.told)),
	}
}

// packed is a list of objects without pointers. Their texts are in one block. Its first byte is
// unused, so that place 0 means no text.
type packed struct {
	objects []C.struct_ckgo_object
	text    []byte
}

func pack(objects ...Object) (*packed, error) {
	size := 1
	for i := range objects {
		o := &objects[i]
		for _, s := range o.texts() {
			size += len(s) + 1
		}
	}
	if uint64(size) > 1<<31 {
		return nil, &Error{Code: CodeTooBig, Text: "a list of more than 2 GiB"}
	}
	p := &packed{objects: make([]C.struct_ckgo_object, len(objects)), text: make([]byte, 1, size)}
	for i := range objects {
		o, c := &objects[i], &p.objects[i]
		c.kind, c.condition, c.attempt = C.uint32_t(o.Kind), C.uint32_t(o.Condition), C.uint32_t(o.Attempt)
		if !o.CreatedAt.IsZero() {
			c.created_at = C.uint64_t(o.CreatedAt.UnixNano())
		}
		for j, s := range o.texts() {
			if strings.IndexByte(s, 0) >= 0 {
				return nil, invalid("an object with a zero byte in its names")
			}
			if s == "" {
				continue
			}
			c.at[j] = C.uint32_t(len(p.text))
			p.text = append(append(p.text, s...), 0)
		}
	}
	return p, nil
}

func (o *Object) texts() [6]string {
	return [6]string{o.ID, o.PodName, o.PodNamespace, o.PodUID, o.SandboxID, o.ContainerName}
}

func (p *packed) first() *C.struct_ckgo_object { return unsafe.SliceData(p.objects) }
func (p *packed) chars() *C.char               { return (*C.char)(bytesPointer(p.text)) }
