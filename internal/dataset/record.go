package dataset

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// record is a Dataset whose examples have a part for every field.
type record struct {
	*examples
	parts   []Dataset // a dataset for each field
	lengths [][]int   // of each field's lists, nil if they are not filled up; nil for arrays
	fixed   []bool    // for each field: all lists are filled up to the length that the network takes
}

func (d *record) Read(dst Values, i int) error {
	d.check(dst.size(), i)
	for _, p := range d.parts {
		var own Values
		own, dst = dst.Cut(examplesIn(p).size)
		if err := p.Read(own, i); err != nil {
			return err
		}
	}
	return nil
}

// openRecord opens the examples of a network with several inputs. They are an .npz file with an array for each, by its
// name, or a folder with a NAME.npy for each. In a folder, images may replace an array: a folder NAME, or NAME.txt,
// .csv, .tsv or .tar.
func openRecord(inputs []string, opts Options) (Dataset, error) {
	a, err := openArrays(inputs, opts.Fields)
	if err != nil {
		return nil, err
	}
	defer a.close()
	label, err := a.labels(opts)
	if err != nil {
		return nil, err
	}
	whose := opts // options for the parts
	whose.Unlabelled = opts.Unlabelled || opts.Labels != "" || label != ""
	d := &record{examples: &examples{classNames: opts.Known.Classes, fields: slices.Clone(opts.Fields), asSeen: true}}
	d.name = rowName(a.path)
	pictures, isList := Pictures(opts.Fields, opts.Preprocess), make([]bool, len(opts.Fields))
	for i, f := range opts.Fields {
		isList[i] = slices.Contains(listing.ListExtensions, strings.ToLower(filepath.Ext(a.file[f.Name])))
		p, err := a.part(f, pictures[i], whose)
		if err != nil {
			return nil, err
		}
		d.parts = append(d.parts, p)
		if err := d.add(i, a.where(f.Name), examplesIn(p), opts.Fields); err != nil {
			return nil, err
		}
		if pictures[i] && !examplesIn(p).asSeen {
			d.asSeen = false
		}
	}
	if err := d.together(isList); err != nil {
		return nil, err
	}
	d.doubt = d.partDoubt
	switch {
	case opts.Labels != "":
		err = d.readLabels(opts.Labels, "", a.path, opts)
	case label != "" && a.npz != nil:
		d.labels, err = a.npz.ReadTargets(label, opts.Target, opts.Positions, d.n, a.path)
	case label != "":
		err = d.readLabels(a.where(label), "", a.path, opts)
	}
	if err != nil {
		return nil, err
	}
	return d, checkLabels(d.labels, d.classNames, a.path)
}

// add adds the properties of field i to d. Its examples are in where.
func (d *record) add(i int, where string, e *examples, declared []Field) error {
	if i == 0 {
		d.n = e.n
	} else if e.n != d.n {
		return fmt.Errorf("%s: %d examples, want %d as input %q has", where, e.n, d.n, d.fields[0].Name)
	}
	for _, s := range e.sources {
		if !slices.Contains(d.sources, s) { // an .npz has several fields
			d.sources = append(d.sources, s)
		}
		if s.Kind != "" && d.labels.None() { // images in files, which have names
			d.name, d.labels, d.told = e.name, e.labels, e.told
			if e.classNames != nil {
				d.classNames = e.classNames
			}
		}
	}
	d.fields[i].Shape = e.shape
	d.decoded = append(d.decoded, len(e.decoded) > 0 && e.decoded[0])
	for axis, name := range declared[i].Dims {
		for k, f := range declared[:i] {
			j := slices.Index(f.Dims, name)
			if name == "" || j < 0 || declared[i].Shape[axis] > 0 || f.Shape[j] > 0 {
				continue
			}
			if have, want := e.shape[axis], d.fields[k].Shape[j]; have != want {
				return fmt.Errorf("%s: examples of shape %d, but %q is %d in input %q: want the same", where, e.shape, name, want, f.Name)
			}
		}
	}
	if e.elems > math.MaxInt32-d.elems {
		return fmt.Errorf("%s: examples of shape %d are too large", where, e.shape)
	}
	size := d.size.plus(e.size)
	d.setShape([]int64{int64(d.elems + e.elems)})
	d.size = size
	return nil
}

