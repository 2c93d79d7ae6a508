package study

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// Fields come in their order, at every depth, and what is not a finite number is
// null.
func TestObject(t *testing.T) {
	inner := Interval("value", chance.Interval{Mean: 1, Low: math.NaN(), High: math.Inf(1)})
	o := append(Fields("z", 1, "a", []Row{inner, {}}), Fields("m", Finite(0), "é\"", Texts(nil))...)
	js, err := json.Marshal(o)
	if want := `{"z":1,"a":[{"value":1,"low":null,"high":null},{}],"m":0,"é\"":[]}`; string(js) != want || err != nil {
		t.Errorf("%s, %v, want %s", js, err, want)
	}
	if js, err := json.Marshal(Row(nil)); string(js) != "null" || err != nil {
		t.Errorf("%s, %v", js, err)
	}
	if _, err := json.Marshal(Fields("f", math.NaN())); err == nil {
		t.Error("NaN has a place in JSON")
	}
	if got := Texts([]error{errors.New("a"), errors.New("b")}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
}

// shown is a document with a heading, tables and a verdict.
var shown = &Document{Heading: "10 images", Verdict: []string{"First.", "Second."},
	Sections: []Section{{Rows: []Row{{Name("a", "a", "1")}}}, {Rows: []Row{{Name("b", "b", "2")}}}}}

// full is a disk with no space left.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteText(t *testing.T) {
	var text strings.Builder
	if err := WriteText(&text, report.Screen{}, []string{"batch norm: " + strings.Repeat("long ", 30)}, shown); err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(text.String(), "\n\n")
	if lines := strings.Split(head, "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "! batch norm: long") || !strings.HasPrefix(lines[1], "  long") {
		t.Errorf("%q", head)
	}
	if want := "10 images\n\na\n1\n\nb\n2\n\nFirst.\nSecond.\n"; rest != want {
		t.Errorf("%q, want %q", rest, want)
	}
	if err := WriteText(full{}, report.Screen{}, nil, shown); err == nil {
		t.Error("a full disk is no error")
	}
}

// One network is not named, several are.
func TestBatchNorm(t *testing.T) {
	named := func(path string) *infer.Network { return &infer.Network{Posterior: &swag.Posterior{Path: path}} }
	kept := &batchnorm.Record{Kept: []string{"bn1"}, Stale: true}
	for _, tc := range []struct {
		name     string
		b        BatchNorm
		warnings []string
		facts    []report.Fact
	}{
		{"none", BatchNorm{Networks: []*infer.Network{named("p")}, Records: []*batchnorm.Record{nil}}, []string{}, nil},
		{"one", BatchNorm{Networks: []*infer.Network{named("p")}, Records: []*batchnorm.Record{{Examples: 1000, Unit: "image", MemberExamples: 300, Augment: "none", Warnings: []string{"sorted?"}}}},
			[]string{"batch norm: sorted?"}, []report.Fact{{Name: "batch norm", Value: "1,000 images, 300 for each member, augmentation: none"}}},
		{"all kept", BatchNorm{Networks: []*infer.Network{named("p")}, Records: []*batchnorm.Record{kept}},
			[]string{"batch norm: statistics of the last checkpoint are kept, although training updated them: they do not belong to averaged or sampled weights"},
			[]report.Fact{{Name: "batch norm", Value: "the statistics of all layers are the last checkpoint's (BN keep)"}}},
		{"several", BatchNorm{Networks: []*infer.Network{named("p"), named("q"), named("r")}, Records: []*batchnorm.Record{
			{Examples: 10, Unit: "example", AsSeen: true, Kept: []string{"bn1", "bn2"}}, nil, {Examples: 20, Unit: "image", Warnings: []string{"few"}}}},
			[]string{"batch norm of r: few"},
			[]report.Fact{
				{Name: "batch norm of p", Value: "the statistics of 2 layers are the same in all checkpoints: they were frozen in training, and are kept (BN recompute recomputes them)"},
				{Name: "batch norm of p", Value: "10 examples, as the training loader gave them"},
				{Name: "batch norm of r", Value: "20 images, augmentation unknown"},
			}},
		{"alike", BatchNorm{Networks: []*infer.Network{named("p"), named("q")}, Records: []*batchnorm.Record{
			{Examples: 10, Unit: "image", Augment: "none"}, {Examples: 10, Unit: "image", Augment: "none"}}},
			[]string{}, []report.Fact{{Name: "batch norm", Value: "10 images, augmentation: none"}}},
	} {
		if diff := cmp.Diff(tc.warnings, tc.b.Warnings()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.facts, tc.b.Facts()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

// sourced is data of two files.
type sourced struct{ dataset.Dataset }

func (sourced) Sources() []dataset.Source {
	return []dataset.Source{{Path: "x.npy", SHA256: "aa"}, {Path: "y.npy", Kind: "labels", SHA256: "bb"}}
}

func TestProvenance(t *testing.T) {
	network := &infer.Network{Posterior: &swag.Posterior{Path: "p", ID: "cafe", Checkpoints: []swag.Checkpoint{{Path: "c.onnx", SHA256: "cc"}}}}
	got := Provenance("1.2.3", []*infer.Network{network}, Used{"none", nil}, Used{"test", sourced{}})
	want := []report.Fact{{Name: "ONNX Runtime", Value: "1.2.3"}, {Name: "posterior p", Value: "cafe"}, {Name: "checkpoint c.onnx", Value: "cc"},
		{Name: "test x.npy", Value: "aa"}, {Name: "test y.npy (labels)", Value: "bb"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is not known stays empty only where it may.
func TestCell(t *testing.T) {
	for want, got := range map[string]string{
		"95.4 %": Format(task.Score{Metric: task.Metric{Percent: true, Digits: 1}, Value: 0.954}),
		"0.1448": Format(task.Score{Metric: task.Metric{Digits: 4}, Value: 0.14481}),
		"NaN":    Format(task.Score{Metric: task.Metric{Digits: 4}, Value: math.NaN()}),
		"":       Format(task.Score{Metric: task.Metric{Optional: true, Percent: true}, Value: math.NaN()}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
