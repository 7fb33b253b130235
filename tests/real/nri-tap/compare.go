// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A difference that is expected, and why: patterns of the whole event and the whole field; less:
// crikeepd says nothing where containerd does, more: the other way round, other: another value.
// MODE "" means both of them.
type difference struct {
	mode, event, field, kind, why string
}

const (
	both     = ""
	always   = ".*"
	creating = "CreateContainer|ValidateContainerAdjustment"
	pods     = `(pod|pods\[web\])\.`
	mains    = `(container|containers\[main\])\.`
	inOwn    = "containerd's own mark, which is not in CRI: plugins are told what the request says"
	noZero   = "0 and unset are the same in a request of CRI"
	late     = "we know it still, or already"
	nothing  = "before-create asks before the runtime has added anything to the request"
)

var expected = []difference{
	{both, "Configure", "runtime_name|runtime_version|NRI_version", "other", "crikeepd is the runtime of plugins"},
	{both, "Configure", "registration_timeout|request_timeout", "other", "this test gives plugins more time"},
	{both, always, "(" + pods + "|" + mains + `)annotations\[io\.kubernetes\.cri\.[a-z.-]*\]`, "less", inOwn},
	{both, always, "(" + pods + "|" + mains + `)labels\[io\.cri-containerd\.kind\]`, "less", inOwn},
	{both, always, pods + `labels\[oci_runtime_type\]`, "less", inOwn},
	{both, always, mains + `image\.digest`, "less", "CRI does not tell the manifest of an image without a repository"},
	{both, always, pods + `linux\.pod_(overhead|resources)\.cpu\.(period|quota)`, "less", noZero},
	{both, "UpdateContainer", `linux_resources\.(cpu\.(period|quota)|memory\.limit)`, "less", noZero},
	{both, "StartContainer", `container\.pid`, "less", "containerd makes the process when CRI starts the container, after this"},
	{both, "StopContainer", `container\.pid`, "less", "CRI does not tell the process of a container that has ended"},
	{both, "RemoveContainer", `container\.state`, "more", late},
	{both, "(Stop|Remove)Container", `container\.status_reason`, "more", late},
	{both, "(Stop|Remove)PodSandbox", `pod\.pid`, "more", late},
	{both, "RemovePodSandbox", `pod\.linux\.namespaces\[network\]\..*`, "more", late},
	{"on-commit", creating, `container\.(state|created_at)`, "more", "on-commit tells of a container that exists"},
	{"before-create", creating, `container\.(env\[(HOSTNAME|PATH)\]|image\.config_digest|user\.additional_gids)`, "less", nothing},
	{"before-create", creating, `container\.linux\.(namespaces\[.*|devices\[.*|resources\.(devices\[|memory\.swap).*)`, "less", nothing},
	{"before-create", creating, `container\.mounts\[/(dev|etc|proc|sys).*`, "less", nothing},
	{"before-create", creating, `container\.linux\.cgroups_path`, "less", nothing},
	{"before-create", always, mains + `linux\.cgroups_path`, "other", "it has the id of CRI, and plugins have another"},
	{"before-create", always, mains + `linux\.devices\[.*(file_mode\.value|uid|gid)`, "more", "a device of CRI has the host's mode and owner"},
	{"before-create", always, mains + `mounts\[/mnt\]\.options`, "other", "a mount of CRI says how mounts spread"},
}

// ---- one log -------------------------------------------------------------------------------------

