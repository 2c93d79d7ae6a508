package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// isTable reports whether the input is a table of examples. For a network whose only input takes images, such a file is
// a list of images.
func isTable(inputs []string, opts Options) bool {
	if len(inputs) != 1 || len(opts.Fields) == 0 || !table.Is(inputs[0]) {
		return false
	}
	return len(opts.Fields) > 1 || !Pictures(opts.Fields, opts.Preprocess)[0]
}

func openTable(inputs []string, opts Options) (Dataset, error) {
	t, err := table.Open(inputs[0])
	if err != nil {
		return nil, err
	}
	wanted := !opts.Unlabelled && opts.Labels == ""
	h, err := newHead(t.Names, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Path, err)
	}
	text, numbers := h.read(wanted)
	columns, err := t.Read(text, numbers)
	if errors.Is(err, table.ErrText) {
		err = fmt.Errorf("%w: %w", err, table.ErrColumns)
	}
	if err != nil {
		return nil, err
	}
	d := &record{examples: &examples{n: t.Rows, classNames: opts.ClassNames, fields: slices.Clone(opts.Fields), asSeen: true,
		sources: []Source{{Path: t.Path, SHA256: t.SHA256}}}}
	if d.said = []any{"table", opts.Columns, opts.Pad}; h.path >= 0 {
		names := columns[t.Names[h.path]].Texts
		d.name = func(i int) string { return names[i] }
	} else {
		d.name = rowName(t.Path)
	}
	for i, f := range opts.Fields {
		if err := h.part(d, i, t, columns, opts); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Path, err)
		}
		if err := d.add(i, fmt.Sprintf("%s: input %q", t.Path, f.Name), of(d.parts[i]), opts.Fields); err != nil {
			return nil, err
		}
	}
	if err := d.sameLengths(opts.Fields); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Path, err)
	}
	switch {
	case opts.Labels != "":
		err = d.readLabels(opts.Labels, "", t.Path, opts)
	case wanted && len(h.labels) > 0 && opts.Positions != nil:
		most := int(d.fields[0].Shape[0])
		d.labels, err = h.positions(columns, opts, d.n, most, func(i int) int {
			if n := d.Length(0, i); n >= 0 {
				return n
			}
			return most
		})
	case wanted && len(h.labels) > 0:
		d.labels, d.classNames, err = h.truth(t, columns, opts)
	}
	if err != nil {
		return nil, err
	}
	return d, checkLabels(d.labels, d.classNames, t.Path)
}

// head says what the columns of a table are for.
type head struct {
	names  []string
	path   int // index of the column that names the rows, or −1
	labels []int
	inputs [][]string // names of the columns of each field; nil if path holds its images
}

// newHead finds the columns of each field. They are the columns in Options, or the column with the field's name, or the
// columns whose names begin with it. A field that takes images uses the path. The only field of a network takes all
// columns except the path and the labels.
func newHead(names []string, opts Options) (*head, error) {
	h := &head{names: names, inputs: make([][]string, len(opts.Fields))}
	h.path, h.labels = listing.Head(names, opts.Truth != truth.Classes)
	used := map[string]bool{}
	use := func(columns []string) []string {
		for _, name := range columns {
			used[name] = true
		}
		return columns
	}
	for i, f := range opts.Fields {
		said, err := table.Choose(names, opts.Columns[f.Name])
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", f.Name, err)
		}
		if slices.Contains(names, f.Name) && len(said) == 0 && !(h.path >= 0 && names[h.path] == f.Name) {
			said = []string{f.Name}
		}
		h.inputs[i] = use(said)
	}
	h.labels = slices.DeleteFunc(h.labels, func(i int) bool { return used[names[i]] })
	if h.path >= 0 && used[names[h.path]] {
		h.path = -1
	}
	isLabel := make(map[int]bool, len(h.labels))
	for _, i := range h.labels {
		isLabel[i] = true
	}
	free := func(of func(name string) bool) (out []string) {
		for i, name := range names {
			if i != h.path && !isLabel[i] && !used[name] && of(name) {
				out = append(out, name)
			}
		}
		return out
	}
	all := func(string) bool { return true }
	pictures := Pictures(opts.Fields, opts.Preprocess)
	shown := -1
	for i, f := range opts.Fields {
		if len(h.inputs[i]) > 0 {
			continue
		}
		begins := free(func(name string) bool {
			return strings.HasPrefix(name, f.Name+"_") || strings.HasPrefix(name, f.Name+".")
		})
		switch {
		case len(begins) > 0:
			h.inputs[i] = use(begins)
		case pictures[i] && h.path >= 0 && shown < 0:
			shown = i
		case len(opts.Fields) == 1 && len(free(all)) > 0:
			h.inputs[i] = use(free(all))
		default:
			return nil, fmt.Errorf("no column for input %q among %s: want one of that name, columns that begin with %q, or %s: %w", f.Name, numpy.Quote(names), f.Name+"_", setting.Columns, table.ErrColumns)
		}
	}
	if extra := free(all); len(extra) > 0 && len(opts.Columns) == 0 {
		return nil, fmt.Errorf("column %s: neither of an input of the network nor a label or a path: %w", numpy.Quote(extra), table.ErrColumns)
	}
	return h, nil
}

