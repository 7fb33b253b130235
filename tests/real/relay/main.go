// SPDX-License-Identifier: Apache-2.0

// relay stands between a CRI client and a CRI runtime, and is slow on command. It passes every gRPC
// call on as it came, knows no message, and can hold back the answer of chosen calls while the
// runtime has long done the work: the one way to make CreateContainer slow over a containerd that
// is not, and to see a creation end after its caller has gone.
//
//	relay serve --listen SOCKET --upstream SOCKET --control SOCKET [--log FILE]
//	relay tell CONTROL hold METHOD SECONDS [TEXT]   calls of METHOD whose request contains TEXT: the answer waits
//	relay tell CONTROL keep METHOD [TEXT]           such calls go on at the runtime when their caller leaves
//	relay tell CONTROL clear                        no rules any more; what waits is let go
//	relay tell CONTROL drop                         closes every connection of clients
//	relay call SOCKET METHOD ID [TIMEOUT]           one call whose request has only an id, for which crictl makes more than one; "20s"
//	relay spell SOCKET TEXT PATH...                 an empty request at each path, to the letter: "CODE has|lacks PATH", whether its answer has TEXT
//
// The log has one line for each event of a call: seconds since 1970, its number, METHOD, and begin,
// request DIGEST (a message of the caller), done CODE (the runtime has answered), answer DIGEST (a
// message that is passed on), told DIGEST (the status was passed on, after the messages) or left
// DIGEST (the caller has gone, or its deadline has passed: then this status may still reach it). The
// digests of two relays, one before and one behind a third party, tell what that does to a message.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// longer than any list a runtime sends
const messageMax = 256 << 20

// A message is its bytes. Registered under the name that goes into content-type, so that the
// runtime sees what the client sent.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v interface{}) ([]byte, error) {
	return *v.(*[]byte), nil
}
func (raw) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

type rule struct {
	method string
	text   []byte
	hold   time.Duration
	keep   bool
}

type relay struct {
	upstream *grpc.ClientConn
	events   io.Writer

	mu      sync.Mutex
	calls   int
	rules   []rule
	cleared chan struct{} // closed when the rules are
	conns   map[net.Conn]struct{}
}

func (r *relay) note(n int, method, format string, args ...interface{}) {
	now := time.Now()
	line := fmt.Sprintf("%d.%06d %d %s ", now.Unix(), now.Nanosecond()/1000, n, method) + fmt.Sprintf(format, args...) + "\n"
	io.WriteString(r.events, line)
}

// digest of a message; digestOf a status
func digest(what []byte) string {
	sum := sha256.Sum256(what)
	return fmt.Sprintf("%x", sum[:8])
}

func digestOf(err error) string {
	return digest([]byte(fmt.Sprintln(status.Code(err), status.Convert(err).Message())))
}

// rules for this call, put together
func (r *relay) ruleFor(method string, request []byte) (all rule, cleared chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.rules {
		if one.method == method && bytes.Contains(request, one.text) {
			all.keep = all.keep || one.keep
			if one.hold > all.hold {
				all.hold = one.hold
			}
		}
	}
	return all, r.cleared
}

// call passes one call on: requests as they come, answers as they come, but those that are held
func (r *relay) call(_ interface{}, client grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(client)
	method := path.Base(full)
	r.mu.Lock()
	r.calls++
	n := r.calls
	r.mu.Unlock()
	r.note(n, method, "begin")

	var first []byte
	if err := client.RecvMsg(&first); err != nil {
		return err
	}
	r.note(n, method, "request %s", digest(first))
	rule, cleared := r.ruleFor(method, first)

	// What of the caller reaches the runtime: its metadata always, its deadline and its leaving
	// unless they are to be kept away.
	ctx := client.Context()
	if rule.keep {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if md, ok := metadata.FromIncomingContext(client.Context()); ok {
		ctx = metadata.NewOutgoingContext(ctx, md.Copy())
	}
	// CRI has no calls whose client sends a stream: the one message is the last one, and says so,
	// as the caller's did
	stream, err := r.upstream.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, full)
	if err == nil {
		err = stream.SendMsg(&first)
	}
	if err != nil && err != io.EOF {
		r.note(n, method, "done %s", status.Code(err))
		r.told(n, method, err, client)
		return err
	}
	done := make(chan error, 1)
	go func() { done <- r.answers(n, method, rule, cleared, stream, client) }()
	select {
	case err = <-done:
		if client.Context().Err() != nil {
			r.note(n, method, "left %s", digestOf(err))
		}
	case <-client.Context().Done():
		err = status.FromContextError(client.Context().Err()).Err()
		r.note(n, method, "left %s", digestOf(err))
		if rule.keep {
			<-done // a call that is kept holds its stream until the runtime has answered
		}
	}
	return err
}

// pass a message on to the caller, who may have gone
func (r *relay) pass(n int, method string, message []byte, client grpc.ServerStream) error {
	if client.Context().Err() == nil {
		r.note(n, method, "answer %s", digest(message))
	}
	return client.SendMsg(&message)
}

func (r *relay) answers(n int, method string, rule rule, cleared chan struct{}, stream grpc.ClientStream, client grpc.ServerStream) error {
	var held [][]byte
	var err error
	for {
		var message []byte
		if err = stream.RecvMsg(&message); err != nil {
			break
		}
		if header, err := stream.Header(); err == nil && header.Len() > 0 {
			client.SetHeader(header)
		}
		if rule.hold > 0 {
			held = append(held, message)
		} else if err = r.pass(n, method, message, client); err != nil {
			return err
		}
	}
	if err == io.EOF {
		err = nil
	}
	r.note(n, method, "done %s", status.Code(err))
	if rule.hold > 0 {
		select {
		case <-time.After(rule.hold):
		case <-cleared:
		case <-client.Context().Done():
			return status.FromContextError(client.Context().Err()).Err()
		}
	}
	for i := range held {
		if err := r.pass(n, method, held[i], client); err != nil {
			return err
		}
	}
	client.SetTrailer(stream.Trailer())
	r.told(n, method, err, client)
	return err
}

