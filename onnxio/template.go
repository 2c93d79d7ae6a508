package onnxio

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// Template is a model whose parameters and statistics were cut out. It holds the other bytes of its files, and the
// holes between them. A hole is filled with exactly as many bytes as were cut, so that no length prefix changes. The
// template refers to the model it was cut from, which must stay open.
type Template struct {
	files   []templateFile // the model itself, then its data files by name
	release func()         // see [Model.Release]

	scan      sync.Once // sets the fields below
	signature Signature
	err       error

	halve   sync.Once // sets the fields below
	half    *Template // see [Filled.Half]
	halfErr error

	feeds feeds

	join     sync.Once // sets the fields below
	whole    *Template // see [Filled.OneFile]
	wholeErr error
}

// Signature returns the signature of the filled model. The graph is read once, for any number of members.
func (t *Template) Signature() (Signature, error) {
	t.scan.Do(func() {
		m := &Model{Path: t.files[0].name, data: t.files[0].Content}
		if t.err = m.scan(); t.err == nil {
			t.signature = m.Signature()
		}
	})
	return t.signature, t.err
}

type templateFile struct {
	name string
	wire.Content
}

// Filled is a template and the vectors that fill it, see [Template.Fill]. It is a whole model, which is assembled
// only when it is written or run.
type Filled struct {
	Template               *Template
	Layout                 *weights.Layout
	Parameters, Statistics weights.Vector // flat vectors of Layout
}

// NewTemplate cuts the parameters and statistics of l out of m, in inference mode. If m was exported for inference,
// nothing else changes, so that other checkpoints match the template.
func NewTemplate(m *Model, l *weights.Layout) (*Template, error) {
	return m.template(l, func(*Edit) {})
}

// NewExportTemplate is NewTemplate at full speed, see [Edit.Simplify], and without stack traces of the exporter: others will see the model.
func NewExportTemplate(m *Model, l *weights.Layout) (*Template, error) {
	t, err := m.template(l, (*Edit).Simplify)
	if err != nil {
		return nil, err
	}
	return t.withoutTraces(m.Path, l)
}

// NewPortableTemplate is NewExportTemplate of a graph that more compilers read. All constants are tensors, all nodes have names, all values
// have shapes, and no Identity gives an output. unknown names the values whose rank the graph does not show.
func NewPortableTemplate(m *Model, l *weights.Layout) (t *Template, unknown []string, err error) {
	if t, err = m.template(l, func(e *Edit) { e.Simplify(); e.tensors = true }); err == nil {
		t, err = t.withoutTraces(m.Path, l)
	}
	for joined := true; joined && err == nil; { // of several Identities in a row, the first gives the output then
		t, err = t.edited(m.Path, l, func(e *Edit) { joined = joinOutputs(e) })
	}
	if err == nil {
		t, err = t.edited(m.Path, l, func(e *Edit) { nameNodes(e); unknown = e.addShapes() })
	}
	return t, unknown, err
}

// edited returns the template, of a model with layout l, with a change of its graph.
func (t *Template) edited(path string, l *weights.Layout, change func(e *Edit)) (*Template, error) {
	m, err := t.Model(path, l)
	if err != nil {
		return nil, err
	}
	e := m.Edit()
	change(e)
	out, err := e.Template(&weights.Layout{}) // the holes stay
	if err == nil {
		out.release = t.release
	}
	return out, err
}

// Simplified returns the model as it is exported: see [NewExportTemplate]. m must stay open.
func (m *Model) Simplified() (*Model, error) {
	none := &weights.Layout{}
	t, err := NewExportTemplate(m, none)
	if err != nil {
		return nil, err
	}
	return t.Model(m.Path, none)
}

// NewRuntimeTemplate is NewTemplate prepared for sessions: see [Edit.ForRuntime].
func NewRuntimeTemplate(m *Model, l *weights.Layout) (*Template, error) {
	return m.template(l, (*Edit).ForRuntime)
}

