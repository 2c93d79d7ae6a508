package swag_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
)

var update = flag.Bool("update", false, "write testdata/posterior.safetensors anew; run testdata/read.py afterwards")

// TestReading compares with testdata/read.py, which reads a posterior with
// Python's safetensors and no code of ours, and draws members as docs/formats.md
// describes them.
func TestReading(t *testing.T) {
	const path = "testdata/posterior.safetensors"
	it, data := smallFile(t)
	if *update {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, data) {
		t.Fatalf("the file's format changed (%v): if it should, run this test with -update, then testdata/read.py", err)
	}
	var reading struct {
		Code     string
		Printed  string
		Metadata map[string]string
		Sections map[string]struct {
			DType string
			Shape []int64
		}
		Values  map[string][]float64
		Health  json.RawMessage
		Graph   string
		Members []struct {
			Seed                             uint64
			Member                           int
			Scale                            float64
			Diagonal, Antithetic, Orthogonal bool
			Weights                          []float32
		}
		Variates []float64
	}
	testfile.JSON(t, "testdata/reading.json", &reading)

	page, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```python\n"+reading.Code+"```") {
		t.Error("docs/formats.md has another program than the one that was run: run testdata/read.py")
	}
	if n := strings.Count(reading.Printed, "."); n < 20 || !strings.Contains(reading.Printed, "conv.weight [[") {
		t.Errorf("the page's program printed %q", reading.Printed)
	}

	p, err := swag.Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	st, err := weights.ParseSafetensors(path, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range st.Sections {
		got := reading.Sections[s.Name]
		dtype := map[weights.DType]string{weights.F32: "float32", weights.F64: "float64", weights.U8: "uint8"}[s.DType]
		if got.DType != dtype || !slices.Equal(got.Shape, s.Shape) {
			t.Errorf("section %s: Python reads %v, want %v %v", s.Name, got, dtype, s.Shape)
		}
	}
	if len(reading.Sections) != len(st.Sections) || reading.Graph != "graph" {
		t.Errorf("Python reads the sections %v, graph %q", reading.Sections, reading.Graph)
	}
	for key, value := range reading.Metadata {
		if st.Metadata[key] != value {
			t.Errorf("metadata %s: Python reads %q, want %q", key, value, st.Metadata[key])
		}
	}
	mean, variance, deviations := contents(p)
	var sampled []float32
	for _, c := range append([]swag.Checkpoint{*it.Theta0}, it.Checkpoints...) {
		sampled = append(sampled, c.Theta.(weights.Slice)...)
	}
	for name, want := range map[string][]float64{"mean": mean, "variance": variance, "deviations": widened(slices.Concat(deviations...)),
		"trajectory": widened(sampled), "statistics": widened(slices.Concat(p.StoredStatistics...))} {
		if !slices.Equal(reading.Values[name], want) {
			t.Errorf("%s: Python reads %v, want %v", name, reading.Values[name], want)
		}
	}
	want, err := trajectory.Check(p)
	if err != nil {
		t.Fatal(err)
	}
	var health trajectory.Health
	if err := json.Unmarshal(reading.Health, &health); err != nil || !reflect.DeepEqual(health, want) {
		t.Errorf("health: Python reads %v (%v), want %v", health, err, want)
	}

	for _, m := range reading.Members {
		opts := swag.SampleOptions{Seed: m.Seed, Scale: m.Scale, Antithetic: m.Antithetic, Orthogonal: m.Orthogonal}
		if m.Diagonal {
			opts.Covariance = swag.Diagonal
		}
		if got := draw(t, p, opts, m.Member)[0]; !slices.Equal(got, m.Weights) {
			t.Errorf("member %+v: %v", m, got)
		}
	}
	n := len(reading.Variates) - 20
	z := make([]float64, n)
	swag.Normals(z, 5, 3, 0)
	if got := append(z, swag.Z2(5, 3, 20)...); !slices.Equal(got, reading.Variates) {
		t.Error("the variates are not those of docs/formats.md")
	}
}

func widened(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}
