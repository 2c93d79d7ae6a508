//go:build noparquet

package table

import (
	"os"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
)

func (t *Table) openParquet(*os.File, int64) error { return filelist.ErrNoParquet }
