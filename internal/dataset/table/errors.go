package table

import "fmt"

// A CompressionError is the error for a Parquet file in a compression that this program cannot read.
type CompressionError struct{ Column, Codec string }

func (e *CompressionError) Error() string {
	return fmt.Sprintf("column %q is compressed with %s, which is not read here: want Zstandard, Snappy, gzip, Brotli or none",
		e.Column, e.Codec)
}

// Hint says how to write the file again.
func (e *CompressionError) Hint() string {
	return `write the file again with another compression, in Python: import pyarrow.parquet as pq; pq.write_table(pq.read_table("IN.parquet"), "OUT.parquet", compression="zstd")`
}

// An EncodingError is the error for booleans in an encoding that this program cannot read.
type EncodingError struct{ Column string }

func (e *EncodingError) Error() string {
	return fmt.Sprintf("column %q: booleans written as run lengths (RLE), as in data pages of version 2, which are not read here: want "+
		"plain ones", e.Column)
}

// Hint says how to write the file again.
func (e *EncodingError) Hint() string {
	return `write the file again with pages of version 1, in Python: import pyarrow.parquet as pq; pq.write_table(pq.read_table("IN.parquet"), "OUT.parquet", data_page_version="1.0")`
}

// Kinds of times in a column.
const (
	dates      = "dates"
	clocks     = "times of the day"
	timestamps = "timestamps"
	durations  = "durations"
)

// A TimeError is the error for a column of times where numbers are wanted. Files hold them as integers, whose unit differs from
// program to program.
type TimeError struct{ Column, What string }

func (e *TimeError) Error() string {
	return fmt.Sprintf("column %q: %s, want numbers: files hold them as integers whose unit differs from program to program",
		e.Column, e.What)
}

// Hint says how to convert the column with pandas.
func (e *TimeError) Hint() string {
	column := fmt.Sprintf("df[%q]", e.Column)
	how := fmt.Sprintf("(pandas.to_datetime(%s, utc=True) - pandas.Timestamp(\"1970-01-01\", tz=\"UTC\")) / pandas.Timedelta(days=1)",
		column)
	switch e.What {
	case durations:
		how = column + " / pandas.Timedelta(days=1)"
	case clocks:
		how = fmt.Sprintf("[t.hour + t.minute / 60 + t.second / 3600 for t in %s]", column)
	}
	return "convert it to the numbers that training had, such as days or hours: " + column + " = " + how
}
