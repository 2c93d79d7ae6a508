package programs

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights/statefile"
)

// extract returns the folder that a program of testdata/make.py left.
func extract(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	z, err := zip.OpenReader("testdata/" + name + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		path := filepath.Join(dir, f.Name)
		r, err := f.Open()
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o777)
		}
		var b []byte
		if err == nil {
			b, err = io.ReadAll(r)
		}
		if err == nil {
			err = os.WriteFile(path, b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The folders that programs leave: the checkpoints in their order, where the weights are that SGD moved, where averages lie, and what is read
// beside them.
func TestRows(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		program           string
		paths             string // the first and the last
		iterate, averages string // keys
		words, classes    string
		measured          string // a part of it
	}{
		"accelerate": {
			program: "Accelerate",
			paths:   "checkpoints/checkpoint_0 checkpoints/checkpoint_2",
		},
		"catalyst": {
			program:  "Catalyst",
			paths:    "checkpoints/train.1.pth checkpoints/train.2_full.pth", // a fit leaves out the copies
			measured: "loss 0.",
		},
		"diffusers": {
			paths:    "epoch_0.pt epoch_2.pt",
			iterate:  "model",
			averages: "ema/shadow_params",
		},
		"diffusers_scripts": {paths: "checkpoint-0/unet checkpoint-1/unet"},
		"ema_pytorch": {
			paths:    "epoch_0.pt epoch_2.pt",
			iterate:  "model",
			averages: "ema/ema_model",
		},
		"ema_pytorch_alone": {
			paths:    "epoch_0.pt epoch_2.pt",
			averages: "the file",
		},
		"fastai": {
			paths: "models/epoch_0.pth models/epoch_2.pth",
		},
		"ignite": {
			program: "Ignite",
			paths:   "checkpoint_2.pt checkpoint_6.pt",
		},
		"imagenet": {
			program: "PyTorch's ImageNet example",
			paths:   "checkpoint.pth.tar checkpoint.pth.tar",
		},
		"lightning": {
			program:  "Lightning",
			paths:    "lightning_logs/version_0/checkpoints/epoch=0-step=2.ckpt lightning_logs/version_0/checkpoints/epoch=2-step=6.ckpt",
			iterate:  "current_model_state",
			averages: "state_dict",
			classes:  "cat dog",
			measured: "epoch=2-step=6.ckpt has current_model_state: these are the figures of its average",
		},
		"mmengine": {
			program:  "MMEngine",
			paths:    "epoch_1.pth epoch_3.pth",
			iterate:  "ema_state_dict",
			averages: "state_dict",
		},
		"monai": {
			program: "MONAI",
			paths:   "net_epoch=1.pt net_final_iteration=6.pt", // a fit leaves out the copy
		},
		"skorch": {
			program:  "skorch",
			paths:    "params_1.pt params_3.pt",
			measured: "valid_acc 0.",
		},
		"speechbrain": {
			program:  "SpeechBrain",
			paths:    "save/CKPT+2026-01-02+03-04-00+00 save/CKPT+2026-01-02+03-04-02+00",
			measured: "loss 0.5",
		},
		"timm": {
			program:  "timm",
			paths:    "checkpoint-0.pth.tar checkpoint-2.pth.tar",
			iterate:  "state_dict",
			averages: "state_dict_ema",
			words:    "input-size=32 mean=0.5,0.4,0.3 std=0.2,0.2,0.2 crop-pct=0.9 interpolation=bicubic",
			measured: "eval_top1 71.5. ",
		},
		"torchvision": {
			program:  "torchvision's references",
			paths:    "model_0.pth model_2.pth",
			iterate:  "model",
			averages: "model_ema",
			words: "mean=0.485,0.456,0.406 std=0.229,0.224,0.225 input-size=32 crop-mode=center resize-size=40 " +
				"interpolation=bilinear",
		},
	} {
		dir := extract(t, name)
		f, err := List(dir, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		c, err := f.Choose(nil)
		f.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var files []*statefile.File
		for _, path := range c.Paths {
			file, err := statefile.Open(path)
			if err != nil {
				t.Fatal(name, err)
			}
			defer file.Close()
			files = append(files, file)
		}
		last := files[len(files)-1]
		got := want
		got.paths = f.Short(c.Paths[0]) + " " + f.Short(c.Paths[len(c.Paths)-1])
		keys, iterate := Keys(files)
		got.iterate, got.averages = iterate, ""
		for _, k := range keys {
			if k.Content == Average {
				got.averages = strings.TrimSpace(got.averages + " " + k.Name)
			}
		}
		if keys == nil && last.StateDicts()[0].Average().Mark != "" {
			got.averages = "the file"
		}
		r := Near(c.Paths, dir, "", last)
		got.program, got.words = "", ""
		if r.Program != nil {
			got.program = r.Program.Name
		}
		if p := r.Preprocess(); p != nil {
			got.words = p.Spec
		}
		classes, _ := r.Classes()
		got.classes = strings.Join(classes, " ")
		if measured := r.Measured(); want.measured == "" || !strings.Contains(measured, want.measured) {
			got.measured = measured
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
