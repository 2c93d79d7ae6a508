package ort

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// marking is a library that makes the file MARK when it is loaded. Then it loads NEXT from its own folder, as ONNX
// Runtime does with its providers.
const marking = `
	#define _GNU_SOURCE
	#include <dlfcn.h>
	#include <fcntl.h>
	#include <stdio.h>
	#include <string.h>
	#include <unistd.h>
	__attribute__((constructor)) static void begin(void) {
		close(open(MARK, O_CREAT | O_WRONLY, 0600));
		Dl_info here;
		char path[4096];
		if (*NEXT && dladdr((void *)begin, &here)) {
			snprintf(path, sizeof path, "%.*s%s", (int)(strrchr(here.dli_fname, '/') + 1 - here.dli_fname), here.dli_fname, NEXT);
			dlopen(path, RTLD_NOW);
		}
	}`

// A stock has the libraries of a small bundle, and one that is planted.
type stock struct {
	t       *testing.T
	root    string
	good    string // the folder of the bundle's libraries
	planted string
	bundle  bundle
}

// newStock makes a bundle of one library, or of two of which the main one loads the other.
func newStock(t *testing.T, provider string) *stock {
	root := t.TempDir()
	s := &stock{t: t, root: root, good: filepath.Join(root, "good")}
	s.do(os.Mkdir(s.good, 0o755), os.Mkdir(filepath.Join(root, "loaded"), 0o755))
	next := ""
	var libraries []library
	add := func(name, next string) {
		body := s.read(s.compile(s.good, name, next))
		sum := sha256.Sum256(body)
		libraries = append(libraries, library{name + ".so", int64(len(body)), hex.EncodeToString(sum[:])})
	}
	if provider != "" {
		next = "libnext.so"
		add("libnext", "")
	}
	add("libonnxruntime", next)
	s.bundle = bundle{provider, "small libraries", []source{{manager: "pip", libraries: libraries}}}
	s.planted = s.compile(root, "planted", "")
	return s
}

func (s *stock) do(errs ...error) {
	s.t.Helper()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stock) read(path string) []byte {
	s.t.Helper()
	b, err := os.ReadFile(path)
	s.do(err)
	return b
}

func (s *stock) compile(dir, name, next string, flags ...string) string {
	mark := filepath.Join(s.root, "loaded", name)
	return compile(s.t, dir, name, marking, append(flags, `-DMARK="`+mark+`"`, `-DNEXT="`+next+`"`)...)
}

// cache makes a new folder with copies of the bundle's libraries. Each copy is another file to the linker.
func (s *stock) cache() (dir string) {
	dir = filepath.Join(s.t.TempDir(), "swagwrap", "ort")
	s.do(os.MkdirAll(dir, 0o755))
	for k := range s.bundle.sources[0].libraries {
		path := s.bundle.path(dir, k)
		s.do(os.WriteFile(path, s.read(s.bundle.path(s.good, k)), 0o755))
	}
	return dir
}

// plant puts a copy of the planted library at path, whatever is there.
func (s *stock) plant(path string) {
	s.t.Helper()
	s.do(os.RemoveAll(path), os.WriteFile(path, s.read(s.planted), 0o755))
}

func nothing() {}

// load verifies and loads what is in dir. It calls checked after the check, and held before the linker opens the library. It
// returns the names of the libraries that were loaded.
func (s *stock) load(dir string, checked, held func()) (loaded []string, err error) {
	s.t.Helper()
	v, err := s.bundle.verify(dir)
	if err == nil {
		var name string
		checked()
		if name, err = v.hold(); err == nil {
			held()
			err = open(name)
		}
	}
	marks := filepath.Join(s.root, "loaded")
	files, listed := os.ReadDir(marks)
	s.do(listed)
	for _, f := range files {
		loaded = append(loaded, f.Name())
		s.do(os.Remove(filepath.Join(marks, f.Name())))
	}
	return loaded, err
}

// keepTimes restores the times of a file after change.
func (s *stock) keepTimes(path string, change func()) {
	info, err := os.Stat(path)
	s.do(err)
	change()
	s.do(os.Chtimes(path, time.Time{}, info.ModTime()))
}

func (s *stock) state(f *os.File) state {
	now, err := stateOf(f)
	s.do(err)
	return now
}

