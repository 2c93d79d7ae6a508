package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// A process of these tests' own makes a folder, and is killed at a point. At none it gives up.
func TestMain(m *testing.M) {
	if point := os.Getenv("FOLDER_TEST_KILL"); point != "" {
		if os.Getenv("FOLDER_TEST_EXCHANGE") == "no" {
			exchange = unable
		}
		kill := func(at string) {
			if at == point {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
		reached = kill
		f, err := CreateFolder("out", true)
		if err != nil {
			panic(err)
		}
		if point == "file" { // that another command had begun in the folder
			tempfile.File("out")
		}
		kill("file")
		if kill("created"); point == "none" {
			f.Abort()
			os.Exit(0)
		}
		if err := errors.Join(fill(f.Work, "new"), f.Commit()); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// unable is Exchange on a file system that cannot do it.
func unable(a, b string) error { return errors.ErrUnsupported }

// fill writes files with a content.
func fill(dir, content string) error {
	return errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o777), os.WriteFile(filepath.Join(dir, "a"), []byte(content), 0o666),
		os.WriteFile(filepath.Join(dir, "sub", "b"), []byte(content), 0o666))
}

// makeFolder makes a folder of results.
func makeFolder(t *testing.T, path, content string, force bool) {
	t.Helper()
	f, err := CreateFolder(path, force)
	if err == nil {
		defer f.Abort()
		err = errors.Join(fill(f.Work, content), f.Commit())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tree returns the contents of all files in a folder by name, and "/" for folders.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if all[name] = "/"; d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			all[name] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// holds checks that the only thing in the current folder is "out", with files of the given content.
func holds(t *testing.T, content string) {
	t.Helper()
	got := tree(t, ".")
	delete(got, "out/"+listName)
	want := map[string]string{"out": "/", "out/sub": "/", "out/a": content, "out/sub/b": content}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", content, diff)
	}
}

func TestFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	makeFolder(t, "out", "first", false)
	holds(t, "first")
	if _, err := CreateFolder("out", false); ExitCode(t.Context(), err) != exitUsage {
		t.Errorf("not empty: %v", err)
	}
	for _, with := range []func(a, b string) error{exchange, unable} {
		defer func(before func(a, b string) error) { exchange = before }(exchange)
		exchange = with
		f, err := CreateFolder("out", true)
		if err != nil {
			t.Fatal(err)
		}
		if err := fill(f.Work, "given up"); err != nil {
			t.Fatal(err)
		}
		f.Abort()
		holds(t, "first")
		if err := os.Chmod("out", 0o750); err != nil {
			t.Fatal(err)
		}
		makeFolder(t, "out/", "second", true)
		holds(t, "second")
		if info, err := os.Stat("out"); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		makeFolder(t, "./out", "first", true)
	}
	if err := errors.Join(os.RemoveAll("out"), os.Mkdir("out", 0o777)); err != nil {
		t.Fatal(err)
	}
	makeFolder(t, "out", "in an empty one", false)
	holds(t, "in an empty one")
}

// Nothing that a command did not write to the folder is replaced or removed. Also not if it comes while the command runs.
func TestFolderKeepsOthers(t *testing.T) {
	write := func(path, content string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666))
	}
	for name, change := range map[string]func() error{
		"notes.txt":   func() error { return write("out/notes.txt", "mine") },
		"sub/c":       func() error { return write("out/sub/c", "mine") },
		".hidden":     func() error { return write("out/.hidden", "") },
		"mine/":       func() error { return write("out/mine/deep/x", "mine") },
		"empty/":      func() error { return os.Mkdir("out/empty", 0o777) },
		"a (changed)": func() error { return write("out/a", "mine!") },
		"link":        func() error { return os.Symlink("a", "out/link") },
		"pipe":        func() error { return syscall.Mkfifo("out/pipe", 0o666) },
		"a":           func() error { return errors.Join(os.Remove("out/a"), os.Symlink("sub/b", "out/a")) },
		"a, sub/":     func() error { return os.Remove("out/" + listName) },
		"a, sub":      func() error { return write("out/"+listName, listHead+strings.Repeat("0", 64)+"  ../x\n") },
		"x1, x2, x3 a": func() error {
			return errors.Join(write("out/x1", ""), write("out/x2", ""), write("out/x3", ""), write("out/x4", ""))
		},
	} {
		for _, late := range []bool{false, true} {
			for _, with := range []func(a, b string) error{exchange, unable} {
				t.Run(fmt.Sprintf("%s, late %v", name, late), func(t *testing.T) {
					defer func(before func(a, b string) error) { exchange = before }(exchange)
					exchange = with
					t.Chdir(t.TempDir())
					makeFolder(t, "out", "first", false)
					var f *Folder
					var err error
					if late {
						if f, err = CreateFolder("out", true); err != nil {
							t.Fatal(err)
						}
						if err := fill(f.Work, "second"); err != nil {
							t.Fatal(err)
						}
					}
					if err := change(); err != nil {
						t.Fatal(err)
					}
					before := lstat(t, "out")
					if late {
						err = f.Commit()
						f.Abort()
						if name == "empty/" && err == nil { // nothing is lost
							return
						}
					} else {
						_, err = CreateFolder("out", true)
					}
					if late && (ExitCode(t.Context(), err) != exitTemporary || !strings.Contains(err.Error(), "out: changed while")) {
						t.Errorf("%v", err)
					}
					if !late && (ExitCode(t.Context(), err) != exitUsage || !strings.Contains(err.Error(), "did not write there: "+strings.TrimSuffix(name, " a"))) {
						t.Errorf("%v", err)
					}
					if diff := cmp.Diff(before, lstat(t, "out")); diff != "" {
						t.Error(diff)
					}
					if left := tree(t, "."); slices.ContainsFunc(keys(left), func(s string) bool { return strings.HasPrefix(s, ".swagwrap") }) {
						t.Errorf("left behind: %v", keys(left))
					}
				})
			}
		}
	}
}

