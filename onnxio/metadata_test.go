package onnxio_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Properties that swagwrap appended are read, and are not part of the template. Those of other programs stay.
func TestMetadata(t *testing.T) {
	plain, err := os.ReadFile(filepath.Join("..", "fixtures", "mnist", "checkpoints", "epoch-30.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	foreign := onnxio.AppendMetadata(bytes.Clone(plain), map[string]string{"author": "someone"})
	own := map[string]string{"swagwrap.kind": "swa", "swagwrap.origin": "{}"}
	m, err := onnxio.Parse("model.onnx", onnxio.AppendMetadata(bytes.Clone(foreign), own))
	if err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(own)
	want["author"] = "someone"
	for key, value := range want {
		if m.Metadata[key] != value {
			t.Errorf("property %q is %q, want %q", key, m.Metadata[key], value)
		}
	}
	none := &weights.Layout{}
	template, err := onnxio.NewTemplate(m, none)
	if err != nil {
		t.Fatal(err)
	}
	got, err := template.Render(none, weights.Slice{}, weights.Slice{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, foreign) {
		t.Errorf("the template has %d bytes, want the %d of the model without swagwrap's properties", len(got), len(foreign))
	}
}
