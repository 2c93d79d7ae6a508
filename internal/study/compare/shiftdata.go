package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/internal/corrupt"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/splitmix"
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

	list string            // of corruptions, as the user wrote it
	rows []int             // the example of each row: its index in the test data
	data []dataset.Dataset // by severity
}

// ParseShift reads corruptions as [corrupt.Parse] does, followed by severities=1,3,5, examples=N and each=N. Without these
// it uses all severities, and one corruption of each of 1,000 examples.
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
			err = fmt.Errorf("%q: want corruptions, severities=1,3,5, examples=1000 or each=2", word)
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

// Open prepares the damaged examples of the test data. The seed chooses the examples and the random numbers. What is
// typical of numbers is read from the clean data. Open fails for data that no corruption is for.
func (s *Shift) Open(test, clean dataset.Dataset, seed uint64) error {
	damage, kind, err := damages(test, clean)
	if err != nil {
		return err
	}
	if s.Corruptions, err = corrupt.Parse(s.list, kind); err != nil {
		return err
	}
	s.Each = min(s.Each, len(s.Corruptions))
	examples := dataset.Order{Shuffle: true, Seed: seed, Limit: s.Examples}.Indices(test.Len())
	for s.Examples = len(examples); len(s.rows) < s.Examples*s.Each; {
		s.rows = append(s.rows, examples[len(s.rows)/s.Each])
	}
	rows := dataset.Picked(test, s.rows)
	var names []string
	for _, c := range s.Corruptions {
		names = append(names, c.Name)
	}
	for _, severity := range s.Severities {
		own := splitmix.At(seed, uint64(severity))
		d, err := damage(rows, keptBytes/int64(len(s.Severities)), func(i int) spot {
			return spot{s.Corruptions[i%len(s.Corruptions)], severity, splitmix.At(own, uint64(s.rows[i])), splitmix.At(seed, 0)}
		}, "corrupt", corrupt.Version, names, severity, seed)
		if err != nil {
			return err
		}
		s.data = append(s.data, d)
	}
	return nil
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
		return dataset.Altered(rows, func(v dataset.Values, i int) {
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
	return dataset.Altered(rows, func(v dataset.Values, i int) {
		first, end, list := from(i)
		to := first
		if pad != nil && pad.left {
			to = end - len(list)
		}
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
func move[T int64 | float32](list, filling []T, first, to, end int, from []int) {
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
func anyToken(all [][]int64, real func(i int) (first, end int), seed uint64) int64 {
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
	block := max(1, min(64, len(s.rows)/2))
	var took [3]float64 // to warm up, to damage and predict, to predict again
	for i := range took {
		first := block * min(i, 1, len(s.rows)/block-1)
		before := cpuSeconds()
		if err := own.Predict(ctx, m, dataset.Part(data, first, first+block), &infer.Sums{}); err != nil {
			return 0, err
		}
		took[i] = (cpuSeconds() - before) / float64(block)
	}
	rows := float64(len(s.rows) * len(s.data))
	damage := rows
	if room, ok := dataset.Room(data); ok && room < len(s.rows) { // the others are damaged for every network
		damage += (float64(seen) - rows) * (1 - float64(room)/float64(len(s.rows)))
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
