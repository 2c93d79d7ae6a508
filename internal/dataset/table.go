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
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// isTable reports whether the input is a table of examples. For a network whose only input takes images, such a file is
// a list of images.
func isTable(inputs []string, opts Options) bool {
	if len(inputs) != 1 || len(opts.Fields) == 0 || len(opts.Fields) == 1 && Pictures(opts.Fields, opts.Preprocess)[0] {
		return false
	}
	return tablePaths(inputs[0]) != nil
}

// tablePaths returns the files of the tables that an input stands for, or nil. A pattern may stand for several parts of one.
func tablePaths(input string) []string {
	if table.Is(input) {
		return []string{input}
	}
	paths, err := listing.Expand(input)
	if err != nil || slices.ContainsFunc(paths, func(path string) bool { return !table.Is(path) }) {
		return nil
	}
	return paths
}

// tableAt opens the table that an input stands for.
func tableAt(input string) (*table.Table, error) {
	if paths := tablePaths(input); len(paths) > 1 {
		return table.OpenParts(input, paths)
	} else if len(paths) == 1 {
		input = paths[0]
	}
	return table.Open(input)
}

func openTable(inputs []string, opts Options) (Dataset, error) {
	t, err := tableAt(inputs[0])
	if err != nil {
		return nil, err
	}
	doubt := t.Arrange(opts.Order)
	wanted := !opts.Unlabelled && opts.Labels == ""
	h, err := newHead(t.Names, t.Lists, opts)
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
	d := &record{examples: &examples{n: t.Rows, classNames: opts.Known.Classes, fields: slices.Clone(opts.Fields), asSeen: true,
		sources: []Source{{Path: t.Path, SHA256: t.SHA256}}, doubt: doubt}}
	if d.chosenOptions = h.chosenOptions(opts); h.path >= 0 {
		names := columns[t.Names[h.path]].Texts
		d.name = func(i int) string { return names[i] }
	} else {
		d.name = rowName(t.Path)
	}
	for i, f := range opts.Fields {
		if err := h.part(d, i, t, columns, opts); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Path, err)
		}
		if err := d.add(i, fmt.Sprintf("%s: input %q", t.Path, f.Name), examplesIn(d.parts[i]), opts.Fields); err != nil {
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
		d.labels, err = h.positions(columns, opts, d.examples, most, func(i, have int) int {
			if n := d.Length(0, i); n >= 0 {
				return n
			}
			if n := d.positionsUsed(i, most); n > 0 && have != most { // labels may be filled up as the network takes them
				return n
			}
			return most
		})
	case wanted && len(h.labels) > 0:
		var found *names.Resolved
		if d.labels, found, err = h.target(t, columns, opts); err == nil {
			d.resolved(found, opts, t.Path)
		}
	}
	h.tell(&d.told, t.Path, opts)
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
	extra  []string   // columns that are for nothing
	rules  []string   // by which columns were ordered, where it is not the order of the file
	moved  bool       // columns of inputs were ordered so
	byName bool       // an earlier file has names for columns of inputs
	byList bool       // an input has the only column of lists
}

// onlyList returns the only column of lists among the free ones. ok is false if there is none, or if there are several.
func onlyList(names []string, lists []bool, free func(i int) bool) (name string, ok bool) {
	for i, isList := range lists {
		switch {
		case !isList || !free(i):
		case ok:
			return "", false
		default:
			name, ok = names[i], true
		}
	}
	return name, ok
}

