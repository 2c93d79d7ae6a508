package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/shares"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Unchanged is the method of a calibration that only corrects class shares.
const Unchanged Method = "none"

// Shares are shares of classes, and those of training, which the probabilities assume without a correction.
type Shares struct {
	Training []float64 `json:"training"`
	Now      []float64 `json:"now"`
}

// With returns a calibration that also corrects the shares. c may be nil.
func (s *Shares) With(c *Calibration) *Calibration {
	out := Calibration{Method: Unchanged}
	if c != nil {
		out = *c
	}
	out.Shares = s
	return &out
}

// String names the shares. Of many classes it names those that change most.
func (s *Shares) String() string {
	const most = 10
	order := make([]int, len(s.Now))
	for c := range order {
		order[c] = c
	}
	text, by := "class shares", func(c int) float64 { return s.Now[c] / s.Training[c] }
	if len(order) > most {
		slices.SortStableFunc(order, func(a, b int) int {
			return strings.Compare(fmt.Sprint(max(by(b), 1/by(b))), fmt.Sprint(max(by(a), 1/by(a))))
		})
		order, text = order[:most], fmt.Sprintf("shares of %d classes, among them", len(order))
	}
	var parts []string
	for _, c := range order {
		parts = append(parts, fmt.Sprintf("%d: %.3g instead of %.3g", c, s.Now[c], s.Training[c]))
	}
	return text + " " + strings.Join(parts, ", ")
}

// sound returns an error unless there is a share of each class.
func (s *Shares) sound() error {
	if len(s.Training) != len(s.Now) || len(s.Now) < 2 {
		return bad("shares", len(s.Now), "one for each class, and one of training")
	}
	if slices.Min(s.Training) <= 0 {
		return bad("share of training", slices.Min(s.Training), "a number above 0")
	}
	if err := shares.Check(s.Training); err != nil {
		return fmt.Errorf("training: %w", err)
	}
	return shares.Check(s.Now)
}

// check returns an error unless outcomes of the task have these classes.
func (s *Shares) check(t Task) error {
	if err := Shared(t); err != nil {
		return err
	}
	if n := t.About().Classes; len(s.Now) != n {
		return fmt.Errorf("shares of %d classes, and the networks have %d", len(s.Now), n)
	}
	return nil
}

// ErrNoShares is the error of a task whose examples do not have one class each.
var ErrNoShares = errors.New("class shares are for examples with one class each, not for labels, numbers, pixels and tokens")

// Shared returns an error unless each example has one class.
func Shared(t Task) error {
	if Large(t) || !TraitsOf(t.About().Name).Shares {
		return ErrNoShares
	}
	return nil
}

// Corrected returns the numbers of a row, whose probabilities the columns have, after a correction of them. The row has no columns beside
// those of the task. What the members say stays.
func Corrected(t Task, want RowOptions, c *Calibration, threshold float64, values []float64, label int) []float64 {
	own := map[string][]float64{}
	at, mutual := 0, 0
	for _, column := range t.Columns(want) {
		if own[column.Name] = values[at:][:column.Len()]; column.Name == "mutual_information" {
			mutual = at
		}
		at += column.Len()
	}
	a := Average{
		Outcome:   slices.Clone(own["probs"]),
		Entropy:   own["expected_entropy"][0],
		Threshold: threshold,
		Calibrate: func(outcome []float64) { t.Apply(outcome, c, outcome) },
	}
	for _, v := range own["member_probs"] {
		a.Members = append(a.Members, float32(v))
	}
	row := t.Values(nil, want, a, target.Target{Classes: []int{label}})
	row[mutual] = values[mutual]
	return row
}
