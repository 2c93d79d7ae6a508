package onnxio

import "fmt"

// A Signature is what a runtime must know about a model before it loads it.
type Signature struct {
	Inputs  []Value // inputs that a run must give
	Outputs []Value
	// Nodes is the number of nodes in all graphs after every call of a model-local function is written out, as a
	// runtime does it.
	Nodes int64
	// Loops says that there is a Loop, which may never end.
	Loops bool
}

// Signature returns the signature of m.
func (m *Model) Signature() Signature {
	return Signature{m.FeedInputs(), m.Graph.Outputs, m.nodes, m.loops}
}

// Limits of the nodes that functions may add to a model. Exporters nest functions a few levels deep. But thirty
// functions that each call the next one twice are a billion nodes.
const (
	maxInlined  = 10_000
	maxInlining = 4 // times the nodes in the file, if that is more
)

// inline counts the model's nodes for [Signature]. It fails if functions produce far more nodes than the file holds.
func (m *Model) inline() error {
	functions := make(map[string]*Graph, len(m.Functions))
	for _, f := range m.Functions {
		functions[f.Domain+"\x00"+f.Name] = f
	}
	written := int64(0) // nodes in the file, of the functions that are reached
	const counting = -1 // for a function whose count is not finished
	counted := make(map[*Graph]int64)
	var count func(g *Graph) (int64, error)
	count = func(g *Graph) (int64, error) {
		if n, ok := counted[g]; ok && n == counting {
			return 0, &Error{What: fmt.Sprintf("function %q calls itself", g.Name)}
		} else if ok {
			return n, nil
		}
		counted[g] = counting
		written += int64(len(g.Nodes))
		total := int64(0)
		for _, n := range g.Nodes {
			m.loops = m.loops || n.OpType == "Loop"
			var parts []*Graph
			if f := functions[n.Domain+"\x00"+n.OpType]; f != nil {
				parts = append(parts, f)
			} else {
				total++
			}
			for _, a := range n.Attributes {
				parts = append(parts, a.Graphs...)
			}
			for _, part := range parts {
				inside, err := count(part)
				if err != nil {
					return 0, err
				}
				if total += inside; total > max(maxInlined, maxInlining*written) {
					return 0, &Error{What: fmt.Sprintf("function %q: the calls in it make more than %d nodes of the %d in the file",
						part.Name, total, written),
						Hint: "no exporter nests functions so"}
				}
			}
		}
		counted[g] = total
		return total, nil
	}
	var err error
	m.nodes, err = count(m.Graph)
	return err
}
