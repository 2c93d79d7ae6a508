package dataset

import (
	"encoding/binary"
	"math"
)

// What package predictions needs of the reading of arrays, under the names that it
// has in package numpy and package file: this file goes when they come.

type (
	Role struct {
		What  string
		Names []string
		Want  string
		OK    func(Type) bool
	}
	Type struct {
		Name string
		Kind byte
		Size int
	}
	Array struct {
		Type  Type
		Shape []int
		Data  []byte
	}
	ArrayFile struct {
		Keys []string
		c    *container
	}
)

var LabelRole = Role{What: labelRole.what, Names: labelRole.names}

func OpenArrays(path string) (*ArrayFile, error) {
	c, err := openContainer(path)
	if err != nil {
		return nil, err
	}
	return &ArrayFile{c.keys, c}, nil
}

func (f *ArrayFile) Close() { f.c.close() }

func (f *ArrayFile) Where(key string) string { return f.c.where(key) }

func (f *ArrayFile) Read(key string, r Role) (Array, error) {
	a, err := f.c.load(key, role{what: r.What, want: r.Want, ok: func(t dtype) bool { return r.OK(Type{t.name, t.kind, t.size}) }})
	return Array{Type{a.dtype.name, a.dtype.kind, a.dtype.size}, a.shape, a.data}, err
}

func (f *ArrayFile) Pick(wanted string, _ Role, beside string) (string, error) {
	return f.c.pick(wanted, labelRole, beside)
}

func (f *ArrayFile) ReadLabels(key string, count int, of string) ([]int, error) {
	return f.c.labels(key, count, of)
}

func (a Array) Float64s() []float64 {
	out := make([]float64, len(a.Data)/a.Type.Size)
	for i := range out {
		if b := a.Data[i*a.Type.Size:]; a.Type.Size == 4 {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		} else {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	}
	return out
}

func OpenLabels(path string, count int, of string) ([]int, error) {
	labels, _, err := openLabels(path, "", "", count, of)
	return labels, err
}

func IsArray(head []byte) bool { return isArray(head) }

func Quote(keys []string) string { return quoteAll(keys) }

func PathError(path string, err error) error { return pathError(path, err) }

func Cause(err error) error { return bareError(err) }
