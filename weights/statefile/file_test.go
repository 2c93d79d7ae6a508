package statefile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/swagwrap/swagwrap/weights"
)

func TestStateDictByKey(t *testing.T) {
	f, err := Open("testdata/script.pt.tar")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for key, want := range map[string]string{
		"":      "testdata/script.pt.tar: 2 state_dicts, want the key of one",
		"other": `testdata/script.pt.tar: no state_dict under "other"`,
		"model": "",
	} {
		sd, err := f.StateDict(key)
		var e *Error
		if want == "" {
			if err != nil || sd.Key != key || sd.Len() != 77 {
				t.Errorf("key %q: %v, %v", key, sd, err)
			}
		} else if !errors.As(err, &e) || err.Error() != want || e.Hint != `it has "model" (9 tensors), "state_dict_ema" (9 tensors)` {
			t.Errorf("key %q: %q, hint %q, want %q", key, err, e.Hint, want)
		}
	}
}

// Files of other programs are told from PyTorch's by what they begin with.
func TestOtherFiles(t *testing.T) {
	for data, want := range map[string]string{
		"":                                   "f.pt: empty, want a checkpoint of PyTorch",
		"\x1f\x8b\x08":                       "f.pt: a gzip file",
		"version https://git-lfs.github.com": "git lfs pull",
		"\x89HDF\r\n\x1a\n":                  "an HDF5 file",
		"\x08\x08\x12\x07pytorch":            "a file of an unknown kind",
		"PK\x05\x06" + strings.Repeat("\x00", 18): "a zip file without data.pkl",
		"\x80\x02}q\x00.":                         "a Python pickle",
	} {
		wantRefused(t, want, []byte(data), want)
	}
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ file, want string }{
		{"notes.txt", "a folder without model.safetensors"},
		{"zero_to_fp32.py", "DeepSpeed's ZeRO"},
		{"__0_0.distcp", "a distributed checkpoint"},
	} {
		if err := os.WriteFile(filepath.Join(dir, tt.file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), tt.want) || IsFolder(dir) {
			t.Errorf("with %s: %v, want %q", tt.file, err, tt.want)
		}
	}
	if !IsFolder("testdata/shards-bin") || IsFolder("testdata") {
		t.Error("folders are not told apart")
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for file, data := range map[string][]byte{"model.safetensors": read(t, "plain.safetensors"), "trainer_state.json": []byte(`{"epoch":1.5,"global_step":30}`)} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Step != 30 || f.Epoch != -1 || len(f.StateDicts()[0].Tensors) != 9 {
		t.Errorf("step %d, epoch %d, %v", f.Step, f.Epoch, f.StateDicts())
	}
}

// Forms of early PyTorch, which nobody can write any more: _rebuild_tensor, and a tensor in a stretch of another's
// storage.
func TestOldForms(t *testing.T) {
	stretch := group(str("storage"), name("torch", "FloatStorage"), str("0"), str("cpu"), "K\x04", group(str("view"), "K\x01", "K\x02")) + "Q"
	root := items(str("w"), call(name("torch._utils", "_rebuild_tensor"), stretch, "K\x00", nums(2), nums(1)))
	data := []byte("\x80\x02\x8a\x0a" + string(legacyMagic) + ".\x80\x02M\xe9\x03.\x80\x02}.\x80\x02" + root + ".\x80\x02](" + str("0") + "e." +
		"\x04\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40")
	f, err := Parse("f.pt", data)
	if err != nil {
		t.Fatal(err)
	}
	sd := f.StateDicts()[0]
	got := make([]float32, 2)
	if len(sd.Tensors) != 1 || vectorOf(t, sd.Tensors[0]).ReadAt(got, 0) != nil || !slices.Equal(got, []float32{2, 3}) || sd.Tensors[0].Storage.Offset != 1 {
		t.Errorf("%+v: %v", sd.Tensors, got)
	}
	data[len(data)-24] = 5 // elements in the storage
	wantRefused(t, "a storage beyond the file", data, `storage "0": 5 elements of 4 bytes, 16 bytes left: truncated`)
}

