//go:build noparquet

package table

import (
	"errors"
	"io"
	"iter"
)

// ErrNoParquet is the error of builds with the tag noparquet. CI runs the race detector on such a build, because Parquet and
// what it imports would take a third of the time of compiling it.
var ErrNoParquet = errors.New("this build has the tag noparquet, and handles no Parquet files")

func (t *Table) openParquet(*io.SectionReader) error { return ErrNoParquet }

// WriteRows fails.
func WriteRows[R any](io.Writer, string, string, int, iter.Seq[*R]) error { return ErrNoParquet }

// TextOf fails.
func TextOf(io.ReaderAt, int64, string) (string, bool, error) { return "", false, ErrNoParquet }

// EachRow fails.
func EachRow[R any](io.ReaderAt, int64, int, int, int, func(*R) error) error { return ErrNoParquet }

// Pictures is a Parquet file whose rows hold pictures.
type Pictures struct {
	Path     string
	Rows     int
	Column   string
	Features []byte
}

// OpenPictures finds none.
func OpenPictures(string) (*Pictures, error) { return nil, nil }

// Each has no pictures.
func (p *Pictures) Each(func(int, []byte, string) error) error { return ErrNoParquet }
