// SPDX-License-Identifier: Apache-2.0

// Package hidelog hides the log file of a container from the kubelet until the container is
// started.
//
// If a kubelet newer than 1.20 is shown no container, it derives the attempt from the log files
// that it finds: if there is 0.log, it requests attempt 1. If a runtime's monitor opens the log
// while the container is created, as conmon does, every container that was created too late is
// lost: its attempt 0 is never requested again.
//
// The monitor is given a path through a symbolic link in the container's run directory. While the
// container is only created, the link leads to a directory next to the log, ".crikeep-ID", which
// the kubelet ignores. Show moves the file to its proper place and redirects the link. The monitor
// continues to write to the same file. When it is told to reopen its log, for a rotation, the same
// path leads to the right place. The monitor needs no change.
//
//	path, err := hidelog.Prepare(runDir, logPath, id) // before the monitor is started: give it path for its log
//	err = hidelog.Show(runDir, logPath, id)           // StartContainer, before the runtime's start
//	err = hidelog.Drop(runDir, logPath, id)           // the container is removed
//
// All three may be repeated, also after a crash in the middle. Calls for one container must not run
// at the same time.
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

	// How the kubelet names a log that it has rotated. Its clean-up removes files with such
	// names.
	rotated = "20060102-150405"
)

// absolute paths are needed, because the link leads from one to the other.
func absolute(runDir, log string) bool { return filepath.IsAbs(runDir) && filepath.IsAbs(log) }

func checkID(id string) error {
	if id == "" || strings.ContainsAny(id, "/\x00") {
		return fmt.Errorf("hidelog: id %q", id)
	}
	return nil
}

func hidden(log, id string) string { return filepath.Join(filepath.Dir(log), prefix+id) }

// Prepare creates the directory and the link, and returns the path to give to the monitor instead
// of log. The directory of the log must exist.
func Prepare(runDir, log, id string) (string, error) {
	if !absolute(runDir, log) {
		return "", fmt.Errorf("hidelog: %q, %q: not absolute", runDir, log)
	}
	if err := checkID(id); err != nil {
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

// Show moves the log to where the kubelet and others look for it. It does nothing if Prepare was not
// called for a container, because it was created before an update of the runtime, or could not have
// been, because a path is not absolute.
func Show(runDir, log, id string) error {
	if !absolute(runDir, log) {
		return nil
	}
	if err := checkID(id); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(runDir, link)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir := hidden(log, id)
	from := filepath.Join(dir, filepath.Base(log))
	if _, err := os.Lstat(from); err == nil {
		// an older file of this attempt keeps its content: it becomes a rotated one
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

// Drop removes what Prepare created. The log of a container that was started stays. The log of a
// container that was never started is removed. If a path is not absolute, Prepare has refused it, and
// Drop does nothing.
func Drop(runDir, log, id string) error {
	if !absolute(runDir, log) {
		return nil
	}
	if err := checkID(id); err != nil {
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

// point redirects the link in one step: it exists at any time.
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
