// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package main // the smallest host: what is made too late for its caller is kept, and handed back

import (
	"context"
	"fmt"
	"time"

	"crikeep.io/go/crikeep"
)

type host struct{} // there is nothing to destroy

func (host) Destroy(context.Context, crikeep.Entry) error { return nil }

func create(context.Context, *crikeep.Turn) (crikeep.Result, error) {
	time.Sleep(2 * time.Second) // its caller waits for 1 s
	return crikeep.Result{ID: "77d1"}, nil
}

func main() {
	web := []byte("\n\x1b\n\x19\n\x05web-0\x12\x07u-web-0\x1a\x07default")
	cache, err := crikeep.Open(crikeep.Options{StateDir: "state", Host: host{}})
	for i := 0; i < 3 && err == nil; i++ { // the kubelet repeats its request
		call, end := context.WithTimeout(context.Background(), time.Second)
		reply, why := cache.Do(call, crikeep.Request{Kind: crikeep.Sandbox, Bytes: web}, create)
		fmt.Println(reply.ID, why)
		end()
	}
	fmt.Println(err) // a process that ends needs no Close
}
