package guarantee

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Share is how often a guarantee held, with its 95 % interval.
type Share struct {
	Name     string  `json:"name,omitempty"` // of a group; a class has its number
	Examples int     `json:"examples"`
	Covered  float64 `json:"covered"` // share
	Low      float64 `json:"low"`
	High     float64 `json:"high"`

	sum, squares float64
	whole        bool // all shares so far are 0 or 1
}

// Mean is a mean over examples.
type Mean struct {
	Examples int     `json:"examples"`
	Mean     float64 `json:"mean"`
}

// Realised is how often the guarantees held for labelled examples.
type Realised struct {
	Coverage *Share  `json:"coverage,omitempty"` // of all classes or targets together
	Classes  []Share `json:"classes,omitempty"`
	Targets  []Share `json:"targets,omitempty"`
	Groups   []Share `json:"groups,omitempty"`
	// Size is the mean size of sets, if that is guaranteed. It has no interval: of few examples some lack the rare large sets, and
	// every usual interval is then too narrow.
	Size     *Mean   `json:"size,omitempty"`
	Wrong    *Share  `json:"wrong,omitempty"`    // share of wrong ones of the answers
	Answered float64 `json:"answered,omitempty"` // share of examples with an answer
	// Void says that no guarantee holds, and Because why.
	Void    bool     `json:"void,omitempty"`
	Because []string `json:"void_because,omitempty"`

	g       *Guarantee
	made    Made
	t       task.Task
	groupOf func(i int, name string) string
	groups  map[string]*Share
	at      map[string]int
	classes int
	strange map[string]int // examples of groups that have no threshold
	all     int            // labelled examples
	given   int            // answers
}

// NewRealised counts rows with these columns, which were made like that. It returns nil if nothing is guaranteed of them.
func NewRealised(g *Guarantee, made Made, t task.Task, columns []task.Column, groupOf func(i int, name string) string) *Realised {
	if g.Empty() {
		return nil
	}
	r := &Realised{
		g:       g,
		made:    made,
		t:       t,
		groupOf: groupOf,
		groups:  make(map[string]*Share),
		at:      make(map[string]int),
		classes: t.About().Classes,
	}
	at := 0
	for _, c := range columns {
		r.at[c.Name] = at
		at += c.Len()
	}
	if c := g.Coverage; c != nil {
		r.Coverage = newShare("")
		if c.Size > 0 {
			r.Size = &Mean{}
		}
		if n := task.Targets(t); n > 1 {
			r.Targets = shares(n)
		}
		if !c.Intervals() && !task.Large(t) {
			r.Classes = shares(r.classes)
		}
	}
	if g.Answers != nil {
		r.Wrong = newShare("")
	}
	return r
}

func newShare(name string) *Share { return &Share{Name: name, whole: true} }

func shares(n int) (list []Share) {
	for k := range n {
		list = append(list, *newShare(fmt.Sprint(k)))
	}
	return list
}

// Add adds a row that has predictions. It is for nil too.
func (r *Realised) Add(i int, name string, values []float64, label int) {
	if r == nil {
		return
	}
	if r.Size != nil {
		r.Size.Examples++
		r.Size.Mean += (values[r.at[task.SizeColumn]] - r.Size.Mean) / float64(r.Size.Examples)
	}
	if r.Coverage != nil {
		r.meet(i, name)
		if covered, known := r.covered(values, label); known {
			r.Coverage.add(covered)
			if r.groupOf != nil {
				if group := r.groupOf(i, name); group != "" {
					if r.groups[group] == nil {
						r.groups[group] = newShare(group)
					}
					r.groups[group].add(covered)
				}
			}
		}
	}
	if r.Wrong != nil && label >= 0 {
		r.all++
		if at, ok := r.at[task.AbstainColumn]; ok && values[at] == 0 {
			r.given++
			r.Wrong.add(one(int(values[r.at["prediction"]]) != label))
		}
	}
}

