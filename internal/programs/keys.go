package programs

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/averages"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// Content is what a key of the files holds.
type Content string

const (
	Iterate Content = "iterate" // the weights that SGD moved
	Average Content = "average" // a mean of them
	Unknown Content = "unknown"
)

// A Key is a place in all files of a set where a network is.
type Key struct {
	Name    string
	Content Content
	Why     string
	Of      string  // the key of the very same weights, or ""
	marked  bool    // the files themselves say what it holds
	Moves   float64 // root mean square of a weight's step between two files, or 0 if there is one file
}

// AverageWords matches the keys under which programs keep averages of weights.
var AverageWords = regexp.MustCompile(`(?i)ema|aver|avg|swa|shadow`)

// Keys returns the networks in each file of a set, if there are several, and tells iterates from averages. The files are in the order of
// training. iterate is the name of the one key that SGD moved, or "" if nothing tells it.
//
// Marks that a program leaves decide first, then the words of the names, if steps between the files do not contradict: an average moves
// less. Where names say nothing, steps of less than 1/√2 in all files decide.
func Keys(files []*statefile.File) (keys []Key, iterate string) {
	if len(files) == 0 || len(files[0].StateDicts()) < 2 {
		return nil, ""
	}
	networks := map[string][]*statefile.StateDict{}
	for _, name := range networkKeys(files[0]) {
		for _, f := range files {
			sd, err := f.StateDict(name)
			if err != nil || !sd.SameNetwork(first(networks[name], sd)) {
				break
			}
			networks[name] = append(networks[name], sd)
		}
		if of := networks[name]; len(of) == len(files) {
			keys = append(keys, Key{Name: name, Content: Unknown, Moves: moves(of)})
		}
	}
	marked(keys, networks)
	named(keys, networks)
	for _, k := range keys {
		if k.Content != Iterate || k.Of != "" {
			continue
		}
		for _, o := range keys {
			a, b := networks[k.Name][0], networks[o.Name][0]
			further := k.Moves > 0 && o.Moves >= k.Moves && !o.marked
			if o.Name != k.Name && o.Of != k.Name && (o.Content != Average || !a.SameNetwork(b) || further) {
				return keys, ""
			}
		}
		return keys, k.Name
	}
	return keys, ""
}

func first(of []*statefile.StateDict, or *statefile.StateDict) *statefile.StateDict {
	if len(of) > 0 {
		return of[0]
	}
	return or
}

// networkKeys returns the keys of a file's networks. A state_dict may hold several.
func networkKeys(f *statefile.File) (keys []string) {
	for _, sd := range f.StateDicts() {
		if parts := sd.NetworkKeys(); len(parts) > 0 && sd.Key != "" {
			keys = append(keys, parts...)
		} else if sd.MeanKey() == "" && len(sd.Tensors) > 0 {
			keys = append(keys, behind(f, sd))
		}
	}
	return keys
}

// behind returns the key of a state_dict, with the beginning of its names if the rest of them are those of another network of the file.
func behind(f *statefile.File, sd *statefile.StateDict) string {
	part, _, ok := strings.Cut(sd.Tensors[0].Name, ".")
	key := sd.Key + "/" + part
	if inner, err := f.StateDict(key); ok && sd.Key != "" && err == nil && len(inner.Tensors) == len(sd.Tensors) &&
		slices.ContainsFunc(f.StateDicts(), func(o *statefile.StateDict) bool { return o.SameNetwork(inner) && !o.SameNetwork(sd) }) {
		return key
	}
	return sd.Key
}

// moves returns the root mean square of the steps between the files, of at most sample weights of each tensor.
func moves(of []*statefile.StateDict) float64 {
	const sample = 1 << 10
	var sums []float64
	n := 0
	for i := 1; i < len(of); i++ {
		sum := 0.
		n = 0
		for _, t := range of[i].Tensors {
			before, ok := of[i-1].Find(t.Name)
			if ok && before.Len() == t.Len() && !statefile.IsStatistic(t.Name) {
				d, count := squares(before, t, sample)
				sum, n = sum+d, n+count
			}
		}
		sums = append(sums, sum)
	}
	return rms(sums, n)
}