// NewWholeTemplate is [NewRuntimeTemplate] with all elements in one file, whatever its size, with all constants as tensors, and with a name
// for each node. A file larger than protobuf's 2 GiB cannot be used in a session.
func NewWholeTemplate(m *Model, l *weights.Layout) (*Template, error) {
	t, err := m.template(l, func(e *Edit) {
		e.ForRuntime()
		e.move, e.tensors = moveIn, true
	})
	if err != nil {
		return nil, err
	}
	return t.edited(m.Path, l, nameNodes)
}

// template puts m into inference mode, changes it further, and cuts out the tensors of l.
func (m *Model) template(l *weights.Layout, change func(e *Edit)) (*Template, error) {
	e, err := m.inference()
	if err != nil {
		return nil, err
	}
	change(e)
	return e.Template(l)
}

// Fill returns the template with the flat vectors of l that fill it. It checks that they fit.
func (t *Template) Fill(l *weights.Layout, parameters, statistics weights.Vector) (Filled, error) {
	if _, err := t.entries(l); err != nil {
		return Filled{}, fmt.Errorf("%s: %w", t.files[0].name, err)
	}
	for role, v := range map[weights.Role]weights.Vector{weights.Parameter: parameters, weights.Statistic: statistics} {
		if v.Len() != l.Len(role) {
			return Filled{}, fmt.Errorf("%s: %d elements for the %ss, want %d", t.files[0].name, v.Len(), role, l.Len(role))
		}
	}
	return Filled{t, l, parameters, statistics}, nil
}

// Runtime returns the model with its own weights, prepared like a [NewRuntimeTemplate].
func (m *Model) Runtime() (Filled, error) {
	none := &weights.Layout{}
	t, err := NewRuntimeTemplate(m, none)
	if err != nil {
		return Filled{}, err
	}
	return t.Fill(none, weights.Slice{}, weights.Slice{})
}

// Files returns the names of the template's files: the model's own, then those of its external data. They are the
// names in the model.
func (t *Template) Files() []string {
	var out []string
	for _, f := range t.files {
		out = append(out, f.name)
	}
	return out
}

// Size returns the size of all filled files together, in bytes.
func (t *Template) Size() int64 {
	var n int64
	for _, f := range t.files {
		n += int64(f.Size)
	}
	return n
}

// Write writes the files of the template for a model whose file is called name. Data files whose names contain the
// old name of the model are renamed with it. Others get the new name as a prefix. If name is the old name, all names
// stay. create is called for each file in turn, the model last.
func (t *Template) Write(name string, create func(file string) (io.Writer, error), l *weights.Layout, parameters,
	statistics weights.Vector) error {
	old := t.files[0].name
	rename := func(location string) string {
		dir, base := path.Split(location)
		switch {
		case name == old:
			return location
		case strings.Contains(base, old):
			return dir + strings.Replace(base, old, name, 1)
		}
		return dir + name + "." + base
	}
	taken := map[string]bool{name: true}
	for i := 1; i < len(t.files); i++ {
		file := rename(t.files[i].name)
		switch {
		case !contained(file): // the template comes from a posterior file, which is untrusted
			return &Error{Path: name, What: fmt.Sprintf("data file %q: not a plain path inside the model's folder", file)}
		case taken[file]:
			return &Error{Path: name, What: fmt.Sprintf("two of its files would be called %q", file)}
		}
		taken[file] = true
		w, err := create(file)
		if err != nil {
			return err
		}
		if err := t.WriteTo(w, i, l, parameters, statistics); err != nil {
			return err
		}
	}
	w, err := create(name)
	if err != nil {
		return err
	}
	if len(t.files) == 1 || name == old {
		return t.WriteTo(w, 0, l, parameters, statistics)
	}
	m, err := t.Model(name, l)
	if err != nil {
		return err
	}
	e := m.Edit()
	e.renameExternal(rename)
	renamed, err := e.Template(&weights.Layout{}) // the holes stay
	if err != nil {
		return err
	}
	return renamed.WriteTo(w, 0, l, parameters, statistics)
}

