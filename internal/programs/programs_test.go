package programs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// network is what a file of the tests holds.
type network struct{ name string }

var (
	main   = network{"fc.weight"}
	critic = network{"critic.weight"}
)

// state returns a file of torch.save with random weights.
func state(t *testing.T, r *rand.Rand, of network) []byte {
	t.Helper()
	var b bytes.Buffer
	err := statefile.Write(&b, "x", []statefile.Entry{{Name: of.name, DType: weights.F32, Shape: []int64{4, 3}, Elements: func(w io.Writer) error {
		for range 12 {
			if err := binary.Write(w, binary.LittleEndian, math.Float32bits(r.Float32())); err != nil {
				return err
			}
		}
		return nil
	}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A scene is a random run folder, and the sets in it.
type scene struct {
	t    *testing.T
	r    *rand.Rand
	dir  string
	sets [][]string
	// direct says that a set is in the folder itself, which the user has named.
	direct bool
}

func (s *scene) write(path string, b []byte) string {
	s.t.Helper()
	path = filepath.Join(s.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// set adds one set of checkpoints below a folder, as programs lay them out, and the files that programs leave near it.
func (s *scene) set(below string) {
	n := 2 + s.r.IntN(5)
	first := 1 + s.r.IntN(20)
	layout := s.r.IntN(5)
	stem := []string{"epoch_%d.pt", "model-%04d.pth", "best-epoch=%d-val_loss=0.5.ckpt", "checkpoint-%d.pth.tar", "step%d.bin"}[s.r.IntN(5)]
	var paths []string
	var last []byte
	folder := below
	for i := range n {
		last = state(s.t, s.r, main)
		switch k := first + i; layout {
		case 0, 1, 2:
			folder = filepath.Join(below, []string{"", "checkpoints", "version_0/checkpoints"}[layout])
			paths = append(paths, s.write(filepath.Join(folder, fmt.Sprintf(stem, k)), last))
		case 3: // one folder each, with a file of a known name
			d := filepath.Join(below, fmt.Sprintf("checkpoint-%d", 10*k))
			s.write(filepath.Join(d, "pytorch_model.bin"), last)
			s.write(filepath.Join(d, "optimizer.pt"), state(s.t, s.r, critic))
			paths = append(paths, filepath.Join(s.dir, d))
		case 4: // one folder each, with a file of any name
			d := filepath.Join(below, fmt.Sprintf("epoch_%d", k))
			paths = append(paths, s.write(filepath.Join(d, "net.pt"), last))
		}
	}
	slices.Sort(paths)
	s.direct = s.direct || below == "" && (layout == 0 || layout == 3)
	s.sets = append(s.sets, paths)
	if layout < 3 {
		for _, extra := range []string{"last.ckpt", "best.pt", "latest.pth"} {
			if s.r.IntN(3) == 0 {
				s.write(filepath.Join(folder, extra), last)
			}
		}
		for _, extra := range []string{"optimizer.pt", "scheduler_1.pt", "rng_state_0.pth"} {
			if s.r.IntN(3) == 0 {
				s.write(filepath.Join(folder, extra), state(s.t, s.r, critic))
			}
		}
		if s.r.IntN(3) == 0 {
			s.write(filepath.Join(folder, "criterion_1.pt"), state(s.t, s.r, critic))
		}
	}
	if s.r.IntN(3) == 0 && layout != 0 {
		s.write(filepath.Join(below, "best.pt"), last)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	graph, err := os.ReadFile("../../cmd/swagwrap/testdata/ckpt-1.onnx")
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	asked, taken := 0, 0
	for seed := range uint64(300) {
		s := &scene{t: t, r: rand.New(rand.NewPCG(seed, 1)), dir: filepath.Join(t.TempDir(), "run")}
		several := s.r.IntN(4) == 0
		s.set([]string{"", "run_a", "logs/x"}[s.r.IntN(3)])
		if several {
			s.set("other")
		}
		if s.r.IntN(2) == 0 {
			s.write("model.onnx", graph)
		}
		if s.r.IntN(3) == 0 {
			s.write("notes/readme.txt", []byte("x"))
			s.write(".hidden/epoch_1.pt", state(t, s.r, main))
			s.write(".hidden/epoch_2.pt", state(t, s.r, main))
		}
		if s.r.IntN(3) == 0 { // a link out of the folder
			o := &scene{t: t, r: s.r, dir: filepath.Join(outside, fmt.Sprint(seed))}
			o.set("")
			if err := os.Symlink(o.dir, filepath.Join(s.dir, "elsewhere")); err != nil {
				t.Fatal(err)
			}
		}
		f, err := List(s.dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.Choose(func(x *statefile.File) bool {
			_, ok := x.StateDicts()[0].Find(main.name)
			return ok
		})
		f.Close()
		ask := new(SeveralError)
		switch {
		case errors.As(err, &ask) && several:
			asked++
		case err != nil:
			t.Errorf("seed %d: %v, %+v", seed, err, ask.Sets)
		default:
			taken++
			got := slices.Sorted(slices.Values(c.Paths))
			if !slices.ContainsFunc(s.sets, func(want []string) bool { return slices.Equal(got, want) }) {
				t.Errorf("seed %d: %q, want one of %q", seed, got, s.sets)
			}
			if several && !s.direct {
				t.Errorf("seed %d: took %q, and nothing says which of two sets", seed, got)
			}
		}
	}
	if asked < 20 || taken < 150 {
		t.Errorf("asked %d times, took %d", asked, taken)
	}
}

// What lies near the checkpoints is read with the place where it was found.
func TestNear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state                                  string // a file of package statefile
		top                                    string // the run's folder, from that of the checkpoint
		beside                                 map[string]string
		program, preprocess, classes, measured string
		unsaid                                 string
		graph                                  map[string]string // metadata
		pad                                    int64
	}{
		"timm": {
			state: "script.pt.tar",
			beside: map[string]string{
				"args.yaml":   "img_size: 32\nmean:\n- 0.5\n- 0.4\n- 0.3\nstd:\n- 0.2\n- 0.2\n- 0.2\ninterpolation: bicubic\ncrop_pct: 0.9\nlr: 1e-4\n",
				"summary.csv": "epoch,train_loss,eval_loss,eval_top1\n0,1,2,50\n1,1,0.75,71.5\n",
			},
			program:    "timm",
			preprocess: "input-size=32 mean=0.5,0.4,0.3 std=0.2,0.2,0.2 crop-pct=0.9 interpolation=bicubic",
			measured:   "eval_loss 0.75, eval_top1 71.5",
		},
		"timm, its network's own crop": {
			state: "script.pt.tar",
			beside: map[string]string{
				"args.yaml":   "model: resnet18\nimg_size: 32\nmean: [0.5]\nstd: [0.2]\ninterpolation: bilinear\ncrop_pct: null\n",
				"summary.csv": "epoch,eval_loss\n0,2\n",
			},
			program:  "timm",
			measured: "eval_loss 2",
			unsaid:   "args.yaml: does not say crop_pct",
		},
		"timm, its network's own interpolation": {
			state: "script.pt.tar",
			beside: map[string]string{
				"args.yaml":   "model: resnet18\nimg_size: 32\nmean: [0.5]\nstd: [0.2]\ninterpolation: ''\ncrop_pct: 1.0\n",
				"summary.csv": "epoch,eval_loss\n0,2\n",
			},
			program:  "timm",
			measured: "eval_loss 2",
			unsaid:   "args.yaml: does not say interpolation: timm prepared pictures with its own",
		},
		"timm with an average": {
			state: "script.pt.tar",
			beside: map[string]string{
				"args.yaml":   "img_size: 64\ninput_size:\n- 3\n- 32\n- 48\nmean:\n- 0.5\nstd:\n- 0.2\ninterpolation: bilinear\ncrop_pct: 1.0\nmodel_ema: true\n",
				"summary.csv": "epoch,train_loss,eval_loss,eval_top1\n0,1,2,50\n1,1,0.75,71.5\n",
			},
			program:    "timm",
			preprocess: "input-size=32x48 mean=0.5 std=0.2 crop-pct=1 interpolation=bilinear",
			measured:   "eval_loss 0.75, eval_top1 71.5. ",
		},
		"ultralytics": {
			state: "zip.pt",
			top:   "..",
			beside: map[string]string{
				"../args.yaml":   "task: classify\nmode: train\nimgsz: 64\nmodel: !!python/object:os.system x\nlist: &a [1]\n",
				"../results.csv": "epoch,time,train/loss,metrics/accuracy_top1,val/loss\n1,2,3,0.5,0.9\n2,2,3,0.75,0.8\n",
			},
			program:    "ultralytics",
			preprocess: "input-size=64 crop-pct=1 interpolation=bilinear mean=0 std=1",
			measured:   "metrics/accuracy_top1 0.75, val/loss 0.8",
		},
		"Trainer": {
			state: "zip.pt",
			beside: map[string]string{
				"config.json":        `{"pad_token_id": 50, "id2label": {"0": "a"}}`,
				"trainer_state.json": `{"global_step": 9, "log_history": [{"loss": 1}, {"eval_loss": 0.5, "eval_accuracy": 0.9}, {"loss": 0.1}]}`,
			},
			program:  "the Hugging Face Trainer",
			measured: "eval_accuracy 0.9, eval_loss 0.5",
			pad:      50,
		},
		"a program with files of these names": {
			state:    "zip.pt",
			beside:   map[string]string{"args.yaml": "lr: 0.1\n", "summary.csv": "epoch,eval_loss\n0,2\n"},
			program:  "timm",
			measured: "eval_loss 2",
		},
		"timm, with a configuration of the hub": {
			state: "zip.pt",
			beside: map[string]string{
				"args.yaml":   "model: resnet18\nimg_size: 32\n",
				"summary.csv": "epoch,eval_loss\n0,2\n",
				"config.json": `{"architecture": "resnet18", "pretrained_cfg": {"input_size": [3, 32, 32], "crop_pct": 0.9}}`,
			},
			program:    "timm",
			preprocess: "config.json",
			measured:   "eval_loss 2",
		},
		"a tokenizer": {
			state: "zip.pt",
			beside: map[string]string{
				"config.json":           `{"pad_token_id": null}`,
				"tokenizer_config.json": `{"pad_token": "<pad>", "added_tokens_decoder": {"3": {"content": "<s>"}, "7": {"content": "<pad>"}}}`,
			},
			pad: 7,
		},
		"a graph of ultralytics": {
			state: "zip.pt",
			graph: map[string]string{
				"author": "Ultralytics", "task": "classify", "imgsz": "[64, 96]", "names": "{0: 'cat', 1: 'dog'}", "batch": "1", "stride": "1",
			},
			program:    "ultralytics",
			preprocess: "input-size=64x96 crop-pct=1 interpolation=bilinear mean=0 std=1",
			classes:    "cat dog",
		},
		"a graph of others": {
			state: "zip.pt",
			graph: map[string]string{"author": "me", "task": "classify", "imgsz": "[64, 96]"},
		},
		"skorch": {
			state:    "zip.pt",
			beside:   map[string]string{"history.json": `[{"valid_loss": 2}, {"valid_loss": 1.5, "batches": []}]`, "params_1.pt": ""},
			program:  "skorch",
			measured: "valid_loss 1.5",
		},
		"SpeechBrain": {
			state:    "zip.pt",
			beside:   map[string]string{"CKPT.yaml": "# yamllint disable\nend-of-epoch: true\nloss: 0.5\nunixtime: 1767323050.0\n"},
			program:  "SpeechBrain",
			measured: "loss 0.5",
		},
		"Lightning": {
			state:   "lightning.ckpt",
			beside:  map[string]string{"hparams.yaml": "class_names:\n- cat\n- dog\nlr: 0.1\n"},
			program: "Lightning",
			classes: "cat dog",
		},
		"Lightning, files one folder above the checkpoints, and others' there": {
			state:   "lightning.ckpt",
			beside:  map[string]string{"../hparams.yaml": "classes:\n- cat\n- dog\n", "../config.json": `{"pad_token_id": 7}`},
			program: "Lightning",
			classes: "cat dog",
		},
		"files one folder above the run": {state: "zip.pt", beside: map[string]string{
			"../config.json":              `{"pad_token_id": 50}`,
			"../preprocessor_config.json": `{"do_normalize": true, "image_mean": [0.5], "image_std": [0.5]}`,
			"../args.yaml":                "img_size: 32\nmean: [0.5]\nstd: [0.5]\n",
			"../summary.csv":              "eval_loss\n0.5\n",
		}},
		"none": {state: "zip.pt", beside: map[string]string{"args.yaml": "a: 1\n"}},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		for file, text := range c.beside {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile("../../weights/statefile/testdata/" + c.state)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "epoch_1.pt")
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		last, err := statefile.Open(path)
		if err != nil {
			t.Fatal(name, err)
		}
		defer last.Close()
		r := Near([]string{path}, filepath.Join(dir, c.top), "", last)
		if c.graph != nil {
			r.WithGraph(c.graph)
		}
		program := ""
		if r.Program != nil {
			program = r.Program.Name
		}
		words := ""
		if p := r.Preprocess(); p != nil {
			words = strings.TrimPrefix(p.Spec, dir+"/")
		}
		if u := r.Unsaid(); (u != nil) != (c.unsaid != "") || u != nil && !strings.Contains(u.Error(), c.unsaid) {
			t.Errorf("%s: %v", name, u)
		}
		classes, _ := r.Classes()
		pad, _, _ := r.Pad()
		if program != c.program || words != c.preprocess || strings.Join(classes, " ") != c.classes || pad != c.pad ||
			c.measured != "" && !strings.Contains(r.Measured(), ": "+c.measured) || c.measured == "" && r.Measured() != "" {
			t.Errorf("%s: %q, %q, %q, %d, %q", name, program, words, classes, pad, r.Measured())
		}
	}
	for figures, want := range map[string]string{
		"eval_loss 0.75, eval_top1 71.5, eval_top5 99":                      "accuracy=71.5% loss=0.75",
		"metrics/accuracy_top1 0.75, metrics/accuracy_top5 1, val/loss 0.8": "accuracy=0.75 loss=0.8",
		"eval_accuracy 1, eval_loss 0.5":                                    "accuracy=1 loss=0.5",
		"valid_loss 1.5, train_loss 1":                                      "",
		"eval_rmse 1.5, WER 3":                                              "",
	} {
		if got := expected(strings.Split(figures, ", ")); got != want {
			t.Errorf("%s: --expect %q, want %q", figures, got, want)
		}
	}
	if got := namesOf(pythonDict(`{0: 'cat', 1: "the dog's"}`)); !slices.Equal(got, []string{"cat", "the dog's"}) {
		t.Errorf("names of a graph: %q", got)
	}
	for _, bad := range []string{"", "{", "{0: cat}", "{0: 'a'", `{0: 'a\\'b'}`} {
		if got := namesOf(pythonDict(bad)); len(got) > 0 {
			t.Errorf("%q: %q", bad, got)
		}
	}
}
