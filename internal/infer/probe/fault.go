package probe

import (
	"strings"

	"github.com/swagwrap/swagwrap/internal/moments"
)

// A Fault is a row of the table of what may be wrong with a network and its data. Functions of the tested record list the rows, in this
// order: inputs (inputs.go, changes.go), the form of scores (forms.go, ordinal.go) or numbers (numbers.go), batches (batch.go).
type Fault struct {
	Name     string // is unique
	Severity Severity
	When     bool   // what is tested has the fault
	Cause    string // what happened, and why it matters
	Hint     string // what to type, in lines
	// Unless silences the row: it only guesses, and any of these properties explains what it finds.
	Unless Property
	// Undo maps the values of an input to those without the fault, or is nil.
	Undo *moments.Change
	// Decision says what scores are. Such a row is no fault.
	Decision *Decision
}

// Severity is what a fault does.
type Severity int

// The order is that of harm.
const (
	Refusal  Severity = iota // ends the command
	Question                 // ends it too, except where weights are averaged: more examples or labels may answer
	Wrong                    // is a warning that inputs are not like those of training, so no result holds
	Warning                  // is kept with the results
)

// A Property of a network or its data is proven, or stated by the user. [NewRunner] finds those of a network.
type Property int

// Each is a bit.
const (
	Foreign Property = 1 << iota // the data is deliberately from another domain
	Frozen                       // statistics of batch norm may be those of another data set
	Loaded                       // the preprocessing makes the tensors of the training program from its pictures
)

// Fires reports whether something with these properties has the fault. This is the only place where a proof silences a guess.
func (f *Fault) Fires(holds Property) bool { return f.When && f.Unless&holds == 0 }

// First returns the first row that fires, or nil.
func First(rows []Fault, holds Property) *Fault {
	for i := range rows {
		if rows[i].Fires(holds) {
			return &rows[i]
		}
	}
	return nil
}

func (f *Fault) Error() string { return f.Cause }

// Hints returns the hint lines for the user.
func (f *Fault) Hints() []string { return strings.Split(f.Hint, "\n") }

// String returns the words of a warning.
func (f *Fault) String() string { return strings.TrimSuffix(f.Cause+". "+f.Hint, ". ") }
