package compare

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/corrupt"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/splitmix"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
	"github.com/swagwrap/swagwrap/swag"
)

// Shift is test data that change while temperatures stay (Ovadia et al. 2019): the same examples, damaged in several
// severities.
type Shift struct {
	Corruptions []corrupt.Corruption
	Severities  []int
	Examples    int // of the test data
	// Each is the number of corruptions of each example. At each severity, row j of the damaged data is example j/Each with
	// corruption j modulo their number.
	Each int

	list string // of corruptions, as the user wrote it
	ice  string // a folder with photographs, or ""
	// iceSum is the SHA-256 of the photographs.
	iceSum string
	rows   []int             // the example of each row: its index in the test data
	data   []dataset.Dataset // by severity; of a text by severity and then by corruption
	text   bool              // examples are its documents
	// clean are the examples themselves, for networks that score positions. nil stands for all test data.
	clean dataset.Dataset
}

// ParseShift reads corruptions as [corrupt.Parse] does, followed by severities=1,3,5, examples=N, each=N and ice=FOLDER.
// Without these it uses all severities, one corruption of each of 1,000 examples, and drawn ice.
func ParseShift(text string) (*Shift, error) {
	s := &Shift{Severities: []int{1, 2, 3, 4, 5}, Examples: 1000, Each: 1, list: "common"}
	number := func(to *int, word, value, all string) (err error) {
		if *to, err = strconv.Atoi(value); value == all {
			*to = math.MaxInt
		} else if err != nil || *to < 1 {
			return fmt.Errorf("%s: want a number from 1, or %s", word, all)
		}
		return nil
	}
	for i, word := range strings.Fields(text) {
		key, value, ok := strings.Cut(word, "=")
		var err error
		switch {
		case i == 0 && !ok:
			s.list = word
			_, err = corrupt.Parse(word, "")
		case key == "examples":
			err = number(&s.Examples, word, value, "all")
		case key == "each":
			err = number(&s.Each, word, value, "all")
		case key == "ice":
			s.ice = value
		case key == "severities":
			s.Severities = nil
			for _, v := range strings.Split(value, ",") {
				n, err := strconv.Atoi(v)
				if err != nil || n < 1 || n > corrupt.Severities {
					return nil, fmt.Errorf("%s: want numbers from 1 to %d", word, corrupt.Severities)
				}
				s.Severities = append(s.Severities, n)
			}
			slices.Sort(s.Severities)
			s.Severities = slices.Compact(s.Severities)
		default:
			err = fmt.Errorf("%q: want corruptions, severities=1,3,5, examples=1000, each=2 or ice=FOLDER", word)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Named returns the severities in words.
func (s *Shift) Named() string {
	first, last := s.Severities[0], s.Severities[len(s.Severities)-1]
	switch n := len(s.Severities); {
	case n == 1:
		return fmt.Sprintf("severity %d", first)
	case last-first == n-1 && n > 2:
		return fmt.Sprintf("severities %d to %d", first, last)
	default:
		return fmt.Sprintf("severities %s and %d", strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Severities[:n-1]), " ", ", "), "[]"), last)
	}
}

// keptBytes limits the damaged pictures of all severities that stay in memory. 7,000 of 224×224 fit.
const keptBytes = 1 << 30

// Open prepares the damaged examples of the test data. dense says that the network scores pixels or tokens. The seed
// chooses the examples and the random numbers. What is typical of numbers is read from the clean data. Open fails for data
// that no corruption is for.
func (s *Shift) Open(test, clean dataset.Dataset, dense bool, seed uint64) error {
	documents, err := dataset.Documents(test)
	if err != nil {
		return err
	}
	if documents != nil {
		return s.openText(test, documents, seed)
	}
	damage, kind, err := damages(test, clean)
	if err != nil {
		return err
	}
	if err := s.choose(kind, test.Len(), dense, seed); err != nil {
		return err
	}
	if err := s.openIce(test, kind); err != nil {
		return err
	}
	if dense && s.Examples < test.Len() {
		s.clean = dataset.Picked(test, s.examples())
	}
	rows := dataset.Picked(test, s.rows)
	for _, severity := range s.Severities {
		d, err := damage(rows, keptBytes/int64(len(s.Severities)), func(i int) spot {
			return s.spot(i, severity, seed)
		}, s.how(severity, seed)...)
		if err != nil {
			return err
		}
		s.data = append(s.data, d)
	}
	return nil
}