// arrays are the arrays of a record, in an .npz file or in a folder.
type arrays struct {
	path string
	keys []string
	npz  *numpy.File       // nil for a folder
	file map[string]string // the files of a folder, by key
}

func openArrays(inputs []string, fields []Field) (*arrays, error) {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	want := fmt.Sprintf("an .npz file with the arrays %s, or a folder with a .npy file for each", numpy.Quote(names))
	if len(inputs) != 1 {
		return nil, fmt.Errorf("%d inputs, and the network takes several tensors: want %s", len(inputs), want)
	}
	a := &arrays{path: inputs[0]}
	info, err := os.Stat(a.path)
	switch {
	case err != nil:
		return nil, file.Error(a.path, err)
	case info.IsDir():
		if err := a.list(fields); err != nil {
			return nil, err
		}
	default:
		if a.npz, err = numpy.Open(a.path); err != nil {
			return nil, fmt.Errorf("%w; the network takes several tensors: want %s", err, want)
		}
		if a.keys = a.npz.Keys; a.keys == nil {
			a.close()
			return nil, fmt.Errorf("%s: no .npz file, and the network takes several tensors: want %s", a.path, want)
		}
	}
	for _, name := range names {
		if !slices.Contains(a.keys, name) {
			a.close()
			return nil, fmt.Errorf("%s: no array %q among %s: want %s", a.path, name, cmp.Or(numpy.Quote(a.keys), "none at all"), want)
		}
	}
	return a, nil
}

// pictureFiles are the extensions of the names that may hold a field's images. A folder has the extension "".
var pictureFiles = append([]string{"", ".tar"}, listing.ListExtensions...)

// list lists the files of a folder. It ignores files that are neither arrays nor images of a field, such as a README.
func (a *arrays) list(fields []Field) error {
	entries, err := os.ReadDir(a.path)
	if err != nil {
		return file.Error(a.path, err)
	}
	a.file = make(map[string]string)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "._") { // of macOS
			continue
		}
		key, isArray := strings.CutSuffix(entry.Name(), ".npy")
		if !isArray {
			i := slices.IndexFunc(fields, func(f Field) bool {
				rest, ok := strings.CutPrefix(key, f.Name)
				return ok && slices.Contains(pictureFiles, rest)
			})
			if i < 0 {
				continue
			}
			key = fields[i].Name
		}
		if old := a.file[key]; old != "" {
			return fmt.Errorf("%s: both %s and %s could be input %q, want one of them", a.path, old, entry.Name(), key)
		}
		a.file[key], a.keys = entry.Name(), append(a.keys, key)
	}
	return nil
}

func (a *arrays) close() {
	if a.npz != nil {
		a.npz.Close()
	}
}

// where returns the name of an array for errors. In a folder it is the path of the array.
func (a *arrays) where(key string) string {
	if a.npz != nil {
		return a.npz.Where(key)
	}
	return filepath.Join(a.path, a.file[key])
}

// labels returns the key of the labels, or "". It fails for an array that is neither labels nor a field.
func (a *arrays) labels(opts Options) (string, error) {
	var found []string
	for _, key := range a.keys {
		switch {
		case slices.ContainsFunc(opts.Fields, func(f Field) bool { return f.Name == key }):
		case !numpy.Labels.Named(key):
			return "", fmt.Errorf("%s: neither an input of the network nor labels", a.where(key))
		default:
			found = append(found, key)
		}
	}
	if opts.Labels != "" || opts.Unlabelled || len(found) == 0 { // labels are not wanted, so they may be invalid
		return "", nil
	}
	return (&numpy.File{Path: a.path, Keys: found}).Pick(numpy.Labels, "")
}