// Only the published bytes are loaded, from files and folders that no other user can change. Whatever else is in the
// cache is never loaded, whatever its times, and the error says what it is.
func TestVerify(t *testing.T) {
	stocks := []*stock{newStock(t, ""), newStock(t, OpenVINO)}
	flip := func(s *stock, path string, from, to int) {
		s.keepTimes(path, func() {
			b := s.read(path)
			for i := from; i < to; i++ {
				b[i] ^= 0x55
			}
			s.do(os.WriteFile(path, b, 0o755))
		})
	}
	for name, spoil := range map[string]struct {
		how  func(s *stock, dir, path string)
		want string // in the error; "" if it loads
	}{
		"whole": {func(s *stock, dir, path string) {}, ""},
		"an equal file": {func(s *stock, dir, path string) {
			b := s.read(path)
			s.do(os.Remove(path), os.WriteFile(path, b, 0o700))
		}, ""},
		"a hard link":        {func(s *stock, dir, path string) { s.do(os.Link(path, filepath.Join(filepath.Dir(dir), "other"))) }, ""},
		"a folder by a link": {func(s *stock, dir, path string) { s.do(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir)) }, ""},
		"not writable":       {func(s *stock, dir, path string) { s.do(os.Chmod(path, 0o444), os.Chmod(dir, 0o555)) }, ""},
		"unfinished": {func(s *stock, dir, path string) {
			s.do(os.WriteFile(filepath.Join(dir, ".swagwrap-vm-1-A.tmp"), nil, 0o600))
		}, ""},

		"a changed byte":    {func(s *stock, dir, path string) { flip(s, path, 5000, 5001) }, "damaged: NAME has SHA-256 "},
		"the last byte":     {func(s *stock, dir, path string) { n := len(s.read(path)); flip(s, path, n-1, n) }, "damaged: NAME has SHA-256 "},
		"4096 other bytes":  {func(s *stock, dir, path string) { flip(s, path, 4096, 8192) }, "damaged: NAME has SHA-256 "},
		"truncated":         {func(s *stock, dir, path string) { s.do(os.Truncate(path, 4096)) }, "damaged: NAME has SHA-256 "},
		"empty":             {func(s *stock, dir, path string) { s.do(os.Truncate(path, 0)) }, "damaged: NAME has SHA-256 "},
		"one byte more":     {func(s *stock, dir, path string) { s.do(os.Truncate(path, int64(len(s.read(path))+1))) }, "damaged: NAME has SHA-256 "},
		"planted":           {func(s *stock, dir, path string) { s.keepTimes(path, func() { s.plant(path) }) }, "damaged: NAME has SHA-256 "},
		"a planted link":    {func(s *stock, dir, path string) { s.do(os.Remove(path), os.Symlink(s.planted, path)) }, "damaged: NAME is a link"},
		"a link to a good":  {func(s *stock, dir, path string) { s.do(os.Rename(path, dir+"2"), os.Symlink(dir+"2", path)) }, "damaged: NAME is a link"},
		"another hard link": {func(s *stock, dir, path string) { s.do(os.Remove(path), os.Link(s.planted, path)) }, "damaged: NAME has SHA-256 "},
		"a folder":          {func(s *stock, dir, path string) { s.do(os.Remove(path), os.Mkdir(path, 0o755)) }, "damaged: NAME is not a regular file"},
		"a pipe":            {func(s *stock, dir, path string) { s.do(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "damaged: NAME is not a regular file"},
		"a device":          {func(s *stock, dir, path string) { s.do(os.Remove(path), os.Symlink("/dev/zero", path)) }, "damaged: NAME is a link"},
		"missing":           {func(s *stock, dir, path string) { s.do(os.Remove(path)) }, "damaged: NAME is missing"},
		"no folder":         {func(s *stock, dir, path string) { s.do(os.RemoveAll(dir)) }, "no such file"},
		"a pipe as folder":  {func(s *stock, dir, path string) { s.do(os.RemoveAll(dir), syscall.Mkfifo(dir, 0o600)) }, "not a directory"},

		"a library for all": {func(s *stock, dir, path string) { s.do(os.Chmod(path, 0o757)) }, "NAME can be written by every user"},
		"a folder for all":  {func(s *stock, dir, path string) { s.do(os.Chmod(dir, 0o757)) }, "ort can be written by every user"},
		"a sticky folder":   {func(s *stock, dir, path string) { s.do(os.Chmod(dir, 0o777|fs.ModeSticky)) }, "ort can be written by every user"},
		"the folder above":  {func(s *stock, dir, path string) { s.do(os.Chmod(filepath.Dir(dir), 0o777)) }, "swagwrap can be written by every user"},
		"behind a link, too": {func(s *stock, dir, path string) {
			s.do(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir), os.Chmod(dir, 0o777))
		}, "can be written by every user"},
	} {
		for _, s := range stocks {
			provider := s.bundle.provider
			for k := range s.bundle.sources[0].libraries {
				dir := s.cache()
				path := s.bundle.path(dir, k)
				spoil.how(s, dir, path)
				loaded, err := s.load(dir, nothing, nothing)
				want := strings.ReplaceAll(spoil.want, "NAME", filepath.Base(path))
				switch {
				case want == "" && (err != nil || !slices.Equal(loaded, s.all())):
					t.Errorf("%s, library %d of %q: %v, loaded %q", name, k, provider, err, loaded)
				case want != "" && (err == nil || !strings.Contains(err.Error(), want) || len(loaded) > 0):
					t.Errorf("%s, library %d of %q: %v, want %q, loaded %q", name, k, provider, err, want, loaded)
				}
				os.Chmod(dir, 0o755) // for its removal
			}
		}
	}
}

