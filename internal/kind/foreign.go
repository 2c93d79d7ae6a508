package kind

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// A Foreign is a format of other programs that this program does not read.
type Foreign struct {
	Name   string // with an article
	Export string // how to make a checkpoint of it
	Data   string // how to make data of it; "" if it holds no data
}

// The formats of other programs.
var (
	keras      = "export each checkpoint with tf2onnx, as docs/exporting.md shows under Keras: load it into the model with model.load_weights, then call tf2onnx.convert.from_keras"
	deployed   = "it is made for inference only: give the checkpoints that training saved, or export each to ONNX with the training framework (docs/exporting.md)"
	hdf5       = Foreign{"an HDF5 file, as Keras saves weights", keras, "write its arrays to an .npz file: import h5py, numpy as np; f = h5py.File(path); np.savez('data.npz', images=f['images'], labels=f['labels'])"}
	kerasZip   = Foreign{"a .keras file", keras, ""}
	tflite     = Foreign{"a TensorFlow Lite model", deployed, ""}
	gguf       = Foreign{"a GGUF file of llama.cpp", "its weights are mostly quantised: give the checkpoints that training saved, such as model.safetensors of Hugging Face, with the exported graph", ""}
	msgpack    = Foreign{"a MessagePack file, as Flax saves weights", "load it with flax.serialization.from_bytes, and write each checkpoint as named tensors with safetensors.numpy.save_file, or export each to ONNX (docs/exporting.md, under JAX)", ""}
	tensorflow = Foreign{"a checkpoint of TensorFlow", keras, ""}
	savedModel = Foreign{"a SavedModel of TensorFlow", "export each checkpoint: python -m tf2onnx.convert --saved-model FOLDER --output epoch-01.onnx. docs/exporting.md shows under Keras how to keep batch norm", ""}
	coreML     = Foreign{"a Core ML model", deployed, ""}
	tensorRT   = Foreign{"an engine of TensorRT", deployed, ""}
	openVINO   = Foreign{"a model of OpenVINO", deployed, ""}
	pickled    = Foreign{"a pickled object of Python", "of scikit-learn, convert each checkpoint with skl2onnx: to_onnx(model, X[:1], options={'zipmap': False}). Of PyTorch, save the weights with torch.save(model.state_dict(), path)", "write its arrays to an .npz file: numpy.savez"}
	matlab     = Foreign{"a MATLAB file", deployed, "write its arrays to an .npz file: from scipy.io import loadmat; numpy.savez('data.npz', **{k: v for k, v in loadmat(path).items() if k[0] != '_'})"}
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
	switch {
	case has("\x89HDF\r\n\x1a\n", 0):
		return hdf5, true
	case ext == ".keras" && has("PK\x03\x04", 0):
		return kerasZip, true
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

// isTensorFlow reports whether a name is that of a part of a checkpoint: model.ckpt-7.index, model.ckpt-7.data-00000-of-00001.
func isTensorFlow(base string) bool {
	ext := filepath.Ext(base)
	return strings.Contains(ext, "-of-") && strings.HasPrefix(ext, ".data-") || ext == ".index" || ext == ".meta" && strings.Contains(base, ".ckpt")
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
	for _, e := range entries {
		if e.Type().IsRegular() {
			if f, ok = ForeignOf(filepath.Join(dir, e.Name())); ok {
				return f, true
			}
		}
	}
	return f, false
}
