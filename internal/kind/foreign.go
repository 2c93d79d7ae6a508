package kind

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
)

// A Foreign is a format of other programs that this program does not read.
type Foreign struct {
	Name   string // with an article
	Export string // how to make a checkpoint of it
	Data   string // how to make data of it; "" if it holds no data
	// Archive says that entries of an archive or of a folder show the format, so the file is nothing else.
	Archive bool
}

// The formats of other programs.
var (
	converted = "convert all checkpoints with the Python module, which reads them with their own library: " +
		"python -m swagwrap.convert FOLDER converted. The graph for them is written by "
	keras    = converted + "swagwrap.keras.export(model, x), after model.load_weights of one of them (docs/exporting.md, under Keras)"
	jax      = converted + "swagwrap.jax.export, with the weights of one of them (docs/exporting.md, under JAX)"
	deployed = "it is made for inference only: give the checkpoints that training saved, or export each to ONNX with the training " +
		"framework (docs/exporting.md)"
	hdf5 = Foreign{"an HDF5 file, as Keras saves weights", keras,
		"write its arrays to an .npz file: import h5py, numpy as np; f = h5py.File(path); np.savez('data.npz', images=f['images'], " +
			"labels=f['labels'])", false}
	kerasZip = Foreign{"a .keras file", keras, "", true}
	nemo     = Foreign{"a .nemo file of NVIDIA NeMo",
		"it is a tar file with one set of weights. Unpack it into a folder of its own: mkdir NAME && tar -xf FILE -C NAME. The " +
			"checkpoint is NAME/model_weights.ckpt. NeMo leaves one for each epoch in its folder checkpoints", "", true}
	pt2 = Foreign{"a program that torch.export saved (.pt2)",
		"save its weights in Python: torch.save(dict(torch.export.load(FILE).state_dict), NEW). The graph for them is " +
			"torch.onnx.export(torch.export.load(FILE), (), \"model.onnx\", optimize=False)", "", true}
	executorch = Foreign{"a program of ExecuTorch (.pte)", deployed, "", false}
	mxnet      = Foreign{"parameters of MXNet", "MXNet has ended. Load them in Python with mxnet.nd.load(FILE), and write each " +
		"checkpoint as named tensors with safetensors.numpy.save_file, or export each to ONNX with mxnet.onnx.export_model", "", false}
	orbax  = Foreign{"a checkpoint of Orbax, as JAX programs save them", jax, "", true}
	paddle = Foreign{"parameters of PaddlePaddle",
		converted + "swagwrap.paddle.export(model, x), after model.set_state_dict of one of them", "", true}
	tflite = Foreign{"a TensorFlow Lite model", deployed, "", false}
	gguf   = Foreign{"a GGUF file of llama.cpp",
		"its weights are mostly quantised: give the checkpoints that training saved, such as model.safetensors of Hugging Face, with " +
			"the exported graph", "", false}
	msgpack    = Foreign{"a MessagePack file, as Flax saves weights", jax, "", false}
	tensorflow = Foreign{"a checkpoint of TensorFlow", keras, "", false}
	savedModel = Foreign{"a SavedModel of TensorFlow",
		"it has one set of weights, and tf2onnx folds their batch norm. Save each epoch with swagwrap.keras.Callback or " +
			"swagwrap.tensorflow.save (docs/exporting.md, under Keras)", "", false}
	coreML   = Foreign{"a Core ML model", deployed, "", false}
	tensorRT = Foreign{"an engine of TensorRT", deployed, "", false}
	openVINO = Foreign{"a model of OpenVINO", deployed, "", false}
	pickled  = Foreign{"a pickled object of Python",
		"of scikit-learn, convert each checkpoint with skl2onnx: to_onnx(model, X[:1], options={'zipmap': False}). Of PyTorch, save the " +
			"weights with torch.save(model.state_dict(), path)", "write its arrays to an .npz file: numpy.savez", false}
	matlab = Foreign{"a MATLAB file", deployed, "write its arrays to an .npz file: from scipy.io import loadmat; " +
		"numpy.savez('data.npz', **{k: v for k, v in loadmat(path).items() if k[0] != '_'})", false}
)