// all returns the names of the bundle's libraries, sorted.
func (s *stock) all() (names []string) {
	for _, l := range s.bundle.sources[0].libraries {
		names = append(names, strings.TrimSuffix(l.member, ".so"))
	}
	slices.Sort(names)
	return names
}

// Root can give files to other users. Where they have a library or a folder, nothing is loaded.
func TestVerifyOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		return // TestShared has the rule
	}
	const other = 12345
	s := newStock(t, "")
	for _, spoil := range []func(dir, path string) error{
		func(dir, path string) error { return os.Chown(path, other, 0) },
		func(dir, path string) error { return os.Chown(dir, other, 0) },
		func(dir, path string) error { return os.Chown(filepath.Dir(dir), other, 0) },
		func(dir, path string) error { return errors.Join(os.Chown(path, 0, other), os.Chmod(path, 0o775)) },
		func(dir, path string) error { return errors.Join(os.Chown(dir, 0, other), os.Chmod(dir, 0o775)) },
	} {
		dir := s.cache()
		s.do(spoil(dir, s.bundle.main(dir)))
		if loaded, err := s.load(dir, nothing, nothing); err == nil || !strings.Contains(err.Error(), " 12345") || len(loaded) > 0 {
			t.Errorf("%v, loaded %q", err, loaded)
		}
	}
}

// Root and this user may write, and a group that is theirs alone.
func TestShared(t *testing.T) {
	const me, other = 1<<31 - 7, 1<<31 - 8 // no user and no group has these numbers
	for _, tt := range []struct {
		owner, group uint32
		mode         fs.FileMode
		acl          bool
		want         string
	}{
		{me, other, 0o755, false, ""},
		{0, other, 0o755, false, ""},
		{me, 0, 0o775, false, ""},
		{me, other, 0o755, true, ""}, // the mask is that of the group's bits
		{other, me, 0o700, false, "belongs to user 2147483640, want user 2147483641 or root"},
		{me, other, 0o775, false, "can be written by group 2147483640"},
		{me, me, 0o775, false, "can be written by group 2147483641"}, // a number is no name
		{me, 0, 0o775, true, "can be written by group 0"},
		{me, other, 0o757, false, "can be written by every user"},
		{0, 0, 0o757, false, "can be written by every user"},
	} {
		if got := shared(tt.owner, tt.group, tt.mode, me, tt.acl); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
	if got := shared(other, 0, 0o755, 0, false); got != "belongs to user 2147483640, want root" {
		t.Errorf("for root: %q", got)
	}
	if !ownGroup(0, 0) && runtime.GOOS == "linux" {
		t.Error("root has no group of its name")
	}
}

// What takes the place of a library or of the folder after the check is not loaded: the linker opens what was checked. A
// library that is written to is not loaded, even if its old time is set again.
func TestReplacedAfterVerify(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // SECURITY.md says so
	}
	for _, s := range []*stock{newStock(t, ""), newStock(t, OpenVINO)} {
		dir := s.cache()
		loaded, err := s.load(dir, func() {
			s.do(os.Rename(dir, dir+"2"), os.Mkdir(dir, 0o755))
			for k := range s.bundle.sources[0].libraries {
				s.plant(s.bundle.path(dir, k))
			}
		}, nothing)
		if err != nil || !slices.Equal(loaded, s.all()) {
			t.Errorf("another folder of %q: %v, loaded %q", s.bundle.provider, err, loaded)
		}
		for k := range s.bundle.sources[0].libraries {
			for name, change := range map[string]func(path string){
				"another library": s.plant,
				"other bytes": func(path string) {
					f, err := os.Open(path)
					s.do(err)
					defer f.Close()
					for before, now := s.state(f), s.state(f); now == before; now = s.state(f) { // some systems count in steps of 4 ms
						s.keepTimes(path, func() { s.do(os.WriteFile(path, s.read(s.planted), 0o755)) })
					}
				},
			} {
				dir := s.cache()
				loaded, err := s.load(dir, func() { change(s.bundle.path(dir, k)) }, nothing)
				if err == nil || !strings.Contains(err.Error(), " changed while it was read") || len(loaded) > 0 {
					t.Errorf("%s in place of library %d of %q: %v, loaded %q", name, k, s.bundle.provider, err, loaded)
				}
			}
		}
	}
	s := newStock(t, "")
	dir := s.cache()
	if loaded, err := s.load(dir, nothing, func() { s.plant(s.bundle.main(dir)) }); err != nil || !slices.Equal(loaded, s.all()) {
		t.Errorf("another library: %v, loaded %q", err, loaded)
	}
}