func load(dir, name string) (events []Event) {
	f, err := os.Open(filepath.Join(dir, name+".tap"))
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for in := json.NewDecoder(f); in.More(); {
		var e Event
		if err := in.Decode(&e); err != nil {
			log.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

var (
	netns = regexp.MustCompile(`cni-[0-9a-f-]{36}`)
	proc  = regexp.MustCompile(`/proc/[0-9]+/`)
	pid   = regexp.MustCompile(`(^|\.)pid$`)
	clock = regexp.MustCompile(`(created|started|finished)_at$`)
)

// tidy puts words for what differs from run to run: ids, directories, times
func tidy(dir string, events []Event) {
	words := []string{dir, "<dir>"}
	for _, e := range events {
		for _, what := range []string{"pod", "container"} {
			if id := e.Told[what+".id"]; id != "" && !slices.Contains(words, id) {
				words = append(words, id, "<id of the "+what+">")
			}
		}
	}
	replace := strings.NewReplacer(words...).Replace
	for i := range events {
		for _, fields := range []*map[string]string{&events[i].Told, &events[i].Answer} {
			tidied := map[string]string{}
			for at, value := range *fields {
				value = proc.ReplaceAllString(netns.ReplaceAllString(replace(value), "<netns>"), "/proc/<pid>/")
				if pid.MatchString(at) {
					value = "<pid>"
				} else if clock.MatchString(at) {
					value = "<time>"
				}
				tidied[replace(at)] = value
			}
			*fields = tidied
		}
		events[i].Error = replace(events[i].Error)
	}
}

func order(events []Event) (names []string) {
	for _, e := range events {
		names = append(names, e.Event)
	}
	return names
}

// ---- two of them ---------------------------------------------------------------------------------

// row of the table: one field, and where its values were what
type row struct {
	equal   int
	differs map[string][]string // "value / value": the events
	why     map[string]bool
	bad     bool
}

func kind(a, b map[string]string, field string) string {
	_, first := a[field]
	_, second := b[field]
	switch {
	case first && !second:
		return "less"
	case second && !first:
		return "more"
	}
	return "other"
}

func whole(pattern, text string) bool {
	return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(text)
}

func reason(mode, event, field, kind string) string {
	for _, d := range expected {
		if (d.mode == both || d.mode == mode) && d.kind == kind && whole(d.event, event) && whole(d.field, field) {
			return d.why
		}
	}
	return ""
}

func shown(fields map[string]string, at string) string {
	value, there := fields[at]
	if !there {
		return "absent"
	}
	if len(value) > 60 {
		value = value[:60] + "..."
	}
	return fmt.Sprintf("%q", value)
}

// compare prints a table for each plugin, containerd's value first, and ends with 1 if there is a
// difference that is not expected
func compare(mode, a, b string, plugins []string) {
	bad := 0
	for _, plugin := range plugins {
		first, second := load(a, plugin), load(b, plugin)
		tidy(a, first)
		tidy(b, second)
		fmt.Printf("== %s: %s\n", plugin, strings.Join(order(first), " "))
		if len(first) == 0 || !slices.Equal(order(first), order(second)) {
			fmt.Printf("   the other one: %s\n", strings.Join(order(second), " "))
			fmt.Println("   NOT THE SAME EVENTS")
			bad++
			continue
		}
		rows := map[string]*row{}
		for i := range first {
			bad += one(rows, mode, "", first[i].Event, first[i].Told, second[i].Told)
			bad += one(rows, mode, "answer: ", first[i].Event, first[i].Answer, second[i].Answer)
			if first[i].Error != second[i].Error {
				fmt.Printf("   %s: its errors are %q and %q\n", first[i].Event, first[i].Error, second[i].Error)
				bad++
			}
		}
		show(rows)
	}
	if bad > 0 {
		fmt.Printf("%d differences that are not expected\n", bad)
		os.Exit(1)
	}
}

func one(rows map[string]*row, mode, prefix, event string, a, b map[string]string) (bad int) {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	for field := range all {
		at := prefix + field
		r := rows[at]
		if r == nil {
			r = &row{differs: map[string][]string{}, why: map[string]bool{}}
			rows[at] = r
		}
		if va, vb := shown(a, field), shown(b, field); va == vb && a[field] == b[field] {
			r.equal++
		} else {
			r.differs[va+" / "+vb] = append(r.differs[va+" / "+vb], event)
			why := reason(mode, event, at, kind(a, b, field))
			if why == "" {
				why = "NOT EXPECTED"
				bad++
			}
			r.why[why] = true
		}
	}
	return bad
}

func show(rows map[string]*row) {
	for _, at := range slices.Sorted(maps.Keys(rows)) {
		r := rows[at]
		fmt.Printf("   %-60s equal in %d", at, r.equal)
		for _, values := range slices.Sorted(maps.Keys(r.differs)) {
			fmt.Printf("; %s in %s", values, strings.Join(r.differs[values], " "))
		}
		for _, why := range slices.Sorted(maps.Keys(r.why)) {
			fmt.Printf(" (%s)", why)
		}
		fmt.Println()
	}
}
