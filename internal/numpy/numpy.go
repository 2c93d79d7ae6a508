// Package numpy reads arrays from files of NumPy and of MNIST, and writes .npy headers.
//
// [Open] detects the format by content:
//
//   - .npy, versions 1 to 3 of https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//   - .npz, a zip of .npy arrays, stored or deflated
//   - IDX, the format of MNIST, http://yann.lecun.com/exdb/mnist/
//   - .npy and IDX files under gzip
//
// # Invariants
//
// Files are untrusted. A length is compared with the size of the file before memory is allocated for it, and bytes
// after an array are an error. An [Array] has at least one element, and as many bytes as its shape and type need.
//
// # Concurrency
//
// A [File] may be read from any number of goroutines; nothing changes it but Close.
package numpy

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/weights"
)

// Limits on compressed files, whose size does not bound the size of their content. Deflate reaches 1032:1. Images
// stay far below 100:1, and labels, which can exceed it, are small.
const (
	maxExpansion = 100
	freeBytes    = 64 << 20
)

// Array is an array in memory: little endian, row major.
type Array struct {
	Type  Type
	Shape []int
	Data  []byte
}

// Example returns the shape of an example. The examples lie along the first dimension.
func (a Array) Example() (shape []int64) {
	for _, d := range a.Shape[1:] {
		shape = append(shape, int64(d))
	}
	return shape
}

// Float64s returns all elements in row-major order.
func (a Array) Float64s() []float64 {
	out := make([]float64, len(a.Data)/a.Type.Size)
	for i := range out {
		out[i] = a.Float64(i)
	}
	return out
}

// bits returns the bits of element i. Those of a signed integer are extended to 64.
func (a Array) bits(i int) (bits uint64) {
	for k, b := range a.Data[i*a.Type.Size:][:a.Type.Size] {
		bits |= uint64(b) << (8 * k)
	}
	if shift := 64 - 8*a.Type.Size; a.Type.Kind == 'i' {
		return uint64(int64(bits<<shift) >> shift)
	}
	return bits
}

// Int64 returns integer i in row-major order. ok is false if int64 cannot represent it.
func (a Array) Int64(i int) (v int64, ok bool) {
	v = int64(a.bits(i))
	return v, v >= 0 || a.Type.Kind == 'i'
}

// Float64 returns element i in row-major order. Integers beyond 2⁵³ are rounded to the nearest float64.
func (a Array) Float64(i int) float64 {
	bits := a.bits(i)
	switch {
	case a.Type.Kind == 'i':
		return float64(int64(bits))
	case a.Type.Kind != 'f':
		return float64(bits)
	case a.Type.Size == 2:
		return float64(weights.Float16FromBits(uint16(bits)))
	case a.Type.Size == 4:
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(bits)
}

// File is an open file with one unnamed array, or an .npz with named arrays.
type File struct {
	Path   string
	SHA256 string   // of the whole file, in hex
	Keys   []string // names in an .npz, without .npy, in file order; nil for an unnamed array

	r    io.ReaderAt
	size int64
	zip  map[string]*zip.File // by key; nil for an unnamed array
	file *os.File
	was  weights.Watch // detects changes of file
}

// Open opens a file, detects its format and computes its SHA-256. The caller closes it. A file that is not in a supported
// format is not read to its end.
func Open(path string) (*File, error) {
	const want = "a .npy, .npz or IDX file"
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: a folder, want %s", path, want)
	}
	f, _, err := file.Open(path, want)
	if err != nil {
		return nil, file.Error(path, err)
	}
	return Read(path, f)
}

// Read is [Open] for a regular file that is open already. Close closes it, and so does Read if it fails.
func Read(path string, f *os.File) (n *File, err error) {
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := file.Opened(f); err != nil {
		return nil, file.Error(path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, file.Error(path, err)
	}
	h, size := sha256.New(), info.Size()
	was, err := weights.NewWatch(f)
	if err != nil {
		return nil, file.Error(path, err)
	}
	if n, err = open(path, f, size); err != nil {
		return nil, err
	}
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return nil, file.Error(path, err)
	}
	n.SHA256, n.file, n.was = hex.EncodeToString(h.Sum(nil)), f, was
	return n, nil
}

// New detects the format of size bytes, without their SHA-256. Errors do not contain a path. The caller does not close
// the File.
func New(r io.ReaderAt, size int64) (*File, error) { return open("", r, size) }

func open(path string, r io.ReaderAt, size int64) (*File, error) {
	n := &File{Path: path, r: r, size: size}
	var magic [4]byte
	if _, err := r.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return nil, n.in("", file.Cause(err))
	}
	if !isZip(magic[:]) {
		return n, n.whole()
	}
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, n.in("", fmt.Errorf("bad .npz: %w", err))
	}
	n.zip = make(map[string]*zip.File, len(archive.File))
	for _, f := range archive.File {
		key, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if n.zip[key] != nil {
			return nil, n.in("", fmt.Errorf("two arrays named %q, want one", key))
		}
		n.zip[key] = f
		n.Keys = append(n.Keys, key)
	}
	if len(n.Keys) == 0 {
		return nil, n.in("", errors.New("a zip without .npy arrays, want an .npz file"))
	}
	return n, nil
}

