package tempfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// A process of this test's own makes a file and a folder, and waits to be killed.
func TestMain(m *testing.M) {
	if os.Getenv("UNFINISHED_TEST") != "" {
		file, err1 := Temporary()
		folder, err2 := Folder()
		if err := errors.Join(err1, err2); err != nil {
			panic(err)
		}
		fmt.Println(file.Name(), folder)
		io.Copy(io.Discard, os.Stdin) // Go ends a process whose goroutines all wait for each other: select {} is not enough
	}
	os.Exit(m.Run())
}

// What a living process writes stays, whatever its number; what a killed one has left
// goes, although its number may be a living one's.
func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "UNFINISHED_TEST=1", "TMPDIR="+dir)
	in, err1 := other.StdinPipe() // the process lives until the pipe is closed
	out, err2 := other.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Process.Kill()
	var file, folder string
	if _, err := fmt.Fscan(out, &file, &folder); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(file, fmt.Sprintf("-%d-", other.Process.Pid)) {
		t.Errorf("%s: not the number of the process, %d", file, other.Process.Pid)
	}
	if err := os.WriteFile(filepath.Join(folder, "data"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	const gone = 1<<22 + 1 // Linux counts no further than 2²²
	posing := filepath.Join(dir, fmt.Sprintf("%s%d-A.tmp", prefix(), gone))
	reused := filepath.Join(dir, fmt.Sprintf("%s%d-B.tmp", prefix(), os.Getpid()))
	foreign := filepath.Join(dir, prefix()+"2-1-C.tmp") // of a machine whose name begins as this one's
	link := filepath.Join(dir, fmt.Sprintf("%s%d-D.tmp", prefix(), gone))
	for _, err := range []error{os.Rename(file, posing), os.WriteFile(reused, nil, 0o666), os.WriteFile(foreign, nil, 0o666), os.Symlink(foreign, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(want map[string]bool) {
		t.Helper()
		swept.Clear()
		mine, err := File(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer mine.Close()
		defer Remove(mine.Name())
		for path, there := range want {
			if _, err := os.Lstat(path); (err == nil) != there {
				t.Errorf("%s: %v", filepath.Base(path), err)
			}
		}
	}
	check(map[string]bool{posing: true, folder: true, reused: false, foreign: true, link: true})
	other.Process.Kill()
	other.Wait()
	check(map[string]bool{posing: false, folder: false, foreign: true, link: true})
}

// A hard stop leaves nothing, and lets nothing new begin.
func TestRemoveAll(t *testing.T) {
	defer func() { stopped = false }()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	whole, err := File(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if err := Place(whole.Name(), filepath.Join(dir, "whole")); err != nil {
		t.Fatal(err)
	}
	file, err1 := File(dir)
	folder, err2 := Folder()
	nameless, err3 := Nameless(dir)
	if err := errors.Join(err1, err2, err3, os.WriteFile(filepath.Join(folder, "data"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	defer nameless.Close()
	if _, err := nameless.WriteString("x"); err != nil {
		t.Error(err)
	}
	RemoveAll()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "whole" {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := File(dir); !errors.Is(err, errStopped) {
		t.Error(err)
	}
	if err := Remove(folder); err != nil {
		t.Error(err)
	}
	file.Close()
	if len(all) > 1 { // the file's
		t.Errorf("still watched: %v", all)
	}
}

// Nobody but this user can look into a folder, and a file has the mode of others.
func TestModes(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	defer syscall.Umask(syscall.Umask(0o022))
	file, err1 := File(dir)
	folder, err2 := Folder()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for path, want := range map[string]fs.FileMode{file.Name(): 0o644, folder: fs.ModeDir | 0o700} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != want {
			t.Errorf("%v, want %v, %v", info.Mode(), want, err)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	for _, make := range []func() error{
		func() error { _, err := Folder(); return err },
		func() error { _, err := Temporary(); return err },
	} {
		if _, ok := errors.AsType[*TempError](make()); !ok || !errors.Is(make(), fs.ErrNotExist) {
			t.Error(make())
		}
	}
	if err := errors.Join(Remove(file.Name()), Remove(folder)); err != nil || bytes.Contains([]byte(fmt.Sprint(all)), []byte(dir)) {
		t.Errorf("%v, %v", err, all)
	}
}

// Of all who want one name, one gets it, and what has it stays.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	var wins atomic.Int32
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			f, err := File(dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			if err = Place(f.Name(), name); err == nil {
				wins.Add(1)
			} else if !errors.Is(err, fs.ErrExist) || strings.Contains(err.Error(), dir) {
				t.Error(err)
			}
			Remove(f.Name())
		})
	}
	group.Wait()
	if left, err := os.ReadDir(dir); wins.Load() != 1 || err != nil || len(left) != 1 {
		t.Errorf("%d won, left are %v, %v", wins.Load(), left, err)
	}
	f, err := File(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Replace(f.Name(), name); err != nil {
		t.Error(err)
	}
	here, err1 := os.Stat(name)
	mine, err2 := f.Stat()
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(here, mine) {
		t.Errorf("not in its place: %v", err)
	}
}