// choose chooses the corruptions, and examples among n.
func (s *Shift) choose(kind corrupt.Kind, n int, dense bool, seed uint64) (err error) {
	if s.Corruptions, err = corrupt.Parse(s.list, kind); err != nil {
		return err
	}
	if dense {
		moves := func(c corrupt.Corruption) bool { return c.Moves }
		if i := slices.IndexFunc(s.Corruptions, moves); i >= 0 && strings.Contains(s.list, s.Corruptions[i].Name) {
			return fmt.Errorf("%s moves pixels, and the labels of pixels stay: leave it out", s.Corruptions[i].Name)
		}
		s.Corruptions = slices.DeleteFunc(s.Corruptions, moves)
	}
	s.Each = min(s.Each, len(s.Corruptions))
	examples := dataset.Order{Shuffle: true, Seed: seed, Limit: s.Examples}.Indices(n)
	if s.text {
		slices.Sort(examples) // they are read one after the other
	}
	for s.Examples = len(examples); len(s.rows) < s.Examples*s.Each; {
		s.rows = append(s.rows, examples[len(s.rows)/s.Each])
	}
	return nil
}

// openIce reads the photographs for frost.
func (s *Shift) openIce(test dataset.Dataset, kind corrupt.Kind) error {
	frost := slices.IndexFunc(s.Corruptions, func(c corrupt.Corruption) bool { return c.Name == "frost" })
	if s.ice == "" {
		return nil
	} else if frost < 0 || kind != corrupt.Pictures {
		return errors.New("ice= is for the corruption frost of pictures")
	}
	c, sum := &s.Corruptions[frost], sha256.New()
	var err error
	if c.Ice, err = corrupt.Ice(s.ice); err != nil {
		return err
	}
	for _, p := range c.Ice {
		fmt.Fprint(sum, p.W, p.H)
		sum.Write(p.Pix)
	}
	s.iceSum = fmt.Sprintf("%x", sum.Sum(nil))
	return c.FitsIce(dataset.PictureSize(test))
}

// spot returns what happens to row i.
func (s *Shift) spot(i, severity int, seed uint64) spot {
	own := splitmix.At(seed, uint64(severity))
	return spot{s.Corruptions[i%len(s.Corruptions)], severity, splitmix.At(own, uint64(s.rows[i])), splitmix.At(seed, 0)}
}

// how describes the damaged data for their ID.
func (s *Shift) how(severity int, seed uint64) []any {
	var names []string
	for _, c := range s.Corruptions {
		names = append(names, c.Name)
	}
	if s.iceSum != "" {
		names = append(names, s.iceSum)
	}
	return []any{"corrupt", corrupt.Version, names, severity, seed}
}

// openText prepares damaged texts: for each severity and each corruption one of the documents that it damages. The random
// numbers of a document are its own.
func (s *Shift) openText(test dataset.Dataset, documents []dataset.Document, seed uint64) error {
	kind := corrupt.Words
	var ids [][]int32
	for _, d := range documents {
		if ids = append(ids, d.IDs); d.IDs != nil {
			kind = corrupt.Tokens
		}
	}
	s.text = true
	if err := cmp.Or(s.choose(kind, len(documents), false, seed), s.openIce(test, kind)); err != nil {
		return err
	}
	if s.Examples < len(documents) {
		var with []dataset.Document
		for _, i := range s.examples() {
			with = append(with, documents[i])
		}
		var err error
		if s.clean, err = dataset.Rewritten(test, with, s.examples(), "documents", s.examples()); err != nil {
			return err
		}
	}
	for _, severity := range s.Severities {
		for c := range s.Corruptions {
			var with []dataset.Document
			units := s.rowsWith(c)
			for j := range units {
				at := s.spot(c+j*len(s.Corruptions), severity, seed)
				d := documents[units[j]]
				if d.Body = at.Text(d.Body, severity, at.seed); d.IDs != nil {
					d.IDs = listed(d.IDs, at.List(len(d.IDs), severity, at.seed), ids, at.seed)
				}
				with = append(with, d)
			}
			if with == nil {
				return fmt.Errorf("%d corruptions, and %d documents: want each=all, or fewer corruptions", len(s.Corruptions), s.Examples)
			}
			d, err := dataset.Rewritten(test, with, units, append(s.how(severity, seed), c)...)
			if err != nil {
				return fmt.Errorf("damaged at severity %d: %w", severity, err)
			}
			s.data = append(s.data, d)
		}
	}
	return nil
}

// listed returns the tokens of a document after its list changed: see [corrupt.Corruption.List]. all has all documents.
func listed(old []int32, from []int, all [][]int32, seed uint64) (out []int32) {
	for j, k := range from {
		if k >= 0 {
			out = append(out, old[k])
		} else {
			out = append(out, anyToken(all, func(i int) (int, int) { return 0, len(all[i]) }, splitmix.At(seed, 1<<32+uint64(j))))
		}
	}
	return out
}

