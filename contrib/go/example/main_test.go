// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package main

import (
	"os"
	"strings"
	"testing"
)

func TestHandsBack(t *testing.T) {
	if err := os.Chdir(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create("out")
	if err != nil {
		t.Fatal(err)
	}
	was := os.Stdout
	os.Stdout = out
	main()
	os.Stdout = was
	said, err := os.ReadFile("out")
	lines := strings.Split(string(said), "\n")
	if err != nil || len(lines) != 5 || lines[0] != " context deadline exceeded" ||
		lines[2] != "77d1 <nil>" || lines[3] != "<nil>" {
		t.Fatalf("%v\n%s", err, said)
	}
}
