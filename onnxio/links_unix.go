//go:build unix

package onnxio

import (
	"io/fs"
	"syscall"
)

// links returns the number of names of the file.
func links(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