// meet counts an example of a group that has no threshold.
func (r *Realised) meet(i int, name string) {
	c := r.g.Coverage
	if c.By == "" || c.By == ByClass || r.groupOf == nil {
		return
	}
	if group := r.groupOf(i, name); group == "" || c.find(group).Group == "" {
		if r.strange == nil {
			r.strange = make(map[string]int)
		}
		r.strange[group]++
	}
}

// Strange says which groups have no threshold, or returns "".
func (r *Realised) Strange() string {
	if r == nil || len(r.strange) == 0 {
		return ""
	}
	var list []string
	n := 0
	for _, group := range slices.Sorted(maps.Keys(r.strange)) {
		n += r.strange[group]
		if len(list) < mostNamed {
			list = append(list, fmt.Sprintf("%q (%d)", group, r.strange[group]))
		}
	}
	if more := len(r.strange) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d of the examples are in groups that the guarantee does not know, and take the threshold of all examples. "+
		"Nothing is guaranteed for these groups alone: %s", n, strings.Join(list, ", "))
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// covered returns the share of the labels or numbers of a row that its set or interval contains, and counts its classes or targets.
func (r *Realised) covered(values []float64, label int) (share float64, known bool) {
	column := func(name string) []float64 {
		at, ok := r.at[name]
		if !ok {
			return nil
		}
		return values[at:]
	}
	if r.g.Coverage.Intervals() {
		lower, upper, target, n := column(task.LowerColumn), column(task.UpperColumn), column("target"), task.Targets(r.t)
		if lower == nil || target == nil || target[0] != target[0] {
			return 0, false
		}
		for k := range n {
			in := one(lower[k] <= target[k] && target[k] <= upper[k])
			share += in / float64(n)
			if r.Targets != nil {
				r.Targets[k].add(in)
			}
		}
		return share, true
	}
	if task.Large(r.t) {
		missed := column(task.MissedColumn)
		return 1 - first(missed), missed != nil && missed[0] == missed[0]
	}
	set, targets := column(task.SetColumn), column("labels")
	if set == nil {
		return 0, false
	}
	if _, paired := r.t.(task.Paired); !paired {
		if label < 0 {
			return 0, false
		}
		r.Classes[label].add(set[label])
		return set[label], true
	}
	has := 0.0
	for k := range r.classes {
		if targets != nil && targets[k] == 1 {
			has++
			share += set[k]
			r.Classes[k].add(set[k])
		}
	}
	return share / has, has > 0
}

func first(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return values[0]
}

func (s *Share) add(v float64) {
	s.Examples++
	s.sum, s.squares = s.sum+v, s.squares+v*v
	s.whole = s.whole && (v == 0 || v == 1)
}

// finish computes the share and its interval: that of Clopper and Pearson (1934) for examples that are covered or not, and
// otherwise that of the mean of their shares.
func (s *Share) finish() {
	if s.Examples > 0 {
		i := s.interval(0.05)
		s.Covered, s.Low, s.High = i.Mean, i.Low, i.High
	}
}

func (s *Share) interval(miss float64) chance.Interval {
	if s.whole {
		return chance.Exact(s.sum/float64(s.Examples), s.Examples)
	}
	return chance.ExactMean(s.sum, s.squares, s.Examples, miss)
}

// Finish computes all shares. drifted says that the predictions are unlike those of validation data. It returns nil if there are no
// labelled examples and the guarantee is not void, and for nil.
func (r *Realised) Finish(drifted bool) *Realised {
	if r == nil {
		return nil
	}
	r.Because = r.g.Void(r.made)
	if drifted {
		r.Because = append(r.Because, "it holds only for examples like those that chose it")
	}
	r.Void = r.Because != nil
	if (r.Coverage == nil || r.Coverage.Examples == 0) && (r.Size == nil || r.Size.Examples == 0) && r.all == 0 && !r.Void {
		return nil
	}
	if r.Coverage != nil {
		r.Coverage.finish()
	}
	for _, list := range [][]Share{r.Classes, r.Targets} {
		for k := range list {
			list[k].finish()
		}
	}
	r.Groups = nil
	for _, name := range slices.Sorted(maps.Keys(r.groups)) {
		r.groups[name].finish()
		r.Groups = append(r.Groups, *r.groups[name])
	}
	if r.Wrong != nil && r.all > 0 {
		r.Wrong.finish()
		r.Answered = float64(r.given) / float64(r.all)
	}
	return r
}

