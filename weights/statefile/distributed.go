package statefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/weights"
)

// metadataName is the file that lists the tensors of a distributed checkpoint (torch.distributed.checkpoint, DCP), and
// metaName the one in which Lightning keeps the counts of training next to it.
const (
	metadataName = ".metadata"
	metaName     = "meta.pt"
	maxMetadata  = 200_000_000 // bytes
)

// nested are the folders in which trainers keep a distributed checkpoint: accelerate and Transformers with FSDP, and NeMo.
var nested = []string{"", "pytorch_model_fsdp_0", "weights"}

var _ = register(format{
	in: func(dir string) string {
		for _, name := range nested {
			path := filepath.Join(dir, name, metadataName)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
		return ""
	},
	read: (*File).readDistributed,
})

// readDistributed opens a distributed checkpoint. Its processes have written parts of tensors, which are joined again.
func (f *File) readDistributed(path string, data []byte) error {
	f.Distributed = true
	if len(data) > maxMetadata {
		return &Error{Path: path, What: fmt.Sprintf("%d bytes, want at most %d", len(data), maxMetadata)}
	}
	dir := filepath.Dir(path)
	d := &distribution{file: f, dir: dir, path: path, budget: newBudget(len(data)), maps: make(map[string]*weights.Mapping)}
	root, err := (&machine{data: data, budget: d.budget}).load()
	if err != nil {
		return &Error{Path: path, What: "not the metadata of a distributed checkpoint", Err: err}
	}
	if err := d.read(root); err != nil {
		return err
	}
	tree, err := d.tree(root)
	if err != nil {
		return err
	}
	r := &rebuilder{path: path, budget: d.budget}
	if f.dicts, err = r.search("", tree, 0); err != nil {
		return err
	}
	f.Ignored = leftOver(tree, f.dicts)
	f.Epoch, f.Step = progress(tree, epochKeys), progress(tree, stepKeys)
	return f.readMeta(filepath.Join(dir, metaName))
}

// readMeta reads epoch and step from Lightning's file, if it exists and can be read.
func (f *File) readMeta(path string) error {
	m, err := weights.Map(path)
	if err != nil {
		return nil
	}
	defer m.Close()
	meta := &File{Path: path, Epoch: -1, Step: -1}
	if err := meta.parse(path, m.Data); err != nil {
		return nil // it has no weights
	}
	f.Epoch, f.Step = max(f.Epoch, meta.Epoch), max(f.Step, meta.Step)
	return nil
}

// A distribution is a distributed checkpoint that is being opened.
type distribution struct {
	file      *File
	dir, path string
	budget    *budget
	maps      map[string]*weights.Mapping // by the names of files
	taken     map[string]int64            // bytes of items in each file
	tensors   map[string]*Tensor
	values    map[string]any // of items that are no tensors
	order     []string       // of the names
}

// An item is a part of a file: a tensor that torch.save has written, or another value.
type item struct {
	name           string // of the tensor
	offsets        []int64
	file           string
	offset, length int64
}

func (d *distribution) fail(tensor, format string, args ...any) error {
	return &Error{Path: d.path, Tensor: tensor, What: fmt.Sprintf(format, args...)}
}

func (d *distribution) read(root any) error {
	of := func(name string) []pair { v, _ := lookup(attributesOf(root), name); return entries(v) }
	listed, stored := of("state_dict_metadata"), of("storage_data")
	if !strings.HasSuffix(className(root), "checkpoint.metadata.Metadata") || len(listed) == 0 {
		return d.fail("", "holds %s, want the metadata of a distributed checkpoint", describe(root))
	}
	items := make(map[string][]item)
	d.taken = make(map[string]int64)
	for _, e := range stored {
		it, err := d.item(e)
		if err != nil {
			return err
		}
		if err := d.budget.spend(costName); err != nil {
			return d.tooMuch(err)
		}
		items[it.name] = append(items[it.name], it)
	}
	d.tensors, d.values = make(map[string]*Tensor), make(map[string]any)
	for _, e := range listed {
		name, ok := e.key.(text)
		if !ok {
			continue
		}
		if err := d.budget.spend(costTensor + int64(len(name))); err != nil {
			return d.tooMuch(err)
		}
		if err := d.one(string(name), e.value, items[string(name)]); err != nil {
			return err
		}
		d.order = append(d.order, string(name))
	}
	return nil
}

func (d *distribution) tooMuch(err error) error {
	return &Error{Path: d.path, What: "too many tensors and names", Err: err}
}

// attributesOf returns the attributes of an object, or nil.
func attributesOf(v any) []pair {
	n, ok := v.(*node)
	if !ok {
		return nil
	}
	return attributes(n)
}

// item reads an entry of the storage data: MetadataIndex(fqn, offset, index) → _StorageInfo(relative_path, offset, length).
func (d *distribution) item(e pair) (it item, err error) {
	index, info := attributesOf(e.key), attributesOf(e.value)
	fqn, _ := lookup(index, "fqn")
	name, ok := fqn.(text)
	at, _ := lookup(index, "offset")
	it.offsets, _ = integers(at)
	path, _ := lookup(info, "relative_path")
	file, isText := path.(text)
	it.name, it.file = string(name), string(file)
	from, _ := lookup(info, "offset")
	length, _ := lookup(info, "length")
	var ok1, ok2 bool
	it.offset, ok1 = integer(from)
	it.length, ok2 = integer(length)
	if !ok || !isText || !ok1 || !ok2 {
		return it, d.fail(shorten(it.name), "its place is not known: %s", describe(e.value))
	}
	if how, _ := lookup(info, "transform_descriptors"); how != nil && len(elements(how)) > 0 {
		return it, d.fail(shorten(it.name), "compressed or otherwise transformed, want it stored as it is")
	}
	if !plainName(it.file) {
		return it, d.fail(shorten(it.name), "file %q, want one in the same folder", shorten(it.file))
	}
	return it, nil
}

// plainName reports whether a name is that of a file in the folder, on each system, and can be shown on a terminal.
func plainName(name string) bool {
	odd := func(r rune) bool { return r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r) }
	return name == filepath.Base(name) && filepath.IsLocal(name) && name != "." && strings.IndexFunc(name, odd) < 0
}