func keys(m map[string]string) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

// lstat describes all that is in a folder.
func lstat(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		what := ""
		if err == nil && info.Mode().IsRegular() {
			b, _ := os.ReadFile(path)
			what = string(b)
		}
		if err == nil && !info.IsDir() {
			what += fmt.Sprint(info.Mode(), info.Sys().(*syscall.Stat_t).Ino)
		}
		all[path] = what
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A file that comes between the last look and the exchange stays too.
func TestFolderSwappedBack(t *testing.T) {
	for _, with := range []func(a, b string) error{exchange, unable} {
		t.Chdir(t.TempDir())
		makeFolder(t, "out", "first", false)
		f, err := CreateFolder("out", true)
		if err != nil {
			t.Fatal(err)
		}
		defer func(a func(a, b string) error, b func(string)) { exchange, reached = a, b }(exchange, reached)
		exchange = with
		reached = func(at string) {
			if at == "beside" {
				if err := os.WriteFile("out/notes.txt", []byte("mine"), 0o666); err != nil {
					t.Error(err)
				}
			}
		}
		err = errors.Join(fill(f.Work, "second"), f.Commit())
		f.Abort()
		if b, _ := os.ReadFile("out/notes.txt"); err == nil || !strings.Contains(err.Error(), "changed while") || string(b) != "mine" {
			t.Errorf("%v, notes %q", err, b)
		}
		if err := os.Remove("out/notes.txt"); err != nil {
			t.Fatal(err)
		}
		holds(t, "first")
	}
}

// Of all that make one folder at once, one makes it. The others end at once, with 75, and leave nothing.
func TestFolderTogether(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Chdir(t.TempDir())
		if old {
			makeFolder(t, "out", "old", false)
		}
		var created, ended sync.WaitGroup
		var mu sync.Mutex
		codes := map[int]int{}
		created.Add(6)
		for i := range 6 {
			ended.Go(func() {
				f, err := CreateFolder("out", old)
				created.Done()
				created.Wait() // all have tried before the first one is done
				if err == nil {
					err = errors.Join(fill(f.Work, fmt.Sprint("of ", i)), f.Commit())
					f.Abort()
				}
				mu.Lock()
				defer mu.Unlock()
				codes[ExitCode(t.Context(), err)]++
			})
		}
		ended.Wait()
		if diff := cmp.Diff(map[int]int{0: 1, exitTemporary: 5}, codes); diff != "" {
			t.Error(diff)
		}
		b, err := os.ReadFile("out/a")
		if err != nil {
			t.Fatal(err)
		}
		holds(t, string(b))
	}
}