// ONNX Runtime's libraries have their own folder in their search path. A library there that is not of the bundle is not
// loaded with them.
func TestPlantedBeside(t *testing.T) {
	for _, provider := range []string{"", OpenVINO} {
		s := newStock(t, provider)
		dir := s.cache()
		stranger := filepath.Join(dir, "libstdc++.so.6")
		s.plant(stranger)
		loaded, err := s.load(dir, nothing, nothing)
		if err == nil || !strings.Contains(err.Error(), stranger) || len(loaded) > 0 {
			t.Errorf("%v, loaded %q", err, loaded)
		}
		if e, ok := errors.AsType[*LibraryError](s.bundle.failure(dir, err)); !ok || !strings.HasPrefix(e.Hint(), "remove "+stranger+"; ") {
			t.Errorf("%v", err)
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	// This library needs another one, which comes after the check.
	s := newStock(t, "")
	beside := s.compile(s.good, "libbeside", "", "-Wl,-soname,libbeside.so")
	s.compile(s.good, "libonnxruntime", "", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", beside)
	body := s.read(s.bundle.main(s.good))
	sum := sha256.Sum256(body)
	s.bundle.sources[0].libraries[0].sha256 = hex.EncodeToString(sum[:])
	dir := s.cache()
	loaded, err := s.load(dir, nothing, func() { s.do(os.Rename(beside, filepath.Join(dir, "libbeside.so"))) })
	if err == nil || len(loaded) > 0 {
		t.Errorf("%v, loaded %q", err, loaded)
	}
}

// Install takes from others the right to write, and fetches again what may have been changed. It cannot repair the folder
// of another user, or one with other files.
func TestInstallRepairs(t *testing.T) {
	s := newShop(t)
	s.sell("npm", toWork, tgz(t, npmMember, npmBody))
	if err := s.install(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(s.path)
	chmod := func(path string, mode fs.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for fetched, spoil := range map[int]func(){
		0: func() { chmod(dir, 0o777); chmod(s.cache, 0o777) },
		4: func() { chmod(s.path, 0o777) },
	} {
		spoil()
		s.progress = nil
		if err := s.bundle.check(dir); err == nil || !strings.Contains(err.Error(), "can be written by every user") {
			t.Errorf("before: %v", err)
		}
		if err := s.install(); err != nil || len(s.progress) != fetched {
			t.Errorf("%v, %q", err, s.progress)
		}
		if err := s.bundle.check(dir); err != nil {
			t.Error(err)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	s.progress = nil
	if err := os.Chown(dir, 12345, 0); err != nil {
		t.Fatal(err)
	}
	err := s.install()
	if e, ok := errors.AsType[*LibraryError](err); !ok || !strings.HasPrefix(e.Hint(), "let XDG_CACHE_HOME") || !strings.Contains(e.Reason, dir+" belongs to user 12345") || s.progress != nil {
		t.Errorf("%v, %q", err, s.progress)
	}
}