// told the caller how its call ended, or it has gone
func (r *relay) told(n int, method string, err error, client grpc.ServerStream) {
	if client.Context().Err() == nil {
		r.note(n, method, "told %s", digestOf(err))
	}
}

// obey one line of the control socket
func (r *relay) obey(words []string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(words) >= 3 && words[0] == "hold":
		seconds, err := strconv.ParseFloat(words[2], 64)
		if err != nil || seconds <= 0 {
			return "no number of seconds: " + words[2]
		}
		hold := time.Duration(seconds * float64(time.Second))
		r.rules = append(r.rules, rule{method: words[1], text: []byte(strings.Join(words[3:], " ")), hold: hold})
	case len(words) >= 2 && words[0] == "keep":
		r.rules = append(r.rules, rule{method: words[1], text: []byte(strings.Join(words[2:], " ")), keep: true})
	case len(words) == 1 && words[0] == "clear":
		r.rules = nil
		close(r.cleared)
		r.cleared = make(chan struct{})
	case len(words) == 1 && words[0] == "drop":
		for conn := range r.conns {
			conn.Close()
		}
	default:
		return "not understood"
	}
	return "done"
}

func (r *relay) control(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer conn.Close()
			line, _ := bufio.NewReader(conn).ReadString('\n')
			fmt.Fprintln(conn, r.obey(strings.Fields(line)))
		}()
	}
}

// A listener that knows its connections, so that they can be dropped.
type counted struct {
	net.Listener
	relay *relay
}
type countedConn struct {
	net.Conn
	relay *relay
}

func (l counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.relay.mu.Lock()
	l.relay.conns[conn] = struct{}{}
	l.relay.mu.Unlock()
	return countedConn{conn, l.relay}, nil
}

func (c countedConn) Close() error {
	c.relay.mu.Lock()
	delete(c.relay.conns, c.Conn)
	c.relay.mu.Unlock()
	return c.Conn.Close()
}

func listen(name string) net.Listener {
	os.Remove(name)
	listener, err := net.Listen("unix", name)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func serve(args []string) {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	address := flags.String("listen", "", "socket to offer")
	upstream := flags.String("upstream", "", "socket of the runtime")
	control := flags.String("control", "", "socket for orders")
	events := flags.String("log", "/dev/null", "file for events")
	flags.Parse(args)

	file, err := os.OpenFile(*events, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	r := &relay{events: file, cleared: make(chan struct{}), conns: make(map[net.Conn]struct{})}
	// :authority as the kubelet's client sends it
	r.upstream, err = grpc.Dial("unix:"+*upstream, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(messageMax), grpc.MaxCallSendMsgSize(messageMax)))
	if err != nil {
		log.Fatal(err)
	}
	go r.control(listen(*control))
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(r.call),
		grpc.MaxRecvMsgSize(messageMax), grpc.MaxSendMsgSize(messageMax))
	log.Fatal(server.Serve(counted{listen(*address), r}))
}

func tell(args []string) {
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(conn, strings.Join(args[1:], " "))
	answer, _ := bufio.NewReader(conn).ReadString('\n')
	if answer != "done\n" {
		log.Fatalf("%s: %s", strings.Join(args[1:], " "), strings.TrimSpace(answer))
	}
}

func dial(socket string) *grpc.ClientConn {
	conn, err := grpc.Dial("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

// call says one thing to a runtime, and prints how it was taken
func call(socket, method, id string, timeout time.Duration) {
	conn := dial(socket)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request, answer := append([]byte{1<<3 | 2, byte(len(id))}, id...), []byte(nil) // field 1, shorter than 128 bytes
	if err := conn.Invoke(ctx, "/runtime.v1.RuntimeService/"+method, &request, &answer); err != nil {
		log.Fatal(err)
	}
}

// spell tells which spellings of a path a server takes
func spell(socket, text string, paths []string) {
	conn := dial(socket)
	for _, path := range paths {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		request, answer := []byte(nil), []byte(nil)
		err := conn.Invoke(ctx, path, &request, &answer)
		cancel()
		has := "lacks"
		if bytes.Contains(answer, []byte(text)) {
			has = "has"
		}
		fmt.Println(status.Code(err), has, path)
	}
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("relay: ")
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve":
		serve(os.Args[2:])
	case len(os.Args) > 3 && os.Args[1] == "tell":
		tell(os.Args[2:])
	case (len(os.Args) == 5 || len(os.Args) == 6) && os.Args[1] == "call" && len(os.Args[4]) < 128:
		timeout, err := 20*time.Second, error(nil)
		if len(os.Args) == 6 {
			timeout, err = time.ParseDuration(os.Args[5])
		}
		if err != nil {
			log.Fatal(err)
		}
		call(os.Args[2], os.Args[3], os.Args[4], timeout)
	case len(os.Args) > 4 && os.Args[1] == "spell":
		spell(os.Args[2], os.Args[3], os.Args[4:])
	default:
		log.Fatal("usage: relay serve --listen S --upstream S --control S [--log FILE] | relay tell CONTROL ORDER... | relay call SOCKET METHOD ID [TIMEOUT] | relay spell SOCKET TEXT PATH...")
	}
}