// whole fails if the header of an array that is not compressed names another size than the file has.
func (n *File) whole() error {
	r, limit, packed, err := n.stream("")
	if err != nil || packed {
		return n.in("", err)
	}
	h, err := readHeader(r)
	if err == nil && h.dtype.Kind != 0 { // Read refuses other types
		var size int64
		if size, err = h.data(limit, false); err == nil && h.size+size < limit {
			err = tooLong(h, size)
		}
	}
	return n.in("", file.Truncated(err))
}

// Close closes the file.
func (n *File) Close() {
	n.file.Close() // read only: nothing can be lost
}

// Known reports whether head, the first bytes of a file, belongs to a supported format or to gzip, which may hold
// one.
func Known(head []byte) bool { return isNPY(head) || isIDX(head) || isZip(head) || isGzip(head) }

func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

// Where returns the name of an array for error messages.
func (n *File) Where(key string) string {
	if n.Keys == nil {
		return n.Path
	}
	return fmt.Sprintf("%s: array %q", n.Path, key)
}

// in puts the name of an array before an error, unless the file has no path. It returns nil for nil.
func (n *File) in(key string, err error) error {
	if err == nil || n.Path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", n.Where(key), err)
}

// Quote lists the first twenty names. An .npz can be a whole checkpoint.
func Quote(keys []string) string {
	const most = 20
	var q []string
	for _, k := range keys[:min(len(keys), most)] {
		q = append(q, fmt.Sprintf("%q", k))
	}
	if len(keys) > most {
		q = append(q, fmt.Sprintf("and %d more", len(keys)-most))
	}
	return strings.Join(q, ", ")
}

// Read reads the array named key, or the unnamed array for "". It fails if the array does not fit the role, or if the
// file has changed since Open.
func (n *File) Read(key string, role Role) (Array, error) {
	r, limit, packed, err := n.stream(key)
	var a Array
	if err == nil {
		a, err = readArray(r, limit, packed, role)
	}
	return a, cmp.Or(n.changed(), n.in(key, err))
}

// texts are the type that [Text] names. Numbers have other roles.
var texts = Role{
	What: "texts",
	Want: "str (NumPy's <U)",
	OK:   func(t Type) bool { return t.Kind == 0 && t.Size > 0 },
}

// Texts reads the array named key, which holds texts.
func (n *File) Texts(key string) (all []string, shape []int, err error) {
	a, err := n.Read(key, texts)
	if err != nil {
		return nil, nil, err
	}
	for one := range slices.Chunk(a.Data, a.Type.Size) {
		var b strings.Builder
		for c := range slices.Chunk(one, 4) {
			if r := rune(binary.LittleEndian.Uint32(c)); r != 0 {
				b.WriteRune(r)
			}
		}
		all = append(all, b.String())
	}
	return all, a.Shape, nil
}

// changed returns an error if the file has changed since Open.
func (n *File) changed() error {
	if n.file == nil { // bytes of a test
		return nil
	}
	return n.was.Changed()
}

// Shape returns the type and the shape of the array named key, or of the unnamed array for "". It reads the header alone,
// and fails if the file is too small for an array of this shape. So the product of the shape may be a size of memory.
func (n *File) Shape(key string) (Type, []int, error) {
	r, limit, packed, err := n.stream(key)
	var h header
	if err == nil {
		if h, err = readHeader(r); err == nil {
			_, err = h.data(limit, packed)
		}
		err = file.Truncated(err)
	}
	return h.dtype, h.shape, n.in(key, err)
}

// stream starts reading an array. It allows at most limit bytes. packed reports that limit is a plausible bound for
// compressed data, not the size.
func (n *File) stream(key string) (r *bufio.Reader, limit int64, packed bool, err error) {
	if n.zip == nil {
		r = bufio.NewReader(io.NewSectionReader(n.r, 0, n.size))
		if b, _ := r.Peek(2); !isGzip(b) {
			return r, n.size, false, nil
		}
		gz, err := gzip.NewReader(r)
		if err != nil {
			return nil, 0, false, err
		}
		return bufio.NewReader(gz), freeBytes + maxExpansion*n.size, true, nil
	}
	f := n.zip[key]
	body, err := f.Open() // holds no resources beyond memory
	if err != nil {
		return nil, 0, false, err
	}
	// The sizes in the zip directory may be false, so the file's size bounds them.
	limit = int64(min(f.CompressedSize64, uint64(n.size)))
	if f.Method != zip.Store {
		limit, packed = freeBytes+maxExpansion*limit, true
	}
	return bufio.NewReader(body), limit, packed, nil
}