// ForeignOf recognises a file, or a folder of files, by content and name. ok is false for other files.
func ForeignOf(path string) (f Foreign, ok bool) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return foreignFolder(path)
	}
	if _, missing := os.Stat(path + ".index"); err != nil {
		return tensorflow, missing == nil // TensorFlow calls several files by what their names have in common
	}
	head, _ := begin(path)
	base := strings.ToLower(filepath.Base(path))
	ext := filepath.Ext(base)
	has := func(magic string, at int) bool { return len(head) >= at && bytes.HasPrefix(head[at:], []byte(magic)) }
	if f, ok := archived(path, head); ok {
		return f, true
	}
	switch {
	case has("\x89HDF\r\n\x1a\n", 0):
		return hdf5, true
	case ext == ".keras" && has("PK\x03\x04", 0): // not complete
		return kerasZip, true
	case has("ET1", 4):
		return executorch, true
	case has("\x12\x01\x00\x00\x00\x00\x00\x00", 0):
		return mxnet, true
	case ext == ".pdparams" && has("\x80", 0), has("\x80", 0) && bytes.Contains(head, []byte("StructuredToParameterName@@")):
		return paddle, true
	case has("TFL3", 4):
		return tflite, true
	case has("GGUF", 0), has("ggml", 0), has("lmgg", 0):
		return gguf, true
	case has("MATLAB 5.0 MAT-file", 0):
		return matlab, true
	case ext == ".msgpack":
		return msgpack, true
	case isTensorFlow(base), base == "checkpoint" && has("model_checkpoint_path", 0):
		return tensorflow, true
	case base == "saved_model.pb":
		return savedModel, true
	case ext == ".mlmodel":
		return coreML, true
	case ext == ".engine", ext == ".trt", ext == ".plan":
		return tensorRT, true
	case ext == ".xml" && bytes.Contains(head, []byte("<net name=")):
		return openVINO, true
	case ext == ".joblib", ext == ".pkl" || ext == ".pickle":
		return pickled, true
	}
	return Foreign{}, false
}

// archived recognises a zip or tar file by the names of its entries.
func archived(path string, head []byte) (f Foreign, ok bool) {
	const last = 257 // of the place where a tar's first header has its magic
	if !bytes.HasPrefix(head, []byte("PK\x03\x04")) && (len(head) < last+5 || string(head[last:last+5]) != "ustar") {
		return f, false
	}
	content, info, err := file.Regular(path)
	if err != nil {
		return f, false
	}
	defer content.Close()
	names := tarNames(content)
	if head[0] == 'P' && head[1] == 'K' {
		names = zipNames(content, info.Size())
	}
	has := func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return n == name || strings.HasSuffix(n, "/"+name) })
	}
	switch {
	case has("model.weights.h5") && has("config.json"):
		return kerasZip, true
	// the last is of torch before 2.7
	case has("archive_format") && !has("constants.pkl") && !has("data.pkl") || has("models/model.json"),
		has("serialized_exported_program.json"):
		return pt2, true
	case has("model_weights.ckpt"):
		return nemo, true
	}
	return f, false
}

// zipNames returns the names of a zip file's entries, if they are few.
func zipNames(f io.ReaderAt, size int64) (names []string) {
	z, err := zip.NewReader(&bounded{f, 4 << 20}, size)
	if err != nil {
		return nil
	}
	for _, e := range z.File {
		names = append(names, e.Name)
	}
	return names
}

// bounded fails when more than left bytes were read: the directory of a hostile zip file would fill the memory.
type bounded struct {
	of   io.ReaderAt
	left int
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return b.of.ReadAt(p, off)
}

// tarNames returns the names of a tar file's first entries.
func tarNames(f io.Reader) (names []string) {
	const most = 100
	t := tar.NewReader(f)
	for range most {
		h, err := t.Next()
		if err != nil {
			break
		}
		names = append(names, h.Name)
	}
	return names
}

// isTensorFlow reports whether a name is that of a part of a checkpoint: model.ckpt-7.index, model.ckpt-7.data-00000-of-00001.
func isTensorFlow(base string) bool {
	ext := filepath.Ext(base)
	return strings.Contains(ext, "-of-") && strings.HasPrefix(ext, ".data-") || ext == ".index" ||
		ext == ".meta" && strings.Contains(base, ".ckpt")
}

// foreignFolder recognises a folder by the files in it.
func foreignFolder(dir string) (f Foreign, ok bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f, false
	}
	if strings.HasSuffix(dir, ".mlpackage") {
		return coreML, true
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == "manifest.ocdbt" || e.Name() == "_CHECKPOINT_METADATA" || e.Name() == "_METADATA"
	}) {
		return orbax, true
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			if f, ok = ForeignOf(filepath.Join(dir, e.Name())); ok {
				return f, true
			}
		}
	}
	return f, false
}