// rowsWith returns the examples with corruption c, as indexes in the test data.
func (s *Shift) rowsWith(c int) (examples []int) {
	for i := c; i < len(s.rows); i += len(s.Corruptions) {
		examples = append(examples, s.rows[i])
	}
	return examples
}

// Unit returns the word for a damaged example: "image", "example", or "document" for a part of a text.
func (s *Shift) Unit(test dataset.Dataset) string {
	if s.text {
		return "document"
	}
	return dataset.Unit(test)
}

// Rows returns the example of each row of the damaged data, as an index in the test data, and its corruption.
func (s *Shift) Rows() (examples, corruptions []int) {
	for j := range s.rows {
		corruptions = append(corruptions, j%len(s.Corruptions))
	}
	return s.rows, corruptions
}

// examples returns the damaged examples, as indexes in the test data.
func (s *Shift) examples() (out []int) {
	for j := 0; j < len(s.rows); j += s.Each {
		out = append(out, s.rows[j])
	}
	return out
}

// spot is what happens to one example. seed is its own, and common that of all examples.
type spot struct {
	corrupt.Corruption
	severity     int
	seed, common uint64
}

// A damager returns data whose example i is damaged by at(i). how describes that for the ID.
type damager func(rows dataset.Dataset, memory int64, at func(i int) spot, how ...any) (dataset.Dataset, error)

// damages returns what damages the data, and their kind. A text has numbers, too, such as a mask, and a table may have row
// numbers of a category, so that the first kind counts that fits.
func damages(test, clean dataset.Dataset) (damager, corrupt.Kind, error) {
	if dataset.Pictured(test) {
		return damagePictures, corrupt.Pictures, nil
	}
	fields := dataset.Fields(test)
	if fields == nil {
		fields = []dataset.Field{{Shape: test.Shape(), Type: "float32"}}
	}
	if k := textField(fields); k >= 0 {
		return func(rows dataset.Dataset, _ int64, at func(int) spot, how ...any) (dataset.Dataset, error) {
			return damageTokens(rows, fields, k, at, how...)
		}, corrupt.Tokens, nil
	}
	if dataset.Unit(test) == "image" {
		return nil, "", errors.New("pictures that are normalised already cannot be damaged as cameras do: want image files, or arrays of uint8 that are not normalised yet")
	}
	columns, err := describe(clean, fields)
	return func(rows dataset.Dataset, _ int64, at func(int) spot, how ...any) (dataset.Dataset, error) {
		return dataset.Altered(rows, rows.Labels(), func(v dataset.Values, i int) {
			s := at(i)
			s.Row(v.Floats, columns, s.severity, s.seed, s.common)
		}, nil, append(how, columns)...), nil
	}, corrupt.Numbers, err
}

func damagePictures(rows dataset.Dataset, memory int64, at func(int) spot, how ...any) (dataset.Dataset, error) {
	return dataset.Changed(rows, memory, func(p picture.Picture, i int) picture.Picture {
		s := at(i)
		return s.Picture(p, s.severity, s.seed)
	}, how...), nil
}

// describe returns the columns of the numbers of clean data.
func describe(clean dataset.Dataset, fields []dataset.Field) ([]corrupt.Column, error) {
	var columns []corrupt.Column
	free := false
	for k, f := range fields {
		fixed := f.Rows > 0 || f.Type == "uint8" || dataset.Decoded(clean, k)
		free = free || !fixed && f.Size().Floats > 0
		columns = append(columns, slices.Repeat([]corrupt.Column{{Fixed: fixed, Binary: true}}, f.Size().Floats)...)
	}
	if !free {
		return nil, errors.New("no pictures, no numbers and no lists of token ids: nothing that the corruptions are for")
	}
	size, err := dataset.SizeOf(clean)
	if err != nil {
		return nil, err
	}
	row := size.Make(1)
	for i := range clean.Len() {
		if err := clean.Read(row, i); err != nil {
			return nil, err
		}
		for k, v := range row.Floats { // Welford
			c, v := &columns[k], float64(v)
			d := v - c.Mean
			c.Mean += d / float64(i+1)
			c.Std += d * (v - c.Mean)
			c.Binary = c.Binary && (v == 0 || v == 1)
		}
	}
	for k := range columns {
		columns[k].Std = math.Sqrt(columns[k].Std / float64(clean.Len()))
	}
	return columns, nil
}