// bytes returns the bytes of an item. Items do not overlap, so that all together are no longer than the files.
func (d *distribution) bytes(it item) ([]byte, string, error) {
	path := filepath.Join(d.dir, it.file)
	m := d.maps[it.file]
	if m == nil {
		var err error
		if m, err = weights.Map(path); err != nil {
			return nil, path, err
		}
		d.maps[it.file], d.file.mappings = m, append(d.file.mappings, m)
		d.budget.left += 2 * int64(len(m.Data)) // as for a file of its own
	}
	size := int64(len(m.Data))
	if it.offset < 0 || it.length < 0 || it.offset > size || it.length > size-it.offset {
		return nil, path, &Error{
			Path:   path,
			Tensor: shorten(it.name),
			What:   fmt.Sprintf("%d bytes from %d, and the file has %d: truncated", it.length, it.offset, size),
		}
	}
	if d.taken[it.file] += it.length; d.taken[it.file] > size {
		return nil, path, &Error{Path: path, What: "its parts share bytes"}
	}
	return m.Data[it.offset : it.offset+it.length : it.offset+it.length], path, nil
}

// one reads an entry of the state_dict: a tensor in parts, or a value.
func (d *distribution) one(name string, about any, items []item) error {
	size, isTensor := lookup(attributesOf(about), "size")
	if !isTensor {
		d.values[name] = d.value(items)
		return nil
	}
	shape, ok := integers(size)
	n, err := weights.Elements(shape)
	if !ok || err != nil {
		return d.fail(shorten(name), "shape %s", describe(size))
	}
	chunks, _ := lookup(attributesOf(about), "chunks")
	list := elements(chunks)
	if len(list) != len(items) {
		return d.fail(shorten(name), "%d parts, and the places of %d", len(list), len(items))
	}
	j, byPlace := &joined{shape: shape}, make(map[string]item, len(items))
	for _, it := range items {
		byPlace[fmt.Sprint(it.offsets)] = it
	}
	for _, c := range list {
		offsets, _ := lookup(attributesOf(c), "offsets")
		sizes, _ := lookup(attributesOf(c), "sizes")
		at, ok1 := integers(offsets)
		extent, ok2 := integers(sizes)
		if !ok1 || !ok2 || !inside(at, extent, shape) {
			return d.fail(shorten(name), "a part of %s at %s, outside of the shape %v", describe(sizes), describe(offsets), shape)
		}
		it, ok := byPlace[fmt.Sprint(at)]
		if !ok {
			return d.fail(shorten(name), "the part at %v is in no file", at)
		}
		t, err := d.part(it)
		if err != nil {
			return err
		}
		if !slices.Equal(t.Shape, extent) {
			return d.fail(shorten(name), "the part at %v has the shape %v, want %v", at, t.Shape, extent)
		}
		if t.Len() > 0 || n == 0 {
			j.parts = append(j.parts, part{at, t})
		}
	}
	t, err := j.tensor(name, n, d.budget)
	if err != nil {
		return &Error{Path: d.path, Tensor: shorten(name), What: err.Error()}
	}
	t.Storage = Storage{Path: d.path, Key: name}
	d.tensors[name] = t
	return nil
}

