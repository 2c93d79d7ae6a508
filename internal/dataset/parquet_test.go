//go:build !noparquet

package dataset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A Parquet file is read like the wide tables of [TestWideTables].
func TestWideParquet(t *testing.T) {
	const columns = 10_000
	leaves := parquet.Group{}
	row := make(parquet.Row, columns)
	for i := range columns {
		leaves[fmt.Sprintf("column%05d", i)] = parquet.Leaf(parquet.DoubleType)
		row[i] = parquet.DoubleValue(1.5).Level(0, 0, i)
	}
	var b strings.Builder
	w := parquet.NewWriter(&b, parquet.NewSchema("x", leaves))
	if _, err := w.WriteRows([]parquet.Row{row, row}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := Open([]string{textFile(t, "a.parquet", b.String())}, Options{Fields: []Field{floats("x", columns)}})
	if err != nil || d.Len() != 2 {
		t.Error(err)
	}
}
