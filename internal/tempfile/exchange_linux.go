package tempfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Exchange gives each of two files or folders the name of the other, in one step. The error is [errors.ErrUnsupported] if
// the kernel or the file system cannot do this.
func Exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return errors.ErrUnsupported // EPERM is what filters of system calls answer. A plain rename tells if it is forbidden too.
	}
	return err
}

// IsMount reports whether a file system is mounted at the folder path, which can be neither renamed nor replaced.
func IsMount(path string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &s)
	return err == nil && s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
