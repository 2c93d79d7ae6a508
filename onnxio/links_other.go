//go:build !unix

package onnxio

import "io/fs"

// links returns the number of names of the file; 1 here, because the system does not report it.
func links(fs.FileInfo) uint64 { return 1 }
