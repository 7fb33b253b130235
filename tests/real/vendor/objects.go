// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"crikeep.io/go/crikeep"
)

// A Store is what the vendor's runtime has made: a directory and a process for each sandbox and
// container. Both outlive the runtime. The process holds a lock on the directory's file "alive",
// handed to it open, so that life can be told from death without trust in process ids.
type Store struct {
	dir   string
	mu    sync.RWMutex // exclusively: a copy of a lock's descriptor must not slip into another object's process
	diary *Diary
}

// Meta is what the runtime writes down of an object.
type Meta struct {
	Want
	ID      string
	Created time.Time
}

func (s *Store) path(id string, names ...string) string {
	return filepath.Join(append([]string{s.dir, "objects", id}, names...)...)
}

// Make makes an object: there at once, or not at all.
func (s *Store) Make(w Want, id string) (string, error) {
	if id == "" {
		var digits [32]byte
		rand.Read(digits[:])
		id = hex.EncodeToString(digits[:])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	draft := filepath.Join(s.dir, "drafts", id)
	for _, dir := range []string{draft, s.path("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(Meta{w, id, time.Now()})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(draft, "meta"), text, 0o600); err != nil {
		return "", err
	}
	alive, err := os.Create(filepath.Join(draft, "alive"))
	if err != nil {
		return "", err
	}
	defer alive.Close()
	if err := syscall.Flock(int(alive.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	process := exec.Command("sleep", strconv.Itoa(objectLife))
	process.ExtraFiles = []*os.File{alive}
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := process.Start(); err != nil {
		return "", err
	}
	go process.Wait()
	err = os.WriteFile(filepath.Join(draft, "pid"), []byte(strconv.Itoa(process.Process.Pid)), 0o600)
	if err == nil {
		err = os.Rename(draft, s.path(id))
	}
	if err != nil {
		process.Process.Kill()
		return "", err
	}
	return id, s.diary.Note("made %s %s %s", w.Kind, w.Key(), id)
}

// Read tells of one object. fs.ErrNotExist: there is none.
func (s *Store) Read(id string) (Meta, crikeep.Condition, error) {
	var meta Meta
	text, err := os.ReadFile(s.path(id, "meta"))
	if errors.Is(err, fs.ErrNotExist) {
		return meta, crikeep.Absent, err
	}
	if err == nil {
		err = json.Unmarshal(text, &meta)
	}
	if err != nil {
		return meta, crikeep.Unknown, err
	}
	if alive, err := s.alive(id); err != nil || !alive {
		return meta, crikeep.Dead, err
	}
	if _, err := os.Stat(s.path(id, "running")); err == nil {
		return meta, crikeep.Running, nil
	}
	return meta, crikeep.Ready, nil
}

func (s *Store) alive(id string) (bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	file, err := os.Open(s.path(id, "alive"))
	if err != nil {
		return false, err
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// List tells of all of a kind.
func (s *Store) List(kind crikeep.Kind) ([]crikeep.Object, error) {
	names, err := os.ReadDir(s.path(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var objects []crikeep.Object
	for _, name := range names {
		meta, condition, err := s.Read(name.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if meta.Kind == kind {
			objects = append(objects, crikeep.Object{
				Kind: kind, Condition: condition, ID: meta.ID, PodName: meta.Pod, PodNamespace: namespace, PodUID: meta.uid(),
				SandboxID: meta.Sandbox, ContainerName: meta.Container, Attempt: meta.Attempt, CreatedAt: meta.Created,
			})
		}
	}
	return objects, nil
}

// Kill ends an object's process; the object stays, dead.
func (s *Store) Kill(id string) error {
	text, err := os.ReadFile(s.path(id, "pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		alive, err := s.alive(id)
		if err != nil || !alive {
			return err
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("process %d of %s does not end", pid, id)
		}
		syscall.Kill(pid, syscall.SIGKILL) // it holds the lock, so it is ours
	}
}

// Remove ends what is left of an object.
func (s *Store) Remove(id string) error {
	if err := s.Kill(id); err != nil {
		return err
	}
	grave := filepath.Join(s.dir, "drafts", "grave-"+id)
	if err := os.Rename(s.path(id), grave); err != nil {
		return err
	}
	return os.RemoveAll(grave)
}

// A Diary says what really happened, one line each, whoever is killed: it is appended to by single
// writes.
type Diary struct{ file *os.File }

func openDiary(dir string) (*Diary, error) {
	file, err := os.OpenFile(filepath.Join(dir, "diary"), os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_CLOEXEC, 0o600)
	return &Diary{file}, err
}

// Note adds a line.
func (d *Diary) Note(format string, args ...any) error {
	_, err := d.file.WriteString(fmt.Sprintf(format, args...) + "\n")
	return err
}
