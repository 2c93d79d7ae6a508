package task

// RowOptions selects the columns of rows in addition to the prediction and its uncertainty.
type RowOptions struct {
	Top      int  `json:"top"`      // number of ranked classes, the most probable first
	Outcomes bool `json:"outcomes"` // the averaged outcome
	Members  int  `json:"members"`  // number of members whose outcomes are stored
	// Target adds the true values of examples, for tasks without classes. Rows always have the class of an example.
	Target bool `json:"truth,omitempty"`
	// Each adds a list for the tokens of an example, for tasks with several positions.
	Each bool `json:"each,omitempty"`
	// EachOutcome adds arrays with what is averaged for each position, such as all probabilities, and with its label.
	EachOutcome bool `json:"each_outcome,omitempty"`
	// Settled adds the number of members that an example went through.
	Settled bool `json:"settled,omitempty"`
	// Set adds the set of classes that a guarantee is about, Interval the ends of an interval, and Abstain whether no answer is
	// guaranteed.
	Set      bool `json:"set,omitempty"`
	Interval bool `json:"interval,omitempty"`
	Abstain  bool `json:"abstain,omitempty"`
	// Signs adds a hidden column for tasks with several positions: see package expect. It is a confidence; 0 stands for no column.
	Signs float64 `json:"signs,omitempty"`
}

// Names of the columns of guarantees.
const (
	SetColumn     = "set"
	SizeColumn    = "set_size"
	MissedColumn  = "missed" // of several positions: the share of the labels that are in no set
	LowerColumn   = "lower"
	UpperColumn   = "upper"
	AbstainColumn = "abstain"
)

// guaranteed lists the columns of guarantees.
func guaranteed(t Task, want RowOptions) (columns []Column) {
	switch {
	case want.Set && Large(t):
		columns = append(columns, Column{Name: SizeColumn})
		if want.Target {
			columns = append(columns, Column{Name: MissedColumn})
		}
	case want.Set:
		columns = append(columns, Column{Name: SetColumn, Kind: Subset, Shape: []int{t.About().Classes}}, Column{Name: SizeColumn})
	}
	if n := Targets(t); want.Interval && n > 0 {
		for _, name := range []string{LowerColumn, UpperColumn} {
			c := Column{Name: name}
			if n > 1 {
				c.Cell, c.Shape = name+"_%d", []int{n}
			}
			columns = append(columns, c)
		}
	}
	if want.Abstain {
		columns = append(columns, Column{Name: AbstainColumn, Kind: Flag})
	}
	return columns
}

// RowColumns lists the columns of a row of predictions of any task: those of the task, those of guarantees, and the number of
// members last.
func RowColumns(t Task, want RowOptions) []Column {
	columns := append(t.Columns(want), guaranteed(t, want)...)
	if want.Settled {
		columns = append(columns, Column{Name: "members"})
	}
	return columns
}

// Column is a column of rows. It holds a number or an array per row.
type Column struct {
	Name string // name of an array, a list or a column
	// Cell is the name of the column of one element in a table without lists, with a %d for each index. It is "" for a
	// number.
	Cell  string
	Kind  Kind
	Shape []int // shape of the elements in a row; nil for a number
	// Hidden columns are used in computations, and are not written to files. Of other columns, files show the first
	// Shown elements along the first dimension, or all if Shown is 0.
	Hidden bool
	Shown  int
	// Ragged lists have fewer elements than Shape in some rows. NaN stands for the missing ones, at the end.
	Ragged bool `json:",omitempty"`
	// Target marks the true values of the example. They replace the number of a class.
	Target bool `json:",omitempty"`
}

// Kind says how the elements of a column are stored and written.
type Kind int

const (
	Float64 Kind = iota
	Float32
	// Class is the number of a class, from 0. Files also show the names of classes if these are known.
	Class
	// Ranked is a list of classes with their probabilities, the most probable first. An element takes two values: the
	// class, and its probability.
	Ranked
	// Subset is a set of classes: 1 for each class in it, and 0 for others. Files list the numbers of its classes, and .npz
	// has the mask.
	Subset
	// Flag is true or false: 1 or 0.
	Flag
)

// Len returns the number of values of the column in a row.
func (c Column) Len() int {
	n := 1
	for _, d := range c.Shape {
		n *= d
	}
	if c.Kind == Ranked {
		n *= 2
	}
	return n
}

// Bytes returns the size of these values in memory and in Parquet files.
func (c Column) Bytes() int {
	switch c.Kind {
	case Float32, Class, Subset:
		return 4 * c.Len()
	case Ranked:
		return 6 * c.Len()
	}
	return 8 * c.Len()
}
