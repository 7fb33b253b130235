// SPDX-License-Identifier: Apache-2.0

// Runs h2spec's cases against a unix socket, to which it is bridged by a port on the loopback
// device, and writes a line for each: "pass|fail|skip ID DESCRIPTION".
//
// usage: h2spec SOCKET FILE
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pass copies until one side ends, and then ends the other.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

func bridge(listener net.Listener, socket string) {
	for {
		client, err := listener.Accept()
		must(err)
		server, err := net.Dial("unix", socket)
		must(err)
		go pass(server, client)
		go pass(client, server)
	}
}

func tell(out io.Writer, group *spec.TestGroup) {
	for _, test := range append(group.Tests, group.StrictTests...) {
		if test.Result == nil {
			continue
		}
		verdict := "pass"
		switch {
		case test.Result.Skipped:
			verdict = "skip"
		case test.Result.Failed:
			verdict = "fail"
		}
		fmt.Fprintf(out, "%s %s/%d %s\n", verdict, group.ID(), test.Result.Sequence, test.Desc)
	}
	for _, inner := range group.Groups {
		tell(out, inner)
	}
}

func main() {
	if len(os.Args) != 3 {
		must(fmt.Errorf("usage: %s SOCKET FILE", os.Args[0]))
	}
	out, err := os.Create(os.Args[2])
	must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go bridge(listener, os.Args[1])
	conf := &config.Config{
		Host:         "127.0.0.1",
		Port:         listener.Addr().(*net.TCPAddr).Port,
		Path:         "/",
		Timeout:      2 * time.Second,
		MaxHeaderLen: 4000,
	}
	for _, group := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		group.Test(conf)
		tell(out, group)
	}
	must(out.Close())
}
