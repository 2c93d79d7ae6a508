//go:build !noparquet

package predictions

import (
	"bytes"
	"fmt"
	"testing"
)

// A file of many rows is written in pieces: row groups are bounded, and so is
// the memory that they take.
func TestParquetRowGroups(t *testing.T) {
	schema, rows := inventedRows()
	var got bytes.Buffer
	w := newParquet(&got, schema)
	if want := 32 << 20 / (256 + 8*3 + 4*2*3); w.limit != want { // or the bytes of large files change
		t.Errorf("%d rows in a group, want %d", w.limit, want)
	}
	w.limit = 1000
	for i := range 3000 {
		r := rows[0]
		r.Path = fmt.Sprint("image ", i)
		if err := w.Write(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	groups, read := parquetPaths(t, got.Bytes())
	if groups != 3 || len(read) != 3000 || read[2999] != "image 2999" {
		t.Errorf("%d row groups, %d rows", groups, len(read))
	}
}