// A process that is killed leaves the old folder, or the whole new one. The next process clears up.
func TestFolderKilled(t *testing.T) {
	for _, with := range []string{"yes", "no"} {
		for point, want := range map[string]string{"file": "old", "created": "old", "beside": "old", "between": "", "swapped": "new"} {
			t.Run(point+", exchange "+with, func(t *testing.T) {
				if point == "between" && with == "yes" {
					want = "new" // there is nothing between
				}
				t.Chdir(t.TempDir())
				makeFolder(t, "out", "old", false)
				printed, killed := inProcess(t, point, with)
				if killed == (point == "between" && with == "yes") {
					t.Fatal(printed)
				}
				if got, _ := os.ReadFile("out/a"); string(got) != want {
					t.Errorf("%q, want %q", got, want)
				}
				if printed, _ := inProcess(t, "none", with); printed != "" {
					t.Error(printed)
				}
				if want == "" {
					want = "old"
				}
				holds(t, want)
			})
		}
	}
}

// inProcess runs TestMain's process in the current folder.
func inProcess(t *testing.T, point, exchange string) (printed string, killed bool) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "FOLDER_TEST_KILL="+point, "FOLDER_TEST_EXCHANGE="+exchange)
	out, _ := c.CombinedOutput()
	return string(out), c.ProcessState.Sys().(syscall.WaitStatus).Signaled()
}