// textField returns the index of the field with token ids, or −1: lists of row numbers, in the largest table.
func textField(fields []dataset.Field) int {
	text := -1
	for k, f := range fields {
		if f.Rows > 0 && f.Ints() && len(f.Shape) == 1 && f.Shape[0] > 1 && (text < 0 || f.Rows > fields[text].Rows) {
			text = k
		}
	}
	return text
}

// A padding is what fills up lists that are too short. An example shows it.
type padding struct {
	id    int64
	left  bool // it stands before the tokens
	shown dataset.Values
}

// findPadding returns the padding that most rows have, or nil. Two equal tokens at an end of a list are padding.
func findPadding(rows dataset.Dataset, text int, ids [][]int64, read func(i int) (dataset.Values, error)) (*padding, error) {
	type end struct {
		id   int64
		left bool
	}
	seen, best, at := map[end]int{}, end{}, -1
	for i, list := range ids {
		n, length := len(list), dataset.Length(rows, text, i)
		for _, e := range []end{{list[n-1], false}, {list[0], true}} {
			inner := list[max(n-2, 0)]
			if e.left {
				inner = list[min(1, n-1)]
			}
			if length >= 0 && (e.left || length == n) || length < 0 && e.id != inner {
				continue
			}
			if seen[e]++; at < 0 || seen[e] > seen[best] {
				best, at = e, i
			}
		}
	}
	if at < 0 {
		return nil, nil
	}
	v, err := read(at)
	return &padding{best.id, best.left, v}, err
}

// damageTokens damages the field text with token ids. Other lists of the same length, such as a mask, lose the same places.
func damageTokens(rows dataset.Dataset, fields []dataset.Field, text int, at func(int) spot, how ...any) (dataset.Dataset, error) {
	size, err := dataset.SizeOf(rows)
	if err != nil {
		return nil, err
	}
	read := func(i int) (dataset.Values, error) {
		v := size.Make(1)
		return v, rows.Read(v, i)
	}
	all := make([][]int64, rows.Len()) // the ids of each row
	for i := range all {
		v, err := read(i)
		if err != nil {
			return nil, err
		}
		all[i] = v.Field(fields, text).Ints
	}
	pad, err := findPadding(rows, text, all, read)
	if err != nil {
		return nil, err
	}
	// real returns the range of the tokens of row i that are no filling.
	real := func(i int) (first, end int) {
		ids := all[i]
		if n := dataset.Length(rows, text, i); n >= 0 {
			return 0, n
		}
		for end = len(ids); pad != nil && !pad.left && end > 0 && ids[end-1] == pad.id; {
			end--
		}
		for pad != nil && pad.left && first < end && ids[first] == pad.id {
			first++
		}
		return first, end
	}
	from := func(i int) (first, end int, list []int) {
		first, end = real(i)
		s := at(i)
		list = s.List(end-first, s.severity, s.seed)
		return first, end, list
	}
	for i := range all {
		if first, end, list := from(i); len(list) < end-first && pad == nil {
			return nil, fmt.Errorf("%s: no list is filled up, so nothing can take the place of dropped tokens: want replace or swap", rows.Name(i))
		}
	}
	var length func(field, i int) int
	if dataset.Length(rows, text, 0) >= 0 {
		length = func(field, i int) int {
			n := dataset.Length(rows, field, i)
			if n >= 0 && slices.Equal(fields[field].Shape, fields[text].Shape) {
				_, _, list := from(i)
				return len(list)
			}
			return n
		}
	}
	// placed returns the range [first, end) of the tokens of row i, and where those of the list begin.
	placed := func(i int) (first, to, end int, list []int) {
		first, end, list = from(i)
		if to = first; pad != nil && pad.left {
			to = end - len(list)
		}
		return first, to, end, list
	}
	labels := rows.Labels()
	if labels.Dense() {
		labels = movedLabels(labels, int(fields[text].Shape[0]), placed)
	}
	return dataset.Altered(rows, labels, func(v dataset.Values, i int) {
		first, to, end, list := placed(i)
		for k, f := range fields {
			if !slices.Equal(f.Shape, fields[text].Shape) {
				continue
			}
			own, fill, order := v.Field(fields, k), dataset.Values{}, list
			if pad != nil {
				fill = pad.shown.Field(fields, k)
			}
			if k != text && counts(own.Ints, first, end) {
				order = dataset.Order{}.Indices(len(list))
			}
			move(own.Ints, fill.Ints, first, to, end, order)
			move(own.Floats, fill.Floats, first, to, end, order)
			if k != text {
				continue
			}
			for j, source := range list {
				if source < 0 {
					own.Ints[to+j] = anyToken(all, real, splitmix.At(at(i).seed, 1<<32+uint64(j)))
				}
			}
		}
	}, length, how...), nil
}

