package onnxio

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A speller writes a layer in operators, in a random one of many ways.
type speller struct {
	*rand.Rand
	channels    int
	shape       []int64 // of a vector that broadcasts along the channels
	nodes, init [][]byte
	tensors     map[string][]float32
	count       int
}

// node adds a node and returns the name of its output.
func (s *speller) node(op string, inputs ...string) string {
	s.count++
	out := fmt.Sprintf("%s_%d", op, s.count)
	if (op == "Add" || op == "Mul") && s.IntN(2) == 0 {
		inputs[0], inputs[1] = inputs[1], inputs[0]
	}
	s.nodes = append(s.nodes, node(op, "", inputs, []string{out}))
	return out
}

// stored adds a tensor of these elements, in a shape that broadcasts along the channels or has to be changed.
func (s *speller) stored(name string, element func() float32) string {
	values := make([]float32, s.channels)
	var raw []byte
	for i := range values {
		values[i] = element()
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(values[i]))
	}
	s.tensors[name] = values
	if s.IntN(3) == 0 {
		s.init = append(s.init, tensor(name, Float, s.shape, raw))
		return name
	}
	s.init = append(s.init, tensor(name, Float, []int64{int64(s.channels)}, raw))
	return s.along(name)
}

// along makes a list of numbers broadcast along the channels.
func (s *speller) along(name string) string {
	s.count++
	list := fmt.Sprintf("list_%d", s.count)
	ints := func(values ...int64) {
		var raw []byte
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
		}
		s.init = append(s.init, tensor(list, Int64, []int64{int64(len(values))}, raw))
	}
	if len(s.shape) > 1 && s.IntN(2) == 0 {
		var axes []int64
		for axis, d := range s.shape {
			if d == 1 {
				axes = append(axes, int64(axis))
			}
		}
		ints(axes...)
		return s.node("Unsqueeze", name, list)
	}
	ints(s.shape...)
	if s.IntN(4) == 0 {
		return s.node("Expand", s.node("Reshape", name, list), list)
	}
	return s.node("Reshape", name, list)
}

func (s *speller) number(v float32) string {
	s.count++
	name := fmt.Sprintf("number_%d", s.count)
	s.init = append(s.init, tensor(name, Float, nil, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))))
	return name
}

// root returns √(v + ε), or √v + ε if outside.
func (s *speller) root(v string, epsilon float32, outside bool) string {
	if !outside {
		v = s.node("Add", v, s.number(epsilon))
	}
	if s.IntN(2) == 0 {
		v = s.node("Sqrt", v)
	} else {
		v = s.node("Pow", v, s.number(0.5))
	}
	if outside {
		v = s.node("Add", v, s.number(epsilon))
	}
	return v
}

// over returns x divided by root, in one of four ways.
func (s *speller) over(x, root string) string {
	switch s.IntN(4) {
	case 0:
		return s.node("Mul", x, s.node("Reciprocal", root))
	case 1:
		return s.node("Mul", x, s.node("Div", s.number(1), root))
	case 2:
		return s.node("Mul", x, s.node("Pow", root, s.number(-1)))
	}
	return s.node("Div", x, root)
}

// perhaps returns "" or the name of a stored vector.
func (s *speller) perhaps(name string, element func() float32) string {
	if s.IntN(4) == 0 {
		return ""
	}
	return s.stored(name, element)
}

func (s *speller) with(op, x, y string) string {
	if y == "" {
		return x
	}
	return s.node(op, x, y)
}