// newHead finds the columns of each field. They are the columns in Options, or the column with the field's name, or the
// columns whose names begin with it. A field that takes images uses the path. The last field without columns takes the only
// column of lists. The only field of a network takes all columns except the path and the labels.
func newHead(have []string, lists []bool, opts Options) (*head, error) {
	h := &head{names: have, inputs: make([][]string, len(opts.Fields))}
	var err error
	if h.path, h.labels, _, err = opts.Named.Find(have, opts.Target != target.Classes); err != nil {
		return nil, err
	}
	used := map[string]bool{}
	use := func(columns []string) []string {
		for _, name := range columns {
			used[name] = true
		}
		return columns
	}
	for i, f := range opts.Fields {
		chosenOptions, err := h.chosen(opts.Columns[f.Name], f.Name, opts)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", f.Name, err)
		}
		if len(chosenOptions) == 0 {
			if chosenOptions = h.knownColumns(f.Name, opts); chosenOptions != nil {
				h.byName = true
			}
		}
		if slices.Contains(have, f.Name) && len(chosenOptions) == 0 && !(h.path >= 0 && have[h.path] == f.Name) {
			chosenOptions = []string{f.Name}
		}
		h.inputs[i] = use(chosenOptions)
	}
	if opts.Named.Labels == nil {
		h.labels = slices.DeleteFunc(h.labels, func(i int) bool { return used[have[i]] })
	}
	if h.path >= 0 && used[have[h.path]] {
		h.path = -1
	}
	isLabel := make(map[int]bool, len(h.labels))
	for _, i := range h.labels {
		isLabel[i] = true
	}
	free := func(of func(name string) bool) (out []string) {
		for i, name := range have {
			if i != h.path && !isLabel[i] && !used[name] && of(name) {
				out = append(out, name)
			}
		}
		return out
	}
	all := func(string) bool { return true }
	unfed := len(opts.Fields)
	for _, columns := range h.inputs {
		if len(columns) > 0 {
			unfed--
		}
	}
	pictures := Pictures(opts.Fields, opts.Preprocess)
	shown := -1
	for i, f := range opts.Fields {
		if len(h.inputs[i]) > 0 {
			continue
		}
		begins := free(func(name string) bool {
			return strings.HasPrefix(name, f.Name+"_") || strings.HasPrefix(name, f.Name+".")
		})
		var found []string
		list, isList := onlyList(have, lists, func(k int) bool { return k != h.path && !isLabel[k] && !used[have[k]] })
		switch {
		case len(begins) > 0:
			found = begins
		case isList && unfed == 1 && len(f.Shape) > 0 && !pictures[i]:
			found, h.byList = []string{list}, true
		case pictures[i] && h.path >= 0 && shown < 0:
			shown = i
			unfed--
			continue
		case len(opts.Fields) == 1 && len(free(all)) > 0:
			found = free(all)
		default:
			return nil, fmt.Errorf("no column for input %q among %s: want one of that name, columns that begin with %q, or %s: %w", f.Name,
				numpy.Quote(have), f.Name+"_", setting.Columns, table.ErrColumns)
		}
		found, err := h.inOrder(found, f.Name, opts)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", f.Name, err)
		}
		h.inputs[i] = use(found)
	}
	if h.extra = free(all); len(h.extra) > 0 && len(opts.Columns) == 0 && !h.byName && !h.byList {
		return nil, fmt.Errorf("column %s: neither of an input of the network nor a label or a path: %w", numpy.Quote(h.extra),
			table.ErrColumns)
	}
	return h, h.orderLabels(opts)
}

