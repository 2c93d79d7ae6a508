package programs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/averages"
	"github.com/swagwrap/swagwrap/internal/progress"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A Set is one set of checkpoints in a folder: those of one network, in one place.
type Set struct {
	Place string   // its folder, or folders, such as run/checkpoint-*
	Paths []string // in the order of the names
	// Over are names of similar files that are left out, and Why says why: their names show copies.
	Over []string
	Why  string
}

// Choice is what of a folder is taken.
type Choice struct {
	Set
	Others []Set    // taken for no checkpoints of the set, but there
	Empty  []string // files without weights
}

// A SeveralError is the question which of several sets is meant.
type SeveralError struct {
	Dir  string
	Sets []Set
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%s: %d sets of checkpoints, want one", e.Dir, len(e.Sets))
}

// Choose returns the set of checkpoints in a folder. It returns an empty one if there is none, and a [SeveralError] if nothing decides.
// fits, unless it is nil, reports whether a file has weights for the network.
//
// A graph is what checkpoints are read against. Graphs are checkpoints only if there are no others.
func (f *Folder) Choose(fits func(*statefile.File) bool) (*Choice, error) {
	c := &Choice{}
	states := c.sets(f, f.States)
	if len(states) == 0 && len(f.Graphs) == 0 && len(c.Empty) > 0 { // reading them reports the error
		states, c.Empty = []Set{{Place: f.Dir, Paths: c.Empty}}, nil
	}
	graphs := c.sets(f, f.Graphs)
	here := func(s Set) bool { return s.Place == f.Dir || len(s.Paths) == 1 && s.Paths[0] == f.Dir }
	strong := func(s Set) bool { return len(s.Paths) > 1 }
	deeper := func(s Set) bool { return !here(s) }
	usable := states
	if fits != nil && len(some(states, strong)) > 1 {
		usable = slices.DeleteFunc(slices.Clone(states), func(s Set) bool {
			file, err := f.Open(s.Paths[0])
			return err == nil && !fits(file)
		})
		if len(some(usable, strong)) == 0 { // a graph that fits none decides nothing, and must not become the checkpoint
			usable = states
		}
	}
	if iterates := some(usable, func(s Set) bool { return !f.averaged(s) }); len(some(iterates, strong)) > 0 {
		usable = iterates
	}
	for _, candidates := range [][]Set{
		some(usable, here, strong),
		some(graphs, here, strong, func(Set) bool { return len(some(usable, strong)) == 0 }),
		some(usable, deeper, strong),
		some(usable, here),
		some(usable, deeper),
		some(graphs, here),
		some(graphs, deeper, strong),
		some(graphs, deeper),
	} {
		if len(candidates) == 0 {
			continue
		}
		chosen := candidates[0]
		if rivals := f.rivals(chosen, candidates, some(usable, here)); len(rivals) > 1 {
			return nil, &SeveralError{f.Dir, rivals}
		}
		if f.Cut && deeper(chosen) {
			return nil, &SeveralError{f.Dir, candidates}
		}
		c.Set = chosen
		if !slices.ContainsFunc(f.Graphs, func(g string) bool { return g == chosen.Paths[0] }) {
			c.Others = some(states, func(s Set) bool { return s.Paths[0] != chosen.Paths[0] })
		}
		return c, nil
	}
	return c, nil
}

func (f *Folder) averaged(s Set) bool {
	file, err := f.Open(s.Paths[len(s.Paths)-1])
	return err == nil && !slices.ContainsFunc(file.StateDicts(), func(sd *statefile.StateDict) bool { return sd.Average().Mark == "" })
}

// rivals returns the sets between which nothing decides. A single file beside a set below is a copy by its name or by its weights, or else
// it is a rival.
func (f *Folder) rivals(chosen Set, candidates, here []Set) []Set {
	if len(candidates) > 1 && len(chosen.Paths) > 1 {
		return candidates
	}
	if len(candidates) > 1 { // single files
		named := some(candidates, func(s Set) bool { return copyRank(filepath.Base(s.Paths[0])) == 0 })
		if len(named) != 1 {
			return candidates
		}
		return nil
	}
	if chosen.Place == f.Dir {
		return nil
	}
	return append([]Set{chosen}, some(here, func(s Set) bool {
		return s.Paths[0] != chosen.Paths[0] && !slices.ContainsFunc(chosen.Paths, func(p string) bool { return p == s.Paths[0] }) &&
			copyRank(filepath.Base(s.Paths[0])) == 0 && !f.copied(s.Paths[0], chosen.Paths)
	})...)
}