// read returns the columns to read as text, and those to read as numbers.
func (h *head) read(labels bool) (text, numbers []string) {
	if h.path >= 0 {
		text = append(text, h.names[h.path])
	}
	if labels {
		for _, i := range h.labels {
			text = append(text, h.names[i])
		}
	}
	return text, slices.Concat(h.inputs...)
}

// part adds the part of field i to d.
func (h *head) part(d *record, i int, t *table.Table, columns map[string]*table.Column, opts Options) error {
	f := opts.Fields[i]
	if h.inputs[i] == nil {
		files := columns[h.names[h.path]].Texts
		l, err := listing.Rows(t.Path, t.Rows, files, func(int) []string { return []string{""} })
		if err != nil {
			return err
		}
		own := opts
		own.Fields, own.Labels, own.Unlabelled, own.Shape, own.Uint8 = nil, "", true, f.Shape, f.Type == "uint8"
		p, err := own.openListing(l, t.Path)
		if err != nil {
			return err
		}
		d.asSeen = false
		d.name = of(p).name
		of(p).classNames = nil
		d.parts, d.lengths = append(d.parts, p), append(d.lengths, nil)
		return nil
	}
	var cols []*table.Column
	for _, name := range h.inputs[i] {
		cols = append(cols, columns[name])
	}
	pad, padded := opts.Pad[f.Name]
	if !padded {
		pad = math.NaN()
	}
	p, lengths, err := f.columns(cols, t.Rows, pad)
	d.parts, d.lengths = append(d.parts, p), append(d.lengths, lengths)
	return err
}

// truth returns the values of the label columns, and the class names.
func (h *head) truth(t *table.Table, columns map[string]*table.Column, opts Options) (truth.Truth, []string, error) {
	var texts [][]string
	for _, i := range h.labels {
		texts = append(texts, columns[h.names[i]].Texts)
	}
	cells := make([]string, len(texts))
	l, err := listing.Rows(t.Path, t.Rows, nil, func(i int) []string {
		for k := range texts {
			cells[k] = texts[k][i]
		}
		return cells
	})
	if err != nil {
		return truth.Truth{}, nil, err
	}
	return l.Truth(opts.Truth, opts.ClassNames)
}

// positions returns the labels of a list column: a class for each element of the lists of the first field. length returns
// the length of such a list. All examples have most positions; those behind a list are unknown.
func (h *head) positions(columns map[string]*table.Column, opts Options, n, most int, length func(i int) int) (truth.Truth, error) {
	if len(h.labels) != 1 || opts.Truth != truth.Classes {
		return truth.Truth{}, errors.New("several columns with labels, want one column with a list of classes: one for each token")
	}
	c := columns[h.names[h.labels[0]]]
	return truth.Lazy(n, func(i int) (truth.Truth, error) {
		one := truth.Truth{Classes: make([]int, most), Positions: most}
		for k := range one.Classes {
			one.Classes[k] = truth.Unknown
		}
		cells := strings.Fields(c.Texts[i])
		if want := length(i); len(cells) != want {
			return one, fmt.Errorf("column %q: %d labels for %d tokens, want one for each, such as -100 for those that do not count", c.Name, len(cells), want)
		}
		for k, text := range cells {
			v, err := strconv.Atoi(text)
			if at := slices.Index(opts.ClassNames, text); at >= 0 {
				v, err = at, nil
			}
			if err != nil {
				return one, fmt.Errorf("column %q: label %q of token %d: want a class number, or a name of %s", c.Name, text, k, setting.Fit.With(setting.ClassNames.String()))
			}
			if one.Classes[k], err = opts.Positions.Class(int64(v), true); err != nil {
				return one, fmt.Errorf("column %q: token %d: %w", c.Name, k, err)
			}
		}
		return one, nil
	}), nil
}
