// Package unfinished makes files and folders that are there only while this
// process works on them. Their names are secret until they exist, and nothing
// that is there already is opened in their stead. Whatever ends the process,
// they go: by RemoveAll, or when a later process makes one in the same folder.
package unfinished

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// all is what this process has under way, by path. The file holds the lock by
// which other processes see that it is in use.
var (
	mu      sync.Mutex
	all     = make(map[string]*os.File)
	stopped bool
)

// errStopped is the error of whoever still writes when the process is about to
// end.
var errStopped = errors.New("this process is stopping")

// File makes a file in dir, to be written and read.
func File(dir string) (*os.File, error) {
	return create(dir, func(path string) (*os.File, error) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o666)
	})
}

// Nameless makes a file that only this process can reach. It is gone when it is
// closed.
func Nameless(dir string) (*os.File, error) {
	f, err := File(dir)
	if err != nil {
		return nil, err
	}
	if err := Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Temporary makes a file in the system's folder for temporary files. An error is a
// [*TempError].
func Temporary() (*os.File, error) {
	f, err := File(os.TempDir())
	return f, Temp(err)
}

// Folder makes a folder in the system's folder for temporary files that only this
// user can look into, and returns its path. An error is a [*TempError].
func Folder() (string, error) {
	f, err := create(os.TempDir(), func(path string) (*os.File, error) {
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, err
		}
		return os.Open(path)
	})
	if err != nil {
		return "", Temp(err)
	}
	return f.Name(), nil
}

// TempError is the error of a folder for temporary files that cannot be written to.
type TempError struct{ Err error }

func (e *TempError) Error() string {
	return "folder for temporary files, " + os.TempDir() + ": " + e.Err.Error()
}
func (e *TempError) Unwrap() error { return e.Err }

// Temp marks an error as one of writing temporary files. Without an error there is
// none.
func Temp(err error) error {
	if err == nil {
		return nil
	}
	return &TempError{cause(err)}
}

// create makes what is to be made, under a name of its own, and locks it.
func create(dir string, open func(path string) (*os.File, error)) (*os.File, error) {
	removeStale(dir)
	for {
		path := filepath.Join(dir, prefix()+strconv.Itoa(os.Getpid())+"-"+rand.Text()+suffix)
		if !watch(path, nil) {
			return nil, errStopped
		}
		f, err := open(path)
		if err != nil {
			forget(path)
			return nil, err
		}
		// Another process may have taken it for a dead one's before it was locked.
		locked := lock(f)
		here, err1 := os.Lstat(path)
		mine, err2 := f.Stat()
		if errors.Is(locked, syscall.EWOULDBLOCK) || err1 != nil || err2 != nil || !os.SameFile(here, mine) {
			f.Close()
			forget(path)
			continue
		}
		if !watch(path, f) {
			os.RemoveAll(path)
			f.Close()
			return nil, errStopped
		}
		return f, nil
	}
}

// watch has path removed by RemoveAll, unless that was called already.
func watch(path string, f *os.File) bool {
	mu.Lock()
	defer mu.Unlock()
	if !stopped {
		all[path] = f
	}
	return !stopped
}

// forget ends the watch over path: it is not there any more.
func forget(path string) *os.File {
	mu.Lock()
	defer mu.Unlock()
	f := all[path]
	delete(all, path)
	return f
}

// Remove removes a file or folder that this package made. A file stays open.
func Remove(path string) error {
	err := os.RemoveAll(path)
	if f := forget(path); f != nil {
		if info, serr := f.Stat(); serr == nil && info.IsDir() {
			f.Close() // nobody else has it
		}
	}
	return err
}

// Place gives a file that this package made its name. It fails with [fs.ErrExist] if
// something has that name, also where several processes try at once.
func Place(path, name string) error {
	err := os.Link(path, name)
	if err == nil {
		return Remove(path)
	}
	if !errors.Is(err, fs.ErrExist) { // a file system without hard links
		if _, err = os.Lstat(name); err == nil {
			return fs.ErrExist
		}
		if errors.Is(err, fs.ErrNotExist) {
			return Replace(path, name)
		}
	}
	return cause(err)
}

// Replace gives a file that this package made its name, in the place of the file that
// has it.
func Replace(path, name string) error {
	err := os.Rename(path, name)
	if err == nil {
		forget(path)
	}
	return cause(err)
}

// cause takes off what package os says of names that nobody knows.
func cause(err error) error {
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// RemoveAll removes everything that this process has under way, and lets it make
// nothing more: it is for a process that ends in the next moment. It waits for no
// lock that is held during input or output.
func RemoveAll() {
	mu.Lock()
	stopped = true
	paths := slices.Collect(maps.Keys(all))
	mu.Unlock()
	for _, path := range paths {
		os.RemoveAll(path)
	}
}

const suffix = ".tmp"

// prefix is the same for all processes of this machine.
func prefix() string {
	host, _ := os.Hostname()
	return ".swagwrap-" + host + "-"
}

// swept are the folders that this process has looked into.
var swept sync.Map

// removeStale removes from dir what processes of this machine left behind when they
// were killed.
func removeStale(dir string) {
	if _, done := swept.LoadOrStore(dir, true); done {
		return
	}
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	ours := prefix()
	for {
		const some = 1024 // there may be millions
		names, err := d.Readdirnames(some)
		for _, name := range names {
			rest, found := strings.CutPrefix(name, ours)
			pid, random, _ := strings.Cut(strings.TrimSuffix(rest, suffix), "-")
			n, err := strconv.Atoi(pid)
			if found && err == nil && !strings.Contains(random, "-") { // another machine may be ours-1
				removeDead(filepath.Join(dir, name), n)
			}
		}
		if err != nil {
			return
		}
	}
}

// removeDead removes the file or folder at path unless a process has it locked. A
// file system without locks leaves the number of the process, which another
// process may have by now: then path stays.
func removeDead(path string, pid int) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if err := lock(f); errors.Is(err, syscall.EWOULDBLOCK) || err != nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return
	}
	os.RemoveAll(path) // not ours to remove if it fails
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
