package table

import "fmt"

// An EncodingError is the error for booleans in an encoding that this program cannot read.
type EncodingError struct{ Column string }

func (e *EncodingError) Error() string {
	return fmt.Sprintf("column %q: booleans written as run lengths (RLE), as in data pages of version 2, which are not read here: want "+
		"plain ones", e.Column)
}

// Hint says how to write the file anew.
func (e *EncodingError) Hint() string {
	return `write the file again with pages of version 1, in Python: import pyarrow.parquet as pq; pq.write_table(pq.read_table("IN.parquet"), "OUT.parquet", data_page_version="1.0")`
}
