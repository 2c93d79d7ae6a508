// Package guarantee is what an ensemble guarantees of its predictions: sets or intervals that contain the target, and
// answers that are right.
//
// A [Fitting] chooses the thresholds on labelled examples. A [Decider] applies them to examples, and [Guarantee.Fuse]
// writes them into a graph. A [Realised] counts how often the guarantee held.
//
// # Invariants
//
// The guarantees hold for new examples from the same distribution as those that chose the thresholds. No other
// assumption is made of the networks. An infinite threshold keeps every guarantee, and says nothing: it is stored as null.
//
// # Concurrency
//
// A [Guarantee] does not change. A value of any other type belongs to one goroutine.
package guarantee

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/sets"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Guarantee is what an ensemble guarantees. Fields are nil without such a guarantee.
type Guarantee struct {
	Coverage *Coverage `json:"coverage,omitempty"`
	Answers  *Answers  `json:"answers,omitempty"`
}

// Empty reports whether nothing is guaranteed. It is true for nil.
func (g *Guarantee) Empty() bool { return g == nil || g.Coverage == nil && g.Answers == nil }

// Data says which examples chose thresholds or a calibration.
type Data struct {
	Name     string `json:"name"`     // of the file of predictions, without folders
	SHA256   string `json:"sha256"`   // of that file
	Examples int    `json:"examples"` // that had a part in the choice
	Date     string `json:"date"`     // the day on which the predictions were written
	// Sources are the digests of the data that were predicted. It is empty if nothing says what they were.
	Sources []string `json:"sources,omitempty"`
	Made    Made     `json:"made,omitzero"` // how the predictions were made
}

// Shares reports whether two data have examples in common, as far as the digests tell.
func (d *Data) Shares(o *Data) bool {
	if d.SHA256 == o.SHA256 {
		return true
	}
	return slices.ContainsFunc(d.Sources, func(s string) bool { return slices.Contains(o.Sources, s) })
}

// ByClass is the value of [Coverage].By for a threshold for each class or label.
const ByClass = "class"

// The methods of intervals: multiples of a standard deviation. Those of sets are in package sets.
const (
	ByStd       = "std"
	ByEpistemic = "epistemic_std" // without noise there is no other
)

// Coverage is the guarantee that sets or intervals contain the target with the probability Level, or that sets have at most Size
// classes on average.
type Coverage struct {
	Level   float64 `json:"level,omitempty"` // 0 with Size
	Size    float64 `json:"size,omitempty"`  // 0 with Level
	Method  string  `json:"method"`
	Penalty float64 `json:"penalty,omitempty"`
	Free    int     `json:"free,omitempty"`
	// By says what has thresholds of its own: "" for nothing, [ByClass], or how groups of examples are found.
	By string `json:"by,omitempty"`
	// Cells holds the thresholds of all examples, and then those of each group.
	Cells []Cell `json:"cells"`
	Data  Data   `json:"data"`
}

// Cell holds the thresholds of a group of examples: one for all classes, or one for each class or target.
type Cell struct {
	Group      string     `json:"group,omitempty"` // empty for all examples
	Examples   []int      `json:"examples"`        // that each threshold was chosen on
	Thresholds []*float64 `json:"thresholds"`      // nil is infinite
	Cuts       []float32  `json:"cuts,omitempty"`  // of sets: see [sets.Rule]
	// Upper is the rank of the score that bounds what each threshold covers: see [sets.Upper]. It is for one class or number of an
	// example, and nil otherwise.
	Upper []int `json:"upper,omitempty"`
	// Whole lists the thresholds that are those of all examples, because their own examples are too few.
	Whole []int `json:"whole,omitempty"`
}

// Answers is the guarantee that at most the share Risk of answers is wrong, with 95 % confidence. An answer is given if the
// largest probability is above the cut.
type Answers struct {
	Risk     float64 `json:"risk"`
	Cut      float32 `json:"cut"`      // −1 answers always
	Answered float64 `json:"answered"` // share of the examples that chose it
	Data     Data    `json:"data"`
}

// Intervals reports whether the guarantee is about numbers.
func (c *Coverage) Intervals() bool { return c.Method == ByStd || c.Method == ByEpistemic }

