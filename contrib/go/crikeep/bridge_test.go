// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import "testing"

// What stands in Go for builds without C is what the library says.
func TestCodesAreThoseOfTheLibrary(t *testing.T) {
	for code, text := range texts {
		if code == CodeLost {
			continue // of this package only
		}
		if c := cText(code); c != text {
			t.Errorf("%d is %q here and %q there", code, text, c)
		}
		if code == CodeBusy || code == CodeKept {
			continue // outcomes, which have no code there
		}
		for _, sub := range []int{0, 7} {
			if c := cGRPC(code, sub); c != code.grpc(sub) {
				t.Errorf("%v: gRPC code %d here and %d there", code, code.grpc(sub), c)
			}
		}
	}
}
