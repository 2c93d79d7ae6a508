// Package wire reads and edits files in protobuf's wire format (https://protobuf.dev/programming-guides/encoding/) in
// place. It walks their fields by byte offset, and replaces byte ranges without decoding the bytes around them.
//
// # Invariants
//
// A file is untrusted input. Every length is checked before it is used, and the size of the file bounds the memory
// that a scan keeps. A [Content] may have holes. Nothing reads beyond a hole.
//
// # Concurrency
//
// A complete [Content] may be read from many goroutines; a [Scanner] belongs to one.
package wire
