// SPDX-License-Identifier: Apache-2.0

package crikeep

import (
	"context"
	"errors"
	"reflect"
	"syscall"
)

// Code is the kind of an error. Each code is an error itself, for errors.Is(err,
// crikeep.ErrConflict).
type Code int

// The codes of crikeep.h, and at the end those of this package only.
const (
	CodeNoMem        Code = 1
	CodeInvalid      Code = 2
	CodeMalformed    Code = 3
	CodeTooBig       Code = 4
	CodeIO           Code = 5
	CodeFull         Code = 6
	CodeDamaged      Code = 7
	CodeVersion      Code = 8
	CodeOwned        Code = 9
	CodeNotFound     Code = 10
	CodeConflict     Code = 11
	CodeAbandoned    Code = 12
	CodeUnavailable  Code = 13
	CodeDeadline     Code = 14
	CodePrecondition Code = 15
	CodeFailed       Code = 16
	CodeRefused      Code = 17
	CodeNoLoop       Code = 18
	CodeDeadlock     Code = 19
	CodeFork         Code = 20
	CodeClosed       Code = 21
	CodeState        Code = 22

	CodeBusy Code = 104  // outcome Busy, as an error: it is still being created. Is ErrUnavailable, too
	CodeKept Code = 105  // outcome Kept, as an error of Do: created, but too late for this caller. Is ErrUnavailable, too
	CodeLost Code = 1003 // returned by the function given to Do: the outcome of the creation is unknown
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
	if text, ok := texts[c]; ok {
		return text
	}
	return "unknown error"
}

// texts are those of ck_strerror(3), and those of this package only.
var texts = map[Code]string{
	CodeNoMem:        "out of memory",
	CodeInvalid:      "invalid argument",
	CodeMalformed:    "not a valid CRI request",
	CodeTooBig:       "over a limit",
	CodeIO:           "input or output failed",
	CodeFull:         "no space left for the database",
	CodeDamaged:      "the database is damaged",
	CodeVersion:      "created by a newer version",
	CodeOwned:        "another process owns the state directory",
	CodeNotFound:     "no such entry",
	CodeConflict:     "the request differs from the one that created the committed resource",
	CodeAbandoned:    "superseded: the kubelet has moved on",
	CodeUnavailable:  "something this needs is not available yet",
	CodeDeadline:     "the deadline had passed",
	CodePrecondition: "the sandbox is being stopped",
	CodeFailed:       "the creation failed",
	CodeRefused:      "a plugin refused",
	CodeNoLoop:       "no event loop: call ck_cache_run_thread() or ck_cache_process()",
	CodeDeadlock:     "not from a callback, and not twice at once",
	CodeFork:         "in a child of the process that opened the cache",
	CodeClosed:       "the cache is closing",
	CodeState:        "the turn is not in a state for this call",
	CodeBusy:         "it is still being created",
	CodeKept:         "made too late for this caller, and kept",
	CodeLost:         "the outcome of the creation is unknown",
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
	grpcCanceled          = 1
	grpcUnknown           = 2
	grpcInvalidArgument   = 3
	grpcDeadline          = 4
	grpcNotFound          = 5
	grpcAlreadyExists     = 6
	grpcResourceExhausted = 8
	grpcPrecondition      = 9
	grpcAborted           = 10
	grpcInternal          = 13
	grpcUnavailable       = 14
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

// Status returns code and message with which a CRI server answers err: those of the status that is
// in it, without what was wrapped around that, or else GRPCCode and the text. Answer with
// status.Error(codes.Code(code), message), and the kubelet sees one status, not one within another.
func Status(err error) (code uint32, message string) {
	if err == nil {
		return 0, ""
	}
	var status *StatusError
	var own *Error
	if errors.As(err, &status) && status.GRPC != 0 {
		return status.GRPC, status.Message
	}
	code, message = statusOf(err)
	if errors.As(err, &own) && own.Code == CodeRefused && own.Text != "" {
		message = own.Text // a plugin's
	}
	return code, message
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
	case CodeMalformed, CodeInvalid:
		return grpcInvalidArgument
	case CodeTooBig:
		return grpcResourceExhausted
	case CodeNotFound:
		return grpcNotFound
	case CodeConflict:
		return grpcAlreadyExists
	case CodeAbandoned:
		return grpcAborted
	case CodeDeadline:
		return grpcDeadline
	case CodePrecondition:
		return grpcPrecondition
	case CodeFailed:
		if sub != 0 {
			return uint32(sub)
		}
		return grpcUnknown
	case CodeRefused:
		return grpcUnknown
	case CodeUnavailable, CodeNoMem, CodeClosed, CodeIO, CodeFull, CodeBusy, CodeKept, CodeLost:
		return grpcUnavailable
	}
	return grpcInternal
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

// Ends says whether an error means that the creation has ended. Canceled, DeadlineExceeded,
// Unavailable and ErrLost leave that open.
func Ends(err error) bool {
	if errors.Is(err, ErrLost) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	switch GRPCCode(err) {
	case grpcCanceled, grpcDeadline, grpcUnavailable:
		return false
	}
	return true
}

func asStatus(err error) *StatusError {
	var s *StatusError
	if errors.As(err, &s) && s.GRPC != 0 {
		return s
	}
	return nil
}
