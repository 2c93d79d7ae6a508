//go:build unix

package weights

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the whole of f. The mapping stays valid after f is closed.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	if int64(int(size)) != size {
		return nil, nil, fmt.Errorf("%d bytes: too large for this machine's address space", size)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// release forgets the pages of a shared file mapping that nothing has written to. A failure only costs memory.
func release(data []byte) { unix.Madvise(data, unix.MADV_DONTNEED) }
