package statedict

import (
	"archive/zip"
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A Format is a kind of file that holds weights.
type Format int

// The formats.
const (
	None        Format = iota // no format of weights
	Safetensors               // .safetensors
	Torch                     // .pt, .pth and .bin, as torch.save writes them
	NPZ                       // .npz, an array for each tensor
	Folder                    // a folder of Hugging Face
)

var extensions = map[string]Format{".safetensors": Safetensors, ".pt": Torch, ".pth": Torch, ".bin": Torch, ".npz": NPZ}

// FormatOf returns the format that the name of an output asks for. A folder ends with a slash, or exists.
func FormatOf(path string) Format {
	if strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(filepath.Separator)) {
		return Folder
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Folder
	}
	return extensions[strings.ToLower(filepath.Ext(path))]
}

// foreign are the extensions of weights and models in formats that are not written. A model of ONNX under such a name would mislead.
var foreign = []string{".h5", ".hdf5", ".keras", ".ckpt", ".tflite", ".gguf", ".pb", ".pkl", ".pickle", ".npy", ".msgpack", ".orbax",
	".distcp", ".pt2", ".tar", ".zip", ".json"}

// Foreign reports whether the name of an output asks for a format of weights or models that is not written.
func Foreign(path string) bool {
	return slices.Contains(foreign, strings.ToLower(filepath.Ext(path)))
}

// descriptions are the types of NumPy's arrays.
var descriptions = map[weights.DType]string{
	weights.F16:  "<f2",
	weights.F32:  "<f4",
	weights.F64:  "<f8",
	weights.U8:   "|u1",
	weights.I8:   "|i1",
	weights.I16:  "<i2",
	weights.I32:  "<i4",
	weights.I64:  "<i8",
	weights.Bool: "|b1",
}

// writeNPZ writes an array for each entry, by its name.
func writeNPZ(out io.Writer, entries []statefile.Entry) error {
	z := numpy.NewArchive(out)
	elements := make(map[string]func(io.Writer) error, len(entries))
	for _, e := range entries {
		elements[e.Name] = e.Elements
		if e.Of != "" {
			e.Elements = elements[e.Of]
		}
		descr, ok := descriptions[e.DType]
		if !ok {
			return fmt.Errorf("tensor %q: NumPy has no %v", e.Name, e.DType)
		}
		var shape []int
		for _, d := range e.Shape {
			shape = append(shape, int(d))
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: e.Name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		b := bufio.NewWriterSize(w, 1<<16)
		b.Write(numpy.Header(descr, shape...)) // the writer keeps its first error
		if err := e.Elements(b); err != nil {
			return err
		}
		if err := b.Flush(); err != nil {
			return err
		}
	}
	return z.Close()
}

// Representable reports whether the format can hold the types of all tensors.
func (w *Weights) Representable(f Format) bool {
	return f != NPZ || !slices.ContainsFunc(w.tensors, func(t tensor) bool { return descriptions[w.dtype(t)] == "" })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
