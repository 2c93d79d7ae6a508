package shift

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/splitmix"
	"github.com/swagwrap/swagwrap/internal/target"
)

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
	span := func(i int) (first, end int) {
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
		first, end = span(i)
		s := at(i)
		list = s.List(end-first, s.severity, s.seed)
		return first, end, list
	}
	for i := range all {
		if first, end, list := from(i); len(list) < end-first && pad == nil {
			return nil, fmt.Errorf("%s: no list is filled up, so nothing can take the place of dropped tokens: want replace or swap",
				rows.Name(i))
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
					own.Ints[to+j] = anyToken(all, span, splitmix.Nth(at(i).seed, 1<<32+uint64(j)))
				}
			}
		}
	}, length, how...), nil
}

// movedLabels returns the labels of tokens, which follow their tokens. Filling has none.
func movedLabels(labels target.Target, tokens int, placed func(i int) (first, to, end int, list []int)) target.Target {
	return target.Lazy(labels.Len(), func(i int) (target.Target, error) {
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
		none := target.Target{Width: t.Width, Positions: tokens}
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
				none.Classes = append(none.Classes, target.Unknown)
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
func anyToken[T any](all [][]T, span func(i int) (first, end int), seed uint64) T {
	for n := uint64(0); ; n += 2 {
		i := int(splitmix.Nth(seed, n) % uint64(len(all)))
		if first, end := span(i); end-first > 2 {
			return all[i][first+1+int(splitmix.Nth(seed, n+1)%uint64(end-first-2))]
		}
	}
}