// Infinite reports whether some threshold is infinite.
func (c *Coverage) Infinite() bool {
	return slices.ContainsFunc(c.Cells, func(e Cell) bool { return slices.Contains(e.Thresholds, nil) })
}

// Rule returns the rule of sets of a cell.
func (c *Coverage) Rule(e *Cell) *sets.Rule {
	return &sets.Rule{Method: sets.Method(c.Method), Penalty: c.Penalty, Free: c.Free, Cuts: e.Cuts}
}

// Sound returns an error unless the guarantee can be one of some task. It may come from a file.
func (g *Guarantee) Sound() error {
	if g.Empty() {
		return errors.New("no guarantee")
	}
	if a := g.Answers; a != nil && (!(a.Risk > 0 && a.Risk < 1) || !(a.Cut >= -1 && a.Cut <= 2) || !(a.Answered >= 0 && a.Answered <= 1)) {
		return fmt.Errorf("answers above %v for a risk of %v, want numbers between 0 and 1", a.Cut, a.Risk)
	}
	if g.Coverage == nil {
		return nil
	}
	return g.Coverage.sound()
}

// maxSize is larger than any number of classes.
const maxSize = 1e9

func (c *Coverage) sound() error {
	switch {
	case c.Size == 0 && c.Level > 0 && c.Level < 1:
	case c.Size > 0 && c.Size < maxSize && c.Level == 0 && c.Method == string(sets.LAC) && c.By != ByClass:
	case c.Size != 0:
		return fmt.Errorf("sets of %v classes by %s, want a number above 0, by lac", c.Size, c.Method)
	default:
		return fmt.Errorf("coverage of %v, want a number between 0 and 1", c.Level)
	}
	if len(c.Cells) == 0 || c.Cells[0].Group != "" || c.By == "" != (len(c.Cells) == 1) && c.By != ByClass {
		return fmt.Errorf("thresholds of %d groups by %q, want those of all examples first", len(c.Cells), c.By)
	}
	for i := range c.Cells {
		e := &c.Cells[i]
		n := len(c.Cells[0].Thresholds)
		if len(e.Thresholds) != n || n == 0 || len(e.Examples) != n || i > 0 && (e.Group == "" || c.find(e.Group) != e) {
			return fmt.Errorf("group %q: %d thresholds and %d numbers of examples, want %d of each group once", e.Group, len(e.Thresholds),
				len(e.Examples), n)
		}
		for k, upper := range e.Upper {
			if k >= n || len(e.Upper) != n || upper < 0 || upper-1 > e.Examples[k] {
				return fmt.Errorf("group %q: score %d of %d bounds %d thresholds, want one for each", e.Group, upper, len(e.Upper), n)
			}
		}
		for _, t := range e.Thresholds {
			if t != nil && !(*t >= 0 && *t < math.MaxFloat32) {
				return fmt.Errorf("threshold %v, want a finite number of 0 or more", *t)
			}
		}
		if c.Intervals() {
			continue
		}
		if len(e.Cuts) != n {
			return fmt.Errorf("%d cuts of %d thresholds", len(e.Cuts), n)
		}
		if err := c.Rule(e).Check(n); err != nil {
			return err
		}
	}
	return nil
}

// find returns the cell of a group. A group without one takes that of all examples.
func (c *Coverage) find(group string) *Cell {
	i := 0
	if group != "" {
		i = max(0, slices.IndexFunc(c.Cells, func(e Cell) bool { return e.Group == group }))
	}
	return &c.Cells[i]
}

// Check returns an error unless the guarantee is for predictions of the task.
func (g *Guarantee) Check(t task.Task) error {
	each := task.OnePosition(t)
	if _, ok := each.(task.Evident); g.Answers != nil && (!ok || task.Large(t)) {
		return fmt.Errorf("answers that are right or wrong are of classes, and the task is %s", t.About().Name)
	}
	c := g.Coverage
	if c == nil {
		return nil
	}
	if err := Possible(t, c.Method, c.By); err != nil {
		return err
	}
	n, want := len(c.Cells[0].Thresholds), each.About().Classes
	if c.Intervals() {
		want = task.Targets(each)
	}
	if c.By != ByClass && !c.Intervals() {
		want = 1
	}
	if n != want {
		return fmt.Errorf("%d thresholds for each group, and the networks have %s", n, t.About().Size)
	}
	return nil
}

