// Package tempfile makes files and folders that exist only while this process works on them. Their names are
// random, and an existing file is never opened instead. They are removed by RemoveAll. If the process is killed, the
// next process that makes one in the same folder removes them.
package tempfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/step"
)

// all holds the files and folders of this process, by path. Each open file holds the lock that shows other
// processes that it is in use.
var (
	mu      sync.Mutex
	all     = make(map[string]*os.File)
	stopped bool
)

// errStopped is the error of a write after RemoveAll.
var errStopped = errors.New("this process is stopping")

// File makes a file in dir, to be written and read.
func File(dir string) (*os.File, error) {
	return create(dir, func(path string) (*os.File, error) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o666)
	})
}

// Only returns the only file of a pattern, such as what another program left in a folder.
func Only(pattern string) (string, error) {
	files, err := filepath.Glob(pattern)
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("%d files match %s, want 1", len(files), filepath.Base(pattern))
	}
	if err != nil {
		return "", err
	}
	return files[0], nil
}

// Nameless makes a file without a name, which only this process can reach. Closing it deletes it.
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

// Folder makes a folder in the system's folder for temporary files and returns its path. Only this user can read it.
// An error is a [*TempError].
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

// Sibling makes a folder in dir for results that others may read, and returns its path. [PlaceFolder] gives it its name.
func Sibling(dir string) (string, error) {
	f, err := create(dir, func(path string) (*os.File, error) {
		if err := os.Mkdir(path, 0o777); err != nil {
			return nil, err
		}
		return os.Open(path)
	})
	if err != nil {
		return "", err
	}
	return f.Name(), nil
}

// PlaceFolder renames a folder that this package made to name. It fails if name exists and is not an empty folder.
// After it RemoveAll leaves the folder alone. It does nothing once RemoveAll has begun.
func PlaceFolder(path, name string) error {
	mu.Lock()
	f := all[path]
	if stopped {
		mu.Unlock()
		return errStopped
	}
	delete(all, path)
	mu.Unlock()
	if err := syscall.Rename(path, name); err != nil { // os.Rename refuses empty folders
		watch(path, f)
		return err
	}
	f.Close()
	return nil
}

// TempError reports that the folder for temporary files cannot be written to.
type TempError struct{ Err error }

func (e *TempError) Error() string {
	return "folder for temporary files, " + os.TempDir() + ": " + e.Err.Error()
}
func (e *TempError) Unwrap() error { return e.Err }

// Temp wraps err in a [*TempError]. It returns nil for nil.
func Temp(err error) error {
	if err == nil {
		return nil
	}
	return &TempError{file.Cause(err)}
}

// create calls open with a new name in dir and locks the result.
func create(dir string, open func(path string) (*os.File, error)) (*os.File, error) {
	Sweep(dir)
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
		// Another process may have removed the file as stale before it was locked.
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
		step.Reached(step.Made)
		return f, nil
	}
}

// watch registers path for RemoveAll. It reports false if RemoveAll was called already.
func watch(path string, f *os.File) bool {
	mu.Lock()
	defer mu.Unlock()
	if !stopped {
		all[path] = f
	}
	return !stopped
}

// forget removes path from the registered files and returns its open file.
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

// Place renames a file that this package made to name. It fails with [fs.ErrExist] if name exists, even if several
// processes call Place at once.
func Place(path, name string) error {
	err := os.Link(path, name)
	if err == nil {
		step.Reached(step.Named)
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
	return file.Cause(err)
}

// Replace renames a file that this package made to name, and overwrites an existing file.
func Replace(path, name string) error {
	err := os.Rename(path, name)
	if err == nil {
		forget(path)
		step.Reached(step.Named)
	}
	return file.Cause(err)
}

// Backup gives the file at name a second name in its folder, which it returns. Replace then puts it back, and Remove drops
// the second name. It fails if there is no file, or the file system has no hard links.
func Backup(name string) (string, error) {
	path := filepath.Join(filepath.Dir(name), prefix()+strconv.Itoa(os.Getpid())+"-"+rand.Text()+suffix)
	if !watch(path, nil) {
		return "", errStopped
	}
	if err := os.Link(name, path); err != nil {
		forget(path)
		return "", file.Cause(err)
	}
	return path, nil
}

// RemoveAll removes all files and folders of this process. No new ones can be made afterwards, so call it
// only before the process ends. It never waits for input or output in progress.
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

// prefix begins the names that all processes of this machine use.
func prefix() string {
	host, _ := os.Hostname()
	return ".swagwrap-" + host + "-"
}

// swept holds the folders that Sweep has visited.
var swept sync.Map

// Sweep removes from dir the files that killed processes of this machine left. Whatever makes a file in dir does this too.
func Sweep(dir string) {
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
		const some = 1024 // a folder may have millions of files
		names, err := d.Readdirnames(some)
		for _, name := range names {
			rest, found := strings.CutPrefix(name, ours)
			pid, random, _ := strings.Cut(strings.TrimSuffix(rest, suffix), "-")
			n, err := strconv.Atoi(pid)
			if found && err == nil && !strings.Contains(random, "-") { // the host name of another machine may be ours followed by -1
				removeDead(filepath.Join(dir, name), n)
			}
		}
		if err != nil {
			return
		}
	}
}

// removeDead removes the file or folder at path unless a running process holds its lock. On a file system without
// locks it looks at the process number in the name. Path stays if a process has that number, even if it is a newer
// one.
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
	os.RemoveAll(path) // it may belong to another user, so an error is ignored
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// Free returns the number of bytes that this user can still write to the system's folder for temporary files. If the
// system does not tell, it is very large, and the first write that fails tells.
func Free() int64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(os.TempDir(), &fs); err != nil {
		return math.MaxInt64
	}
	size := uint64(max(1, fs.Bsize))
	return int64(min(uint64(fs.Bavail), math.MaxInt64/size) * size)
}
