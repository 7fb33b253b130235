// SPDX-License-Identifier: Apache-2.0

package resourcestore

import (
	"os"
	"syscall"
	"testing"
)

// A runtime's tests make a store each and close none: 300 at once, with the descriptors that a
// process usually has.
func TestNewNeedsNoDescriptor(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = min(low.Cur, 1024)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := open()
	TestNewIsLazy(t)
	var all []*ResourceStore
	for i := 0; i < 300; i++ {
		s := New()
		if err := s.Put(podName, &resource{id: "1"}, nil); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if n := open(); n > before {
		t.Errorf("%d descriptors, and %d before", n, before)
	}
	for _, s := range all {
		s.Close()
	}
}
