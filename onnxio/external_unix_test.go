//go:build unix

package onnxio

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	attacks["absolute"] = attack{nil, externalAt("SENTINEL"), "not a plain path inside"}
	attacks["absolute device"] = attack{nil, externalAt("/dev/zero"), "not a plain path inside"}
	attacks["linked device"] = attack{symlink("zero", "/dev/zero"), externalAt("zero"), "is, or lies behind, a symbolic link"}
	if os.Geteuid() == 0 { // nobody else may make one; links to devices are tried all the same
		attacks["device"] = attack{mknod(unix.S_IFCHR | 0o666), externalAt("node"), "not a regular file"}
	}
	attacks["named pipe"] = attack{mknod(unix.S_IFIFO | 0o666), externalAt("node"), "not a regular file"}
	attacks["pipe outside"] = attack{func(folder, sentinel string) error {
		if err := os.Remove(sentinel); err != nil {
			return err
		}
		return unix.Mkfifo(sentinel, 0o600)
	}, externalAt("../sentinel"), "not a plain path inside"}
	watch = watchAccess
}

// mknod makes a special file, with the device numbers of /dev/zero.
func mknod(mode uint32) func(folder, sentinel string) error {
	return func(folder, _ string) error {
		return unix.Mknod(filepath.Join(folder, "node"), mode, int(unix.Mkdev(1, 5)))
	}
}

// watchAccess goes by the time of the last access, which a read sets where it
// was days ago.
func watchAccess(t testing.TB, path string) func() bool {
	long := time.Unix(1e9, 0)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		sec, nsec := st.Atim.Unix()
		return time.Unix(sec, nsec).After(long.Add(time.Hour))
	}
}
