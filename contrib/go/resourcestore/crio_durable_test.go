// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package resourcestore_test

import (
	"testing"

	"crikeep.io/go/crikeep"
	"crikeep.io/go/resourcestore"
)

func TestCRIORestart(t *testing.T) {
	dir, d := t.TempDir(), newDisk()
	first := newServer(t, dir, d)
	r := &runPodSandboxRequest{pod: "web"}
	committed, err := first.runPodSandbox(patient(t), &runPodSandboxRequest{pod: "db"})
	if err != nil {
		t.Fatal(err)
	}
	kept := first.late(t, r)
	first.resourceStore.Close()

	s := newServer(t, dir, d)
	if s.shown(kept) || !s.shown(committed) {
		t.Errorf("after the restart shown: kept %v, committed %v", s.shown(kept), s.shown(committed))
	}
	if s.synchronised != 1 {
		t.Errorf("plugins were synchronised with %d sandboxes", s.synchronised)
	}
	id, err := s.runPodSandbox(patient(t), r)
	if id != kept || err != nil || !s.shown(id) || d.made != 2 {
		t.Errorf("%q, %v, shown %v, made %d", id, err, s.shown(id), d.made)
	}
}

// The process died between the state file and Finish(): storage has the sandbox, the cache knows
// its name only.
func TestCRIORestartBeforeTheIDWasKnown(t *testing.T) {
	dir, d := t.TempDir(), newDisk()
	first := newServer(t, dir, d)
	r := &runPodSandboxRequest{pod: "web"}
	bytes, _ := r.Marshal()
	if id, err := first.resourceStore.GetForRequest(patient(t), crikeep.Sandbox, r.name(), bytes); id != "" || err != nil {
		t.Fatal(id, err)
	}
	sb, err := first.makeSandbox(patient(t), r, resourcestore.NewResourceCleaner())
	if err != nil {
		t.Fatal(err)
	}
	first.resourceStore.Close()

	s := newServer(t, dir, d)
	if s.shown(sb.id) {
		t.Error("shown after the restart")
	}
	id, err := s.runPodSandbox(patient(t), r)
	if id != sb.id || err != nil || !s.shown(id) || d.made != 1 {
		t.Errorf("%q, %v, shown %v, made %d times", id, err, s.shown(id), d.made)
	}
}
