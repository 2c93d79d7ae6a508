package onnxio

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// external is the place of a tensor's elements in another file (https://onnx.ai/onnx/repo-docs/ExternalData.html).
type external struct {
	location       string
	offset, length int64 // length -1: not given
	seen           map[string]bool
	entry          wire.Span // the field that holds the location
	found          bool      // the file was opened; then length is known
	data           []byte    // the elements, if they are available
}

// externalEntry reads one key and value of external_data. It refuses a key that is given twice, or that no version of
// ONNX defines. Otherwise one reader could check other values than another reader uses.
func (s *scanner) externalEntry(x *external, f wire.Field) error {
	key, value, err := s.Entry(f)
	if err = errors.Join(s.Keep(wire.NameCost), err); err != nil {
		return err
	}
	if x.seen[key] {
		return fmt.Errorf("external data: %q is given twice", key)
	}
	x.seen[key] = true
	switch key {
	case "location":
		x.location, x.entry = value, f.Span()
	case "offset":
		x.offset, err = parseSize(value)
	case "length":
		x.length, err = parseSize(value)
	case "checksum":
	default:
		err = fmt.Errorf("unknown key %q", key)
	}
	if err != nil {
		return fmt.Errorf("external data: %w", err)
	}
	return nil
}

func parseSize(s string) (int64, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	return v, nil
}

// attach gives external tensors their elements. open returns the content of a file, or the reason why it must not be
// read.
func (m *Model) attach(open func(location string) (wire.Content, error)) error {
	m.files = make(map[string]wire.Content)
	for _, t := range m.tensors {
		x := t.external
		if x == nil {
			continue
		}
		fail := func(format string, args ...any) error {
			return &Error{Path: m.Path, Tensor: t.Name, What: "external data", Err: fmt.Errorf(format, args...),
				Hint: "the data file must lie in the model's folder as the exporter wrote it"}
		}
		size := elemTypes[t.ElemType].size
		if size == 0 {
			return fail("%v elements", t.ElemType)
		}
		want := t.Len() * size // checked shapes stay below 2⁶³/8; complex128 is no weight
		if x.length < 0 {
			x.length = want
		}
		if x.length != want {
			return fail("length %d, want %d for %v %v", x.length, want, t.ElemType, t.Shape)
		}
		file, opened := m.files[x.location]
		if !opened {
			var err error
			if file, err = open(x.location); err != nil {
				return fail("%q: %w", x.location, err)
			}
			m.files[x.location] = file
		}
		if size := int64(file.Size); x.offset > size || x.length > size-x.offset {
			return fail("bytes %d to %d of %q, which has %d", x.offset, x.offset+x.length, x.location, size)
		}
		x.found = true
		if b, ok := file.Bytes(wire.Span{Start: int(x.offset), End: int(x.offset + x.length)}); ok {
			x.data = b
		}
	}
	return nil
}

// openExternal maps the data files in the model's folder.
func (m *Model) openExternal() error {
	if !m.hasExternal() {
		return nil
	}
	root, err := os.OpenRoot(filepath.Dir(m.Path))
	if err != nil {
		return err
	}
	defer root.Close()
	return m.attach(func(location string) (wire.Content, error) {
		f, err := openContained(root, location)
		if err != nil {
			return wire.Content{}, err
		}
		mapping, err := weights.MapFile(f)
		if err != nil {
			return wire.Content{}, err
		}
		m.mappings = append(m.mappings, mapping)
		return wire.ContentOf(mapping.Data), nil
	})
}

func (m *Model) hasExternal() bool {
	return slices.ContainsFunc(m.tensors, func(t *Tensor) bool { return t.external != nil })
}

// DataFiles returns the names of the files that hold elements of the model's tensors, relative to the model's folder.
func (m *Model) DataFiles() (names []string) {
	for _, t := range m.tensors {
		if x := t.external; x != nil && !slices.Contains(names, x.location) {
			names = append(names, x.location)
		}
	}
	return names
}

// openContained opens a regular file below root that no link leads to. String checks of such paths failed three times
// in other readers (CVE-2022-25882, CVE-2024-27318, CVE-2026-27489). Here the kernel keeps the path below root, and
// the opened file is checked before it is read.
func openContained(root *os.Root, location string) (*os.File, error) {
	if !contained(location) {
		return nil, errors.New("not a plain path inside the model's folder")
	}
	for at := location; at != "."; at = path.Dir(at) {
		fi, err := root.Lstat(at)
		if err != nil {
			return nil, plain(err)
		}
		if fi.Mode()&os.ModeSymlink != 0 {
			return nil, errors.New("is, or lies behind, a symbolic link")
		}
	}
	f, err := root.OpenFile(location, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block
	if err != nil {
		return nil, plain(err)
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
	case !fi.Mode().IsRegular():
		err = errors.New("not a regular file")
	case links(fi) > 1:
		err = errors.New("has several names (hard links)")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// contained reports whether a location is a plain path inside the model's
// folder.
func contained(location string) bool {
	return filepath.IsLocal(location) && !strings.Contains(location, `\`) && path.Clean(location) == location
}

// plain removes the path from a file error, because the caller names it.
func plain(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
