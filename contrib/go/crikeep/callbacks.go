// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && !no_libcrikeep

package crikeep

// #include "bridge.h"
import "C"

import (
	"context"
	"errors"
	"log/slog"
	"runtime/cgo"
	"strings"
	"time"
	"unsafe"
)

func cacheOf(h C.uintptr_t) *Cache {
	return cgo.Handle(h).Value().(*Cache)
}

// errPanic is the error of a call that panicked
var errPanic = &StatusError{GRPC: grpcUnknown, Message: "the host panicked"}

// job runs a call of the host in its own goroutine. f ends the job by calling end once.
func (c *Cache) job(where string, f func(), failed func()) {
	live.jobs.Add(1)
	go func() {
		defer live.jobs.Add(-1)
		guarded(f, func(p *Panic, _ bool) {
			failed()
			c.logPanic(where, p)
		})
	}()
}

// done ends a job, also after Close.
func done(job *C.struct_ck_job, err error, condition Condition, image string) {
	grpc := C.int(0)
	if err != nil {
		grpc = grpcUnknown
		if errors.Is(err, ErrNotFound) {
			grpc = grpcNotFound
		} else if code := GRPCCode(err); code != 0 && code <= 16 {
			grpc = C.int(code)
		}
	}
	var id, message *C.char
	if image != "" {
		id = cstring(image)
	}
	if err != nil {
		message = plain(err.Error())
	}
	enterC()
	C.ckgo_done(job, grpc, C.int(condition), id, message)
	leaveC()
}

//export ckgoDestroy
func ckgoDestroy(h C.uintptr_t, job *C.struct_ck_job, kind C.int, id *C.char) {
	c, e := cacheOf(h), jobEntry(job, kind, id)
	end := func(err error) { done(job, err, Unknown, "") }
	c.job("Host.Destroy", func() { end(c.o.Host.Destroy(c.ctx, e)) }, func() { end(errPanic) })
}

//export ckgoInspect
func ckgoInspect(h C.uintptr_t, job *C.struct_ck_job, kind C.int, id *C.char) {
	c, e := cacheOf(h), jobEntry(job, kind, id)
	c.job("Host.Inspect", func() {
		condition, err := c.o.Host.(Inspector).Inspect(c.ctx, e)
		done(job, err, condition, "")
	}, func() { done(job, errPanic, Unknown, "") })
}

//export ckgoList
func ckgoList(h C.uintptr_t, job *C.struct_ck_job, filter *C.struct_ck_filter) {
	c := cacheOf(h)
	f := Filter{Kind: Kind(filter.kind), PodUID: C.GoString(filter.pod_uid), SandboxID: C.GoString(filter.sandbox_id)}
	c.job("Host.List", func() {
		objects, err := c.o.Host.(Lister).List(c.ctx, f)
		var p *packed
		if err == nil {
			p, err = pack(objects...)
		}
		if err == nil {
			enterC()
			r := C.ckgo_listed(job, p.first(), C.size_t(len(objects)), p.chars())
			leaveC()
			err = check(r)
		}
		done(job, err, Unknown, "")
	}, func() { done(job, errPanic, Unknown, "") })
}

//export ckgoResolve
func ckgoResolve(h C.uintptr_t, job *C.struct_ck_job, image *C.char) {
	c, ref := cacheOf(h), C.GoString(image)
	c.job("Host.ResolveImage", func() {
		id, err := c.o.Host.(ImageResolver).ResolveImage(c.ctx, ref)
		done(job, err, Unknown, id)
	}, func() { done(job, errPanic, Unknown, "") })
}

//export ckgoCommitted
func ckgoCommitted(h C.uintptr_t, told *C.struct_ck_told) {
	cacheOf(h).events.put(entryOf(told))
}

func (c *Cache) committed(e Entry) {
	guarded(func() { c.o.Host.(CommitWatcher).Committed(e) }, func(p *Panic, _ bool) { c.logPanic("Host.Committed", p) })
}