// marked sets what the files themselves say. A moving average begins as the weights of the first files: until it differs, an average has no
// count, and the weights that SGD moved are equal to it.
func marked(keys []Key, networks map[string][]*statefile.StateDict) {
	for i := range keys {
		of := networks[keys[i].Name]
		last := of[len(of)-1].Average()
		differs := func(sd *statefile.StateDict) bool {
			return (sd.Average().Mark != "") != (last.Mark != "") || sd.Average().Iterates != last.Iterates
		}
		begins := slices.IndexFunc(of, func(sd *statefile.StateDict) bool { return !differs(sd) })
		if slices.ContainsFunc(of[begins:], differs) || 2*begins >= len(of) {
			keys[i].Why = "only some files say that it is an average"
			continue
		}
		switch {
		case last.Mark != "":
			keys[i].Content, keys[i].Why, keys[i].marked = Average, last.Mark, true
		case last.Iterates:
			keys[i].Content, keys[i].Why, keys[i].marked = Iterate, "the program exchanged the two", true
		}
	}
}

// named sets what names say of the keys, or else how far they move. Of equal networks the first counts.
func named(keys []Key, networks map[string][]*statefile.StateDict) {
	var open []int
	marks := slices.ContainsFunc(keys, func(k Key) bool { return k.Content == Iterate })
	for i := range keys {
		last := keys[i].Name[strings.LastIndexByte(keys[i].Name, '/')+1:]
		twin := slices.IndexFunc(keys[:i], func(o Key) bool {
			return !slices.ContainsFunc(networks[o.Name], func(sd *statefile.StateDict) bool {
				return !sd.SameWeights(networks[keys[i].Name][slices.Index(networks[o.Name], sd)])
			})
		})
		switch {
		case keys[i].Content != Unknown || keys[i].Why != "":
		case AverageWords.MatchString(last) || averages.Word(last) != "" || AverageWords.MatchString(keys[i].Name) && twin < 0:
			keys[i].Content, keys[i].Why = Average, "by its name"
		case twin >= 0:
			keys[i].Of = keys[twin].Name
		case !marks:
			open = append(open, i)
		}
	}
	if len(open) == 2 {
		slices.SortFunc(open, func(a, b int) int { return cmp.Compare(keys[b].Moves, keys[a].Moves) })
		a, b := networks[keys[open[0]].Name], networks[keys[open[1]].Name]
		if len(a) > 3 && a[0].SameNetwork(b[0]) && smoother(a, b) {
			keys[open[1]].Content, keys[open[1]].Why = Average, "its steps are shorter in all files"
			open = open[:1]
		}
	}
	if len(open) == 1 {
		keys[open[0]].Content, keys[open[0]].Why = Iterate, "the others are averages"
	}
	for i, k := range keys {
		if of := slices.IndexFunc(keys, func(o Key) bool { return o.Name == k.Of }); of >= 0 {
			keys[i].Content, keys[i].Why = keys[of].Content, fmt.Sprintf("the same weights as %q", k.Of)
		}
	}
}

// smoother reports whether b moves less than a between all files, and in all less than 1/√2 as far.
func smoother(a, b []*statefile.StateDict) bool {
	for i := 1; i < len(a); i++ {
		if moves(b[i-1:i+1]) >= moves(a[i-1:i+1]) {
			return false
		}
	}
	m := moves(a)
	n := moves(b)
	return 2*n*n < m*m
}

// String has the key, its content, the reason, and how far its weights move.
func (k Key) String() string {
	s := fmt.Sprintf("%q: %s", k.Name, k.Content)
	if k.Why != "" {
		s += " (" + k.Why + ")"
	}
	if k.Moves > 0 {
		s += fmt.Sprintf(", a weight moves %.2g between files", k.Moves)
	}
	return s
}

// Describe joins the texts of the keys.
func Describe(keys []Key) string {
	var parts []string
	for _, k := range keys {
		parts = append(parts, k.String())
	}
	return strings.Join(parts, "; ")
}

// squares returns the sum of squared differences of at most most elements of two tensors, and their number.
func squares(a, b *statefile.Tensor, most int64) (sum float64, n int) {
	x, y := make([]float32, min(most, a.Len())), make([]float32, min(most, a.Len()))
	a.DType.Float32s(x, a.Stretch(0, int64(len(x))))
	b.DType.Float32s(y, b.Stretch(0, int64(len(y))))
	for i, v := range x {
		d := float64(y[i]) - float64(v)
		sum += d * d
	}
	return sum, len(x)
}

// rms returns the root mean square over the files and over the n weights of each.
func rms(sums []float64, n int) float64 {
	total := 0.
	for _, s := range sums {
		total += s
	}
	if n == 0 || len(sums) == 0 {
		return 0
	}
	return math.Sqrt(total / float64(n) / float64(len(sums)))
}