// Lines says how often the guarantees held, and which classes, targets and groups have less. names are those of classes.
func (r *Realised) Lines(names []string) (lines []string) {
	if r == nil {
		return nil
	}
	c := r.g.Coverage
	if s := r.Size; s != nil && s.Examples > 0 {
		lines = append(lines, fmt.Sprintf("sets: %.3g %s on average over %d examples, guaranteed at most %g", s.Mean,
			c.counted(r.t), s.Examples, Rounded(c.Size)))
	}
	if c != nil && r.Coverage.Examples > 0 {
		what := "sets contain the true class"
		_, paired := task.OnePosition(r.t).(task.Paired)
		switch {
		case c.Intervals():
			what = "intervals contain the true value"
		case task.Large(r.t):
			one, _ := placesOf(r.t)
			what = "sets contain the true classes of " + one
		case paired:
			what = "sets contain the true labels"
		}
		guaranteed := ""
		if c.Size == 0 {
			guaranteed = ", guaranteed " + c.Amount()
		}
		lines = append(lines, fmt.Sprintf("%s: %s%s", what, r.Coverage.text("examples"), guaranteed))
		lines = append(lines, c.below("class", c.By == ByClass, r.Classes, names)...)
		lines = append(lines, c.below("target", true, r.Targets, nil)...)
		lines = append(lines, c.below("group", c.By != "" && c.By != ByClass, r.Groups, nil)...)
	}
	if a := r.g.Answers; a != nil && r.all > 0 {
		wrong := "none is given"
		if r.given > 0 {
			wrong = r.Wrong.text("answers") + " wrong"
		}
		lines = append(lines, fmt.Sprintf("answers: given for %.1f %% of the examples: %s, guaranteed at most %g %%", 100*r.Answered, wrong,
			Rounded(100*a.Risk)))
	}
	return lines
}

func (s *Share) text(of string) string {
	return fmt.Sprintf("%.1f %% [%.1f, %.1f] of %d %s", 100*s.Covered, 100*s.Low, 100*s.High, s.Examples, of)
}

// surelyBelow reports whether the share is below the level for one of so many parts: none of them is called so by chance, with 97.5 %
// confidence (Bonferroni).
func (s *Share) surelyBelow(level float64, parts int) bool {
	if s.Examples == 0 || s.High >= level {
		return false
	}
	miss := 0.05 / float64(parts)
	if s.whole {
		return distuv.Binomial{N: float64(s.Examples), P: level}.CDF(s.sum) <= miss/2
	}
	return s.interval(miss).High < level
}

// below names the parts whose share is surely below the level, ten at most. own says that the guarantee is of each of them.
func (c *Coverage) below(what string, own bool, list []Share, names []string) (lines []string) {
	var low []string
	parts := 0
	for k := range list {
		if list[k].Examples > 0 {
			parts++
		}
	}
	for k := range list {
		if s := &list[k]; s.surelyBelow(c.Level, parts) {
			name := what + " " + s.Name
			if what == "class" {
				name = task.NameOf(what, k, names)
			}
			low = append(low, name+": "+s.text("examples"))
		}
	}
	if n := len(low); n > 10 {
		low = append(low[:10], fmt.Sprintf("and %d more", n-10))
	}
	if low == nil {
		return nil
	}
	if own {
		return []string{"below the guarantee: " + strings.Join(low, "; ")}
	}
	return []string{fmt.Sprintf("below %g %%, which is guaranteed of all examples together, and not of each %s: %s (%s is of each)",
		Rounded(100*c.Level), what, strings.Join(low, "; "), setting.By.With(map[string]string{"class": ByClass, "group": "HOW"}[what]))}
}
