// SPDX-License-Identifier: Apache-2.0

package crikeep

// #include "bridge.h"
import "C"

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"syscall"
)

// Code is the kind of an error. Each code is an error itself, for errors.Is(err,
// crikeep.ErrConflict).
type Code int

// The codes of crikeep.h, and at the end those of this package only.
const (
	CodeNoMem        Code = C.CK_ENOMEM
	CodeInvalid      Code = C.CK_EINVAL
	CodeMalformed    Code = C.CK_EMALFORMED
	CodeTooBig       Code = C.CK_ETOOBIG
	CodeIO           Code = C.CK_EIO
	CodeFull         Code = C.CK_EFULL
	CodeDamaged      Code = C.CK_EDAMAGED
	CodeVersion      Code = C.CK_EVERSION
	CodeOwned        Code = C.CK_EOWNED
	CodeNotFound     Code = C.CK_ENOTFOUND
	CodeConflict     Code = C.CK_ECONFLICT
	CodeAbandoned    Code = C.CK_EABANDONED
	CodeUnavailable  Code = C.CK_EUNAVAILABLE
	CodeDeadline     Code = C.CK_EDEADLINE
	CodePrecondition Code = C.CK_EPRECONDITION
	CodeFailed       Code = C.CK_EFAILED
	CodeRefused      Code = C.CK_EREFUSED
	CodeNoLoop       Code = C.CK_ENOLOOP
	CodeDeadlock     Code = C.CK_EDEADLK
	CodeFork         Code = C.CK_EFORK
	CodeClosed       Code = C.CK_ECLOSED
	CodeState        Code = C.CK_ESTATE

	CodeBusy Code = C.CK_BUSY // outcome Busy, as an error: it is still being created. Is ErrUnavailable, too
	CodeKept Code = C.CK_KEPT // outcome Kept, as an error of Do: created, but too late for this caller. Is ErrUnavailable, too
	CodeLost Code = 1003      // returned by the function given to Do: the outcome of the creation is unknown
)

// For errors.Is.
var (
	ErrInvalid      error = CodeInvalid      // a missing, oversized or otherwise wrong argument
	ErrMalformed    error = CodeMalformed    // not a CRI request
	ErrTooBig       error = CodeTooBig       // over a limit
	ErrOwned        error = CodeOwned        // another process owns the state directory
	ErrNotFound     error = CodeNotFound     // no such entry; returned by a Host: the object does not exist
	ErrConflict     error = CodeConflict     // the request differs from the one that created the committed resource
	ErrAbandoned    error = CodeAbandoned    // the kubelet has moved on
	ErrUnavailable  error = CodeUnavailable  // something this needs is not available yet
	ErrDeadline     error = CodeDeadline     // the caller's deadline had passed; is context.DeadlineExceeded, too
	ErrPrecondition error = CodePrecondition // the sandbox is being stopped
	ErrFailed       error = CodeFailed       // the creation failed: a *StatusError
	ErrRefused      error = CodeRefused      // a plugin refused
	ErrDeadlock     error = CodeDeadlock     // called from a function that must not call this package
	ErrFork         error = CodeFork         // in a child of the process that opened the cache
	ErrClosed       error = CodeClosed       // the cache, turn or view is closed
	ErrState        error = CodeState        // the turn is not in a state for this call
	ErrBusy         error = CodeBusy         // still being created when the caller's deadline is near
	ErrKept         error = CodeKept         // created, but too late for this caller; the repeated request gets it
	ErrLost         error = CodeLost         // to be returned (or wrapped) by the function given to Do
)

func (c Code) Error() string {
	return "crikeep: " + c.text()
}

func (c Code) text() string {
	switch c {
	case CodeLost:
		return "the outcome of the creation is unknown"
	}
	return C.GoString(C.ck_strerror(C.int(c)))
}

// Is makes an outcome of Busy or Kept an ErrUnavailable, and ErrDeadline a
// context.DeadlineExceeded.
func (c Code) Is(target error) bool {
	switch c {
	case CodeBusy, CodeKept:
		return target == ErrUnavailable
	case CodeDeadline:
		return target == context.DeadlineExceeded
	}
	return false
}

// Error is an error of the library. Its text never repeats a value of a request.
type Error struct {
	Code  Code
	Errno syscall.Errno // or 0
	Sub   int           // SQLite's extended result code, or 0
	Text  string        // "open the cache '/run/crikeep': lock: ..."
}

