package checkpoints

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// A naming makes the graph's name of a tensor from the state_dict's: wrappers whose
// attribute names nobody can know stand around the network in the one file or the
// other.
type naming struct{ strip, add string }

// graph returns the graph's name of a tensor, "" for one that is not of the network.
func (n naming) graph(name string) string {
	rest, found := strings.CutPrefix(name, n.strip)
	if !found {
		return ""
	}
	return n.add + rest
}

// maxVoters is the number of tensors whose names are looked at for a naming.
const maxVoters = 200

// maxNamings is the number of namings that are tried.
const maxNamings = 4

// findNamings returns the namings by which most tensors of the state_dict are in the
// graph, the best first. There are several where it holds several networks, such as
// a student and a teacher.
func findNamings(s *state, graph map[string]*onnxio.Tensor) []naming {
	votes := map[naming]int{{}: 1}
	step := len(s.dict.Tensors)/maxVoters + 1
	for i := 0; i < len(s.dict.Tensors); i += step {
		x := s.dict.Tensors[i]
		for name, t := range graph {
			if end := commonEnd(x.Short, name); end != "" && sameShape(x.Shape, t.Shape) {
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
	return slices.DeleteFunc(all[:min(len(all), maxNamings)], func(n naming) bool { return fits[n] < best/2 || fits[n] == 0 && n != naming{} })
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

// commonEnd returns the whole attributes that both names end in, such as
// "conv1.weight".
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

// graphTensors returns the graph's float tensors by name, those that Identity nodes
// name among them.
func graphTensors(m *onnxio.Model) map[string]*onnxio.Tensor {
	out := make(map[string]*onnxio.Tensor)
	for name, t := range namesOf(m) {
		if t.IsFloat() {
			out[name] = t
		}
	}
	return out
}

// unmerge gives the tensors of the state_dict that the exporter merged with others
// a place of their own in the graph.
func unmerge(m *onnxio.Model, n naming, tensors []*torch.Tensor) (*onnxio.Model, error) {
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