// If a killed process left a folder to which somebody has added files, they stay, and the error names them.
func TestFolderLeft(t *testing.T) {
	t.Chdir(t.TempDir())
	makeFolder(t, "out", "old", false)
	inProcess(t, "swapped", "yes")
	left, _ := filepath.Glob(".swagwrap-folder-*.new")
	if len(left) != 1 {
		t.Fatal(left)
	}
	if err := os.WriteFile(left[0]+"/notes.txt", []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateFolder("out", true); err == nil || ExitCode(t.Context(), err) != exitTemporary || !strings.Contains(err.Error(), left[0]+": holds files that swagwrap did not write: notes.txt") {
		t.Errorf("%v", err)
	}
	if b, _ := os.ReadFile(left[0] + "/notes.txt"); string(b) != "mine" {
		t.Errorf("%q", b)
	}
}

// Where a folder of results may be, whatever its name.
func TestFolderPlaces(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	home := at("home")
	if err := errors.Join(os.MkdirAll(at("work/deep"), 0o777), os.MkdirAll(at("elsewhere/sub"), 0o777), os.Mkdir(home, 0o777), os.Mkdir(at("work/empty"), 0o777), os.WriteFile(at("work/file"), nil, 0o666),
		os.Symlink("../elsewhere/sub", at("work/link")), os.Symlink("gone", at("work/dangling")), os.Symlink("file", at("work/tofile")), os.Symlink("loop", at("work/loop"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(at("work"))
	t.Setenv("HOME", home)
	for path, want := range map[string]string{
		// allowed: the name in messages, and where it is
		"out":                     "out at work/out",
		"out/":                    "out at work/out",
		"./out//":                 "out at work/out",
		"new/deeper/out":          "new/deeper/out at work/new/deeper/out",
		"new/../out":              "out at work/out",
		"new/../../out":           "../out at out",
		"../out":                  "../out at out",
		"empty":                   "empty at work/empty",
		"link/out":                "link/out at elsewhere/sub/out",
		"link/../out":             at("elsewhere/out") + " at elsewhere/out", // not work/out
		"link/..":                 at("elsewhere") + " at elsewhere",
		"link/.":                  "",
		at("absolute"):            at("absolute") + " at absolute",
		"a folder's name, & more": "a folder's name, & more at work/a folder's name, & more",
		// refused: the message and the hint
		"":                       ": cannot be a folder for results. name a folder",
		"-":                      "-: cannot be a folder for results. name a folder",
		"/dev/stdout":            "/dev/stdout: cannot be a folder for results. name a folder",
		"/dev/null":              "/dev/null: cannot be a folder for results. name a folder",
		"file":                   "file: cannot be a folder for results. name a folder",
		"file/":                  "file/: cannot be a folder for results. name a folder",
		"file/out":               "file/out: cannot be a folder for results. name a folder",
		strings.Repeat("n", 300): strings.Repeat("n", 300) + ": cannot be a folder for results. name a folder",
		"link":                   "link: is a symbolic link, want a folder. name the folder itself: " + at("elsewhere/sub"),
		"dangling":               "dangling: is a symbolic link, want a folder. name the folder itself: gone",
		"tofile":                 "tofile: is a symbolic link, want a folder. name the folder itself: " + at("work/file"),
		"loop":                   "loop: is a symbolic link, want a folder. name the folder itself: loop",
		"loop/out":               "loop/out: cannot be a folder for results. name a folder",
		".":                      ".: cannot be replaced as a whole: it is the folder in which you are, or holds it. name a new folder in it: -o swagwrap-result",
		"..":                     "..: cannot be replaced as a whole: it is the folder in which you are, or holds it. name a new folder in it: -o ../swagwrap-result",
		"empty/..":               ".: cannot be replaced as a whole: it is the folder in which you are, or holds it. name a new folder in it: -o swagwrap-result",
		"../home":                "../home: cannot be replaced as a whole: it is your home folder, or holds it. name a new folder in it: -o ../home/swagwrap-result",
		"/proc":                  "/proc: cannot be replaced as a whole: it is a mount point. name a new folder in it: -o /proc/swagwrap-result",
		"/":                      "/: cannot be replaced as a whole: it is the folder in which you are, or holds it. name a new folder in it: -o /swagwrap-result",
	} {
		if want == "" {
			continue
		}
		name, target, err := folderPlace(path)
		got := name + " at " + strings.TrimPrefix(target, dir+"/")
		if f := (*Failure)(nil); errors.As(err, &f) {
			got = err.Error() + ". " + strings.TrimSuffix(strings.Join(f.hints, " "), ": -o FOLDER")
			if f.code != exitUsage {
				t.Errorf("%q: exit code %d", path, f.code)
			}
		} else if err != nil {
			t.Errorf("%q: %v", path, err)
		}
		if got != want {
			t.Errorf("%q: %s\nwant %s", path, got, want)
		}
	}
	for path, want := range map[string]bool{"out": true, "out/x": true, "./out/../out/x": true, "outer/x": false, "x": false, "": false, "shortcut/x": true, "through": true, at("work/out/y"): true, "../work/out": true} {
		os.MkdirAll("out/sub", 0o777)
		os.Symlink("out/sub", "shortcut")
		os.WriteFile("out/sub/file", nil, 0o666)
		os.Symlink("out/sub/file", "through")
		f := &Folder{real: at("work/out")}
		if got := f.Contains(path); got != want {
			t.Errorf("out contains %q: %v", path, got)
		}
	}
}

// Folders above are made, and removed again if the command fails.
func TestFolderParents(t *testing.T) {
	t.Chdir(t.TempDir())
	f, err := CreateFolder("a/b/out", false)
	if err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if left := tree(t, "."); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := CreateFolder("/proc/none/out", false); ExitCode(t.Context(), err) != exitTemporary || !strings.Contains(err.Error(), "/proc/none/out: cannot be written: ") {
		t.Errorf("%v", err)
	}
}
