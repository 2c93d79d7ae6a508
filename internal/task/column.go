package task

// Want says what rows hold beside the prediction and its uncertainty.
type Want struct {
	Top      int  `json:"top"`      // so many classes, the most probable first
	Outcomes bool `json:"outcomes"` // the averaged outcome
	Members  int  `json:"members"`  // the outcomes of so many members
	// Truth is what is known of examples, where that is no class: such a row has its own.
	Truth bool `json:"truth,omitempty"`
}

// Column is one thing that a row holds: a number, or an array of them.
type Column struct {
	Name string // of an array, a list or a column
	// Cell is the name of one element's column in a table without lists, with a
	// %d for each of its indices; "" for a number.
	Cell  string
	Kind  Kind
	Shape []int // of a row's elements; nil for a number
	// Hidden columns are needed along the way, and written to no file. Of others
	// the first Shown rows of elements are written, or all where that is 0.
	Hidden bool
	Shown  int
	// Truth is what is known of the example, in place of the number of a class.
	Truth bool `json:",omitempty"`
}

// Kind is how the elements of a column are kept and written.
type Kind int

const (
	Float64 Kind = iota
	Float32
	// Class is the number of a class, from 0, which has a name where classes have
	// names.
	Class
	// Ranked is classes with their probabilities, the most probable first. An
	// element takes two values: the class, then its probability.
	Ranked
)

// Len is how many values a row has of the column.
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

// Bytes is what they take in memory and in work files.
func (c Column) Bytes() int {
	switch c.Kind {
	case Float32, Class:
		return 4 * c.Len()
	case Ranked:
		return 6 * c.Len()
	}
	return 8 * c.Len()
}
