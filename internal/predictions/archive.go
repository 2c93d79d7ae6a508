package predictions

import (
	"archive/zip"
	"encoding/binary"
	"io"
	"slices"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// An Archive writes an .npz file, one array after the other.
type Archive struct{ z *zip.Writer }

// NewArchive begins an archive. Close the Archive before w.
func NewArchive(w io.Writer) *Archive { return &Archive{numpy.NewArchive(w)} }

// Floats adds an array of float64 of the given shape.
func (a *Archive) Floats(name string, values []float64, shape ...int) error {
	return add(a, name, "<f8", values, shape)
}

// Ints adds an array of int64 of the given shape.
func (a *Archive) Ints(name string, values []int, shape ...int) error {
	wide := make([]int64, len(values))
	for i, v := range values {
		wide[i] = int64(v)
	}
	return add(a, name, "<i8", wide, shape)
}

func add[T float64 | int64](a *Archive, name, dtype string, values []T, shape []int) error {
	f, err := a.begin(name, dtype, shape...)
	for part := range slices.Chunk(values, 1<<13) { // binary.Write copies what it gets
		if err == nil {
			err = binary.Write(f, binary.LittleEndian, part)
		}
	}
	return err
}

// begin adds an array. It returns the writer for its elements, which is valid until the next array begins.
func (a *Archive) begin(name, dtype string, shape ...int) (io.Writer, error) {
	f, err := a.z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err == nil {
		_, err = f.Write(numpy.Header(dtype, shape...))
	}
	return f, err
}

// Close writes the directory at the end of the file.
func (a *Archive) Close() error { return a.z.Close() }
