package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

// The table in fixtures/exporters/README.md says what real exporters write and what this
// program does with it. Every cell comes from the files in that folder.
// SWAGWRAP_UPDATE=1 go test ./cmd/swagwrap -run ExportingTable writes it.
func TestExportingTable(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- table: made by TestExportingTable -->\n", "<!-- end of table -->"
	doc := filepath.Join("..", "..", "fixtures", "exporters", "README.md")
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("fixtures/exporters/README.md has no place for the table")
	}
	want := head + begin + exportingTable(t) + end + tail
	if want == string(text) {
		return
	}
	if os.Getenv("SWAGWRAP_UPDATE") == "" {
		t.Fatalf("the table in fixtures/exporters/README.md is not what the fixtures give:\n%s", exportingTable(t))
	}
	if err := os.WriteFile(doc, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}

// observation is what a fixture's script recorded of its exporter.
type observation struct {
	Versions map[string]string `json:"versions"`
	BNLayers int               `json:"bn_layers"`
}

func exportingTable(t *testing.T) string {
	t.Helper()
	folder := filepath.Join("..", "..", "fixtures", "exporters")
	var observed map[string]observation
	testfile.JSON(t, filepath.Join(folder, "observed.json"), &observed)
	var b strings.Builder
	b.WriteString("| fixture | written by | batch norm kept | names stable | external data | what swagwrap does |\n|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(observed)) {
		paths, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(name), "*.onnx"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no models, %v", name, err)
		}
		b.WriteString(exportingRow(t, name, observed[name], paths))
	}
	return b.String()
}

func exportingRow(t *testing.T, name string, o observation, paths []string) string {
	t.Helper()
	models, err := checkpoints.Open(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer open.CloseModels(models)
	d, err := diagnosis.Diagnose(t.Context(), models)
	if err != nil {
		t.Fatal(err)
	}
	kept := "no batch norm"
	if o.BNLayers > 0 {
		kept = fmt.Sprintf("%d of %d", d.BatchNorms, o.BNLayers)
	}
	names, outside := "yes", "no"
	if len(models) == 1 {
		names = "—"
	} else if set, err := checkpoints.New(models); err != nil {
		names = "—"
	} else if set.ByPlace {
		names = "no"
	}
	if len(models[0].Files()) > 1 {
		outside = "yes"
	}
	does := "reads it"
	if d.BatchNorms > 0 {
		does += ", recomputes batch norm"
	}
	if slices.ContainsFunc(d.Tensors, func(t weights.Tensor) bool { return t.Tied != "" }) {
		does += ", keeps tied weights tied"
	}
	if slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, "training mode") }) {
		does += ", brings it back to inference"
	}
	if !d.Usable {
		_, why, _ := strings.Cut(d.Verdict, ".onnx: ")
		does = "refuses: " + why
	}
	if folding := models[0].FoldedBatchNorm(); folding != nil {
		does = fmt.Sprintf("refuses: batch norm is folded, seen by `%s`", folding.Tensor)
	}
	var versions []string
	for _, pkg := range []string{"torch", "keras", "tf_keras", "tensorflow", "tf2onnx", "jax", "flax", "jax2onnx", "onnxscript", "onnx"} {
		if v, ok := o.Versions[pkg]; ok && (pkg != "onnx" || len(versions) == 0) {
			versions = append(versions, pkg+" "+v)
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", name, strings.Join(versions, ", "), kept, names, outside, does)
}

// A model whose name is taken while it is written leaves no data files behind.
func TestExportLosesItsName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &modelOutput{Env: &console.Env{}, path: filepath.Join(dir, "m.onnx")}
	defer m.abort()
	for _, name := range []string{"m.onnx.data", "m.onnx"} {
		if _, err := m.create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(m.path, []byte("other"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := m.commit(nil, nil); err == nil || console.ExitCode(t.Context(), err) != 75 {
		t.Errorf("%v", err)
	}
	m.abort()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "m.onnx" {
		t.Errorf("left: %v, %v", left, err)
	}
}
