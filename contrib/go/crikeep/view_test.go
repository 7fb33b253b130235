// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

import (
	"fmt"
	"testing"
	"time"
)

func TestView(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	shown, kept := ask{pod: "shown"}, ask{pod: "kept"}
	must[Reply](t)(c.Do(background, shown.request(), w.maker(shown)))
	turn := w.creating(c, kept.request())
	turn.Leave()
	making := w.creating(c, pod("making"))

	v := must[*View](t)(c.View())
	defer v.Close()
	turn.Finish(must[Result](t)(w.make(kept)))
	objects := must[[]Object](t)(w.List(background, Filter{Kind: Sandbox}))
	if len(objects) != 2 {
		t.Fatal(objects)
	}
	unknown := Object{Kind: Sandbox, ID: "new", PodName: "making", PodNamespace: "ns", PodUID: "uid-making"}
	foreign := Object{Kind: Sandbox, ID: "foreign", PodName: "other", PodNamespace: "ns", PodUID: "u", CreatedAt: time.Now()}
	for _, o := range append(objects, unknown, foreign) {
		hides := must[bool](t)(v.Hides(o))
		if hides != (o.PodName == "kept" || o.PodName == "making") {
			t.Error(o, hides)
		}
	}
	for prefix, want := range map[string]string{"sandbox-1": "sandbox-1 true", "sandbox-": "sandbox-1 true", "other": "other false"} {
		id, known, err := v.Resolve(Sandbox, prefix)
		if got := fmt.Sprint(id, " ", known); got != want || err != nil {
			t.Error(prefix, got, err)
		}
	}
	_, _, err := v.Resolve(Sandbox, "sandbox-2")
	wantErr(t, err, ErrNotFound)
	making.Fail(ErrInvalid)

	_, err = v.Hides(Object{Kind: 9, ID: "x"})
	wantErr(t, err, ErrInvalid)
	_, err = v.Hides(Object{Kind: Sandbox, ID: "x\x00"})
	wantErr(t, err, ErrInvalid)
	_, _, err = v.Resolve(Sandbox, "x\x00")
	wantErr(t, err, ErrInvalid)
	wantErr(t, v.Listed(Sandbox, []Object{{Kind: Sandbox}}), ErrInvalid)
}

// a list that passes by is reconciled with (K24, K27)
func TestViewListed(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	a := ask{pod: "a"}
	must[Reply](t)(c.Do(background, a.request(), w.maker(a)))
	v := must[*View](t)(c.View())
	defer v.Close()
	if err := v.Listed(Sandbox, []Object{{Kind: Sandbox, Condition: Ready, ID: "new", PodName: "n", PodNamespace: "ns", PodUID: "u"}}); err != nil {
		t.Fatal(err)
	}
	all := must[[]Entry](t)(c.Entries())
	if len(all) != 1 || all[0].ID != "new" || all[0].PodName != "n" || all[0].State != StateCommitted {
		t.Error(all)
	}
	v2 := must[*View](t)(c.View())
	defer v2.Close()
	if err := v2.Listed(Sandbox, nil); err != nil {
		t.Error(err)
	}
	if all := must[[]Entry](t)(c.Entries()); len(all) != 0 {
		t.Error(all)
	}
}

func TestViewAfterClose(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	v := must[*View](t)(c.View())
	for i := 0; i < 2; i++ {
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := v.Hides(Object{Kind: Sandbox, ID: "x"})
		wantErr(t, err, ErrClosed)
		_, _, err = v.Resolve(Sandbox, "x")
		wantErr(t, err, ErrClosed)
		wantErr(t, v.Listed(Sandbox, nil), ErrClosed)
	}
}
