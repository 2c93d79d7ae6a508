//go:build noparquet

package table

import (
	"io"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
)

func (t *Table) openParquet(*io.SectionReader) error { return filelist.ErrNoParquet }