// WriteTo writes file i of the template, filled with the given parameters and statistics, flat vectors of l. Elements
// are rounded to the type that the model stores. A vector that stores them in the same type, such as a checkpoint's,
// is copied.
func (t *Template) WriteTo(w io.Writer, i int, l *weights.Layout, parameters, statistics weights.Vector) error {
	entries, err := t.entries(l)
	if err != nil {
		return err
	}
	vectors := map[weights.Role]weights.Vector{weights.Parameter: parameters, weights.Statistic: statistics}
	w = &releasing{w: w, release: []func(){t.release, releaser(parameters), releaser(statistics)}}
	for _, p := range t.files[i].Parts {
		if entry := entries[p.Tensor]; p.IsHole() {
			err = weights.WriteTensor(w, entry, vectors[entry.Role.Vector()])
		} else {
			_, err = w.Write(p.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entries returns the tensor of l that fills each hole, by name. It checks that the tensor fits, because the size of
// a hole is untrusted.
func (t *Template) entries(l *weights.Layout) (map[string]weights.Tensor, error) {
	byName := make(map[string]weights.Tensor, len(l.Tensors))
	for _, entry := range l.Tensors {
		if entry.Role != weights.Constant {
			byName[entry.Name] = entry
		}
	}
	filled := make(map[string]bool)
	for _, f := range t.files {
		for _, p := range f.Parts {
			if !p.IsHole() {
				continue
			}
			entry, ok := byName[p.Tensor]
			if !ok || filled[p.Tensor] || entry.Len()*entry.DType.Size() != int64(p.Len()) {
				return nil, fmt.Errorf("tensor %q: hole of %d bytes does not fit the layout", p.Tensor, p.Len())
			}
			filled[p.Tensor] = true
		}
	}
	return byName, nil
}

// Render fills a template of one file in memory; see [Edit.ForRuntime].
func (t *Template) Render(l *weights.Layout, parameters, statistics weights.Vector) ([]byte, error) {
	if len(t.files) != 1 {
		return nil, fmt.Errorf("%s: %d files, want one", t.files[0].name, len(t.files))
	}
	var b bytes.Buffer
	b.Grow(t.files[0].Size)
	if err := t.WriteTo(&b, 0, l, parameters, statistics); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Model returns the template as a model without weights, which is small. Its graph can be read and edited, but the
// elements of its parameters and statistics cannot. They must fit l. path is for error messages.
func (t *Template) Model(path string, l *weights.Layout) (*Model, error) {
	if _, err := t.entries(l); err != nil {
		return nil, err
	}
	m := &Model{Path: path, name: t.files[0].name, data: t.files[0].Content}
	if err := m.scan(); err != nil {
		return nil, err
	}
	err := m.attach(func(location string) (wire.Content, error) {
		for _, f := range t.files[1:] {
			if f.name == location {
				return f.Content, nil
			}
		}
		return wire.Content{}, os.ErrNotExist
	})
	return m, err
}

// fileHeader describes a file of a stored template.
type fileHeader struct {
	Name  string       `json:"name"`
	Bytes int64        `json:"bytes"` // except those in holes
	Holes []holeHeader `json:"holes"` // in file order
}

type holeHeader struct {
	Tensor string `json:"tensor"`
	At     int64  `json:"at"`    // index into the file's other bytes
	Bytes  int64  `json:"bytes"` // length of the elements
}

func (f templateFile) header() fileHeader {
	h := fileHeader{Name: f.name}
	for _, p := range f.Parts {
		if p.IsHole() {
			h.Holes = append(h.Holes, holeHeader{p.Tensor, h.Bytes, int64(p.Len())})
		} else {
			h.Bytes += int64(len(p.Data))
		}
	}
	return h
}

// maxHoles bounds the JSON of a template's holes, which takes a few hundred bytes for each tensor.
const maxHoles = 4 << 20

// MarshalBinary encodes the template as eight bytes of length, that many bytes of JSON, and the other bytes of each
// file. The JSON lists the files and their holes. See docs/formats.md.
func (t *Template) MarshalBinary() ([]byte, error) {
	var headers []fileHeader
	for _, f := range t.files {
		headers = append(headers, f.header())
	}
	js, err := json.Marshal(headers)
	if err != nil {
		return nil, err
	}
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(js))), js...)
	for _, f := range t.files {
		for _, p := range f.Parts {
			b = append(b, p.Data...)
		}
	}
	return b, nil
}

// ParseTemplate is the inverse of MarshalBinary. It keeps a reference to data.
func ParseTemplate(data []byte) (*Template, error) {
	if len(data) < 8 {
		return nil, errors.New("graph skeleton is truncated")
	}
	n := binary.LittleEndian.Uint64(data)
	if n > uint64(len(data)-8) {
		return nil, errors.New("graph skeleton is truncated")
	}
	if n > maxHoles {
		return nil, fmt.Errorf("graph skeleton: %d bytes of holes, want at most %d", n, maxHoles)
	}
	var headers []fileHeader
	if err := json.Unmarshal(data[8:8+n], &headers); err != nil {
		return nil, fmt.Errorf("graph skeleton: %w", err)
	}
	rest := data[8+n:]
	t := &Template{release: func() {}}
	for _, h := range headers {
		if h.Bytes < 0 || h.Bytes > int64(len(rest)) {
			return nil, fmt.Errorf("graph skeleton: file %q has %d bytes, of which %d are left", h.Name, h.Bytes, len(rest))
		}
		file, err := h.file(rest[:h.Bytes])
		if err != nil {
			return nil, err
		}
		t.files, rest = append(t.files, file), rest[h.Bytes:]
	}
	if len(t.files) == 0 || len(rest) > 0 {
		return nil, fmt.Errorf("graph skeleton: %d files and %d bytes too many", len(t.files), len(rest))
	}
	return t, nil
}

// file is the inverse of header.
func (h fileHeader) file(data []byte) (templateFile, error) {
	f := templateFile{name: h.Name}
	at := int64(0)
	for _, hole := range h.Holes {
		if hole.At < at || hole.At > h.Bytes || hole.Bytes < 0 || hole.Bytes > int64(math.MaxInt-f.Size-len(data)) {
			return f, fmt.Errorf("graph skeleton: hole for tensor %q is out of place", hole.Tensor)
		}
		f.Add(data[at:hole.At])
		f.AddHole(hole.Tensor, int(hole.Bytes))
		at = hole.At
	}
	f.Add(data[at:])
	return f, nil
}

// A releasing writer gives the memory of mapped files back from time to time. Otherwise all that is written from them
// would count as this process's memory.
type releasing struct {
	w          io.Writer
	release    []func()
	unreleased weights.Unreleased
}

// releaseChunk is the number of bytes that are written at a time.
const releaseChunk = 16 << 20

func (r *releasing) Write(p []byte) (done int, err error) {
	for chunk := range slices.Chunk(p, releaseChunk) {
		n, err := r.w.Write(chunk)
		if done += n; err != nil {
			return done, err
		}
		if n < len(chunk) {
			return done, io.ErrShortWrite
		}
		r.unreleased.Read(int64(n), func() {
			for _, release := range r.release {
				release()
			}
		})
	}
	return done, nil
}

// releaser returns a function that gives a vector's memory back.
func releaser(v weights.Vector) func() {
	if r, ok := v.(interface{ Release() }); ok {
		return r.Release
	}
	return func() {}
}

// OneFile returns the model with all elements in one file, which can be rendered in memory. A model that is in one file
// already does not change.
func (f Filled) OneFile() (Filled, error) {
	t := f.Template
	if len(t.files) == 1 {
		return f, nil
	}
	t.join.Do(func() {
		m, err := t.Model(t.files[0].name, f.Layout)
		if t.wholeErr = err; err == nil {
			e := m.Edit()
			e.move = moveIn
			t.whole, t.wholeErr = e.Template(f.Layout)
		}
	})
	f.Template = t.whole
	return f, t.wholeErr
}
