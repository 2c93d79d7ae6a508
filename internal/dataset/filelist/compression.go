package filelist

import "fmt"

// A CompressionError is the error for a Parquet file in a compression that this program cannot read.
type CompressionError struct{ Column, Codec string }

func (e *CompressionError) Error() string {
	return fmt.Sprintf("column %q is compressed with %s, which is not read here: want Zstandard, Snappy, gzip, Brotli or none",
		e.Column, e.Codec)
}

// Hint says how to write the file anew.
func (e *CompressionError) Hint() string {
	return `write the file again with another compression, in Python: import pyarrow.parquet as pq; pq.write_table(pq.read_table("IN.parquet"), "OUT.parquet", compression="zstd")`
}
