// SPDX-License-Identifier: Apache-2.0

// Package hidelog keeps the log file of a container out of the kubelet's sight until the container
// is started.
//
// A kubelet newer than 1.20 that is shown no container reads the attempt to ask for from the log
// files it finds: beside 0.log it asks for attempt 1. A runtime whose monitor opens the log while
// the container is created (conmon does) so loses every container that was created too late: its
// attempt 0 is never asked for again.
//
// The monitor is given a path through a symbolic link in the container's run directory. While the
// container is only created the link leads to a directory beside the log, ".crikeep-ID", which the
// kubelet passes over. Show moves the file to where it belongs and turns the link: the monitor goes
// on writing to the same file, and when it is told to open its log again, for a rotation, the same
// path leads to the right place. The monitor needs no change.
//
//	path, err := hidelog.Prepare(runDir, logPath, id) // before the monitor is started: give it path for its log
//	err = hidelog.Show(runDir, logPath, id)           // StartContainer, before the runtime's start
//	err = hidelog.Drop(runDir, logPath, id)           // the container is removed
//
// All three may be repeated, also after a crash in the middle. Calls for one container must not run
// at once.
package hidelog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	link   = "log.d"     // in the run directory
	prefix = ".crikeep-" // of the directory beside the log; a name the kubelet's pattern, ^(\d+)\.log(\..*)?, does not take

	// How the kubelet names a log it has rotated; its clean-up takes what is named so.
	rotated = "20060102-150405"
)

func check(runDir, log, id string) error {
	if !filepath.IsAbs(runDir) || !filepath.IsAbs(log) {
		return fmt.Errorf("hidelog: %q, %q: not absolute", runDir, log)
	}
	if id == "" || strings.ContainsAny(id, "/\x00") {
		return fmt.Errorf("hidelog: id %q", id)
	}
	return nil
}

func hidden(log, id string) string { return filepath.Join(filepath.Dir(log), prefix+id) }

// Prepare makes the directory and the link, and returns what the monitor is given in place of log.
// The directory of the log must exist.
func Prepare(runDir, log, id string) (string, error) {
	if err := check(runDir, log, id); err != nil {
		return "", err
	}
	dir := hidden(log, id)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("hidelog: %w", err)
	}
	if err := point(runDir, dir); err != nil {
		return "", err
	}
	return filepath.Join(runDir, link, filepath.Base(log)), nil
}

// Show puts the log where the kubelet and everybody else look for it. A container that Prepare was
// not called for, made before an update of the runtime, is left as it is.
func Show(runDir, log, id string) error {
	if err := check(runDir, log, id); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(runDir, link)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir := hidden(log, id)
	from := filepath.Join(dir, filepath.Base(log))
	if _, err := os.Lstat(from); err == nil {
		// an older file of this attempt keeps what it holds: it becomes a rotated one
		if _, err := os.Lstat(log); err == nil {
			if err := os.Rename(log, log+"."+time.Now().Format(rotated)); err != nil {
				return fmt.Errorf("hidelog: %w", err)
			}
		}
		if err := os.Rename(from, log); err != nil {
			return fmt.Errorf("hidelog: %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hidelog: %w", err)
	}
	if err := point(runDir, filepath.Dir(log)); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hidelog: %w", err)
	}
	return nil
}

// Drop removes what Prepare made. The log of a container that was started stays; that of one that
// never was goes.
func Drop(runDir, log, id string) error {
	if err := check(runDir, log, id); err != nil {
		return err
	}
	if err := os.RemoveAll(hidden(log, id)); err != nil {
		return fmt.Errorf("hidelog: %w", err)
	}
	for _, name := range []string{link, link + ".new"} {
		if err := os.Remove(filepath.Join(runDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("hidelog: %w", err)
		}
	}
	return nil
}

// point turns the link in one step: at no moment there is none.
func point(runDir, dir string) error {
	tmp := filepath.Join(runDir, link+".new")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hidelog: %w", err)
	}
	if err := os.Symlink(dir, tmp); err != nil {
		return fmt.Errorf("hidelog: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(runDir, link)); err != nil {
		return fmt.Errorf("hidelog: %w", err)
	}
	return nil
}
