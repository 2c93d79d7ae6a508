// Package unfinished makes files and folders that are there only while this
// process works on them. Their names are secret until they exist, and nothing
// that is there already is opened in their stead. Whatever ends the process,
// they go: by RemoveAll, or when a later process makes one in the same folder.
package unfinished

import (
	"crypto/rand"
	"errors"
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
	return f, Remove(f.Name())
}

// Folder makes a folder in dir that only this user can look into, and returns its
// path.
func Folder(dir string) (string, error) {
	f, err := create(dir, func(path string) (*os.File, error) {
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, err
		}
		return os.Open(path)
	})
	if err != nil {
		return "", err
	}
	return f.Name(), nil
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

// Rename gives a file that this package made the name to, in the place of what has
// that name.
func Rename(path, to string) error {
	err := os.Rename(path, to)
	if err == nil {
		forget(path)
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

// removeStale removes from dir what processes of this machine left behind when they
// were killed.
func removeStale(dir string) {
	found, _ := os.ReadDir(dir)
	for _, entry := range found {
		rest, ours := strings.CutPrefix(entry.Name(), prefix())
		pid, random, _ := strings.Cut(strings.TrimSuffix(rest, suffix), "-")
		n, err := strconv.Atoi(pid)
		if ours && err == nil && !strings.Contains(random, "-") && (entry.IsDir() || entry.Type().IsRegular()) { // another machine may be ours-1
			removeDead(filepath.Join(dir, entry.Name()), n)
		}
	}
}

// removeDead removes the file or folder at path unless a process has it locked. A
// file system without locks leaves the number of the process, which another
// process may have by now: then path stays.
func removeDead(path string, pid int) {
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