// Each reads the array named key one example at a time, in order. f gets the elements of example i, whose memory is used
// again. So the memory does not depend on the number of examples, except for an array in Fortran order, whose examples lie
// in parallel. Each stops at the first error.
func (n *File) Each(key string, role Role, f func(i int, one Array) error) error {
	r, limit, packed, err := n.stream(key)
	var h header
	var size int64
	if err == nil {
		h, size, err = begin(r, limit, packed, role)
	}
	if err != nil {
		return n.in(key, err)
	}
	if h.reordered() {
		return n.eachOf(key, role, f)
	}
	one := Array{Type: h.dtype, Shape: h.shape[1:], Data: make([]byte, size/int64(h.shape[0]))}
	for i := range h.shape[0] {
		if _, err := io.ReadFull(r, one.Data); err != nil {
			return n.in(key, file.Truncated(err))
		}
		one.swap(h)
		if err := f(i, one); err != nil {
			return err
		}
	}
	return cmp.Or(n.in(key, atEnd(r, h, size)), n.changed())
}

// eachOf is Each for an array that must be in memory as a whole.
func (n *File) eachOf(key string, role Role, f func(i int, one Array) error) error {
	all, err := n.Read(key, role)
	if err != nil {
		return err
	}
	size := len(all.Data) / all.Shape[0]
	for i := range all.Shape[0] {
		if err := f(i, Array{Type: all.Type, Shape: all.Shape[1:], Data: all.Data[i*size:][:size:size]}); err != nil {
			return err
		}
	}
	return nil
}

// begin reads the header of a .npy or IDX array, and returns the size of its data.
func begin(r *bufio.Reader, limit int64, packed bool, role Role) (header, int64, error) {
	h, err := readHeader(r)
	if err != nil {
		return h, 0, file.Truncated(err)
	}
	if err := role.accept(h); err != nil {
		return h, 0, err
	}
	n, err := h.data(limit, packed)
	return h, n, err
}

// data returns the size of the data behind the header. It fails if that is more than limit bytes allow.
func (h header) data(limit int64, packed bool) (int64, error) {
	n, err := h.bytes()
	if err != nil {
		return 0, err
	}
	if have := limit - h.size; n > have {
		if packed {
			return 0, fmt.Errorf("shape %d of %s takes %d bytes, want at most %d from a compressed file of this size", h.shape,
				h.dtype.Name, n, have)
		}
		return 0, fmt.Errorf("truncated: %d bytes of data, want %d for shape %d of %s", max(have, 0), n, h.shape, h.dtype.Name)
	}
	return n, nil
}

// atEnd returns an error unless the stream ends here. There zip and gzip compare their checksums.
func atEnd(r *bufio.Reader, h header, n int64) error {
	switch _, err := r.ReadByte(); {
	case err == nil:
		return tooLong(h, n)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

func tooLong(h header, n int64) error {
	return fmt.Errorf("bytes after the array, want exactly %d for shape %d of %s", n, h.shape, h.dtype.Name)
}

// swap turns big-endian elements into little-endian ones.
func (a Array) swap(h header) {
	if h.dtype.big {
		size := h.dtype.Size
		if h.dtype.Kind == 0 { // texts
			size = 4
		}
		for x := range slices.Chunk(a.Data, size) {
			slices.Reverse(x)
		}
	}
}

// readArray reads one .npy or IDX array, which must end where the stream ends.
func readArray(r *bufio.Reader, limit int64, packed bool, role Role) (Array, error) {
	h, n, err := begin(r, limit, packed, role)
	if err != nil {
		return Array{}, err
	}
	a := Array{Type: h.dtype, Shape: h.shape, Data: make([]byte, n)}
	if _, err := io.ReadFull(r, a.Data); err != nil {
		return Array{}, file.Truncated(err)
	}
	a.swap(h)
	a.Data = h.rowMajor(a.Data)
	return a, atEnd(r, h, n)
}

// signature is the comment of each .npz file that this program writes. Readers ignore it.
const signature = "swagwrap"

// NewArchive begins an .npz file that [Signed] recognises. Its arrays are files with names that end in .npy.
func NewArchive(w io.Writer) *zip.Writer {
	z := zip.NewWriter(w)
	z.SetComment(signature) // fails for a long text only
	return z
}

// Signed reports whether this program wrote the .npz file at path. A zip ends with its comment, after the comment's length
// in two bytes.
func Signed(path string) bool {
	f, info, err := file.Regular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	end := string([]byte{byte(len(signature)), 0}) + signature
	last := make([]byte, len(end))
	_, err = f.ReadAt(last, max(0, info.Size()-int64(len(last))))
	return err == nil && string(last) == end
}
