package ensemble_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/reliability/forge"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// inMemory writes to memory.
type inMemory []byte

func (m *inMemory) WriteAt(b []byte, at int64) (int, error) {
	if end := int(at) + len(b); end > len(*m) {
		*m = append(*m, make([]byte, end-len(*m))...)
	}
	return copy((*m)[at:], b), nil
}

// someFiles are an ensemble of two posteriors, and an ensemble of checkpoints.
func someFiles(t testing.TB) (files map[string]*forge.File) {
	t.Helper()
	component := func(members int, weight float64) ensemble.Component {
		c := ensemble.Component{Posterior: ensemble.Reference{Path: "p.safetensors", ID: strings.Repeat("0", 64)}, Members: members, Weight: weight}
		for k := range members {
			c.Statistics = append(c.Statistics, []float32{float32(k), 0.5, 1})
		}
		return c
	}
	drawn := &ensemble.Ensemble{Components: []ensemble.Component{component(2, 0.25), component(3, 0.75)},
		Sampling:    ensemble.Draw{Seed: 7, Scale: 0.5, Covariance: "swag", Rank: 3},
		Card:        swag.Card{Task: "classes", ClassNames: []string{"a", "b"}, Preprocess: []byte(`{"mean":[0.1],"std":[0.2]}`)},
		Calibration: &task.Calibration{Method: task.ByVector, Scale: []float64{1, 2}, Bias: []float64{0, 0.5}},
		Threshold:   0.4,
		Guarantee: &guarantee.Guarantee{Answers: &guarantee.Answers{Risk: 0.1, Cut: 0.75}, Coverage: &guarantee.Coverage{Level: 0.9, Method: "raps", Penalty: 0.1, Free: 1, By: guarantee.ByClass,
			Cells: []guarantee.Cell{{Examples: []int{9, 3}, Thresholds: []*float64{ptr(0.5), nil}, Cuts: []float32{1e6, 1 << 24}, Whole: []int{1}}}}},
		FittedOn: &guarantee.Data{Name: "val.csv", SHA256: "00", Examples: 5, Date: "2026-11-27", Sources: []string{"01"}}}
	kept := &ensemble.Ensemble{Components: []ensemble.Component{component(2, 1)}, Sampling: ensemble.Draw{Covariance: ensemble.Iterates}, Calibration: task.WithNumber("classes", 1.5)}
	kept.Components[0].Checkpoints = []swag.Checkpoint{{Path: "1.onnx", SHA256: "00"}, {Path: "2.onnx", SHA256: "01"}}
	files = map[string]*forge.File{}
	for name, write := range map[string]func(*inMemory) error{
		"drawn": func(m *inMemory) error { return drawn.Write(m, "test") },
		"kept":  func(m *inMemory) error { return kept.Write(m, "test") },
	} {
		var b inMemory
		err := write(&b)
		if err == nil {
			files[name], err = forge.Open(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// openForged opens an ensemble, and uses it as commands do. It reports whether it was accepted.
func openForged(t testing.TB, dir string, b []byte) bool {
	t.Helper()
	path := filepath.Join(dir, "f.safetensors")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	var e *ensemble.Ensemble
	var err error
	reliability.Heap(t, len(b), func() { e, err = ensemble.Open(path) })
	if err != nil {
		if !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("does not name the file: %v", err)
		}
		return false
	}
	if w := e.Weights(); len(w) != e.Members() {
		t.Errorf("%d weights of %d members", len(w), e.Members())
	}
	for k := range min(e.Members(), 100) {
		i, place := e.Find(k)
		_ = e.Components[i].Statistics[place]
		e.PosteriorPath(i)
	}
	e.Preprocess()
	e.Sampling.Options()
	for _, count := range []int{2, 3} {
		if d, err := guarantee.NewDecider(e.Guarantee, classes(t, count), nil); err == nil && d != nil {
			d.Values(nil, make([]float64, count), 0, "")
		}
	}
	var again inMemory
	if err := e.Write(&again, "test"); err != nil {
		t.Errorf("cannot be written again: %v", err)
	}
	return true
}

// Whatever stands in a file whose checksums are right, it is refused or read: no panic, no wait, no memory without bound.
func TestMutatedFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(28, 3))
	dir := t.TempDir()
	try := func(name string, whole []byte, mutated func() ([]byte, any)) {
		if !openForged(t, dir, whole) {
			t.Fatalf("%s: refused unchanged", name)
		}
		accepted := 0
		for range reliability.Figure(200, 40_000) {
			b, m := mutated()
			if b != nil && openForged(t, dir, b) {
				accepted++
			}
			if t.Failed() {
				t.Fatalf("%s: %.3000q", name, fmt.Sprint(m))
			}
		}
		if accepted == 0 {
			t.Errorf("%s: none was accepted: the test shows little", name)
		}
	}
	for name, file := range someFiles(t) {
		whole, err := file.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		try(name, whole, func() ([]byte, any) {
			m := file.Mutated(r)
			b, _ := m.Bytes() // fails where shape and data do not agree, which the tests of weights try
			return b, m
		})
	}
}

func FuzzOpen(f *testing.F) {
	files := someFiles(f)
	for name, file := range files {
		for key, value := range file.Metadata {
			f.Add(name, key, value, []byte{})
		}
	}
	f.Fuzz(func(t *testing.T, name, key, value string, data []byte) {
		whole := files[name]
		if whole == nil {
			return
		}
		m := whole.Mutated(rand.New(rand.NewPCG(1, 1)))
		m.Metadata = map[string]string{}
		for k, v := range whole.Metadata {
			m.Metadata[k] = v
		}
		m.Metadata[key], m.Sections, m.Data = value, whole.Sections, [][]byte{}
		for _, d := range whole.Data {
			d = append([]byte{}, d...)
			copy(d, data)
			m.Data = append(m.Data, d)
		}
		if b, err := m.Bytes(); err == nil {
			openForged(t, t.TempDir(), b)
		}
	})
}

// Attacks: the checksums are right, and the content asks for memory or for parts without bound.
func TestForgedFiles(t *testing.T) {
	many := func(n int) []map[string]any {
		list := make([]map[string]any, n)
		for i := range list {
			list[i] = map[string]any{"members": 1, "weight": 1 / float64(n)}
		}
		return list
	}
	set := func(key string, value any) func(*forge.File) {
		return func(f *forge.File) {
			js, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			f.Metadata[key] = string(js)
		}
	}
	sections := func(n int, members int64) func(*forge.File) {
		return func(f *forge.File) {
			list := many(n)
			f.Sections, f.Data = nil, nil
			for i := range list {
				list[i]["members"] = members
				f.Sections = append(f.Sections, weights.Section{Name: fmt.Sprintf("statistics.%d", i), DType: weights.F32, Shape: []int64{members, 0}})
				f.Data = append(f.Data, nil)
			}
			set("components", list)(f)
		}
	}
	for what, tc := range map[string]struct {
		of    string
		forge func(*forge.File)
		want  string
	}{
		"posteriors":         {"drawn", sections(1001, 1), "1001 posteriors, want at most 1000"},
		"100,001 posteriors": {"drawn", sections(100_001, 1), "values, want at most 131072"},
		"and one section":    {"drawn", set("components", many(50_000)), "values, want at most 32768"},
		"members":            {"drawn", sections(1000, swag.MaxMembers-1), "members, want at most 1048575"},
		"checkpoints":        {"kept", set("components", []any{map[string]any{"members": 1, "weight": 1, "checkpoints": many(150_000)}}), "values, want at most 131072"},
		"class names":        {"drawn", set("card", map[string]any{"class_names": make([]string, 200_000)}), "values, want at most 131072"},
	} {
		f := someFiles(t)[tc.of]
		tc.forge(f)
		b, err := f.Bytes()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		path := filepath.Join(t.TempDir(), "f.safetensors")
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		reliability.Heap(t, len(b), func() { _, err = ensemble.Open(path) })
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %.300v, want %s", what, err, tc.want)
		}
	}
}