// movedLabels returns the labels of tokens, which follow their tokens. Filling has none.
func movedLabels(labels truth.Truth, tokens int, placed func(i int) (first, to, end int, list []int)) truth.Truth {
	return truth.Lazy(labels.Len(), func(i int) (truth.Truth, error) {
		t, err := labels.Load(i)
		if err != nil {
			return t, err
		}
		if t.Positions != tokens {
			return t, fmt.Errorf("labels of %d positions, and %d token ids: labels cannot follow their tokens", t.Positions, tokens)
		}
		first, to, end, list := placed(i)
		from := dataset.Order{}.Indices(tokens)
		move(from, []int{-1}, first, to, end, list)
		none := truth.Truth{Width: t.Width, Positions: tokens}
		for _, k := range from {
			for c := range t.Width {
				v := math.NaN()
				if k >= 0 {
					v = t.Values[k*t.Width+c]
				}
				none.Values = append(none.Values, v)
			}
			if t.Width == 0 && k >= 0 {
				none.Classes = append(none.Classes, t.Classes[k])
			} else if t.Width == 0 {
				none.Classes = append(none.Classes, truth.Unknown)
			}
		}
		return none, nil
	})
}

// counts reports whether the values are places, such as 0, 1, 2.
func counts(list []int64, first, end int) bool {
	for i := first + 1; i < end && i < len(list); i++ {
		if list[i] != list[i-1]+1 {
			return false
		}
	}
	return len(list) > 0
}

// move puts the values [first, end) of a list to their new places, which begin at to. The filling takes the places that
// become free.
func move[T int | int64 | float32](list, filling []T, first, to, end int, from []int) {
	if len(list) == 0 {
		return
	}
	old := slices.Clone(list[first:end])
	for j := range old {
		switch k := first + j - to; {
		case k < 0:
			list[first+j] = filling[0]
		case k >= len(from):
			list[first+j] = filling[len(filling)-1]
		case from[k] >= 0:
			list[first+j] = old[from[k]]
		default:
			list[first+j] = old[k] // any token takes its place
		}
	}
}

// anyToken returns a token of the data that is not at an end of its list.
func anyToken[T any](all [][]T, real func(i int) (first, end int), seed uint64) T {
	for n := uint64(0); ; n += 2 {
		i := int(splitmix.At(seed, n) % uint64(len(all)))
		if first, end := real(i); end-first > 2 {
			return all[i][first+1+int(splitmix.At(seed, n+1)%uint64(end-first-2))]
		}
	}
}

// CPUSeconds returns about how much CPU time the shift takes, if networks see that many damaged examples. It runs the first
// network on a few of them.
func (s *Shift) CPUSeconds(ctx context.Context, e *infer.Engine, n *infer.Network, seen int64) (float64, error) {
	own := *e
	own.Store, own.Shard, own.Progress = nil, nil, nil
	average, err := swag.NewSampler(n.Posterior, swag.SampleOptions{})
	if err != nil {
		return 0, err
	}
	weights := average.Vector(ctx, 0)
	state, err := n.State(weights)
	if err != nil {
		return 0, err
	}
	m, err := n.Model("SWA", weights, state)
	if err != nil {
		return 0, err
	}
	m, closeSession := m.Keep()
	defer closeSession()
	data := s.data[len(s.data)-1]
	predict := func(part dataset.Dataset) error { return own.Predict(ctx, m, part, &infer.Sums{}) }
	if n.Axis() != 0 {
		one := &baseline.Predicted{Models: []infer.Model{m}}
		predict = func(part dataset.Dataset) error {
			return one.Stream(ctx, &own, part, infer.Options{}, func(task.Dense, int, task.Average) error { return nil })
		}
	}
	block := max(1, min(64, data.Len()/2))
	var took [3]float64 // to warm up, to damage and predict, to predict again
	for i := range took {
		first := block * min(i, 1, data.Len()/block-1)
		before := cpuSeconds()
		if err := predict(dataset.Part(data, first, first+block)); err != nil {
			return 0, err
		}
		took[i] = (cpuSeconds() - before) / float64(block)
	}
	each := float64(data.Len())
	rows := each * float64(len(s.data))
	damage := rows
	if room, ok := dataset.Room(data); ok && room < data.Len() { // the others are damaged for every network
		damage += max(0, float64(seen)-rows) * (1 - float64(room)/each)
	} else if !ok {
		damage = float64(seen)
	}
	return float64(seen)*took[2] + damage*max(0, took[1]-took[2]), nil
}

// cpuSeconds returns the CPU time of this process.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
}