// copied reports whether one of the files has the very weights of another one.
func (f *Folder) copied(path string, of []string) bool {
	a, err := f.Open(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(of, func(o string) bool {
		b, err := f.Open(o)
		return err == nil && slices.ContainsFunc(a.StateDicts(), func(x *statefile.StateDict) bool {
			return slices.ContainsFunc(b.StateDicts(), func(y *statefile.StateDict) bool { return x.SameWeights(y) })
		})
	})
}

func some(sets []Set, with ...func(Set) bool) []Set {
	return slices.DeleteFunc(slices.Clone(sets), func(s Set) bool {
		return slices.ContainsFunc(with, func(is func(Set) bool) bool { return !is(s) })
	})
}

// sets groups paths by their places, and in a place by their networks.
func (c *Choice) sets(f *Folder, paths []string) (sets []Set) {
	places := map[string][]string{}
	var order []string
	for _, path := range paths {
		place := filepath.Dir(path)
		if path == f.Dir {
			place = f.Dir
		} else if place != f.Dir && moments.MatchString(filepath.Base(place)) { // run/epoch_1/model.pt, run/epoch_2/model.pt
			place = filepath.Join(filepath.Dir(place), "*", digits.ReplaceAllString(filepath.Base(path), "#"))
		}
		if places[place] == nil {
			order = append(order, place)
		}
		places[place] = append(places[place], path)
	}
	alone := len(order) == 1
	for _, place := range order {
		for _, of := range c.networks(f, places[place], alone) {
			s := Set{Place: place}
			s.Paths, s.Over, s.Why = primary(of)
			s.Paths = progress.Sort(s.Paths).Paths
			sets = append(sets, s)
		}
	}
	return sets
}

var digits = regexp.MustCompile(`\d+`)

// networks divides the files of one place by their networks. Of files whose names differ by numbers it opens the first. alone says that
// there is no other place. Then unreadable files stay, and the command that reads them reports the error.
func (c *Choice) networks(f *Folder, paths []string, alone bool) (out [][]string) {
	byName := map[string][]string{}
	var names []string
	for _, path := range paths {
		name := digits.ReplaceAllString(filepath.Base(path), "#")
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], path)
	}
	if len(names) == 1 && (alone || len(paths) > 1) {
		return [][]string{paths}
	}
	var firsts []string
	for _, name := range names {
		first := byName[name][0]
		file, err := f.Open(first)
		if statefile.HoldsNothing(err) {
			c.Empty = append(c.Empty, byName[name]...)
			continue
		}
		at := -1
		if err == nil {
			at = slices.IndexFunc(firsts, func(o string) bool {
				other, err := f.Open(o)
				return err != nil || file.SameNetwork(other)
			})
		} else if len(firsts) > 0 {
			at = 0 // it cannot be read, and must not be left out in silence
		}
		if at < 0 {
			firsts, out = append(firsts, first), append(out, byName[name])
		} else {
			out[at] = append(out[at], byName[name]...)
		}
	}
	return out
}

// primary splits the files of a set from copies that training scripts save of them under a name without a number, such as best or last.
func primary(paths []string) (kept, over []string, why string) {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	prefix, suffix := Common(names)
	for i, path := range paths {
		if strings.ContainsAny(names[i][len(prefix):len(names[i])-len(suffix)], "0123456789") {
			kept = append(kept, path)
		} else {
			over = append(over, names[i])
		}
	}
	if len(kept) > 1 {
		return kept, over, "others have a number in their names and these have none"
	}
	least := len(copyWords)
	for _, name := range names {
		if averages.Word(name) == "" {
			least = min(least, copyRank(name))
		}
	}
	kept, over = nil, nil
	for i, path := range paths {
		if rank := copyRank(names[i]); least < len(copyWords) && rank > least {
			over = append(over, names[i])
		} else {
			kept = append(kept, path)
		}
	}
	return kept, over, "their names say that they are copies of a checkpoint"
}

// copyWords are what programs call the copy of a checkpoint. The first is an iterate most often.
var copyWords = [][]string{{}, {"last", "latest"}, {"final"}, {"best"}}

// copyRank returns the place of a name's word among the copyWords, or 0.
func copyRank(name string) int {
	for _, w := range averages.Words(name) {
		for rank, of := range copyWords {
			if slices.Contains(of, strings.ToLower(w)) {
				return rank
			}
		}
	}
	return 0
}

// IsCopy reports whether a file's name says that it is a copy of another checkpoint.
func IsCopy(path string) bool { return copyRank(filepath.Base(path)) > 0 }

// Common returns the common beginning of all names, and the common end of the rest. It never cuts a number.
func Common(names []string) (prefix, suffix string) {
	if len(names) < 2 {
		return "", ""
	}
	const digits = "0123456789"
	prefix = names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	prefix = strings.TrimRight(prefix, digits)
	suffix = names[0][len(prefix):]
	for _, name := range names {
		for !strings.HasSuffix(name[len(prefix):], suffix) {
			suffix = suffix[1:]
		}
	}
	return prefix, strings.TrimLeft(suffix, digits)
}