// chosen returns the columns that the user gave for an input. Those of a pattern stand for several.
func (h *head) chosen(chosenOptions []string, input string, opts Options) ([]string, error) {
	all, err := table.Choose(h.names, chosenOptions)
	isPattern := func(text string) bool { return strings.Contains(text, "*") && !slices.Contains(h.names, text) }
	switch {
	case err != nil || !slices.ContainsFunc(chosenOptions, isPattern):
		return all, err
	case opts.Known.Columns[input] != nil:
		return h.inOrder(all, input, opts)
	}
	all = nil
	for _, text := range chosenOptions {
		some, err := table.Choose(h.names, []string{text})
		if err == nil && isPattern(text) {
			some, err = h.inOrder(some, input, opts)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// knownColumns returns the columns that have the names which earlier files have for an input. It returns nil if one is
// missing.
func (h *head) knownColumns(input string, opts Options) (found []string) {
	known := opts.Known.Columns[input]
	if known == nil {
		return nil
	}
	at, last := names.Places(h.names), -1
	for _, name := range known {
		i, ok := at[names.Key(name)]
		if !ok {
			return nil
		}
		if i < last && !h.moved {
			h.moved = true
			h.rules = append(h.rules, fmt.Sprintf("columns have another order than those of %s, and were matched by name",
				opts.Known.ColumnsFrom))
		}
		last, found = i, append(found, h.names[i])
	}
	return found
}

// inOrder returns the columns of an input in the order of the network. Nobody gave it: earlier files or numbers tell.
func (h *head) inOrder(found []string, input string, opts Options) ([]string, error) {
	order, rule, err := names.Columns{Known: opts.Known.Columns[input], From: opts.Known.ColumnsFrom, Input: input}.Order(found)
	if err != nil {
		return nil, err
	}
	h.moved = h.moved || !slices.IsSorted(order)
	h.rules = append(h.rules, rule)
	return names.Pick(found, order), nil
}

// orderLabels puts the columns of several labels in the order of their names in earlier files or on the model card.
func (h *head) orderLabels(opts Options) error {
	if opts.Target == target.Classes || opts.Unlabelled || len(h.labels) == 0 {
		return nil
	}
	order, rule, err := opts.targets().Order(names.Pick(h.names, h.labels))
	if err != nil {
		return err
	}
	h.labels, h.rules = names.Pick(h.labels, order), append(h.rules, rule)
	return nil
}

// chosenOptions returns everything that the examples depend on, in addition to the content of the table.
func (h *head) chosenOptions(opts Options) []any {
	out := []any{"table", opts.Columns, opts.Pad}
	if h.moved || (h.byName || h.byList) && len(h.extra) > 0 {
		out = append(out, h.inputs)
	}
	return out
}

// tell notes what the columns of the table at path are called, and which were left out.
func (h *head) tell(t *told, path string, opts Options) {
	for _, rule := range h.rules {
		t.note(rule)
	}
	if len(h.extra) > 0 {
		t.note(fmt.Sprintf("left out: columns of the table that feed no input, %d in all: %s", len(h.extra), numpy.Quote(h.extra)))
	}
	t.names.Columns, t.names.ColumnsFrom = map[string][]string{}, path
	for i, f := range opts.Fields {
		if h.inputs[i] != nil {
			t.names.Columns[f.Name] = h.inputs[i]
		}
	}
	if opts.Target != target.Classes && !opts.Unlabelled && len(h.labels) > 0 {
		t.names.Targets, t.names.TargetsFrom = names.Pick(h.names, h.labels), path
	}
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
		d.name = examplesIn(p).name
		examplesIn(p).classNames = nil
		for _, note := range examplesIn(p).told.notes {
			d.told.note(note)
		}
		d.parts, d.lengths, d.fixed = append(d.parts, p), append(d.lengths, nil), append(d.fixed, false)
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
	d.parts, d.lengths, d.fixed = append(d.parts, p), append(d.lengths, lengths), append(d.fixed, len(f.Shape) > 0 && f.Shape[0] > 0)
	return err
}

// target returns the values of the label columns, and how names of classes became numbers.
func (h *head) target(t *table.Table, columns map[string]*table.Column, opts Options) (target.Target, *names.Resolved, error) {
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
		return target.Target{}, nil, err
	}
	classes := opts.reading()
	if len(h.labels) == 1 {
		c := columns[h.names[h.labels[0]]]
		classes.Categories = names.Categories{Order: c.Categories, Ordered: c.Ordered}
	}
	return l.Target(opts.Target, classes)
}

// positions returns the labels of a list column: a class for each element of the lists of the first field. length returns
// how many labels row i wants, which has so many. All examples have most positions; those behind a list are unknown.
func (h *head) positions(columns map[string]*table.Column, opts Options, e *examples, most int,
	length func(i, have int) int) (target.Target, error) {
	if len(h.labels) != 1 || opts.Target != target.Classes {
		return target.Target{}, errors.New("several columns with labels, want one column with a list of classes: one for each token")
	}
	c := columns[h.names[h.labels[0]]]
	class, err := tokenClasses(c, opts, e)
	if err != nil {
		return target.Target{}, err
	}
	return target.Lazy(e.n, func(i int) (target.Target, error) {
		one := target.Target{Classes: make([]int, most), Positions: most}
		for k := range one.Classes {
			one.Classes[k] = target.Unknown
		}
		cells := strings.Fields(c.Texts[i])
		if want := length(i, len(cells)); len(cells) != want {
			return one, fmt.Errorf("column %q: %d labels for %d tokens, want one for each, such as -100 for those that do not count",
				c.Name, len(cells), want)
		}
		for k, text := range cells {
			var err error
			if one.Classes[k], err = opts.Positions.Class(int64(class[text]), true); err != nil {
				return one, fmt.Errorf("column %q: token %d: %w", c.Name, k, err)
			}
		}
		return one, nil
	}), nil
}

// tokenClasses returns the class of each text in a column of labels of tokens. Numbers below 0 count nowhere.
func tokenClasses(c *table.Column, opts Options, e *examples) (map[string]int, error) {
	class := map[string]int{}
	var labels []names.Label
	var first []int // row of each label
	for i, cells := range c.Texts {
		for _, text := range strings.Fields(cells) {
			if _, known := class[text]; known {
				continue
			}
			v, err := strconv.Atoi(text)
			if class[text] = v; err == nil && v < 0 {
				continue
			}
			labels, first = append(labels, names.Label{Text: text}), append(first, i)
		}
	}
	found, err := opts.reading().Resolve(labels, func(k int) string { return fmt.Sprintf("column %q: row %d", c.Name, first[k]) })
	if err != nil {
		return nil, err
	}
	for k, v := range labels {
		class[v.Text] = found.Numbers[k]
	}
	e.resolved(found, opts, e.sources[0].Path)
	return class, nil
}
