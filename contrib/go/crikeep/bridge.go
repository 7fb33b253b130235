// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

// #include "bridge.h"
import "C"

import (
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

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

// ---- from C -------------------------------------------------------------------------------------

var errorPool = sync.Pool{New: func() any { return new(C.struct_ck_error) }}

// newError allocates an error for C to write to; wrap frees it
func newError() *C.struct_ck_error {
	e := errorPool.Get().(*C.struct_ck_error)
	e.code, e.sys, e.sub, e.text[0] = 0, 0, 0, 0
	return e
}

// wrap makes an error of the result of a function, or nil if it is not negative
func wrap(r C.int, e *C.struct_ck_error) error {
	defer errorPool.Put(e)
	if r >= 0 {
		return nil
	}
	return &Error{Code: Code(-r), Errno: syscall.Errno(e.sys), Sub: int(e.sub), Text: C.GoString(&e.text[0])}
}

// check is for functions that write no error text
func check(r C.int) error {
	if r >= 0 {
		return nil
	}
	return &Error{Code: Code(-r)}
}

func invalid(text string) error {
	return &Error{Code: CodeInvalid, Text: text}
}

// ---- strings: Go memory as a direct argument of one call ----------------------------------------

// cstring returns nil for a text with a zero byte, which C cannot read to its end
func cstring(s string) *C.char {
	if strings.IndexByte(s, 0) >= 0 {
		return nil
	}
	b := make([]byte, len(s)+1)
	copy(b, s)
	return (*C.char)(bytesPointer(b))
}

// plain is for texts that are only shown: what C cannot read is left out
func plain(s string) *C.char {
	return cstring(strings.ReplaceAll(s, "\x00", ""))
}

// ---- what stands in Go, for builds without C ----------------------------------------------------

// The numbers are those of crikeep.h: an array of another size than 0 is not compiled.
var (
	_ = [0]struct{}([Sandbox - C.CK_SANDBOX]struct{}{})
	_ = [0]struct{}([Container - C.CK_CONTAINER]struct{}{})
	_ = [0]struct{}([Unknown - C.CK_CONDITION_UNKNOWN]struct{}{})
	_ = [0]struct{}([Ready - C.CK_CONDITION_READY]struct{}{})
	_ = [0]struct{}([Running - C.CK_CONDITION_RUNNING]struct{}{})
	_ = [0]struct{}([Dead - C.CK_CONDITION_DEAD]struct{}{})
	_ = [0]struct{}([Absent - C.CK_CONDITION_ABSENT]struct{}{})
	_ = [0]struct{}([Ran - C.CK_CONDITION_RAN]struct{}{})
	_ = [0]struct{}([Create - C.CK_CREATE]struct{}{})
	_ = [0]struct{}([Wait - C.CK_WAIT]struct{}{})
	_ = [0]struct{}([HandBack - C.CK_HAND_BACK]struct{}{})
	_ = [0]struct{}([Busy - C.CK_BUSY]struct{}{})
	_ = [0]struct{}([Kept - C.CK_KEPT]struct{}{})
	_ = [0]struct{}([Drained - C.CK_DRAINED]struct{}{})
	_ = [0]struct{}([Normalized - C.CK_MODE_NORMALIZED]struct{}{})
	_ = [0]struct{}([Identity - C.CK_MODE_IDENTITY]struct{}{})
	_ = [0]struct{}([Strict - C.CK_MODE_STRICT]struct{}{})
	_ = [0]struct{}([Repeat - C.CK_REPEAT]struct{}{})
	_ = [0]struct{}([Offer - C.CK_OFFER]struct{}{})
	_ = [0]struct{}([AnnotationHandBack - C.CK_ANNOTATION_HAND_BACK]struct{}{})
	_ = [0]struct{}([AnnotationEvict - C.CK_ANNOTATION_EVICT]struct{}{})
	_ = [0]struct{}([HookRun - C.CK_HOOK_RUN]struct{}{})
	_ = [0]struct{}([HookStop - C.CK_HOOK_STOP]struct{}{})
	_ = [0]struct{}([HookRemove - C.CK_HOOK_REMOVE]struct{}{})
	_ = [0]struct{}([StateCreating - C.CK_STATE_CREATING]struct{}{})
	_ = [0]struct{}([StateUnknown - C.CK_STATE_UNKNOWN]struct{}{})
	_ = [0]struct{}([StateKept - C.CK_STATE_KEPT]struct{}{})
	_ = [0]struct{}([StateCommitting - C.CK_STATE_COMMITTING]struct{}{})
	_ = [0]struct{}([StateCommitted - C.CK_STATE_COMMITTED]struct{}{})
	_ = [0]struct{}([StateEnded - C.CK_STATE_ENDED]struct{}{})
	_ = [0]struct{}([StateEvicting - C.CK_STATE_EVICTING]struct{}{})
	_ = [0]struct{}([CodeNoMem - C.CK_ENOMEM]struct{}{})
	_ = [0]struct{}([CodeInvalid - C.CK_EINVAL]struct{}{})
	_ = [0]struct{}([CodeMalformed - C.CK_EMALFORMED]struct{}{})
	_ = [0]struct{}([CodeTooBig - C.CK_ETOOBIG]struct{}{})
	_ = [0]struct{}([CodeIO - C.CK_EIO]struct{}{})
	_ = [0]struct{}([CodeFull - C.CK_EFULL]struct{}{})
	_ = [0]struct{}([CodeDamaged - C.CK_EDAMAGED]struct{}{})
	_ = [0]struct{}([CodeVersion - C.CK_EVERSION]struct{}{})
	_ = [0]struct{}([CodeOwned - C.CK_EOWNED]struct{}{})
	_ = [0]struct{}([CodeNotFound - C.CK_ENOTFOUND]struct{}{})
	_ = [0]struct{}([CodeConflict - C.CK_ECONFLICT]struct{}{})
	_ = [0]struct{}([CodeAbandoned - C.CK_EABANDONED]struct{}{})
	_ = [0]struct{}([CodeUnavailable - C.CK_EUNAVAILABLE]struct{}{})
	_ = [0]struct{}([CodeDeadline - C.CK_EDEADLINE]struct{}{})
	_ = [0]struct{}([CodePrecondition - C.CK_EPRECONDITION]struct{}{})
	_ = [0]struct{}([CodeFailed - C.CK_EFAILED]struct{}{})
	_ = [0]struct{}([CodeRefused - C.CK_EREFUSED]struct{}{})
	_ = [0]struct{}([CodeNoLoop - C.CK_ENOLOOP]struct{}{})
	_ = [0]struct{}([CodeDeadlock - C.CK_EDEADLK]struct{}{})
	_ = [0]struct{}([CodeFork - C.CK_EFORK]struct{}{})
	_ = [0]struct{}([CodeClosed - C.CK_ECLOSED]struct{}{})
	_ = [0]struct{}([CodeState - C.CK_ESTATE]struct{}{})
	_ = [0]struct{}([CodeBusy - C.CK_BUSY]struct{}{})
	_ = [0]struct{}([CodeKept - C.CK_KEPT]struct{}{})
)

// cText and cGRPC are what crikeep.h says about a code. A test compares them with errors.go.
func cText(c Code) string          { return C.GoString(C.ck_strerror(C.int(c))) }
func cGRPC(c Code, sub int) uint32 { return uint32(C.ckgo_grpc(C.int(c), C.int(sub))) }