// What a file calls things reaches a message without control characters.
func TestPrintable(t *testing.T) {
	root := items(str("\x1b[2Jkey"), call(name("\x1b[31mm", "\x07f")), str("long"), call(name(strings.Repeat("m", 1000), "f")))
	for _, data := range [][]byte{zipped(root), zipped(items(str("\x1b[2Jw"), weight, str("\x07"), call(name("torch._utils", "_rebuild_\x1b")))), zipped("N", "a/byteorder", "\x1b")} {
		err := use(data)
		if err == nil || strings.ContainsFunc(err.Error(), unicode.IsControl) || len(err.Error()) > 500 {
			t.Errorf("%q", err)
		}
	}
}

func TestShortNames(t *testing.T) {
	for _, tt := range []struct {
		names          string
		prefix, shorts string
		ignored        int
	}{
		{"conv.weight fc.weight", "", "conv.weight fc.weight", 0},
		{"module.conv.weight module.fc.weight", "module.", "conv.weight fc.weight", 0},
		{"module.model.net.a module.model.net.b", "module.model.net.", "a b", 0},
		{"model.a net.b", "", "model.a net.b", 0},
		{"model. model.a", "", "model. model.a", 0},
		{"_orig_mod.module.a _orig_mod.module.b", "module.", "a b", 0},
		{"model.layer._orig_mod.a model.b", "model.", "layer.a b", 0},
		{"_orig_mod.a a", "", "_orig_mod.a a", 0},
		{"model.a criterion.weight", "model.", "a", 1},
		{"module.model.a module.loss.weight", "module.model.", "a", 1},
		{"criterion.weight loss.a", "", "criterion.weight loss.a", 0},
	} {
		sd := &StateDict{}
		for _, n := range strings.Fields(tt.names) {
			sd.place(&Tensor{Name: n, Short: n, Piece: weights.Piece{DType: weights.F32}})
		}
		sd.finish("f.pt")
		var shorts []string
		for _, x := range sd.Tensors {
			shorts = append(shorts, x.Short)
		}
		if got := strings.Join(shorts, " "); got != tt.shorts || sd.Prefix != tt.prefix || len(sd.Ignored) != tt.ignored {
			t.Errorf("%s: prefix %q, names %s, %d ignored; want %q, %s, %d", tt.names, sd.Prefix, got, len(sd.Ignored), tt.prefix, tt.shorts, tt.ignored)
		}
	}
}

// The count of batches is that of PyTorch: 50 in each epoch of fixtures/mnist. Networks without batch norm have none.
func TestBatches(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int64{"../../fixtures/mnist/states/epoch-29.pt": 3450, "../../fixtures/mnist/states/epoch-30.pt": 3500,
		"testdata/dtypes.pt": -1, "testdata/averaged.pt": 1} {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := f.StateDicts()[0].Batches(); got != want || f.StateDicts()[0].Average() != (Average{}) {
			t.Errorf("%s: %d batches, want %d", path, got, want)
		}
	}
}

// Training programs mark which weights are an average, and which are those that SGD moved.
func TestMarks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[string]Average{
		"composer": {
			"state/model":                {Mark: "ema_weights_active of Composer is True", Iterate: "state/algorithms/ema_model"},
			"state/algorithms/ema_model": {Iterates: true},
		},
		"composer-iterate": {"state/model": {}},
		"weight-averaging": {
			"state_dict": {
				Mark:    "Lightning keeps the average there, and the weights that SGD moved under current_model_state",
				Iterate: "current_model_state",
			},
			"current_model_state": {Iterates: true},
		},
		"stochastic": {"state_dict": {Mark: "average_model_state of StochasticWeightAveraging has the same weights"}},
		"mmengine": {
			"state_dict":     {Mark: "the EMAHook of MMEngine exchanges the two: state_dict is the average", Iterate: "ema_state_dict"},
			"ema_state_dict": {Iterates: true},
		},
		"torch-ema": {
			"model":                {Mark: "ema/shadow_params has the same weights", Iterate: "ema/collected_params"},
			"ema/collected_params": {Iterates: true},
		},
	} {
		f, err := Open("testdata/marks-" + name + ".pt")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		found := 0
		for _, sd := range f.StateDicts() {
			if of, ok := want[sd.Key]; ok {
				found++
				if got := sd.Average(); got != of {
					t.Errorf("%s, %s: %+v, want %+v", name, sd.Key, got, of)
				}
			}
		}
		if found != len(want) {
			t.Errorf("%s: %d of %d state_dicts", name, found, len(want))
		}
	}
}