func (e *Error) Error() string {
	if e.Text == "" {
		return e.Code.Error()
	}
	return "crikeep: " + e.Text
}

// Is compares the code, so that errors.Is(err, ErrConflict) works, and then asks Code.Is.
func (e *Error) Is(target error) bool {
	return target == error(e.Code) || e.Code.Is(target)
}

// Unwrap returns the errno, so that errors.Is(err, syscall.ENOSPC) works.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// StatusError is a gRPC status of the runtime. The error that the function given to Do returns
// reaches all callers that wait for the same creation as a StatusError. A runtime that returns a
// StatusError itself determines code, message and details.
type StatusError struct {
	GRPC    uint32 // google.rpc.Code
	Message string
	Details []byte // grpc-status-details-bin, decoded; or nil
}

func (e *StatusError) Error() string { return e.Message }

// Is makes every status an ErrFailed, and NOT_FOUND an ErrNotFound.
func (e *StatusError) Is(target error) bool {
	return target == ErrFailed || (target == ErrNotFound && e.GRPC == grpcNotFound)
}

const (
	grpcCanceled      = 1
	grpcUnknown       = 2
	grpcDeadline      = 4
	grpcNotFound      = 5
	grpcAlreadyExists = 6
	grpcUnavailable   = 14
)

// GRPCCode returns the code with which a CRI server answers err: the code of a *StatusError or of
// any error with a GRPCStatus method (like those of google.golang.org/grpc/status), the library's
// code for its own errors, and Unknown otherwise. It returns 0 for nil.
func GRPCCode(err error) uint32 {
	if err == nil {
		return 0
	}
	code, _ := statusOf(err)
	return code
}

// statusOf returns the code and the message of an error
func statusOf(err error) (uint32, string) {
	var status *StatusError
	var own *Error
	var code Code
	if errors.As(err, &status) && status.GRPC != 0 {
		return status.GRPC, err.Error()
	}
	if n, message, ok := foreignStatus(err); ok {
		return n, message
	}
	switch {
	case errors.As(err, &own):
		return own.Code.grpc(own.Sub), err.Error()
	case errors.As(err, &code):
		return code.grpc(0), err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return grpcDeadline, err.Error()
	case errors.Is(err, context.Canceled):
		return grpcCanceled, err.Error()
	}
	return grpcUnknown, err.Error()
}

func (c Code) grpc(sub int) uint32 {
	switch c {
	case CodeBusy, CodeKept, CodeLost:
		return grpcUnavailable
	}
	return uint32(C.ckgo_grpc(C.int(c), C.int(sub)))
}

// foreignStatus reads a status of package google.golang.org/grpc/status, on which this module does
// not depend. It looks for the first error in the tree, in the order of errors.As, with a method
// GRPCStatus whose result has Code and Message.
func foreignStatus(err error) (code uint32, message string, ok bool) {
	if err == nil {
		return 0, "", false
	}
	if code, message, ok = grpcStatus(reflect.ValueOf(err)); ok {
		return code, message, true
	}
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return foreignStatus(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range wrapper.Unwrap() {
			if code, message, ok = foreignStatus(err); ok {
				return code, message, true
			}
		}
	}
	return 0, "", false
}

// grpcStatus asks one error
func grpcStatus(err reflect.Value) (code uint32, message string, ok bool) {
	get := err.MethodByName("GRPCStatus")
	if (err.Kind() == reflect.Pointer && err.IsNil()) || !get.IsValid() || get.Type().NumIn() != 0 || get.Type().NumOut() != 1 {
		return 0, "", false
	}
	status := get.Call(nil)[0]
	if status.Kind() == reflect.Pointer && status.IsNil() {
		return 0, "", false
	}
	number, text := status.MethodByName("Code"), status.MethodByName("Message")
	if !number.IsValid() || !text.IsValid() || number.Type().NumIn() != 0 || text.Type().NumIn() != 0 ||
		number.Type().NumOut() != 1 || text.Type().NumOut() != 1 || text.Type().Out(0).Kind() != reflect.String {
		return 0, "", false
	}
	n := number.Call(nil)[0]
	if !n.CanUint() || n.Uint() == 0 || n.Uint() > 1<<31-1 {
		return 0, "", false
	}
	return uint32(n.Uint()), text.Call(nil)[0].String(), true
}

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
