//go:build !js

package table

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// unpacked calls do with the content of a file that gzip has compressed.
func unpacked(f io.Reader, size int64, do func(f *io.SectionReader) error) error {
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	to, err := tempfile.Nameless(os.TempDir())
	if err != nil {
		return tempfile.Temp(err)
	}
	defer to.Close()
	const most, more = 100, 64 << 20
	n, err := io.Copy(to, io.LimitReader(z, most*size+more+1))
	switch {
	case errors.As(err, new(*os.PathError)):
		return tempfile.Temp(err)
	case err != nil:
		return file.Truncated(err)
	case n > most*size+more:
		return fmt.Errorf("more than %d times its size when it is unpacked: unpack it with gunzip", most)
	}
	return do(io.NewSectionReader(to, 0, n))
}
