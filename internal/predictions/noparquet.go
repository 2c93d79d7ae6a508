//go:build noparquet

package predictions

import (
	"io"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
)

type parquetWriter struct{}

func newParquet(io.Writer, *Schema) parquetWriter { return parquetWriter{} }

func (parquetWriter) Write(*Row) error { return table.ErrNoParquet }

func (parquetWriter) Close() error { return table.ErrNoParquet }
