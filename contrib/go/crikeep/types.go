// SPDX-License-Identifier: Apache-2.0

package crikeep

import (
	"fmt"
	"time"
)

// Kind of a resource.
type Kind int

const (
	Sandbox   Kind = 1
	Container Kind = 2
)

func (k Kind) String() string {
	return name(int(k), map[int]string{int(Sandbox): "sandbox", int(Container): "container"})
}

// Condition is the condition of a resource in the runtime.
type Condition int

const (
	Unknown Condition = 0 // the question failed; nothing is concluded
	Ready   Condition = 1 // sandbox READY, container CREATED
	Running Condition = 2 // container RUNNING
	Dead    Condition = 3 // sandbox NOTREADY, container EXITED
	Absent  Condition = 4 // NOT_FOUND
	Ran     Condition = 5 // container EXITED, and known to have been started: it was in use
)

func (c Condition) String() string {
	return name(int(c), map[int]string{int(Unknown): "unknown", int(Ready): "ready", int(Running): "running", int(Dead): "dead",
		int(Absent): "absent", int(Ran): "ran"})
}

// Outcome of a turn: what its caller must do now.
type Outcome int

const (
	Create   Outcome = 101 // create it; then call Finish, Fail or Lost
	Wait     Outcome = 102 // not decided yet; call Turn.Wait
	HandBack Outcome = 103 // it exists; call Turn.Reply
	Busy     Outcome = 104 // the deadline is near, and it is still being created
	Kept     Outcome = 105 // finished, but your caller is gone or out of time: kept for the repeated request
	Drained  Outcome = 106 // of a removal: the cache has nothing left of the sandbox
)

func (o Outcome) String() string {
	return name(int(o), map[int]string{int(Create): "create", int(Wait): "wait", int(HandBack): "hand back", int(Busy): "busy",
		int(Kept): "kept", int(Drained): "drained"})
}

// Mode says how two requests are compared; see libcrikeep(3), "THE SAME REQUEST".
type Mode int

const (
	Normalized Mode = 0
	Identity   Mode = 1
	Strict     Mode = 2
)

// HandBackMode says what to do with a late sandbox.
type HandBackMode int

const (
	Repeat HandBackMode = 0 // kept until the request is repeated
	Offer  HandBackMode = 1 // visible at once: the kubelet adopts it from its next list
)

// AnnotationChange says what to do with a kept result if a repeated request differs only in labels
// and annotations.
type AnnotationChange int

const (
	AnnotationHandBack AnnotationChange = 0
	AnnotationEvict    AnnotationChange = 1
)

// HookEvent is an event of hooks.
type HookEvent int

const (
	HookRun    HookEvent = 1
	HookStop   HookEvent = 2
	HookRemove HookEvent = 3
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
	StateCreating   State = 1 // a creation is running
	StateUnknown    State = 7 // the outcome of its creation is unknown
	StateKept       State = 2 // it exists, but is hidden until its request is repeated
	StateCommitting State = 3 // hooks are being told
	StateCommitted  State = 4 // it belongs to the kubelet and is visible
	StateEnded      State = 8 // it was committed and has stopped or exited since
	StateEvicting   State = 5 // it was given up and is being destroyed
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
