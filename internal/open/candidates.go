package open

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/averages"
	"github.com/swagwrap/swagwrap/internal/programs"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
)

// candidates are the checkpoints of a fit, or of an average without a graph. Some of them may be averages or copies of others.
type candidates struct {
	*Opener
	how     Averages
	paths   []string
	marks   []string          // what the content of each says of an average, or ""
	moments map[string]string // of training, as the checkpoints store them, by path
	first   int               // the place of the first that was given: none before it is left out
	keeps   func(found string)
}

// An average is a checkpoint that holds an average of others, or may.
type average struct {
	at     int
	why    string
	proven bool // by its weights, or by a mark in its content
}

// averages returns the averages that are left out, and says so. It fails if only names or steps say that there are some. values has some
// weights of each checkpoint.
func (c *candidates) averages(values [][]float32) (found []average, err error) {
	found = c.find(values)
	proven := slices.DeleteFunc(slices.Clone(found), func(a average) bool { return !a.proven })
	switch keep := setting.Averages.With(string(KeepAverages)); {
	case c.how == KeepAverages:
		if len(proven) > 0 {
			c.keeps(c.named(proven))
		}
		return nil, nil
	case c.how != DropAverages && len(proven) < len(found):
		return nil, c.ask(found)
	case len(found) > 0 && len(found) == len(c.paths)-c.first:
		return nil, Usagef(keep+" takes them", "%s: leaves out all checkpoints", setting.Averages.With(string(c.how)))
	default:
		for _, a := range found {
			c.Logf("left out, since it is an average (%s takes it): %s: %s", keep, c.paths[a.at], a.why)
		}
		return found, nil
	}
}

// copies returns the checkpoints with the same weights as others, in order, and says that they are left out. Of two the one stays whose
// name says neither average nor copy, or else the first: a moving average begins as a copy of the first checkpoint, and programs save the
// last and the best one again. A file that is given twice stays, which is an error.
func (c *candidates) copies(of []checkpoints.Pair) (copies []int) {
	words := averages.Names(c.paths)
	doubt := func(at int) int {
		switch {
		case words[at] != "":
			return 2
		case programs.IsCopy(c.paths[at]):
			return 1
		}
		return 0
	}
	for _, pair := range of {
		keep, out := min(pair[0], pair[1]), max(pair[0], pair[1])
		if doubt(keep) > doubt(out) && keep >= c.first {
			keep, out = out, keep
		}
		a, b := c.paths[keep], c.paths[out]
		if out < c.first || a == b || slices.Contains(copies, out) {
			continue
		}
		why := ""
		if words[out] != "" && words[keep] == "" {
			why = fmt.Sprintf(", and the word %q in its name says that it is an average", words[out])
		}
		c.Logf("left out, since it has the same weights as %s%s: %s", a, why, b)
		copies = append(copies, out)
	}
	slices.Sort(copies)
	return copies
}

// named lists the files of averages.
func (c *candidates) named(found []average) string {
	const most = 3
	var names []string
	for _, a := range found {
		names = append(names, c.paths[a.at])
	}
	return report.Some(names, most)
}

// ask returns the error for checkpoints whose names or steps say that they are averages, if nothing proves it.
func (c *candidates) ask(found []average) error {
	open := slices.DeleteFunc(slices.Clone(found), func(a average) bool { return a.proven })
	err := Usagef(fmt.Sprintf("SWAG is about the weights that SGD moved. An average among them makes the posterior too narrow, and as "+
		"the last checkpoint it would stand for your network\n%s leaves out: %s\n%s takes them: they are weights that SGD moved",
		setting.Averages.With(string(DropAverages)), c.named(found), setting.Averages.With(string(KeepAverages))),
		"%s: %s, so it may be an average. Of the %[4]d checkpoints, %[3]d may be averages: %[5]s", c.paths[open[0].at], open[0].why,
		len(open), len(c.paths), c.named(open))
	return &AveragesError{err}
}

