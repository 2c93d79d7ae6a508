// Package wire reads and edits files in protobuf's wire format
// (https://protobuf.dev/programming-guides/encoding/) where they lie: it walks
// their fields by byte offset, and replaces byte ranges without decoding what is
// around them.
//
// # Invariants
//
// A file is untrusted input: every length is checked before it is used, and what
// a scan keeps is bounded by the size of the file. A [Content] may have holes;
// nothing reads beyond one.
//
// # Concurrency
//
// A [Content] that is not added to may be read from many goroutines; a [Scanner]
// belongs to one.
package wire
