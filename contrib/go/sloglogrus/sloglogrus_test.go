// SPDX-License-Identifier: Apache-2.0

package sloglogrus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
)

// What logrus has, as far as it is used: New must find its types by itself.
type level uint32

type fields map[string]interface{}

type logger struct {
	level level
	lines []string
}

type entry struct {
	logger *logger
	fields fields
}

func (l *logger) IsLevelEnabled(at level) bool { return l.level >= at }

func (l *logger) WithFields(f fields) *entry { return &entry{l, f} }

func (e *entry) Log(at level, args ...interface{}) {
	if e.logger.IsLevelEnabled(at) {
		e.logger.lines = append(e.logger.lines, fmt.Sprint(uint32(at), " ", fmt.Sprint(args...), " ", e.fields))
	}
}

func TestLinesAndFields(t *testing.T) {
	to := &logger{level: levelInfo}
	log := slog.New(New(to))
	log.Debug("not logged")
	log.Info("a resource is given up", "name", "web", "tries", 3)
	log.Warn("get", "error", errors.New("boom"))
	log.With("a", 1).WithGroup("g").With("b", 2).Error("deep", "c", 3, slog.Group("h", "d", 4), slog.Group("", "e", 5))
	want := []string{
		"4 a resource is given up map[name:web tries:3]",
		"3 get map[error:boom]",
		"2 deep map[a:1 g.b:2 g.c:3 g.e:5 g.h.d:4]",
	}
	if fmt.Sprint(to.lines) != fmt.Sprint(want) {
		t.Errorf("%q", to.lines)
	}
}

func TestLevelIsObeyedAndMayChange(t *testing.T) {
	to := &logger{level: levelError}
	log := slog.New(New(to))
	log.Warn("1")
	to.level = levelDebug
	log.Debug("2")
	log.Log(context.Background(), slog.LevelDebug-4, "3")
	if want := "[5 2 map[] 5 3 map[]]"; fmt.Sprint(to.lines) != want {
		t.Errorf("%v", to.lines)
	}
}
