// SPDX-License-Identifier: Apache-2.0

package crikeep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// foreign looks like an error of google.golang.org/grpc/status
type foreign struct{ s *foreignStatusText }
type foreignCode uint32
type foreignStatusText struct {
	code foreignCode
	text string
}

func (f foreign) Error() string                  { return fmt.Sprint("rpc error: ", f.s) }
func (f foreign) GRPCStatus() *foreignStatusText { return f.s }
func (s *foreignStatusText) Code() foreignCode   { return s.code }
func (s *foreignStatusText) Message() string     { return s.text }

func TestErrorsIsAndGRPC(t *testing.T) {
	var none *foreignStatusText
	for _, c := range []struct {
		err  error
		grpc uint32
		is   []error
		not  []error
	}{
		{nil, 0, nil, []error{ErrFailed}},
		{ErrConflict, 6, []error{ErrConflict}, []error{ErrAbandoned, ErrUnavailable}},
		{&Error{Code: CodeConflict, Text: "x"}, 6, []error{ErrConflict, CodeConflict}, []error{ErrAbandoned}},
		{fmt.Errorf("y: %w", &Error{Code: CodeAbandoned}), 10, []error{ErrAbandoned}, []error{ErrConflict}},
		{&Error{Code: CodeUnavailable}, 14, []error{ErrUnavailable}, []error{ErrBusy, ErrKept}},
		{&Error{Code: CodeBusy}, 14, []error{ErrBusy, ErrUnavailable}, []error{ErrKept}},
		{ErrKept, 14, []error{ErrKept, ErrUnavailable}, []error{ErrBusy}},
		{&Error{Code: CodeKept}, 14, []error{ErrKept, ErrUnavailable}, []error{ErrBusy}},
		{&Error{Code: CodeDeadline}, 4, []error{ErrDeadline, context.DeadlineExceeded}, []error{context.Canceled}},
		{&Error{Code: CodePrecondition}, 9, []error{ErrPrecondition}, nil},
		{&Error{Code: CodeRefused}, 2, []error{ErrRefused}, nil},
		{&Error{Code: CodeMalformed}, 3, []error{ErrMalformed}, nil},
		{&Error{Code: CodeIO, Errno: syscall.ENOSPC}, 14, []error{syscall.ENOSPC}, []error{syscall.EIO}},
		{&StatusError{GRPC: 5, Message: "gone"}, 5, []error{ErrNotFound, ErrFailed}, []error{ErrConflict}},
		{&StatusError{GRPC: 13, Message: "bad"}, 13, []error{ErrFailed}, []error{ErrNotFound}},
		{&StatusError{}, 2, []error{ErrFailed}, nil},
		{fmt.Errorf("z: %w", &StatusError{GRPC: 8}), 8, []error{ErrFailed}, nil},
		{errors.New("plain"), 2, nil, []error{ErrFailed}},
		{context.Canceled, 1, nil, nil},
		{fmt.Errorf("w: %w", context.DeadlineExceeded), 4, nil, []error{ErrDeadline}},
		{foreign{&foreignStatusText{7, "no"}}, 7, nil, nil},
		{fmt.Errorf("v: %w", foreign{&foreignStatusText{7, "no"}}), 7, nil, nil},
		{fmt.Errorf("%w: %w", errors.New("u"), foreign{&foreignStatusText{14, "no"}}), 14, nil, nil}, // as CRI-O does
		{errors.Join(errors.New("t"), fmt.Errorf("s: %w", foreign{&foreignStatusText{4, "no"}})), 4, nil, nil},
		{foreign{&foreignStatusText{0, "strange"}}, 2, nil, nil},
		{fmt.Errorf("%w", foreign{none}), 2, nil, nil},
	} {
		if got := GRPCCode(c.err); got != c.grpc {
			t.Errorf("%v: gRPC code %d, not %d", c.err, got, c.grpc)
		}
		for _, is := range c.is {
			if !errors.Is(c.err, is) {
				t.Errorf("%v is not %v", c.err, is)
			}
		}
		for _, not := range c.not {
			if errors.Is(c.err, not) {
				t.Errorf("%v is %v", c.err, not)
			}
		}
	}
}

func TestErrorsHaveTexts(t *testing.T) {
	seen := map[string]Code{}
	for _, c := range []Code{CodeNoMem, CodeInvalid, CodeMalformed, CodeTooBig, CodeIO, CodeFull, CodeDamaged, CodeVersion, CodeOwned,
		CodeNotFound, CodeConflict, CodeAbandoned, CodeUnavailable, CodeDeadline, CodePrecondition, CodeFailed, CodeRefused,
		CodeNoLoop, CodeDeadlock, CodeFork, CodeClosed, CodeState, CodeBusy, CodeKept, CodeLost} {
		text := c.Error()
		if other, twice := seen[text]; twice || !strings.HasPrefix(text, "crikeep: ") || len(text) < 15 {
			t.Errorf("%d: %q, and %d has the same", c, text, other)
		}
		seen[text] = c
		if (&Error{Code: c}).Error() != text || (&Error{Code: c, Text: "a: b"}).Error() != "crikeep: a: b" {
			t.Errorf("%d: as an *Error it reads otherwise", c)
		}
		if GRPCCode(c) == 0 || GRPCCode(c) > 16 {
			t.Errorf("%v: gRPC code %d", c, GRPCCode(c))
		}
	}
	if len(seen) != 25 {
		t.Error("a code is missing:", len(seen))
	}
}

func TestWordsOfValues(t *testing.T) {
	for _, c := range []struct {
		v    fmt.Stringer
		word string
	}{{Sandbox, "sandbox"}, {Container, "container"}, {Kind(7), "7"}, {HandBack, "hand back"}, {StateEvicting, "evicting"},
		{Absent, "absent"}, {Ran, "ran"}, {HookStop, "stop"}} {
		if c.v.String() != c.word {
			t.Errorf("%q is not %q", c.v, c.word)
		}
	}
}

func TestEnds(t *testing.T) {
	for err, ends := range map[error]bool{
		errors.New("no such image"): true, &StatusError{GRPC: 6}: true, &StatusError{GRPC: 14}: false, &StatusError{GRPC: 4}: false,
		ErrLost: false, context.Canceled: false, context.DeadlineExceeded: false, &StatusError{GRPC: 1}: false, ErrNotFound: true,
		foreign{&foreignStatusText{14, "no connection"}}: false, foreign{&foreignStatusText{5, "no image"}}: true,
	} {
		if Ends(err) != ends || Ends(fmt.Errorf("in it: %w", err)) != ends || Ends(fmt.Errorf("%w: %w", errors.New("x"), err)) != ends {
			t.Error(err, Ends(err))
		}
	}
}
