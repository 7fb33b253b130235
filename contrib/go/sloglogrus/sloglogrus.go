// SPDX-License-Identifier: Apache-2.0

// Package sloglogrus lets what logs with log/slog write to a logger of logrus, so that a runtime
// has one log, in one format, at one level:
//
//	resourcestore.Open(resourcestore.Options{Logger: slog.New(sloglogrus.New(logrus.StandardLogger())), ...})
//
// It does not import logrus.
package sloglogrus

import (
	"context"
	"log/slog"
)

// Logger is what *logrus.Logger has: L is logrus.Level, F is logrus.Fields, E is *logrus.Entry.
type Logger[L ~uint32, F ~map[string]any, E Entry[L]] interface {
	IsLevelEnabled(level L) bool
	WithFields(fields F) E
}

// Entry is what *logrus.Entry has.
type Entry[L ~uint32] interface {
	Log(level L, args ...any)
}

// logrus's levels.
const (
	levelError = 2
	levelWarn  = 3
	levelInfo  = 4
	levelDebug = 5
)

// New returns a handler that logs what the level of the logger lets through. Attributes become
// fields; those of a group have its name and a dot in front.
func New[L ~uint32, F ~map[string]any, E Entry[L]](logger Logger[L, F, E]) slog.Handler {
	return &handler[L, F, E]{logger: logger}
}

type handler[L ~uint32, F ~map[string]any, E Entry[L]] struct {
	logger Logger[L, F, E]
	prefix string
	attrs  []slog.Attr // with their prefix
}

func levelOf[L ~uint32](level slog.Level) L {
	switch {
	case level >= slog.LevelError:
		return levelError
	case level >= slog.LevelWarn:
		return levelWarn
	case level >= slog.LevelInfo:
		return levelInfo
	}
	return levelDebug
}

func (h *handler[L, F, E]) Enabled(_ context.Context, level slog.Level) bool {
	return h.logger.IsLevelEnabled(levelOf[L](level))
}

func (h *handler[L, F, E]) Handle(_ context.Context, r slog.Record) error {
	fields := F{}
	for _, a := range h.attrs {
		add(fields, "", a)
	}
	r.Attrs(func(a slog.Attr) bool {
		add(fields, h.prefix, a)
		return true
	})
	h.logger.WithFields(fields).Log(levelOf[L](r.Level), r.Message)
	return nil
}

func add[F ~map[string]any](fields F, prefix string, a slog.Attr) {
	value := a.Value.Resolve()
	switch {
	case value.Kind() == slog.KindGroup:
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range value.Group() {
			add(fields, prefix, inner)
		}
	case !a.Equal(slog.Attr{}):
		fields[prefix+a.Key] = value.Any()
	}
}

func (h *handler[L, F, E]) WithAttrs(attrs []slog.Attr) slog.Handler {
	all := append([]slog.Attr(nil), h.attrs...)
	for _, a := range attrs {
		if a.Value.Kind() != slog.KindGroup || a.Key != "" {
			a.Key = h.prefix + a.Key
		}
		all = append(all, a)
	}
	return &handler[L, F, E]{h.logger, h.prefix, all}
}

func (h *handler[L, F, E]) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &handler[L, F, E]{h.logger, h.prefix + name + ".", h.attrs}
}
