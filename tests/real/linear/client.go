// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// A message is its bytes. Registered in place of protobuf's, so that the content type is as usual.
type raw struct{}

func init() { encoding.RegisterCodec(raw{}) }

func (raw) Name() string                          { return "proto" }
func (raw) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte{}, data...)
	return nil
}

type client struct{ conn *grpc.ClientConn }

func dial(path string) *client {
	conn, err := grpc.Dial("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, MaxDelay: 50 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		panic(err)
	}
	return &client{conn}
}

func (c *client) call(method string, request []byte, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var reply []byte
	err := c.conn.Invoke(ctx, "/runtime.v1.RuntimeService/"+method, &request, &reply)
	return reply, err
}

// until there is a definite answer
func (c *client) insist(method string, request []byte, timeout func() time.Duration) []byte {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var reply []byte
		if reply, err = c.call(method, request, timeout()); err == nil {
			return reply
		}
		if status.Code(err) == codes.NotFound {
			return nil
		}
	}
	panic(fmt.Sprintf("%s has no answer: %v", method, err))
}

func second() time.Duration { return 3 * time.Second }

// ---- messages of CRI ----------------------------------------------------------------------------

func text(to []byte, field protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), value)
}

// each field of a message that has bytes; the other ones are passed over
func fields(message []byte, one func(field protowire.Number, value []byte)) {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			panic("a malformed answer")
		}
		size := protowire.ConsumeFieldValue(field, kind, message[n:])
		if size < 0 {
			panic("a malformed answer")
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[n:])
			one(field, value)
		}
		message = message[n+size:]
	}
}

// of the last field with this number
func field(message []byte, number protowire.Number) (value []byte) {
	fields(message, func(n protowire.Number, v []byte) {
		if n == number {
			value = v
		}
	})
	return value
}

// run - the id of the sandbox of @pod
func (c *client) run(pod string, attempt uint64, random *rand.Rand) string {
	metadata := text(text(text(nil, 1, pod), 2, "uid-"+pod), 3, "ns")
	metadata = protowire.AppendVarint(protowire.AppendTag(metadata, 4, protowire.VarintType), attempt)
	config := text(nil, 1, string(metadata))
	for label, value := range map[string]string{"name": pod, "namespace": "ns", "uid": "uid-" + pod} {
		config = text(config, 6, string(text(text(nil, 1, "io.kubernetes.pod."+label), 2, value)))
	}
	reply := c.insist("RunPodSandbox", text(nil, 1, string(config)), func() time.Duration {
		return time.Duration(50+random.Intn(1500)) * time.Millisecond
	})
	return string(field(reply, 1))
}

func (c *client) remove(id string) {
	c.insist("StopPodSandbox", text(nil, 1, id), second)
	c.insist("RemovePodSandbox", text(nil, 1, id), second)
}

// list - the ids of all sandboxes of @pod, one behind the other
func (c *client) list(pod string) (ids string) {
	fields(c.insist("ListPodSandbox", nil, second), func(_ protowire.Number, sandbox []byte) {
		if string(field(field(sandbox, 2), 1)) == pod {
			ids += string(field(sandbox, 1))
		}
	})
	return ids
}
