package inputs

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
)

// A Table has the numbers of all rows of a table.
type Table struct {
	Rows int
	// Left are columns that feed no input.
	Left []string

	network Network
	columns [][]*table.Column // of each input
}

// Table reads the columns that feed the inputs. They are found by name, wherever they stand.
func (n Network) Table(name string, content []byte) (*Table, error) {
	t, err := table.InMemory(name, content)
	if err != nil {
		return nil, err
	}
	used, found := map[string]bool{}, make([][]string, len(n.Inputs))
	for i, in := range n.Inputs {
		if found[i], err = table.Choose(t.Names, in.Columns); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range found[i] {
			used[c] = true
		}
	}
	columns, err := t.Read(nil, slices.Concat(found...))
	if err != nil {
		return nil, err
	}
	out := &Table{Rows: t.Rows, network: n}
	for _, c := range t.Names {
		if !used[c] {
			out.Left = append(out.Left, c)
		}
	}
	for i, in := range n.Inputs {
		var own []*table.Column
		for _, c := range found[i] {
			if columns[c].Lengths != nil {
				return nil, fmt.Errorf("%s: column %q: holds lists, want numbers", name, c)
			}
			if err := in.takes().Takes(columns[c]); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			own = append(own, columns[c])
		}
		out.columns = append(out.columns, own)
	}
	return out, nil
}

// Batch returns count rows from the first one, for each input.
func (t *Table) Batch(first, count int) (out []Tensor) {
	for i, in := range t.network.Inputs {
		whole := in.takes().Integer()
		b := Tensor{Name: in.Name, Type: in.Type, Dims: append([]int64{int64(count)}, in.Shape...)}
		for row := first; row < first+count; row++ {
			for _, c := range t.columns[i] {
				if whole {
					b.Data = appendWhole(b.Data, in.Type, c.Int64(row))
				} else {
					b.Data = appendFloat(b.Data, in.Type, c.Float32(row))
				}
			}
		}
		out = append(out, b)
	}
	return out
}