//export ckgoLog
func ckgoLog(h C.uintptr_t, level C.int, text *C.char) {
	c := cacheOf(h)
	l := slog.LevelDebug
	switch {
	case level <= C.CK_LOG_ERROR:
		l = slog.LevelError
	case level <= C.CK_LOG_WARNING:
		l = slog.LevelWarn
	case level <= C.CK_LOG_INFO:
		l = slog.LevelInfo
	}
	if c.logger.Enabled(context.Background(), l) {
		c.logs.put(logLine{l, C.GoString(text)})
	}
}

func (c *Cache) logLine(line logLine) {
	c.logger.Log(context.Background(), line.level, line.text)
}

//export ckgoClock
func ckgoClock(h C.uintptr_t) C.uint64_t {
	c := cacheOf(h)
	var now time.Duration
	critical("Options.Now", func() { now = c.o.Now() }, func(p *Panic) { go c.logPanic("Options.Now", p) })
	return C.uint64_t(now)
}

// ---- hooks --------------------------------------------------------------------------------------

// joined joins names as crikeep.h expects them; nil: they contain a zero byte
func joined(names []string) *C.char {
	return cstring(strings.Join(names, " "))
}

//export ckgoChoose
func ckgoChoose(h C.uintptr_t, told *C.struct_ck_told, names *C.char, size C.size_t) C.int {
	c := cacheOf(h)
	var chosen []string
	absent := ""
	critical("Hooks.Choose", func() { chosen, absent = c.o.Hooks.Choose(entryOf(told)) }, func(p *Panic) {
		go c.logPanic("Hooks.Choose", p) // a Logger may block
		absent = "Hooks.Choose, which panicked"
	})
	text := absent
	if text == "" {
		text = strings.Join(chosen, " ")
	}
	if len(text) >= int(size) || strings.IndexByte(text, 0) >= 0 {
		go c.logger.Error("crikeep: Hooks.Choose returned more names than there is room for, or a zero byte")
		absent, text = "names", "names that can be written down"
	}
	buf := unsafe.Slice((*byte)(unsafe.Pointer(names)), int(size))
	buf[copy(buf, text)] = 0
	if absent != "" {
		return 1
	}
	return 0
}

//export ckgoFire
func ckgoFire(h C.uintptr_t, job *C.struct_ck_job, event C.int, told *C.struct_ck_told) {
	c, e := cacheOf(h), entryOf(told)
	c.job("Hooks.Fire", func() {
		told, refusal := c.o.Hooks.Fire(c.ctx, HookEvent(event), e)
		hookDone(job, told, refusal)
	}, func() { hookDone(job, nil, "the hooks panicked") })
}

func hookDone(job *C.struct_ck_job, told []string, refusal string) {
	var why *C.char
	if refusal != "" {
		why = plain(refusal)
	}
	enterC()
	defer leaveC()
	var names *C.char // NULL: not known
	if told != nil {
		names = joined(told)
	}
	C.ck_hook_done(job, names, why)
}

//export ckgoCancel
func ckgoCancel(h C.uintptr_t, entry C.uint64_t) {
	c := cacheOf(h)
	critical("Hooks.Cancel", func() { c.o.Hooks.Cancel(uint64(entry)) }, func(p *Panic) { go c.logPanic("Hooks.Cancel", p) })
}

//export ckgoReleased
func ckgoReleased(h C.uintptr_t, told *C.struct_ck_told) {
	c := cacheOf(h)
	critical("Hooks.Released", func() { c.o.Hooks.Released(entryOf(told), told.gone != 0) }, func(p *Panic) {
		go c.logPanic("Hooks.Released", p)
	})
}

// jobEntry returns the entry of a destroy or inspect job
func jobEntry(job *C.struct_ck_job, kind C.int, id *C.char) Entry {
	if told := C.ck_job_entry(job); told != nil {
		return entryOf(told)
	}
	return Entry{Kind: Kind(kind), ID: C.GoString(id)}
}