// batchNorm writes (x − m)·γ/√(v + ε) + β and returns its name. γ and β may be missing.
func (s *speller) batchNorm(x string, epsilon float32, outside bool) string {
	normal := func() float32 { return float32(s.NormFloat64()) }
	m, v := s.stored("m", normal), s.stored("v", func() float32 { return float32(s.ExpFloat64()) + 1e-3 })
	gamma, beta := s.perhaps("gamma", normal), s.perhaps("beta", normal)
	root := s.root(v, epsilon, outside)
	factor := func() string { // γ/√(v + ε)
		if gamma == "" {
			return s.over(s.number(1), root)
		}
		return s.over(gamma, root)
	}
	switch s.IntN(6) {
	case 0: // x·s + (β − m·s)
		scale := factor()
		if beta == "" {
			return s.node("Sub", s.node("Mul", x, scale), s.node("Mul", m, scale))
		}
		return s.node("Add", s.node("Mul", x, scale), s.node("Sub", beta, s.node("Mul", m, scale)))
	case 1: // x·s + (−m·s + β), as jax2onnx writes it
		scale := factor()
		return s.node("Add", s.node("Mul", x, scale), s.with("Add", s.node("Mul", s.node("Neg", m), scale), beta))
	case 2: // (x − m)·s + β
		return s.with("Add", s.node("Mul", s.node("Sub", x, m), factor()), beta)
	case 3: // x/r − m/r, times γ, plus β
		return s.with("Add", s.with("Mul", s.node("Sub", s.over(x, root), s.over(m, root)), gamma), beta)
	case 4: // β − (m − x)·s
		y := s.node("Mul", s.node("Sub", m, x), factor())
		if beta == "" {
			return s.node("Neg", y)
		}
		return s.node("Sub", beta, y)
	default: // γ·(x + (−m))/r + β
		return s.with("Add", s.over(s.with("Mul", s.node("Add", x, s.node("Neg", m)), gamma), root), beta)
	}
}

func (s *speller) model(t *testing.T, output string) *Model {
	x := node("Conv", "", []string{"pixels", "kernel"}, []string{"x"})
	kernel := tensor("kernel", Float, []int64{2, 2, 1, 1}, make([]byte, 16))
	return parse(t, encodeModel(graph(append([][]byte{x}, s.nodes...), append(s.init, kernel), [][]byte{outputOf(output)})))
}

func outputOf(name string) []byte { return output(name, Float) }

func newSpeller(seed uint64) *speller {
	s := &speller{Rand: rand.New(rand.NewPCG(seed, 0)), tensors: make(map[string][]float32)}
	s.channels = 2 + s.IntN(6)
	c := int64(s.channels)
	s.shape = [][]int64{{c}, {1, 1, 1, c}, {c, 1, 1}, {1, c, 1, 1}, {1, 1, c, 1}, {c, 1}}[s.IntN(6)]
	return s
}

// Batch norm is found in every spelling, with its mean, variance, ε, scale and shift.
func TestSpellings(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		s := newSpeller(seed)
		epsilon, outside := float32(math.Pow(10, -1-5*s.Float64())), s.IntN(3) == 0
		x := "x"
		if s.IntN(2) == 0 { // a layer's own bias comes before
			x = s.node("Add", x, s.stored("bias", s.Float32))
		}
		layer := s.batchNorm(x, epsilon, outside)
		y := layer
		if s.IntN(2) == 0 {
			y = s.node("Mul", y, s.stored("after", s.Float32))
		}
		m := s.model(t, s.node("Relu", y))
		got := m.WrittenBatchNorms()
		if len(got) != 1 || got[0].Mean != "m" || got[0].Var != "v" || got[0].Input != x || got[0].Channels != int64(s.channels) ||
			!near(got[0].Epsilon, float64(epsilon), 1e-6*float64(epsilon)) {
			t.Fatalf("seed %d: %+v, want m, v and ε = %v", seed, got, epsilon)
		}
		w, f := got[0].Written, m.formulas()
		var steps []*step // of the layer, with a scale and a shift that follow what is computed from m and v
		for at := f.made[layer]; ; at = at.from {
			if steps = append([]*step{at}, steps...); at.place.Node.Inputs[at.data] == x {
				break
			}
		}
		for c := range s.channels {
			n := make(values)
			for name, elements := range s.tensors {
				n[m.Tensor(name)] = float64(elements[c])
			}
			element := func(name string, none float64) float64 {
				if of := s.tensors[name]; of != nil {
					return float64(of[c])
				}
				return none
			}
			root := math.Sqrt(n[w.variance] + w.epsilon)
			if outside {
				root = math.Sqrt(n[w.variance]) + w.epsilon
			}
			a, b := n.affine(f, steps)
			gamma, beta := a*root, b+n[w.mean]*a
			if g, b := element("gamma", 1), element("beta", 0); !near(gamma, g, 1e-6*math.Abs(g)) || !near(beta, b, 1e-6) {
				t.Fatalf("seed %d: channel %d: scale and shift %v, %v, want %v, %v", seed, c, gamma, beta, g, b)
			}
		}
	}
}