func (d *distribution) part(it item) (*Tensor, error) {
	data, path, err := d.bytes(it)
	if err != nil {
		return nil, err
	}
	var t *Tensor
	c, err := openZip(data, d.budget)
	if err == nil {
		r := &rebuilder{path: path, c: c, budget: d.budget, maxBytes: 2*int64(len(data)) + 32<<20}
		t, _, err = r.tensor(it.name, c.root)
	}
	if err == nil && t == nil {
		err = refuse("%s, want a tensor", describe(c.root))
	}
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{What: err.Error()}
		}
		e.Path, e.Tensor = path, shorten(it.name)
		return nil, e
	}
	return t, nil
}

// value reads a small value, such as the count of epochs. It returns nil for all else.
func (d *distribution) value(items []item) any {
	const most = 1 << 14
	if len(items) != 1 || items[0].length > most {
		return nil
	}
	data, _, err := d.bytes(items[0])
	if err != nil {
		return nil
	}
	c, err := openZip(data, d.budget)
	if err != nil {
		return nil
	}
	if n, ok := integer(c.root); ok {
		return n
	}
	return nil
}

// tree returns the nested dicts that were saved. The planner knows where the tensors were in them; without it all are in one.
func (d *distribution) tree(root any) (*dict, error) {
	planned, _ := lookup(attributesOf(root), "planner_data")
	if _, ok := planned.(*dict); planned != nil && !ok {
		return nil, d.fail("", "planner data: %s, want a dict", describe(planned))
	}
	paths := make(map[string][]string)
	for _, e := range entries(planned) {
		name, ok := e.key.(text)
		if !ok {
			continue
		}
		for _, step := range elements(e.value) {
			switch s := step.(type) {
			case text:
				paths[string(name)] = append(paths[string(name)], string(s))
			case int64:
				paths[string(name)] = append(paths[string(name)], strconv.FormatInt(s, 10))
			default:
				return nil, d.fail(shorten(string(name)), "planner data: step %s, want a name or a number", describe(s))
			}
		}
	}
	top, dicts, leaves := &dict{}, make(map[string]*dict), make(map[string]bool)
	for _, name := range d.order {
		path := paths[name]
		if len(path) == 0 {
			path = []string{name}
		}
		at, key := top, ""
		for _, step := range path[:len(path)-1] {
			key += "\x00" + step
			if err := d.budget.spend(costName + int64(len(key))); err != nil {
				return nil, d.tooMuch(err)
			}
			inner := dicts[key]
			if leaves[key] {
				return nil, d.fail(shorten(name), "planner data: two entries at one place")
			}
			if inner == nil {
				inner = &dict{}
				dicts[key], at.pairs = inner, append(at.pairs, pair{text(step), inner})
			}
			at = inner
		}
		var leaf any = d.values[name]
		if t := d.tensors[name]; t != nil {
			leaf = t
		}
		if key += "\x00" + path[len(path)-1]; leaves[key] || dicts[key] != nil {
			return nil, d.fail(shorten(name), "planner data: two entries at one place")
		}
		leaves[key] = true
		at.pairs = append(at.pairs, pair{text(path[len(path)-1]), leaf})
	}
	return top, nil
}

// A joined array consists of parts, each a box of its elements. Several processes have written them.
type joined struct {
	shape []int64
	parts []part
}

// A part is a box of an array: a tensor, and the place of its first element.
type part struct {
	at []int64
	*Tensor
}