// Impossible is the error of a coverage that cannot be guaranteed. Instead says what can be.
type Impossible struct{ Why, Instead string }

func (e *Impossible) Error() string { return e.Why }

// PossibleSize is [Possible] of a mean size of sets.
func PossibleSize(t task.Task, method, by string, size float64) error {
	each := task.OnePosition(t)
	classes := each.About().Classes
	switch _, numbers := each.(task.Targeted); {
	case numbers:
		return &Impossible{
			"intervals have no number of classes, and the task is " + t.About().Name,
			"say a share: " + setting.Coverage.With("90%"),
		}
	case method != "" && method != string(sets.LAC):
		return &Impossible{"the mean size of sets is guaranteed with lac, and not with " + method, setting.Sets.With(string(sets.LAC))}
	case by == ByClass:
		return &Impossible{"a set has one size, and not one for each class", "leave out " + setting.By.String()}
	case classes > 0 && !(size < float64(classes)):
		return &Impossible{fmt.Sprintf("sets of at most %g classes: all sets are, of %d", size, classes),
			fmt.Sprintf("want a number below %d", classes)}
	}
	return Possible(t, method, by)
}

// Possible returns an [Impossible] if no coverage can be guaranteed of the task by the method. The method may be empty for
// the default.
func Possible(t task.Task, method, by string) error {
	each := task.OnePosition(t)
	_, numbers := each.(task.Targeted)
	_, paired := each.(task.Paired)
	no := func(instead, format string, args ...any) error {
		return &Impossible{fmt.Sprintf(format, args...), instead}
	}
	without := "leave out " + setting.Coverage.String()
	switch {
	case task.SpecOf(t).Next:
		return no(without, "no guarantee holds for the next token: the windows of a text depend on each other")
	case numbers && task.Large(t):
		return no(without, "intervals of pixels have no guarantee: they are for one number, or a few, of each example")
	case numbers && method != "" && method != ByStd && method != ByEpistemic:
		return no("leave out "+setting.Sets.String(), "%s makes sets of classes, and the task is %s", method, t.About().Name)
	case numbers && by == ByClass:
		return no("leave out "+setting.By.String()+": each target has a guarantee of its own", "by class: the task is %s", t.About().Name)
	case numbers:
		return nil
	case each.About().Classes == 0:
		return no(without, "the task %s has no classes and no numbers to guarantee", t.About().Name)
	case method == ByStd || method == ByEpistemic:
		return no("", "%s makes intervals of numbers, and the task is %s", method, t.About().Name)
	case method != "" && method != string(sets.LAC) && (paired || task.Large(t)):
		return no(setting.Sets.With(string(sets.LAC)), "%s ranks classes of which one is true, and here each example has several", method)
	}
	return nil
}

// placesOf returns what the positions of the task are, and what an example is.
func placesOf(t task.Task) (one, whole string) {
	if task.SpecOf(t).Sides[1] > 0 {
		return "pixels", "picture"
	}
	return "tokens", "text"
}

// Parts names the classes or groups that have a guarantee of their own, such as ", each class". It is "" without any.
func (c *Coverage) Parts() string {
	switch c.By {
	case "":
		return ""
	case ByClass:
		return ", each class"
	}
	return fmt.Sprintf(", each of %d groups", len(c.Cells)-1)
}

// Guarantee says what is guaranteed of new examples, for the task.
func (c *Coverage) Guarantee(t task.Task) string {
	percent := fmt.Sprintf("%g %%", Rounded(100*c.Level))
	_, paired := task.OnePosition(t).(task.Paired)
	to := ""
	switch {
	case c.By == ByClass && paired:
		to = ", of each label"
	case c.By == ByClass:
		to = ", of each class"
	case c.By != "":
		to = ", in each group"
	}
	missed := fmt.Sprintf("%g %%", Rounded(100-100*c.Level))
	switch {
	case c.Size > 0:
		return c.sized(t) + to
	case c.Intervals():
		return fmt.Sprintf("intervals contain the true value of at least %s of new examples%s", percent, to)
	case task.Large(t):
		one, whole := placesOf(t)
		return fmt.Sprintf("sets miss the true class of at most %s of the %s of a new %s on average%s", missed, one, whole, to)
	case paired:
		return fmt.Sprintf("sets miss at most %s of the true labels of a new example on average%s", missed, to)
	}
	return fmt.Sprintf("sets contain the true class of at least %s of new examples%s", percent, to)
}

