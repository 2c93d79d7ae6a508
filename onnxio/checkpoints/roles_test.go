package checkpoints

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// exported opens the checkpoints of a network of fixtures/buffers/tiny.py.
func exported(t testing.TB, name string) (models []*onnxio.Model) {
	t.Helper()
	for epoch := 1; epoch <= 3; epoch++ {
		m, err := onnxio.Open(filepath.Join("../../fixtures/buffers/checkpoints", fmt.Sprintf("%s-%d.onnx", name, epoch)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		models = append(models, m)
	}
	return models
}

// What PyTorch's two exporters make of state that is no weight, and of weights that look
// like such state.
func TestRolesOfExports(t *testing.T) {
	t.Parallel()
	spectral := map[string]string{"0.weight_u": "buffer, spectral norm of \"0.weight_orig\"", "0.weight_v": "buffer, spectral norm of \"0.weight_orig\"",
		"2.weight_u": "buffer, spectral norm of \"2.weight_orig\"", "2.weight_v": "buffer, spectral norm of \"2.weight_orig\"",
		"4.weight_u": "buffer, spectral norm of \"4.weight_orig\"", "4.weight_v": "buffer, spectral norm of \"4.weight_orig\""}
	parametrized := make(map[string]string)
	for _, k := range []string{"0", "2", "4"} {
		for _, v := range []string{"u", "v"} {
			parametrized[k+".parametrizations.weight.0._"+v] = fmt.Sprintf("buffer, spectral norm of %q", k+".parametrizations.weight.original")
		}
	}
	instance := map[string]string{"1.running_mean": "buffer, running statistics of an InstanceNorm", "1.running_var": "buffer, running statistics of an InstanceNorm"}
	written := map[string]string{"1.running_mean": "statistic, batch norm that the graph writes", "1.running_var": "statistic, batch norm that the graph writes"}
	for name, want := range map[string]map[string]string{
		"spectral-ts":         spectral,
		"spectral-fold":       spectral,
		"spectral-dynamo":     spectral,
		"parametrized-dynamo": parametrized,
		"spectral-optimized":  {}, // u and v are gone: see diagnosis.Buffers
		"instance-dynamo":     instance,
		"instance-ts":         instance,
		"written-ts":          written,
		"written-dynamo":      written,
		"rsqrt-ts":            written,
		"rsqrt-dynamo":        written,
		"power-ts":            written,
		// Plain attributes of the module: the exporter drops their names, and folds √(var + ε).
		"attribute-ts": {"/1/Constant_output_0": "buffer, a Constant node holds it", "/1/Constant_1_output_0": "buffer, a Constant node holds it"},
		"scale-ts":     written,
		// Learned weights in the same formula.
		"learned-ts":     {"1.mean": "parameter, the graph uses it like a running statistic", "1.var": "parameter, the graph uses it like a running statistic"},
		"learned-dynamo": {},
		// A parameter called running_mean cannot be told from a buffer by an export without the
		// exporter's word; gate_u and gate_v can. A buffer called level looks like a weight.
		"friends-ts":     {"running_mean": "buffer, its name, running_mean", "ema_level": "buffer, its name, ema_level"},
		"friends-dynamo": {"level": "buffer, the exporter says: no parameter (BUFFER)", "ema_level": "buffer, the exporter says: no parameter (BUFFER)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			models := exported(t, name)
			s, err := New(models)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, x := range s.Layout.Tensors {
				got := x.Role.String() + ", " + x.Reason
				switch prefix, special := want[x.Name]; {
				case special:
					found++
					if !strings.HasPrefix(got, prefix) {
						t.Errorf("%s: %s, want %s", x.Name, got, prefix)
					}
				case x.Role == weights.Parameter && (x.Reason == "" || x.Reason == "the exporter says: a parameter"):
				case x.Role != weights.Constant:
					t.Errorf("%s: %s, want a parameter", x.Name, got)
				}
			}
			if found != len(want) {
				var names []string
				for _, x := range s.Layout.Tensors {
					names = append(names, x.Name)
				}
				t.Errorf("%d of %d tensors found among %q", found, len(want), names)
			}
			if strings.HasSuffix(name, "fold") { // a weight that is stored flattened, too, is one weight
				if copies := slices.IndexFunc(s.Layout.Tensors, func(x weights.Tensor) bool { return x.Tied != "" }); copies < 0 {
					t.Error("no tensor is tied")
				}
			}
		})
	}
}

func TestRoleRules(t *testing.T) {
	t.Parallel()
	rules := func(texts ...string) (out []RoleRule) {
		for _, text := range texts {
			r, err := ParseRoleRule(text)
			if err != nil || r.String() != text {
				t.Fatalf("%q: %v, %v", text, r, err)
			}
			out = append(out, r)
		}
		return out
	}
	for _, c := range []struct {
		network string
		rules   []string
		want    map[string]weights.Role
	}{
		{"friends-ts", []string{"level=buffer", "running_*=parameter"}, map[string]weights.Role{"level": weights.Buffer, "running_mean": weights.Parameter}},
		{"friends-dynamo", []string{"*level=parameter"}, map[string]weights.Role{"level": weights.Parameter, "ema_level": weights.Parameter}},
		{"friends-ts", []string{"gate_u=buffer", "gate_?=parameter"}, nil}, // ? is itself
		{"spectral-ts", []string{"*.weight_[uv]=parameter"}, nil},          // and so is [
		{"spectral-ts", []string{"*.weight_u=parameter"}, map[string]weights.Role{"0.weight_u": weights.Parameter, "0.weight_v": weights.Buffer}},
		// Of two that belong together, one is overruled: the other cannot be recomputed alone.
		{"written-ts", []string{"1.running_var=parameter"}, map[string]weights.Role{"1.running_var": weights.Parameter, "1.running_mean": weights.Buffer}},
		{"written-ts", []string{"*running*=buffer"}, map[string]weights.Role{"1.running_var": weights.Buffer, "1.running_mean": weights.Buffer}},
		// The first rule that matches counts.
		{"friends-ts", []string{"gate_u=parameter", "gate_*=buffer"}, map[string]weights.Role{"gate_u": weights.Parameter, "gate_v": weights.Buffer}},
	} {
		s, err := New(exported(t, c.network), rules(c.rules...)...)
		var e *onnxio.Error
		if c.want == nil {
			if !errors.As(err, &e) || !strings.Contains(e.What, "no tensor of this name differs") {
				t.Errorf("%q: %v", c.rules, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.rules, err)
			continue
		}
		for name, want := range c.want {
			if x, ok := s.Layout.Find(name); !ok || x.Role != want {
				t.Errorf("%q: %s is %v, want %v", c.rules, name, x.Role, want)
			}
		}
	}
	for _, text := range []string{"", "=buffer", "name", "name=", "name=statistic", "name=Buffer", "name=constant"} {
		if r, err := ParseRoleRule(text); err == nil {
			t.Errorf("%q: %v", text, r)
		}
	}
}

// Values alone: what has length 1, or counts, in every checkpoint.
func TestRolesByValues(t *testing.T) {
	t.Parallel()
	model := func(k float32) *onnxio.Model {
		return tiny(t,
			floats32("turning", weights.Slice{0.6 + 0.2*k, 0.8 - 0.2*k}, 2, 1), // (0.6, 0.8), (0.8, 0.6), (1, 0.4)
			floats32("unit", []weights.Slice{{0.6, 0.8}, {0.8, 0.6}, {0, -1}}[int(k)], 1, 2),
			floats32("matrix", []weights.Slice{{0.6, 0, 0, 0.8}, {0.8, 0, 0, 0.6}, {0, 1, 0, 0}}[int(k)], 2, 2),
			floats32("sign", []weights.Slice{{1}, {-1}, {1}}[int(k)], 1),
			floats32("counter", weights.Slice{100 * k, 7}, 2),
			floats32("steps", weights.Slice{100 - k, k}, 2),
			floats32("weight", weights.Slice{k + 0.5, 1}, 2),
		)
	}
	s, err := New([]*onnxio.Model{model(0), model(1), model(2)})
	if err != nil {
		t.Fatal(err)
	}
	var buffers []string
	for _, x := range s.Layout.Tensors {
		if x.Role == weights.Buffer {
			buffers = append(buffers, x.Name)
		}
	}
	if want := []string{"unit", "counter"}; !slices.Equal(buffers, want) {
		t.Errorf("buffers %q, want %q", buffers, want)
	}
	// What follows the last checkpoint is checked against the layout as it is.
	if again, err := Continue(s.Models[s.Reference], s.Layout, []*onnxio.Model{model(1)}); err != nil || again.Layout != s.Layout {
		t.Error(err)
	}
}

// A vector that is named like a running statistic, in a graph that shows no batch norm, is asked about.
func TestRolesAsked(t *testing.T) {
	t.Parallel()
	models := func(name, op string) (out []*onnxio.Model) {
		for k := range 2 {
			out = append(out, withNodes(t, fmt.Sprintf("%d.onnx", k+1), [][]byte{node(op, "n", []string{name}, []string{"z"}),
				node("Mul", "m", []string{"x", "z"}, []string{"u"}), node("Mul", "o", []string{"u", "w"}, []string{"y"})},
				floats32(name, weights.Slice{float32(k) + 1, 2.5}, 2), floats32("w", weights.Slice{float32(k), 1}, 2)))
		}
		return out
	}
	for _, c := range []struct {
		name, op string
		asked    bool
	}{
		{"bn/moving_variance_1", "Neg", true},
		{"RunningMean:0", "Neg", true},
		{"layer.var", "Sqrt", true},
		{"layer.var", "Neg", false},
		{"layer.variable", "Sqrt", false},
		{"scale", "Sqrt", false},
		{"bn/moving_variance", "Neg", false}, // the whole name tells
	} {
		_, err := New(models(c.name, c.op))
		if !c.asked {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		wantError(t, c.name, err, "its name is like that of a running statistic", c.name+"=buffer")
		wantError(t, c.name, err, "", c.name+"=parameter")
		for _, role := range []weights.Role{weights.Buffer, weights.Parameter} {
			rule, err := ParseRoleRule(c.name + "=" + role.String())
			if err != nil {
				t.Fatal(err)
			}
			s, err := New(models(c.name, c.op), rule)
			if err != nil {
				t.Errorf("%s: answered: %v", c.name, err)
			} else if x, _ := s.Layout.Find(c.name); x.Role != role {
				t.Errorf("%s: %v, want %v", c.name, x.Role, role)
			}
		}
	}
}

// No network that is right is asked about.
func TestRolesNotAsked(t *testing.T) {
	t.Parallel()
	folders := make(map[string][]*onnxio.Model)
	for _, pattern := range []string{"../../fixtures/*/*/*.onnx", "../../fixtures/*/*/*/*.onnx"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if m, err := onnxio.Open(path); err == nil {
				t.Cleanup(func() { m.Close() })
				folders[filepath.Dir(path)] = append(folders[filepath.Dir(path)], m)
			}
		}
	}
	if len(folders) < 20 {
		t.Fatalf("%d folders: what is tested?", len(folders))
	}
	for folder, models := range folders {
		for _, of := range append(slices.Collect(slices.Chunk(models, 1)), models) {
			if _, err := New(of); err != nil && strings.Contains(err.Error(), "is like that of a running statistic") {
				t.Errorf("%s: %v", folder, err)
			}
		}
	}
}