// maxParts bounds the parts of an array. Training on more processes than that has not been heard of.
const maxParts = 1 << 14

// inside reports whether a box lies in a shape.
func inside(at, extent, shape []int64) bool {
	if len(at) != len(shape) || len(extent) != len(shape) {
		return false
	}
	for i, d := range shape {
		if at[i] < 0 || extent[i] < 0 || at[i] > d || extent[i] > d-at[i] {
			return false
		}
	}
	return true
}

// tensor returns the array of n elements as a tensor. It fails unless each element is in exactly one part.
func (j *joined) tensor(name string, n int64, b *budget) (*Tensor, error) {
	var held int64
	if len(j.parts) > maxParts {
		return nil, fmt.Errorf("%d parts, want at most %d", len(j.parts), maxParts)
	}
	if len(j.parts) == 0 || len(j.shape) == 0 && len(j.parts) > 1 {
		return nil, fmt.Errorf("%d parts for the shape %v", len(j.parts), j.shape)
	}
	slices.SortFunc(j.parts, func(a, b part) int { return slices.Compare(a.at, b.at) })
	for i, p := range j.parts {
		held += p.Len()
		if p.DType != j.parts[0].DType {
			return nil, fmt.Errorf("parts of %v and of %v", j.parts[0].DType, p.DType)
		}
		for _, o := range j.parts[i+1:] {
			if o.at[0] >= p.at[0]+p.Shape[0] {
				break // sorted by the first place
			}
			if err := b.spend(1); err != nil { // no memory, but time
				return nil, err
			}
			if p.overlaps(o) {
				return nil, fmt.Errorf("the parts at %v and %v share elements", p.at, o.at)
			}
		}
	}
	if held != n {
		return nil, fmt.Errorf("its parts have %d elements, want %d for the shape %v", held, n, j.shape)
	}
	first := *j.parts[0].Tensor
	if len(j.parts) > 1 {
		first = Tensor{Piece: weights.Piece{DType: first.DType, Array: j}, damaged: j.damaged}
	}
	first.Name, first.Short, first.Shape = name, name, j.shape
	return &first, nil
}

// overlaps reports whether two boxes have an element in common.
func (p part) overlaps(o part) bool {
	for i := range p.at {
		if p.at[i] >= o.at[i]+o.Shape[i] || o.at[i] >= p.at[i]+p.Shape[i] {
			return false
		}
	}
	return true
}

// Len returns the number of elements.
func (j *joined) Len() int64 {
	n, _ := weights.Elements(j.shape)
	return n
}

// ReadBytes fills dst with elements, starting at element off in row-major order.
func (j *joined) ReadBytes(dst []byte, off int64) {
	size := j.parts[0].DType.Size()
	k := 0 // the part that held the last element
	for len(dst) > 0 {
		at := place(off, j.shape)
		for !j.parts[k].holds(at) {
			k = (k + 1) % len(j.parts)
		}
		p := j.parts[k]
		run := min(p.run(at, j.shape), int64(len(dst))/size)
		copy(dst, p.Stretch(p.index(at), run))
		dst, off = dst[run*size:], off+run
	}
}

// place returns the indices of an element by its number in row-major order.
func place(off int64, shape []int64) []int64 {
	at := make([]int64, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		at[i], off = off%shape[i], off/shape[i]
	}
	return at
}

// holds reports whether the part has an element.
func (p part) holds(at []int64) bool {
	for i, a := range at {
		if a < p.at[i] || a >= p.at[i]+p.Shape[i] {
			return false
		}
	}
	return true
}

// run returns how many elements, from one on, follow each other both in the part and in the whole array.
func (p part) run(at, shape []int64) int64 {
	if len(shape) > 0 && slices.Equal(p.Shape[1:], shape[1:]) {
		return p.Len() - p.index(at) // whole rows
	}
	last := len(at) - 1
	return p.at[last] + p.Shape[last] - at[last]
}

// index returns the number of an element within the part.
func (p part) index(at []int64) (n int64) {
	for i, a := range at {
		n = n*p.Shape[i] + a - p.at[i]
	}
	return n
}

// damaged reports whether a part differs from what was written.
func (j *joined) damaged() bool {
	return slices.ContainsFunc(j.parts, func(p part) bool { return p.damaged != nil && p.damaged() })
}