// What looks like batch norm and is another formula is not found.
func TestLookAlikes(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(s *speller, m, v, gamma, beta string) string{
		"layer scale": func(s *speller, m, v, gamma, beta string) string { return s.node("Mul", "x", gamma) },
		"scale and shift": func(s *speller, m, v, gamma, beta string) string {
			return s.node("Add", s.node("Mul", "x", gamma), beta)
		},
		"product with a root": func(s *speller, m, v, gamma, beta string) string {
			return s.node("Mul", s.node("Sub", "x", m), s.root(v, 1e-5, false))
		},
		"no root": func(s *speller, m, v, gamma, beta string) string {
			return s.node("Div", s.node("Sub", "x", m), s.node("Add", v, s.number(1e-5)))
		},
		"root of a square": func(s *speller, m, v, gamma, beta string) string {
			return s.over(s.node("Sub", "x", m), s.root(s.node("Mul", v, v), 1e-5, false))
		},
		"no mean": func(s *speller, m, v, gamma, beta string) string {
			return s.node("Add", s.over("x", s.root(v, 1e-5, false)), beta)
		},
		"a mean that another scale divides": func(s *speller, m, v, gamma, beta string) string {
			return s.node("Sub", s.over("x", s.root(v, 1e-5, false)), s.node("Mul", m, gamma))
		},
		"a shift that depends on the variance": func(s *speller, m, v, gamma, beta string) string {
			return s.node("Add", s.over(s.node("Sub", "x", m), s.root(v, 1e-5, false)), s.node("Mul", beta, v))
		},
		"ε of 2": func(s *speller, m, v, gamma, beta string) string {
			return s.over(s.node("Sub", "x", m), s.root(v, 2, false))
		},
		"a mean that is used again": func(s *speller, m, v, gamma, beta string) string {
			return s.node("Mul", s.over(s.node("Sub", "x", m), s.root(v, 1e-5, false)), s.node("Relu", m))
		},
		"statistics of two layers": func(s *speller, m, v, gamma, beta string) string {
			layer := func(x string) string { return s.over(s.node("Sub", x, m), s.root(v, 1e-5, false)) }
			return layer(s.node("Relu", layer("x")))
		},
		"two means": func(s *speller, m, v, gamma, beta string) string {
			return s.over(s.node("Sub", "x", s.node("Add", m, beta)), s.root(v, 1e-5, false))
		},
		"group norm": func(s *speller, m, v, gamma, beta string) string {
			centred := s.node("Sub", "x", s.node("ReduceMean", "x"))
			deviation := s.node("Sqrt", s.node("Add", s.node("ReduceMean", s.node("Mul", centred, centred)), s.number(1e-5)))
			return s.node("Add", s.node("Mul", s.node("Div", centred, deviation), gamma), beta)
		},
		"affine after layer normalisation": func(s *speller, m, v, gamma, beta string) string {
			return s.node("Add", s.node("Mul", s.node("LayerNormalization", "x", gamma), m), v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				s := newSpeller(seed)
				one := func() float32 { return 1 + s.Float32() }
				y := write(s, s.stored("m", one), s.stored("v", one), s.stored("gamma", one), s.stored("beta", one))
				if got := s.model(t, s.node("Relu", y)).WrittenBatchNorms(); len(got) > 0 {
					t.Fatalf("seed %d: %+v", seed, got)
				}
			}
		})
	}
}
