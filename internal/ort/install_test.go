package ort

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/swagwrap/swagwrap/internal/packages"
)

// The package managers are shell scripts that deliver prepared archives; what
// the real ones deliver is checked by `make setup`.
type shop struct {
	t          *testing.T
	bin, cache string
	bundle     bundle
	path       string
	progress   []string
}

const (
	npmMember, npmBody = "package/lib.so", "npm's library"
	pipMember, pipBody = "onnxruntime/lib.so", "pip's library"
)

func newShop(t *testing.T) *shop {
	dir := t.TempDir()
	s := &shop{t: t, bin: filepath.Join(dir, "bin"), cache: filepath.Join(dir, "cache")}
	s.path = filepath.Join(s.cache, "new", "libonnxruntime.so")
	s.bundle = bundle{title: "ONNX Runtime", sources: []source{
		{"pip", "onnxruntime", "anylinux", []library{lib(pipMember, pipBody)}},
		{"npm", "onnxruntime-node", "", []library{lib(npmMember, npmBody)}},
	}}
	if err := os.Mkdir(s.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", s.bin)
	return s
}

func lib(member, body string) library {
	sum := sha256.Sum256([]byte(body))
	return library{member, int64(len(body)), hex.EncodeToString(sum[:])}
}

// sell puts a program into PATH that writes archive to the file target.
func (s *shop) sell(program, target string, archive []byte) {
	goods := filepath.Join(s.bin, program+".goods")
	s.write(goods, archive)
	s.script(program, `/bin/cp "`+goods+`" `+target)
}

func (s *shop) script(program, body string) {
	s.write(filepath.Join(s.bin, program), []byte("#!/bin/sh\n"+body+"\n"))
}

func (s *shop) write(path string, b []byte) {
	s.t.Helper()
	if err := os.WriteFile(path, b, 0o755); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) install() error {
	return s.bundle.install(context.Background(), filepath.Dir(s.path), packages.Managers{}, func(line string) { s.progress = append(s.progress, line) })
}

func (s *shop) want(body string) {
	s.t.Helper()
	got, err := os.ReadFile(s.path)
	if err != nil || string(got) != body {
		s.t.Errorf("installed %q, %v, want %q", got, err, body)
	}
	if files, _ := os.ReadDir(filepath.Dir(s.path)); len(files) != 1 {
		s.t.Errorf("left behind: %v", files)
	}
}

func tgz(t *testing.T, member, body string) []byte {
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, f := range [][2]string{{"package/README", "read me"}, {member, body}} {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func wheel(t *testing.T, member, body string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(member)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const toWork, toDest = "x.tgz", `"$(
	while [ "$1" != --dest ]; do shift; done; echo "$2")/x.whl"`

func TestInstallWithNpm(t *testing.T) {
	s := newShop(t)
	s.sell("npm", toWork, tgz(t, npmMember, npmBody))
	if err := s.install(); err != nil {
		t.Fatal(err)
	}
	s.want(npmBody)
	want := []string{"fetching ONNX Runtime with pip (onnxruntime)", "pip: not found",
		"fetching ONNX Runtime with npm (onnxruntime-node)", "installed " + s.path}
	if diff := cmp.Diff(want, s.progress); diff != "" {
		t.Error(diff)
	}

	s.script("npm", "exit 1") // not asked again
	s.progress = nil
	if err := s.install(); err != nil || s.progress != nil {
		t.Errorf("again: %v, %q", err, s.progress)
	}
}

func TestInstallWithPip(t *testing.T) {
	for _, program := range []string{"python3", "pip3", "pip"} {
		s := newShop(t)
		s.script("npm", "exit 1") // not asked
		if program != "python3" {
			s.script("python3", "echo No module named pip; exit 1")
		}
		s.sell(program, toDest, wheel(t, pipMember, pipBody))
		if err := s.install(); err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		s.want(pipBody)
	}
}

func TestInstallReplacesAPipe(t *testing.T) {
	s := newShop(t)
	if err := errors.Join(os.MkdirAll(filepath.Dir(s.path), 0o755), syscall.Mkfifo(s.path, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.sell("npm", toWork, tgz(t, npmMember, npmBody))
	if err := s.install(); err != nil {
		t.Fatal(err)
	}
	s.want(npmBody)
}

func TestInstallReplacesADamagedLibrary(t *testing.T) {
	s := newShop(t)
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(s.path, []byte(strings.ToUpper(npmBody)))
	s.sell("npm", toWork, tgz(t, npmMember, npmBody))
	if err := s.install(); err != nil {
		t.Fatal(err)
	}
	s.want(npmBody)
}

func TestInstallErrors(t *testing.T) {
	good := lib(npmMember, npmBody)
	tests := []struct {
		name    string
		prepare func(*shop)
		want    string
	}{
		{"no programs", func(s *shop) {}, "pip: not found; npm: not found"},
		{"npm fails", func(s *shop) { s.script("npm", "echo npm error code ENOTFOUND >&2; echo bye; exit 7") },
			"pip: not found; npm: exit status 7: npm error code ENOTFOUND"},
		{"nothing delivered", func(s *shop) { s.script("npm", "exit 0") }, "0 files match *.tgz"},
		{"not an archive", func(s *shop) { s.sell("npm", toWork, []byte("<html>")) }, "npm: x.tgz: "},
		{"truncated", func(s *shop) { s.sell("npm", toWork, tgz(t, good.member, npmBody)[:60]) }, "npm: x.tgz: "},
		{"not in it", func(s *shop) { s.sell("npm", toWork, tgz(t, "package/other", npmBody)) }, "no package/lib.so in it"},
		{"other bytes", func(s *shop) { s.sell("npm", toWork, tgz(t, good.member, "malware")) }, "has SHA-256 "},
		{"more bytes", func(s *shop) { s.sell("npm", toWork, tgz(t, good.member, npmBody+"!!")) }, "want " + good.sha256},
		{"bad wheel", func(s *shop) { s.sell("pip", toDest, []byte("PK")) }, "pip: x.whl: "},
	}
	for _, tt := range tests {
		s := newShop(t)
		tt.prepare(s)
		err := s.install()
		lib, ok := errors.AsType[*LibraryError](err)
		if !ok || lib.Path != s.path || !strings.Contains(lib.Reason, tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if files, _ := filepath.Glob(filepath.Join(s.cache, "new", "*")); len(files) > 0 {
			t.Errorf("%s: left behind %v", tt.name, files)
		}
	}
}

// A folder that cannot be made costs no download.
func TestInstallNowhere(t *testing.T) {
	s := newShop(t)
	s.sell("pip", toDest, []byte("PK"))
	s.write(s.cache, nil) // a file, where a folder should be
	err := s.install()
	lib, ok := errors.AsType[*LibraryError](err)
	if !ok || lib.Reason != "cannot be written: not a directory" || !strings.HasPrefix(lib.Hint(), "let XDG_CACHE_HOME") || len(s.progress) > 0 {
		t.Errorf("%v, progress %q", err, s.progress)
	}
}

func TestHint(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ explicit, env, python, home, want string }{
		{"", "", "", dir, "the set-up fetches "},
		{file, "", "", dir, "the set-up fetches "},
		{"", file, "", dir, "unset " + LibraryEnv + ", and the set-up fetches "},
		{"", file, file + "2", dir, "unset " + LibraryEnv + ", and that of the Python package "},
		{"", "", file, dir, "`python -m pip install --force-reinstall "},
		{"", "", "", file, "let XDG_CACHE_HOME, or HOME on macOS, name "},
		{"", "", "", "", "let XDG_CACHE_HOME, or HOME on macOS, name "},
	} {
		t.Setenv(LibraryEnv, tt.env)
		t.Setenv(PythonEnv, tt.python)
		t.Setenv("XDG_CACHE_HOME", tt.home)
		t.Setenv("HOME", tt.home)
		_, err := Check(t.Context(), Provider{}, tt.explicit)
		if lib, ok := errors.AsType[*LibraryError](err); !ok || !strings.HasPrefix(lib.Hint(), tt.want) || !strings.Contains(lib.Hint(), LibraryEnv) {
			t.Errorf("%+v: %v, hint %q", tt, err, lib.Hint())
		}
	}
}

func TestInstallCancelled(t *testing.T) {
	s := newShop(t)
	s.script("npm", "exec /bin/sleep 60")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := s.bundle.install(ctx, filepath.Dir(s.path), packages.Managers{}, func(string) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir) // Linux
	t.Setenv("HOME", dir)           // macOS
	t.Setenv(LibraryEnv, "")
	t.Setenv(PythonEnv, "")
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, f := range []string{a, b} {
		if err := os.WriteFile(f, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(explicit, want string) {
		t.Helper()
		l, err := Provider{}.Find(explicit)
		if err == nil {
			_, err = Provider{}.Open(l)
		}
		if lib, ok := errors.AsType[*LibraryError](err); !ok || !strings.Contains(lib.Error(), want) {
			t.Errorf("%q: %v, want %q", explicit, err, want)
		}
	}
	succeeds := func(explicit, want string) {
		t.Helper()
		if got, err := (Provider{}).Find(explicit); err != nil || got.Path != want {
			t.Errorf("Find(%q) = %q, %v, want %q", explicit, got.Path, err, want)
		}
	}

	fails("", "not installed")
	fails(filepath.Join(dir, "none"), "named by Runtime: no such file")
	succeeds(a, a)
	t.Setenv(LibraryEnv, b)
	succeeds(a, a)
	succeeds("", b)
	t.Setenv(PythonEnv, a) // gives way
	succeeds("", b)
	t.Setenv(LibraryEnv, "")
	succeeds("", a)
	t.Setenv(PythonEnv, filepath.Join(dir, "none"))
	fails("", "named by the Python package onnxruntime: no such file")
	t.Setenv(PythonEnv, "")
	t.Setenv(LibraryEnv, dir)
	fails("", "named by "+LibraryEnv+": not a regular file")

	t.Setenv(LibraryEnv, "")
	cache, folder, err := Provider{}.cached()
	if err != nil {
		t.Fatal(err)
	}
	cached := cache.main(folder)
	if err := os.MkdirAll(filepath.Dir(cached), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cached, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	fails("", "damaged: libonnxruntime")
	if err := os.Truncate(cached, cache.sources[1].libraries[0].size); err != nil {
		t.Fatal(err)
	}
	fails("", "damaged: libonnxruntime") // of the right size
	if err := os.Remove(cached); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(cached, 0o600); err != nil {
		t.Fatal(err)
	}
	fails("", "damaged: "+filepath.Base(cached)+" is not a regular file")
	if c, err := Check(t.Context(), Provider{}, ""); err == nil || !strings.HasSuffix(c.Cache, ": damaged: "+filepath.Base(cached)+" is not a regular file") {
		t.Errorf("%v, cache %q", err, c.Cache)
	}
}

func TestPins(t *testing.T) {
	for name, p := range pins {
		for _, s := range p {
			for _, l := range s.libraries {
				if b, err := hex.DecodeString(l.sha256); err != nil || len(b) != sha256.Size || l.size == 0 || l.member == "" {
					t.Errorf("%s: %+v", name, l)
				}
			}
		}
		if len(p) != 2 || p[0].tag == "" || !atLeast(Version, MinVersion) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
