//go:build noparquet

package predictions

import (
	"errors"
	"io"
)

var errNoParquet = errors.New("this build has the tag noparquet, and writes no Parquet files")

type parquetWriter struct{}

func newParquet(io.Writer, *Schema) parquetWriter { return parquetWriter{} }

func (parquetWriter) Write(*Row) error { return errNoParquet }

func (parquetWriter) Close() error { return errNoParquet }
