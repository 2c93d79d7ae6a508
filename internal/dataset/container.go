package dataset

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Limits on files that are compressed, where the file's size does not bound
// what it expands to. Deflate reaches 1032:1; images do not come near 100:1, and
// labels, which do, are small.
const (
	maxExpansion = 100
	freeBytes    = 64 << 20
)

// container is one input file: a bare array, or a zip of named arrays.
type container struct {
	path   string
	r      io.ReaderAt
	size   int64
	closer io.Closer
	sha256 string

	zip  *zip.Reader // nil for a bare array
	keys []string    // names in the zip, without .npy, in file order
}

func newContainer(path string, r io.ReaderAt, size int64) (*container, error) {
	c := &container{path: path, r: r, size: size}
	var magic [4]byte
	if _, err := r.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return nil, pathError(path, err)
	}
	if !isZip(magic[:]) {
		return c, nil // load looks closer
	}
	var err error
	if c.zip, err = zip.NewReader(r, size); err != nil {
		return nil, fmt.Errorf("%s: bad .npz: %w", path, err)
	}
	for _, f := range c.zip.File {
		key, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if slices.Contains(c.keys, key) {
			return nil, fmt.Errorf("%s: two arrays named %q, want one", path, key)
		}
		c.keys = append(c.keys, key)
	}
	if len(c.keys) == 0 {
		return nil, fmt.Errorf("%s: a zip without .npy arrays, want an .npz file", path)
	}
	return c, nil
}

func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

func (c *container) close() {
	if c.closer != nil {
		c.closer.Close() // read only: nothing can be lost
	}
}

// where names an array in error messages.
func (c *container) where(key string) string {
	if c.zip == nil {
		return c.path
	}
	return fmt.Sprintf("%s: array %q", c.path, key)
}

// list names the arrays there are.
func (c *container) list() string { return quoteAll(c.keys) }

func quoteAll(keys []string) string {
	const most = 20 // an .npz can be a whole checkpoint
	var q []string
	for _, k := range keys[:min(len(keys), most)] {
		q = append(q, fmt.Sprintf("%q", k))
	}
	if len(keys) > most {
		q = append(q, fmt.Sprintf("and %d more", len(keys)-most))
	}
	return strings.Join(q, ", ")
}

// nameRest takes the part out of key that is one of names, and says whether
// there was one: "x_test" gives "test".
func nameRest(key string, names []string) (rest string, ok bool) {
	parts := strings.Split(strings.ToLower(key), "_")
	for i, p := range parts {
		if slices.Contains(names, p) {
			return strings.Join(slices.Delete(parts, i, i+1), "_"), true
		}
	}
	return key, false
}

// pick chooses the array for a role. A wanted name wins; else the choice must
// leave no doubt. Labels must go with the array imagesKey, and may be missing:
// then the result is "", as it is for a bare array.
func (c *container) pick(wanted string, r role, imagesKey string) (string, error) {
	if c.zip == nil {
		if wanted != "" {
			return "", fmt.Errorf("%s: no arrays with names, want an .npz file for key %q", c.path, wanted)
		}
		return "", nil
	}
	if wanted != "" {
		if !slices.Contains(c.keys, wanted) {
			return "", fmt.Errorf("%s: no array %q, want one of %s", c.path, wanted, c.list())
		}
		return wanted, nil
	}
	split, _ := nameRest(imagesKey, imageRole.names)
	var exact, partial []string // "x", and "x_test" with its like
	for _, k := range c.keys {
		switch rest, ok := nameRest(k, r.names); {
		case !ok || k == imagesKey:
		case rest == "":
			exact = append(exact, k)
		case imagesKey == "" || rest == split: // y_train never labels x_test
			partial = append(partial, k)
		}
	}
	found := exact
	if len(found) == 0 || imagesKey != "" && len(partial) > 0 {
		found = partial
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("%s: any of %s could be the %s, want a key that names one", c.path, quoteAll(found), r.what)
	case r.optional:
		return "", nil
	}
	if _, isLabels := nameRest(c.keys[0], labelRole.names); len(c.keys) == 1 && !isLabels {
		return c.keys[0], nil
	}
	return "", fmt.Errorf("%s: cannot tell which array holds the images, want a key that names one of %s", c.path, c.list())
}

// load reads one array; key is empty for a bare one.
func (c *container) load(key string, role role) (array, error) {
	r, limit, packed, err := c.open(key)
	if err != nil {
		return array{}, fmt.Errorf("%s: %w", c.where(key), err)
	}
	a, err := readArray(r, limit, packed, role)
	if err != nil {
		return array{}, fmt.Errorf("%s: %w", c.where(key), err)
	}
	return a, nil
}

// open starts reading an array. At most limit bytes may come; packed says that
// limit is a guess at what is sane and not a size.
func (c *container) open(key string) (r *bufio.Reader, limit int64, packed bool, err error) {
	if c.zip == nil {
		r = bufio.NewReader(io.NewSectionReader(c.r, 0, c.size))
		if b, _ := r.Peek(2); !isGzip(b) {
			return r, c.size, false, nil
		}
		gz, err := gzip.NewReader(r)
		if err != nil {
			return nil, 0, false, err
		}
		return bufio.NewReader(gz), freeBytes + maxExpansion*c.size, true, nil
	}
	i := slices.IndexFunc(c.zip.File, func(f *zip.File) bool { return f.Name == key+".npy" })
	f := c.zip.File[i]
	body, err := f.Open() // holds no resources beyond memory
	if err != nil {
		return nil, 0, false, err
	}
	// The directory's sizes are claims, the file's size is a fact.
	limit = int64(min(f.CompressedSize64, uint64(c.size)))
	if f.Method != zip.Store {
		limit, packed = freeBytes+maxExpansion*limit, true
	}
	return bufio.NewReader(body), limit, packed, nil
}

// readArray reads one .npy or IDX array and makes sure that it ends where the
// stream ends, which is also where zip and gzip compare their checksums.
func readArray(r *bufio.Reader, limit int64, packed bool, role role) (array, error) {
	h, err := readHeader(r)
	if err != nil {
		return array{}, unexpectedEOF(err)
	}
	if err := role.accept(h); err != nil {
		return array{}, err
	}
	n, err := h.bytes()
	if err != nil {
		return array{}, err
	}
	if have := limit - h.size; n > have {
		if packed {
			return array{}, fmt.Errorf("shape %d of %s takes %d bytes, want at most %d from a compressed file of this size", h.shape, h.dtype.name, n, have)
		}
		return array{}, fmt.Errorf("truncated: %d bytes of data, want %d for shape %d of %s", max(have, 0), n, h.shape, h.dtype.name)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return array{}, unexpectedEOF(err)
	}
	switch _, err := r.ReadByte(); {
	case err == nil:
		return array{}, fmt.Errorf("bytes after the array, want exactly %d for shape %d of %s", n, h.shape, h.dtype.name)
	case err != io.EOF:
		return array{}, err
	}
	if h.dtype.big {
		for i := 0; i < len(data); i += h.dtype.size {
			slices.Reverse(data[i : i+h.dtype.size])
		}
	}
	return array{dtype: h.dtype, shape: h.shape, data: data}, nil
}

// unexpectedEOF says in our words what "EOF" and "unexpected EOF" mean here.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("truncated: %w", io.ErrUnexpectedEOF)
	}
	return err
}