// part opens the examples of a field. pictures says whether the field takes images. Such a field accepts no integers
// other than uint8, because they could be images or other values.
func (a *arrays) part(f Field, pictures bool, opts Options) (Dataset, error) {
	from, key := a.npz, f.Name
	opts.Fields, opts.Labels, opts.Parted = nil, "", false
	opts.Shape, opts.Uint8 = f.Shape, f.Type == "uint8"
	if from == nil {
		path := a.where(key)
		switch {
		case strings.HasSuffix(path, ".npy"):
		case !pictures:
			return nil, fmt.Errorf("%s: pictures, and input %q takes %s of shape %d: want %s.npy", path, f.Name, f.Type, f.Shape, f.Name)
		default:
			return openAny([]string{path}, opts)
		}
		var err error
		if from, err = numpy.Open(path); err != nil {
			return nil, err
		}
		defer from.Close()
		if key = ""; from.Keys != nil {
			return nil, fmt.Errorf("%s: an .npz file, want one array", path)
		}
	}
	x, err := from.Read(key, numpy.Values)
	if err != nil {
		return nil, err
	}
	if len(x.Shape) == 0 {
		return nil, fmt.Errorf("%s: a single number, want the examples along the first dimension", from.Where(key))
	}
	var d Dataset
	if pictures && x.Type.Kind != 'b' {
		if !numpy.Images.OK(x.Type) {
			return nil, fmt.Errorf("%s: %s for input %q, which takes pictures: want %s", from.Where(key), x.Type.Name, f.Name,
				numpy.Images.Want)
		}
		d, err = newArray(from.Where(key), x, opts)
	} else {
		d, err = f.values(x, from.Where(key))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.Where(key), err)
	}
	examplesIn(d).sources = []Source{{Path: from.Path, SHA256: from.SHA256}}
	return d, nil
}

// values returns the dataset of an array whose values reach the network unchanged.
func (f Field) values(x numpy.Array, where string) (Dataset, error) {
	e := &examples{n: x.Shape[0]}
	if err := f.fit(e, x); err != nil {
		return nil, err
	}
	return &values{e, func(dst Values, i int) error {
		for k := range dst.Ints {
			dst.Ints[k], _ = x.Int64(i*e.elems + k)
		}
		for k := range dst.Floats {
			v := x.Float64(i*e.elems + k)
			if dst.Floats[k] = float32(v); math.IsNaN(v) || math.IsInf(float64(dst.Floats[k]), 0) {
				return fmt.Errorf("%s: element %d of example %d is %v, want finite float32 values", where, unravel(k, e.shape), i, v)
			}
			if err := f.takes().InTable(v); err != nil {
				return fmt.Errorf("%s: element %d of example %d is %w", where, unravel(k, e.shape), i, err)
			}
		}
		return nil
	}}, nil
}

// fit sets the shape of a field's examples. It fails if the input does not take the array.
func (f Field) fit(e *examples, x numpy.Array) error {
	shape, fits := accept(x.Example(), f.Shape)
	switch {
	case !fits && len(f.Shape) == 0:
		return fmt.Errorf("examples of shape %d, want one number each", x.Example())
	case !fits:
		return mismatch(x.Example(), f.Shape)
	}
	e.setShape(shape)
	e.size = Field{Type: f.Type, Shape: shape}.Size()
	if f.Integer() && x.Type.Kind == 'f' {
		return fmt.Errorf("%s values, want whole numbers: input %q takes %s", x.Type.Name, f.Name, f.Type)
	}
	if x.Type.Kind == 'f' {
		return nil
	}
	least, most := f.Limits()
	if !f.Integer() {
		least, most = max(least, -exact), min(most, exact)
	}
	for i := range e.n * e.elems {
		v, ok := x.Int64(i)
		if !ok || v < least || v > most {
			why := f.takes().String()
			if !f.Integer() && (v > exact || v < -exact) {
				why = "float32 does not hold larger whole numbers"
			}
			return fmt.Errorf("element %d of example %d is %.0f, want %d to %d: %s", unravel(i%e.elems, shape), i/e.elems, x.Float64(i),
				least, most, why)
		}
	}
	return nil
}
