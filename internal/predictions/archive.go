package predictions

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"io"
	"math"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// An Archive is an .npz file while it is written, one array after the other.
type Archive struct{ z *zip.Writer }

// NewArchive begins one. The caller closes w after the Archive.
func NewArchive(w io.Writer) *Archive { return &Archive{zip.NewWriter(w)} }

// Floats adds an array of float64 of the given shape.
func (a *Archive) Floats(name string, values []float64, shape ...int) error {
	return a.array(name, "<f8", len(values), shape, func(i int) uint64 { return math.Float64bits(values[i]) })
}

// Ints adds an array of int64 of the given shape.
func (a *Archive) Ints(name string, values []int, shape ...int) error {
	return a.array(name, "<i8", len(values), shape, func(i int) uint64 { return uint64(values[i]) })
}

// begin adds an array and returns where its elements go, before the next begins.
func (a *Archive) begin(name, dtype string, shape ...int) (io.Writer, error) {
	f, err := a.z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err == nil {
		_, err = f.Write(numpy.Header(dtype, shape...))
	}
	return f, err
}

func (a *Archive) array(name, dtype string, n int, shape []int, bits func(i int) uint64) error {
	f, err := a.begin(name, dtype, shape...)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	var b [8]byte
	for i := range n {
		binary.LittleEndian.PutUint64(b[:], bits(i))
		if _, err := w.Write(b[:]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// Close writes what stands at the end of the file.
func (a *Archive) Close() error { return a.z.Close() }
