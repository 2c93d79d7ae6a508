package tempfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/swagwrap/swagwrap/internal/file"
)

// ErrLocked is the error of [Lock] while another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Lock makes a file at path and locks it, so that one process at a time works on what the file stands for. unlock
// removes the file. If a process is killed, its lock ends and its file stays: the next process takes it over. A file
// system without locks excludes nobody.
func Lock(path string) (unlock func(), err error) {
	for {
		f, err := openLock(path)
		if err != nil {
			return nil, file.Cause(err)
		}
		if errors.Is(lock(f), syscall.EWOULDBLOCK) {
			f.Close()
			return nil, ErrLocked
		}
		here, err1 := os.Lstat(path)
		mine, err2 := f.Stat()
		if err1 != nil || err2 != nil || !os.SameFile(here, mine) { // its holder removed it before it was locked here
			f.Close()
			continue
		}
		if !watch(path, f) {
			os.Remove(path)
			f.Close()
			return nil, errStopped
		}
		return func() {
			Remove(path)
			f.Close() // last: another process takes over a file that still has its name but no lock
		}, nil
	}
}

// openLock opens the file of a lock for writing, because NFS locks no others. The file of another user, who may have been
// killed, is opened for reading.
func openLock(path string) (*os.File, error) {
	const safely = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|safely, 0o666)
	if errors.Is(err, fs.ErrPermission) {
		if theirs, err := os.OpenFile(path, os.O_RDONLY|safely, 0); err == nil {
			return theirs, nil
		}
	}
	return f, err
}
