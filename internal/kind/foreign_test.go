package kind

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files of other programs are recognised by content where they have a mark, and else by name.
// Archives are recognised by their entries, under any name.
func TestForeignArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for want, entries := range map[string][]string{
		"a .keras file":                   {"metadata.json", "config.json", "model.weights.h5"},
		"a program that torch.export":     {"m/data/weights/weight_0", "m/archive_format", "m/models/model.json"},
		"a program that torch.export sav": {"version", "serialized_exported_program.json"},
		"":                                {"m/data.pkl", "m/data/0", "m/version"},
	} {
		path := filepath.Join(dir, "file"+want)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		for _, name := range entries {
			if _, err := z.Create(name); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(z.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		if got, ok := ForeignOf(path); ok != (want != "") || !strings.HasPrefix(got.Name, want) {
			t.Errorf("%q: %+v", entries, got)
		}
	}
	path := filepath.Join(dir, "archive")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "./model_config.yaml", Mode: 0o644}), w.WriteHeader(&tar.Header{Name: "./model_weights.ckpt", Mode: 0o644}), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if got, _ := ForeignOf(path); got.Name != nemo.Name {
		t.Errorf("NeMo: %+v", got)
	}
}

func TestForeignOf(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ content, want string }{
		"model.h5":                         {"\x89HDF\r\n\x1a\n rest", "HDF5"},
		"weights.hdf5":                     {"\x89HDF\r\n\x1a\n rest", "HDF5"},
		"model.keras":                      {"PK\x03\x04 rest of a zip", ".keras"},
		"model.tflite":                     {"\x1c\x00\x00\x00TFL3 rest", "TensorFlow Lite"},
		"renamed.bin":                      {"\x1c\x00\x00\x00TFL3 rest", "TensorFlow Lite"},
		"llama.gguf":                       {"GGUF\x03\x00", "GGUF"},
		"flax_model.msgpack":               {"\x82\xa6", "MessagePack"},
		"model.ckpt-7.index":               {"x", "checkpoint of TensorFlow"},
		"model.ckpt-7.data-00000-of-00001": {"x", "checkpoint of TensorFlow"},
		"model.ckpt-7":                     {"", "checkpoint of TensorFlow"}, // the common part, and no file
		"saved/saved_model.pb":             {"\x08\x01", "SavedModel"},
		"saved":                            {"", "SavedModel"},
		"model.mlmodel":                    {"\x08\x04", "Core ML"},
		"model.engine":                     {"ptrt", "TensorRT"},
		"model.xml":                        {"<?xml version=\"1.0\"?>\n<net name=\"x\" version=\"11\">", "OpenVINO"},
		"model.joblib":                     {"\x80\x04", "pickled"},
		"data.mat":                         {"MATLAB 5.0 MAT-file, Platform", "MATLAB"},
		"other.bin":                        {"anything", ""},
		"notes.xml":                        {"<html>", ""},
		"archive.zip":                      {"PK\x03\x04 rest", ""},
		"empty.h5":                         {"", ""},
		"gone":                             {"", ""},
		"list.meta":                        {"x", ""},
	} {
		path := filepath.Join(dir, name)
		if tt.content != "" {
			os.MkdirAll(filepath.Dir(path), 0o777)
			if err := os.WriteFile(path, []byte(tt.content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		defer func() {
			f, ok := ForeignOf(path)
			if ok != (tt.want != "") || !strings.Contains(f.Name, tt.want) || ok && f.Export == "" {
				t.Errorf("%s: %+v, %v, want %q", name, f, ok, tt.want)
			}
		}()
	}
}