// An AveragesError is the question whether checkpoints are averages. [DropAverages] and [KeepAverages] answer it.
type AveragesError struct{ Err error }

func (e *AveragesError) Error() string { return e.Err.Error() }
func (e *AveragesError) Unwrap() error { return e.Err }

// find returns the averages from the first checkpoint on. Weights or content prove an average. A name, or steps that are shorter than
// those of other files of the same moments, only suggest one.
func (c *candidates) find(values [][]float32) []average {
	why := make([]average, len(c.paths))
	words, means := averages.Names(c.paths), averages.Find(values)
	called := slices.ContainsFunc(means, func(m averages.Mean) bool { return words[m.File] != "" })
	for _, m := range means {
		if first := len(m.Of) == 0; first && called && words[m.File] == "" {
			continue // a moving average begins at an iterate, which has a name like the other iterates
		}
		why[m.File] = average{m.File, c.meanOf(m), true}
	}
	if slices.Contains(c.marks[c.first:], "") { // otherwise they are a set of averages, and a warning says so
		for i, mark := range c.marks {
			if mark != "" && i >= c.first {
				why[i] = average{i, mark, true}
			}
		}
	}
	for i, word := range c.asked(words, why) {
		if word != "" && why[i].why == "" {
			why[i] = average{at: i, why: fmt.Sprintf("its name has the word %q", word)}
		}
	}
	for _, i := range c.smoother(values) {
		const shorter = "it is of the same moment as another file, and its weights move in shorter steps"
		if why[i].why == "" {
			why[i] = average{at: i, why: shorter}
		} else if !why[i].proven {
			why[i] = average{at: i, why: why[i].why + ", " + shorter, proven: true}
		}
	}
	return slices.DeleteFunc(why[c.first:], func(a average) bool { return a.why == "" })
}

// meanOf names the checkpoints whose mean a file is.
func (c *candidates) meanOf(m averages.Mean) string {
	if len(m.Of) == 0 {
		return "its weights are the moving average from which others go on"
	}
	of, how := slices.Sorted(slices.Values(m.Of)), "a weighted mean"
	if m.Equal {
		how = "the mean"
	}
	return fmt.Sprintf("its weights are %s of %d other checkpoints, %s to %s", how, len(of), filepath.Base(c.paths[of[0]]),
		filepath.Base(c.paths[of[len(of)-1]]))
}

// asked returns the words that are asked about. If all names have one, nothing shows which are iterates, and it returns none.
func (c *candidates) asked(words []string, why []average) []string {
	for i, word := range words[c.first:] {
		if word == "" && why[c.first+i].why == "" {
			return words
		}
	}
	c.Logf("the names of all checkpoints have a word such as %q. If they are averages, the posterior is too narrow: averages vary less "+
		"than the weights that SGD moved", cmp.Or(words[c.first:]...))
	return nil
}

// allNumbers matches the numbers of a name.
var allNumbers = regexp.MustCompile(`\d+`)

// smoother returns the checkpoints that are moving averages of others, if most come in pairs of the same moment: of one stored
// step, or else with the same numbers in their names.
func (c *candidates) smoother(values [][]float32) []int {
	moments := map[string][]int{}
	for i, path := range c.paths[c.first:] {
		moment := c.moments[path]
		if moment == "" {
			moment = strings.Join(allNumbers.FindAllString(filepath.Base(path), -1), " ")
		}
		moments[moment] = append(moments[moment], c.first+i)
	}
	var a, b []int
	for _, pair := range moments {
		if len(pair) == 2 {
			x, y := filepath.Base(c.paths[pair[0]]), filepath.Base(c.paths[pair[1]])
			if cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)) > 0 {
				pair[0], pair[1] = pair[1], pair[0]
			}
			a, b = append(a, pair[0]), append(b, pair[1])
		}
	}
	if 5*2*len(a) < 4*(len(c.paths)-c.first) {
		return nil
	}
	slices.Sort(a)
	slices.Sort(b)
	return averages.Smoother(values, a, b)
}
