// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// What a vendor owes the cache, and what becomes of the lines without it: these, at least, are red.
var broken = []struct {
	forget, says string
	red          []string
}{
	{"cache", "has no cache", []string{"K1 in time", "K1 late", "K2 late", "K4 in time", "K9 in time", "K11 late", "K12 late"}},
	{"leave", "does not say that a caller has gone", []string{"K1 late", "K3 in time", "K15 late"}},
	{"answered", "does not say whether an answer arrived", []string{"K7 late", "K20 late", "H1 late"}},
	{"view", "shows what is hidden", []string{"K2 late", "K7 killed", "K21 late", "K26 late"}},
	{"inspect", "says of the dead that they live", []string{"K6 killed"}},
	{"errors", "takes a failed question or destruction for a success", []string{"K6 late", "K18 late", "K22 late", "K24 in time"}},
	{"list", "lists nothing to the cache", []string{"K8 in time", "K22 late", "K25 in time"}},
	{"listed", "does not let the cache see the lists that pass", []string{"K17 late", "K26 late"}},
	{"lost", "takes an end that is unknown for a failure", []string{"K8 in time", "K8 late", "K26 in time"}},
	{"fail", "does not say that a creation failed", []string{"K4 in time", "K4 late", "K4 killed"}},
	{"state", "begins each life with nothing", []string{"K2 killed", "K25 in time", "K29 in time", "K30 killed", "H3 killed"}},
	{"stage", "does not say how far it is", []string{"K3 late", "K3 killed"}},
	{"stopping", "does not say that a sandbox stops", []string{"K16 in time", "K16 late"}},
	{"destroy", "destroys nothing and says that it did", []string{"K9 late", "K15 late", "K17 in time", "K23 killed"}},
	{"reserve", "lets a name be taken twice", []string{"K5 late"}},
	{"hooks", "tells plugins nothing", []string{"K13 killed", "K20 in time", "H2 in time", "H3 killed", "H5 in time"}},
	{"cancel", "goes on telling plugins of what is over", []string{"K13 in time"}},
	{"snapshot", "does not tell plugins that come what there is", []string{"H1 in time", "H2 killed", "H3 in time"}},
}

// playBroken shows that lines can fail.
func playBroken(jobs int) (status int) {
	type pair struct {
		forget, says string
		line
	}
	var pairs []pair
	for _, b := range broken {
		for _, name := range b.red {
			found := false
			for _, l := range lines() {
				if l.rule+" "+l.when == name {
					pairs = append(pairs, pair{b.forget, b.says, l})
					found = true
				}
			}
			if !found {
				fmt.Printf("not ok - there is no line %s\n", name)
				status = 1
			}
		}
	}
	each(len(pairs), jobs, func(i int) result {
		return stage(pairs[i].play, patience(brokenPatience), strings.Fields(pairs[i].forget), false)
	}, func(i int, r result) {
		if r.failure == "" {
			fmt.Print("not ")
			status = 1
		}
		fmt.Printf("ok - a vendor who %s is seen by %s %s\n", pairs[i].says, pairs[i].rule, pairs[i].when)
	})
	return status
}

// for what never comes because of what is left out
const brokenPatience = 3 * time.Second
