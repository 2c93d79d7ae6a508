package checkpoints

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A naming maps the state_dict's name of a tensor to the graph's name. In either file, wrappers with unknown
// attribute names may surround the network.
type naming struct{ strip, add string }

// graph returns the graph's name of a tensor, or "" for a tensor that does not belong to the network.
func (n naming) graph(name string) string {
	rest, found := strings.CutPrefix(name, n.strip)
	if !found {
		return ""
	}
	return n.add + rest
}

// maxVoters is the number of tensors whose names are used to find a naming.
const maxVoters = 200

// maxNear is how many names on each side of a voter's place are compared with it. The graph's names are sorted from
// their ends.
const maxNear = 250

// maxNamings is the number of namings that are tried.
const maxNamings = 4

// findNamings returns the namings that find the most tensors of the state_dict in the graph, best first. There are
// several if the state_dict holds several networks, such as a student and a teacher.
func findNamings(s *state, graph map[string]*onnxio.Tensor) []naming {
	names := slices.SortedFunc(maps.Keys(graph), compareEnds)
	votes := map[naming]int{{}: 1}
	step := len(s.dict.Tensors)/maxVoters + 1
	for i := 0; i < len(s.dict.Tensors); i += step {
		x := s.dict.Tensors[i]
		at, _ := slices.BinarySearchFunc(names, x.Short, compareEnds)
		for _, name := range names[max(0, at-maxNear):min(len(names), at+maxNear)] {
			if end := commonEnd(x.Short, name); end != "" && sameShape(x.Shape, graph[name].Shape) {
				votes[naming{strings.TrimSuffix(x.Short, end), strings.TrimSuffix(name, end)}]++
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(votes), func(a, b naming) int {
		return cmp.Or(votes[b]-votes[a], strings.Compare(a.strip, b.strip), strings.Compare(a.add, b.add))
	})
	all = all[:min(len(all), 2*maxNamings)]
	fits := make(map[naming]int)
	for _, n := range all {
		fits[n] = fitting(n, s, graph)
	}
	slices.SortStableFunc(all, func(a, b naming) int { return fits[b] - fits[a] })
	best := fits[all[0]]
	return slices.DeleteFunc(all[:min(len(all), maxNamings)], func(n naming) bool {
		return fits[n] < best/2 || fits[n] == 0 && n != naming{}
	})
}

// fitting returns how many tensors a naming finds in the graph.
func fitting(n naming, s *state, graph map[string]*onnxio.Tensor) (found int) {
	for _, x := range s.dict.Tensors {
		if t := graph[n.graph(x.Short)]; t != nil && sameShape(x.Shape, t.Shape) {
			found++
		}
	}
	return found
}

// compareEnds orders names by their last byte, then by the one before it, and so on. Names with a long common end are
// neighbours.
func compareEnds(a, b string) int {
	i, j := len(a), len(b)
	for i > 0 && j > 0 && a[i-1] == b[j-1] {
		i, j = i-1, j-1
	}
	if i == 0 || j == 0 {
		return cmp.Compare(i, j)
	}
	return cmp.Compare(a[i-1], b[j-1])
}

// commonEnd returns the whole attributes at the end of both names, such as "conv1.weight".
func commonEnd(a, b string) string {
	i, j := len(a), len(b)
	for i > 0 && j > 0 && a[i-1] == b[j-1] {
		i, j = i-1, j-1
	}
	if (i == 0 || a[i-1] == '.') && (j == 0 || b[j-1] == '.') {
		return a[i:]
	}
	_, end, found := strings.Cut(a[i:], ".")
	if !found {
		return ""
	}
	return end
}

// unmerge returns m with separate tensors for those of the state_dict that the exporter merged with others.
func unmerge(m *onnxio.Model, n naming, tensors []*statefile.Tensor) (*onnxio.Model, error) {
	merged := m.Merged()
	var names []string
	for _, x := range tensors {
		name := n.graph(x.Short)
		if t := merged[name]; t != nil && t.IsFloat() && sameShape(x.Shape, t.Shape) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return m, nil
	}
	return m.Unmerge(names)
}
