//go:build !unix

package weights

import (
	"io"
	"os"
)

// mapFile reads the whole of f on systems without memory mapping.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}

// release does nothing: the data is no mapping.
func release([]byte) {}
