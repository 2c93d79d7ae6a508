package tempfile

import (
	"math"
	"os"
	"syscall"
)

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
