// SPDX-License-Identifier: Apache-2.0

// Between an NRI plugin and a runtime: a plugin, unmodified, is started as a runtime starts it, and
// what it is told and what it answers is written down, field by field. And the comparison of what
// one plugin was told by two runtimes.
//
//	nri-tap run SOCKET NN-NAME LOG PROGRAM [ARGUMENT...]
//	nri-tap compare MODE A B NAME...      LOGs are A/NAME.tap and B/NAME.tap
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Event of the log: a call of the runtime and the plugin's answer.
type Event struct {
	Event  string            `json:"event"`
	Told   map[string]string `json:"told"`
	Answer map[string]string `json:"answer,omitempty"`
	Error  string            `json:"error,omitempty"`
}

const (
	pluginService = 1 // the number of this service's connection in the multiplexer
	muxHeader     = 8
	ttrpcHeader   = 10
	request       = 1
	response      = 2
)

type tap struct {
	mu   sync.Mutex
	open map[uint32]*call // not yet answered, by stream
	log  *json.Encoder
}

type call struct {
	event  Event
	method protoreflect.MethodDescriptor
}

// relay copies until one side closes, and shows each message of the plugin's service to @see.
func relay(to, from net.Conn, see func(stream uint32, kind byte, payload []byte)) {
	defer to.(interface{ CloseWrite() error }).CloseWrite()
	var header [muxHeader]byte
	var pending []byte
	for {
		if _, err := io.ReadFull(from, header[:]); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(header[4:]))
		if _, err := io.ReadFull(from, payload); err != nil {
			return
		}
		if binary.BigEndian.Uint32(header[:]) == pluginService {
			pending = append(pending, payload...)
			for len(pending) >= ttrpcHeader {
				n := ttrpcHeader + int(binary.BigEndian.Uint32(pending))
				if len(pending) < n {
					break
				}
				see(binary.BigEndian.Uint32(pending[4:]), pending[8], pending[ttrpcHeader:n])
				pending = pending[n:]
			}
		}
		if _, err := to.Write(append(header[:], payload...)); err != nil {
			return
		}
	}
}

func message(d protoreflect.MessageDescriptor, payload []byte) map[string]string {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		log.Fatal(err)
	}
	m := kind.New()
	if err := proto.Unmarshal(payload, m.Interface()); err != nil {
		log.Fatal(err)
	}
	fields := map[string]string{}
	flatten(fields, "", m)
	return fields
}

func (t *tap) asked(stream uint32, kind byte, payload []byte) {
	var r ttrpc.Request
	if kind != request {
		return
	}
	if err := proto.Unmarshal(payload, &r); err != nil {
		log.Fatal(err)
	}
	plugin := api.File_pkg_api_api_proto.Services().ByName("Plugin")
	method := plugin.Methods().ByName(protoreflect.Name(r.Method))
	if method == nil {
		log.Fatalf("there is no method %s in this version of NRI", r.Method)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[stream] = &call{Event{Event: r.Method, Told: message(method.Input(), r.Payload)}, method}
}

func (t *tap) answered(stream uint32, kind byte, payload []byte) {
	var r ttrpc.Response
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.open[stream]
	if kind != response || c == nil {
		return
	}
	delete(t.open, stream)
	if err := proto.Unmarshal(payload, &r); err != nil {
		log.Fatal(err)
	}
	if r.Status.GetCode() != 0 {
		c.event.Error = r.Status.GetMessage()
	} else {
		c.event.Answer = message(c.method.Output(), r.Payload)
	}
	if err := t.log.Encode(&c.event); err != nil {
		log.Fatal(err)
	}
}

func run(socket, name, path string, command []string) {
	index, rest, _ := strings.Cut(name, "-")
	log.SetPrefix("tap of " + name + ": ")
	out, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		log.Fatal(err)
	}
	ours := os.NewFile(uintptr(pair[0]), "ours")
	theirs := os.NewFile(uintptr(pair[1]), "theirs")
	plugin := exec.Command(command[0], command[1:]...)
	plugin.Env = append(os.Environ(), "NRI_PLUGIN_NAME="+rest, "NRI_PLUGIN_IDX="+index, "NRI_PLUGIN_SOCKET=3")
	plugin.ExtraFiles = []*os.File{theirs}
	plugin.Stdout, plugin.Stderr = os.Stderr, os.Stderr
	plugin.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	near, err := net.FileConn(ours)
	if err != nil {
		log.Fatal(err)
	}
	far, err := net.Dial("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	if err := plugin.Start(); err != nil {
		log.Fatal(err)
	}
	theirs.Close()
	ours.Close()
	t := &tap{open: map[uint32]*call{}, log: json.NewEncoder(out)}
	go relay(far, near, t.answered)
	relay(near, far, t.asked)
	plugin.Wait()
}

// ---- fields -------------------------------------------------------------------------------------

// keys name the items of lists that have a name of their own
var keys = map[protoreflect.Name]protoreflect.Name{
	"PodSandbox": "name", "Container": "name", "Mount": "destination", "LinuxNamespace": "type", "LinuxDevice": "path",
	"POSIXRlimit": "type", "HugepageLimit": "page_size", "CDIDevice": "name", "KeyValue": "key",
}

func flatten(fields map[string]string, path string, m protoreflect.Message) {
	found := false
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		found = true
		at := strings.TrimPrefix(path+"."+string(f.Name()), ".")
		switch {
		case f.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				put(fields, fmt.Sprintf("%s[%s]", at, k.String()), f.MapValue(), v)
				return true
			})
		case f.IsList() && f.Message() == nil && f.Name() != "env" && f.Name() != "args":
			var all []string
			for i := range v.List().Len() {
				all = append(all, v.List().Get(i).String())
			}
			fields[at] = strings.Join(all, ",")
		case f.IsList():
			for i := range v.List().Len() {
				put(fields, fmt.Sprintf("%s[%s]", at, item(f, i, v.List().Get(i))), f, v.List().Get(i))
			}
		default:
			put(fields, at, f, v)
		}
		return true
	})
	// what wraps a number that may be 0 and may be absent
	if !found && strings.HasPrefix(string(m.Descriptor().Name()), "Optional") {
		fields[path] = "0"
	}
}

func put(fields map[string]string, at string, f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case f.Message() != nil:
		flatten(fields, at, v.Message())
	case f.Enum() != nil && f.Enum().Values().ByNumber(v.Enum()) != nil:
		fields[at] = string(f.Enum().Values().ByNumber(v.Enum()).Name())
	default:
		fields[at] = v.String()
	}
}

func item(f protoreflect.FieldDescriptor, i int, v protoreflect.Value) string {
	if f.Name() == "env" && f.Message() == nil {
		name, _, _ := strings.Cut(v.String(), "=")
		return name
	}
	if f.Message() == nil {
		return fmt.Sprint(i)
	}
	if key, there := keys[f.Message().Name()]; there {
		return v.Message().Get(f.Message().Fields().ByName(key)).String()
	}
	return fmt.Sprint(i)
}

func main() {
	log.SetFlags(0)
	switch {
	case len(os.Args) > 5 && os.Args[1] == "run":
		run(os.Args[2], os.Args[3], os.Args[4], os.Args[5:])
	case len(os.Args) > 5 && os.Args[1] == "compare":
		compare(os.Args[2], os.Args[3], os.Args[4], os.Args[5:])
	default:
		log.Fatal("usage: nri-tap run SOCKET NN-NAME LOG PROGRAM [ARGUMENT...]\n",
			"       nri-tap compare MODE A B NAME...")
	}
}