// counted is the word for what sets have.
func (c *Coverage) counted(t task.Task) string {
	if _, paired := task.OnePosition(t).(task.Paired); paired {
		return "labels"
	}
	return "classes"
}

// sized says how many classes sets have at most.
func (c *Coverage) sized(t task.Task) string {
	if task.Large(t) {
		one, whole := placesOf(t)
		return fmt.Sprintf("sets have at most %g %s on average over the %s of a new %s, and over new ones", Rounded(c.Size), c.counted(t),
			one, whole)
	}
	return fmt.Sprintf("sets have at most %g %s on average over new examples", Rounded(c.Size), c.counted(t))
}

// Least returns the smallest number of examples that give a threshold for the task.
func (c *Coverage) Least(t task.Task) int {
	if c.Size > 0 {
		return int(math.Ceil(float64(task.OnePosition(t).About().Classes)/c.Size-1e-9)) - 1
	}
	return sets.Least(c.Level)
}

// Amount says how much is guaranteed, without the task.
func (c *Coverage) Amount() string {
	if c.Size > 0 {
		return fmt.Sprintf("at most %g on average", Rounded(c.Size))
	}
	return fmt.Sprintf("%g %%", Rounded(100*c.Level))
}

// Outputs returns the names of the outputs that a model has for the guarantees.
func (g *Guarantee) Outputs() (names []string) {
	if c := g.Coverage; c != nil && c.Intervals() {
		names = append(names, task.LowerColumn, task.UpperColumn)
	} else if c != nil {
		names = append(names, task.SetColumn)
	}
	if g.Answers != nil {
		names = append(names, task.AbstainColumn)
	}
	return names
}

// Chosen says which data chose the thresholds.
func (g *Guarantee) Chosen() string {
	d := Data{}
	if g.Answers != nil {
		d = g.Answers.Data
	}
	if g.Coverage != nil {
		d = g.Coverage.Data
	}
	return fmt.Sprintf("the thresholds were chosen on %d examples of %s, of %s", d.Examples, d.Name, d.Date)
}

// Rounded removes what binary fractions add to decimal ones.
func Rounded(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// Guarantee says what is guaranteed of new examples.
func (a *Answers) Guarantee() string {
	return fmt.Sprintf("at most %g %% of the answers to new examples are wrong, with 95 %% confidence", Rounded(100*a.Risk))
}

// Guarantees returns all guarantees in one sentence.
func (g *Guarantee) Guarantees(t task.Task) string {
	var list []string
	if g.Coverage != nil {
		text := g.Coverage.Guarantee(t)
		if spread := g.Coverage.Spread(); spread != "" {
			text += " (" + spread + ")"
		}
		list = append(list, text)
	}
	if g.Answers != nil {
		list = append(list, g.Answers.Guarantee())
	}
	return strings.Join(list, "; ")
}

// Made says how predictions were made, as far as that is not in the file of the ensemble. Add a field for whatever changes the
// predictions of an ensemble, and its words to changes.
type Made struct {
	// Statistics identifies the batch-norm statistics. It is empty for those of the file.
	Statistics string `json:"statistics,omitempty"`
	// Shares identifies the class shares that the probabilities were corrected for. It is empty without a correction.
	Shares string `json:"shares,omitempty"`
}

// changes names what makes predictions unlike those that chose a guarantee.
var changes = []struct {
	of   func(Made) string
	name string
	by   setting.Setting
}{
	{func(m Made) string { return m.Statistics }, "batch-norm statistics", setting.Adapt},
	{func(m Made) string { return m.Shares }, "class shares", setting.Shares},
}

// Void returns why the guarantee does not hold for predictions that were made like that. It is nil if nothing is known against it:
// a guarantee holds for predictions that were made like those that chose the thresholds.
func (g *Guarantee) Void(made Made) (why []string) {
	if g.Empty() {
		return nil
	}
	for _, c := range changes {
		if g.Coverage != nil && c.of(g.Coverage.Data.Made) != c.of(made) || g.Answers != nil && c.of(g.Answers.Data.Made) != c.of(made) {
			why = append(why, fmt.Sprintf("the thresholds were chosen with other %s (%v)", c.name, c.by))
		}
	}
	return why
}
