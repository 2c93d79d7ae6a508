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
func TestRow(t *testing.T) {
	inner := Interval("value", chance.Interval{Mean: 1, Low: math.NaN(), High: math.Inf(1)})
	row := append(Fields("z", 1, "a", []Row{inner, {}}), Fields("m", Finite(0), "é\"", Texts(nil))...)
	js, err := json.Marshal(row)
	if want := `{"z":1,"a":[{"value":1,"low":null,"high":null},{}],"m":0,"é\"":[]}`; string(js) != want || err != nil {
		t.Errorf("%s, %v, want %s", js, err, want)
	}
	if js, err := json.Marshal(Row(nil)); string(js) != "null" || err != nil {
		t.Errorf("%s, %v", js, err)
	}
	if js, err := json.Marshal(Fields("f", math.NaN())); string(js) != `{"f":null}` || err != nil {
		t.Errorf("%s, %v", js, err)
	}
	if got := Texts([]error{errors.New("a"), errors.New("b")}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
}

// Columns choose cells by their keys, also in rows in cells. A column that no row has is left out, and a hidden cell is not in JSON.
func TestSection(t *testing.T) {
	rows := []Row{
		{Name("name", "name", "first"), Cell{Key: "own", Text: " ", Hidden: true}},
		append(Row{Name("name", "name", "second"), Number("own", "own", 0.5, "0.5"), Marked("advised")},
			Fields("inner", Row{Number("nll", "NLL", math.Inf(1), "+Inf")})...),
	}
	rows[1][1].Mark = "^"
	s := Section{First: "who", Rows: rows, Warnings: []string{"a warning"}, Notes: []string{"a note"},
		Columns: []Column{{Key: "name"}, {Key: "own", Marked: true}, {Key: "inner/nll", Header: "inner NLL"}, {Key: "none"}, {Key: " "}}}
	var b strings.Builder
	if err := s.Table().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	want := "| who | own | inner NLL |   |\n| --- | --: | --: | --- |\n| first |  | — |  |\n| second | 0.5 ^ | +Inf | advised |\n\na warning\n\na note\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	js, err := json.Marshal(rows)
	if want := `[{"name":"first"},{"name":"second","own":0.5,"inner":{"nll":null}}]`; string(js) != want || err != nil {
		t.Errorf("%s, %v, want %s", js, err, want)
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
	verdict, rest, _ := strings.Cut(rest, "\n\n")
	if lines := strings.Split(head, "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "! batch norm: long") || !strings.HasPrefix(lines[1], "  long") {
		t.Errorf("%q", head)
	}
	if want := "10 images\n\na\n1\n\nb\n2\n"; rest != want || verdict != "First.\nSecond." {
		t.Errorf("%q, %q, want %q", verdict, rest, want)
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
