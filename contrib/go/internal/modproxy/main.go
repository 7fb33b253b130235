// SPDX-License-Identifier: Apache-2.0

// Modproxy writes this module into a directory that Go can use as a module proxy: a runtime that is
// given the directory requires and vendors the module like any other one.
//
// usage: go run ./internal/modproxy DIR VERSION, in the module's own directory
package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 3 || !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(os.Args[2]) {
		fmt.Fprintln(os.Stderr, "usage: modproxy DIR VERSION: modproxy /srv/goproxy v0.1.0")
		os.Exit(2)
	}
	if err := write(".", os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "modproxy:", err)
		os.Exit(1)
	}
}

// write adds a version of the module in src to the proxy in dir. Its import path is that of go.mod,
// the only place where it is chosen.
func write(src, dir, version string) error {
	mod, err := os.ReadFile(filepath.Join(src, "go.mod"))
	if err != nil {
		return err
	}
	found := regexp.MustCompile(`(?m)^module\s+(\S+)$`).FindSubmatch(mod)
	if found == nil {
		return errors.New("go.mod names no module")
	}
	path := string(found[1])
	if path != strings.ToLower(path) {
		return fmt.Errorf("%s: a proxy writes capital letters in another way, which is not done here", path)
	}
	dir = filepath.Join(dir, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(struct{ Version string }{version})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{".mod": mod, ".info": info} {
		if err := os.WriteFile(filepath.Join(dir, version+name), content, 0o644); err != nil {
			return err
		}
	}
	if err := pack(src, filepath.Join(dir, version+".zip"), path+"@"+version+"/"); err != nil {
		return err
	}
	return list(dir)
}

// pack writes the files of the module, and the licence, which lies at the top of the repository.
func pack(src, name, prefix string) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := zip.NewWriter(file)
	add := func(from, to string) error {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		f, err := w.Create(prefix + filepath.ToSlash(to))
		if err == nil {
			_, err = f.Write(content)
		}
		return err
	}
	if err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		to, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		return add(path, to)
	}); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(src, "LICENSE")); os.IsNotExist(err) {
		if err := add(filepath.Join(src, "..", "..", "LICENSE"), "LICENSE"); err != nil {
			return err
		}
	}
	return w.Close()
}

// list names the versions that are there.
func list(dir string) error {
	zips, err := filepath.Glob(filepath.Join(dir, "*.zip"))
	if err != nil {
		return err
	}
	var versions string
	for _, name := range zips {
		versions += strings.TrimSuffix(filepath.Base(name), ".zip") + "\n"
	}
	return os.WriteFile(filepath.Join(dir, "list"), []byte(versions), 0o644)
}
