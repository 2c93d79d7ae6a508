package ensemble

import (
	"bytes"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// readParquet returns the number of row groups and all paths.
func readParquet(t *testing.T, file []byte) (groups int, paths []string) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Path string `parquet:"path"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		paths = append(paths, r.Path)
	}
	return len(f.RowGroups()), paths
}
