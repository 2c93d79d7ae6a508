package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// fit says that two checkpoints whose batch norm has counted equally many batches are of different runs, and which files
// are averages.
func TestDifferentRuns(t *testing.T) {
	t.Parallel()
	mnist := absolute(t, "..", "..", "fixtures", "mnist")
	dir := t.TempDir()
	// copied writes the state_dict of an epoch, with the counters of another one, as the average of several weights.
	copied := func(epoch, counters string, averaged int64) string {
		t.Helper()
		of := func(epoch string) *statefile.StateDict {
			f, err := statefile.Open(filepath.Join(mnist, "states", "epoch-"+epoch+".pt"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			return f.StateDicts()[0]
		}
		sd := of(epoch)
		tensors := append([]*statefile.Tensor{}, sd.Tensors...)
		for _, x := range of(counters).Ignored {
			tensors = append(tensors, x.Tensor)
		}
		var sections []weights.Section
		for _, x := range tensors {
			sections = append(sections, weights.Section{Name: x.Name, DType: x.DType, Shape: x.Shape})
		}
		sections = append(sections, weights.Section{Name: "n_averaged", DType: weights.I64, Shape: []int64{}})
		path := filepath.Join(dir, "run-"+epoch+".safetensors")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w, err := weights.NewSafetensorsWriter(f, sections, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range tensors {
			if _, err := w.Section(i).Write(x.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
		if err := binary.Write(w.Section(len(tensors)), binary.LittleEndian, averaged); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fit := func(checkpoints ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args := append([]string{"swagwrap", "fit", "--force", "--task", "classes", "--template", filepath.Join(mnist, "model.onnx") + "=" + filepath.Join(mnist, "states", "epoch-30.pt"),
			"-o", filepath.Join(dir, "p.safetensors")}, checkpoints...)
		if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
			t.Fatalf("exit code %d: %s", code, &stderr)
		}
		return stderr.String()
	}
	const warning = "run-28.safetensors and "
	if printed := fit(copied("28", "29", 0), copied("29", "29", 0)); !strings.Contains(printed, warning) || !strings.Contains(printed, "num_batches_tracked is 3450") || !strings.Contains(printed, "--method iterates") {
		t.Errorf("two of equal counts: %s", printed)
	}
	const average = "is an average of weights (n_averaged is "
	if printed := fit(copied("28", "28", 1), copied("29", "29", 1)); strings.Contains(printed, warning) || strings.Contains(printed, average) {
		t.Errorf("two of one run: %s", printed)
	}
	if printed := fit(copied("28", "28", 20), copied("29", "29", 20)); !strings.Contains(printed, average) || !strings.Contains(printed, "--mean") {
		t.Errorf("two averages: %s", printed)
	}
	if printed := fit(copied("28", "28", 20)); !strings.Contains(printed, average) || !strings.Contains(printed, "update_bn") {
		t.Errorf("one average: %s", printed)
	}
}
