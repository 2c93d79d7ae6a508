package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// A scene is a network with its task and with data in several formats. Its files are in a folder with its name.
type scene struct {
	name        string
	from        []string   // the networks, which are copied
	fit         []string   // flags that fit needs
	checkpoints []string   // arguments of fit
	training    []string   // values of --bn-data, if the network has batch norm
	data        []string   // labelled examples in several formats
	few         []string   // data with one example, with one class, or without labels
	labels      []string   // values of --labels that fit the data
	other       string     // examples of another domain
	guarantees  [][]string // flags of calibrate for ensembles that guarantee something; see guaranteed
	good        map[string][]string
	make        func(*maker) // files beside the networks
}

// guaranteed returns the ensemble with the k-th guarantee.
func (s *scene) guaranteed(k int) string { return s.at(fmt.Sprintf("promised%d.safetensors", k)) }

// at returns the path of a file of the scene.
func (s *scene) at(name string) string { return s.name + "/" + name }

func smallFiles(names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, "cmd/swagwrap/testdata/"+name)
	}
	return paths
}

func filesIn(folder string, names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, folder+"/"+name)
	}
	return paths
}

const (
	sceneExamples   = 10 // of most data sets
	scenePictures   = 4  // pictures whose pixels are scored
	usualPreprocess = "mean=0.5 std=0.25"

	foreignFiles = "mine" // files that the program did not make
	oldFiles     = "old"  // outputs of earlier runs
	newFiles     = "out"  // an empty folder
)

// scenes are all tasks, each with the formats that its data may have.
var scenes = []*scene{
	{
		name: "classes", from: smallFiles("ckpt-1.onnx", "ckpt-2.onnx", "ckpt-10.onnx"),
		fit:        []string{"--task", "classes", "--preprocess", usualPreprocess, "--class-names", "classes/names.txt"},
		training:   []string{"classes/train.npz", "classes/pictures", "classes/pictures.tar", "classes/list.csv"},
		data:       []string{"classes/test.npz", "classes/pictures", "classes/list.csv", "classes/pictures.tar", "classes/listed.parquet"},
		labels:     []string{"classes/labels.npy"},
		few:        []string{"classes/one.npz", "classes/alike.npz", "classes/unlabelled.npy"},
		other:      "classes/other.npz",
		guarantees: [][]string{{"--coverage", "70%"}, {"--coverage", "60%", "--set", "aps", "--by", "class", "--threshold", "risk=0.98"}, {"--coverage", "60%", "--by", "([0-9])"}},
		good: map[string][]string{
			"preprocess": {usualPreprocess, "mean=0.4 std=0.5", "none"}, "class-names": {"classes/names.txt", "classes/pictures"}, "task": {"classes", "auto"},
			"shift": {"gaussian_noise severities=1 examples=5", "contrast severities=5"}, "augment": {"none", "RandomHorizontalFlip()", "cifar"}, "output-name": {"logits"},
			"features": {"none", "flat"}, "settings": {"classes/settings.json"}, "groups": {"report=folder", `unit=([0-9])`, "report=classes/list.csv:label"},
			"threshold": {"risk=0.9"}, "columns": nil,
		},
		make: func(m *maker) {
			seen, of := squarePictures(sceneExamples, 1), classes(3, sceneExamples)
			for i := range sceneExamples {
				m.picture(fmt.Sprintf("pictures/%s/%d.png", []string{"cat", "dog", "owl"}[i%3], i), seen.of(i))
			}
			m.array("test.npz", "images", seen, "labels", of)
			m.array("train.npz", "images", squarePictures(2*sceneExamples, 2), "labels", classes(3, 2*sceneExamples))
			m.array("other.npz", "images", squarePictures(sceneExamples, 3))
			m.array("labels.npy", "", of)
			m.array("one.npz", "images", squarePictures(1, 4), "labels", classes(3, 1))
			m.array("alike.npz", "images", squarePictures(6, 5), "labels", classes(1, 6))
			m.array("unlabelled.npy", "", squarePictures(4, 6))
			m.text("names.txt", "cat\ndog\nowl\n")
			m.listed("list.csv", "pictures.tar", seen)
			m.run("list", "-q", "-o", "classes/listed.parquet", "classes/pictures")
		},
	},
	{
		name: "binary", from: smallFiles("binary-1.onnx", "binary-2.onnx"), fit: []string{"--task", "binary", "--preprocess", usualPreprocess},
		training: []string{"binary/train.npz", "shared/pictures"}, data: []string{"binary/test.npz"}, few: []string{"binary/one.npz", "binary/alike.npz"}, labels: []string{"binary/labels.npy"}, other: "classes/other.npz",
		guarantees: [][]string{{"--coverage", "70%", "--threshold", "risk=0.98"}},
		good: map[string][]string{
			"preprocess": {usualPreprocess}, "task": {"binary"}, "threshold": {"0.3", "f1", "youden", "recall=0.5", "risk=0.9"}, "shift": {"brightness severities=2"}, "augment": {"none"},
			"groups": {`unit=\[([0-9])`}, "output-name": {"logits"},
		},
		make: func(m *maker) {
			m.array("test.npz", "images", squarePictures(sceneExamples, 1), "labels", classes(2, sceneExamples))
			m.array("train.npz", "images", squarePictures(2*sceneExamples, 2))
			m.array("labels.npy", "", classes(2, sceneExamples))
			m.array("one.npz", "images", squarePictures(1, 4), "labels", classes(1, 1))
			m.array("alike.npz", "images", squarePictures(6, 5), "labels", classes(1, 6))
		},
	},
	{
		name: "labels", from: smallFiles("labels-1.onnx", "labels-2.onnx"), fit: []string{"--task", "labels", "--output-name", "logits", "--preprocess", usualPreprocess},
		training: []string{"labels/train.npz", "shared/pictures"}, data: []string{"labels/test.npz"}, few: []string{"labels/one.npz", "labels/alike.npz"}, labels: []string{"labels/labels.npy"}, other: "classes/other.npz",
		guarantees: [][]string{{"--coverage", "70%"}, {"--coverage", "60%", "--by", "class"}, {"--coverage", "size=1.5"}},
		good: map[string][]string{
			"set":        {"lac"},
			"preprocess": {usualPreprocess}, "task": {"labels"}, "output-name": {"logits", "each"}, "augment": {"none"}, "groups": {`unit=\[([0-9])`, `report=\[([0-4])?`},
			"method": {"temperature", "temperatures", "platt"},
		},
		make: func(m *maker) {
			m.array("test.npz", "images", squarePictures(sceneExamples, 1), "labels", classes(2, sceneExamples, 3))
			m.array("train.npz", "images", squarePictures(2*sceneExamples, 2))
			m.array("labels.npy", "", classes(2, sceneExamples, 3))
			m.array("one.npz", "images", squarePictures(1, 4), "labels", classes(2, 1, 3))
			m.array("alike.npz", "images", squarePictures(6, 5), "labels", classes(1, 6, 3))
		},
	},
	{
		name: "regression", from: smallFiles("four-classes-1.onnx", "four-classes-2.onnx"), fit: []string{"--task", "regression", "--targets", "head=log-variance mean=20,-2.5 std=3,0.4", "--preprocess", usualPreprocess},
		training: []string{"regression/train.npz", "shared/pictures"}, data: []string{"regression/test.npz"}, few: []string{"regression/one.npz"}, labels: []string{"regression/targets.npy"}, other: "classes/other.npz",
		guarantees: [][]string{{"--coverage", "70%"}, {"--coverage", "50%", "--by", "([0-9])"}},
		good: map[string][]string{
			"set": nil, "by": {"folder", "(.)"},
			"preprocess": {usualPreprocess}, "task": {"regression"}, "targets": {"head=log-variance", "regression/test.npz head=softplus"}, "augment": {"none"}, "groups": {`unit=\[([0-9])`},
			"method": {"variance", "variances", "isotonic"},
		},
		make: func(m *maker) {
			m.array("test.npz", "images", squarePictures(sceneExamples, 1), "targets", normalNumbers(sceneExamples, 2))
			m.array("train.npz", "images", squarePictures(2*sceneExamples, 2))
			m.array("targets.npy", "", normalNumbers(sceneExamples, 2))
			m.array("one.npz", "images", squarePictures(1, 4), "targets", normalNumbers(1, 2))
		},
	},
	{
		name: "means", from: smallFiles("binary-1.onnx", "binary-2.onnx"), fit: []string{"--task", "regression", "--targets", "head=none mean=20 std=3", "--preprocess", usualPreprocess},
		training: []string{"means/train.npz"}, data: []string{"means/test.npz"}, few: []string{"means/one.npz"}, labels: []string{"means/targets.npy"}, other: "classes/other.npz",
		guarantees: [][]string{{"--coverage", "99%"}},
		good: map[string][]string{
			"set": nil, "by": {"folder", "(.)"},
			"preprocess": {usualPreprocess}, "task": {"regression"}, "targets": {"head=none", "head=none mean=1 std=2"}, "noise-std": {"1", "2.5"}, "augment": {"none"}, "method": {"noise"},
		},
		make: func(m *maker) {
			m.array("test.npz", "images", squarePictures(sceneExamples, 1), "targets", normalNumbers(sceneExamples))
			m.array("train.npz", "images", squarePictures(2*sceneExamples, 2))
			m.array("targets.npy", "", normalNumbers(sceneExamples))
			m.array("one.npz", "images", squarePictures(1, 4), "targets", normalNumbers(1))
		},
	},
	{
		name: "pixels", from: filesIn("fixtures/dense/pixels", "epoch-5.pt", "epoch-6.pt", "epoch-7.pt", "model.onnx"), checkpoints: filesIn("pixels", "epoch-5.pt", "epoch-6.pt", "epoch-7.pt"),
		fit:      []string{"--template", "pixels/model.onnx", "--task", "classes", "--preprocess", "crop-mode=squash input-size=16x24"},
		training: []string{"pixels/train.npz", "pixels/pictures"}, data: []string{"pixels/test.npz", "pixels/pictures"}, few: []string{"pixels/one.npz", "pixels/alike.npz"}, labels: []string{"pixels/labels.npy", "pixels/masks"}, other: "pixels/train.npz",
		guarantees: [][]string{{"--coverage", "70%"}, {"--coverage", "size=1.5"}},
		good: map[string][]string{
			"set":      {"lac"},
			"template": {"pixels/model.onnx", "pixels/model.onnx=pixels/epoch-7.pt"}, "preprocess": {"crop-mode=squash input-size=16x24"}, "task": {"classes"}, "ignore-index": {"0", "255"}, "class-axis": {"1"},
			"tile": {"8,0", "16", "16,4"}, "at": {"network", "original"}, "maps": {"out/maps", "npy=out/maps"}, "augment": {"none"}, "groups": {`unit=([0-9])`}, "checkpoint": {"pixels/epoch-7.pt"},
			"mean": {"pixels/epoch-6.pt"}, "theta0": {"pixels/epoch-5.pt"}, "iterates": {"X=pixels/*.pt"}, "method": {"temperature"},
		},
		make: func(m *maker) {
			seen, masks := pixels(1, scenePictures, 3, 16, 24), classes(4, scenePictures, 16, 24)
			m.array("test.npz", "images", seen, "labels", masks)
			m.array("train.npz", "images", pixels(2, 2*scenePictures, 3, 16, 24))
			m.array("labels.npy", "", masks)
			m.array("one.npz", "images", pixels(3, 1, 3, 16, 24), "labels", classes(4, 1, 16, 24))
			m.array("alike.npz", "images", pixels(4, 2, 3, 16, 24), "labels", classes(1, 2, 16, 24))
			for i := range scenePictures {
				m.picture(fmt.Sprintf("pictures/%d.png", i), seen.of(i))
				m.picture(fmt.Sprintf("masks/%d.png", i), masks.of(i))
			}
		},
	},
	{
		name: "tokens", from: filesIn("fixtures/dense/tokens", "epoch-11.pt", "epoch-12.pt", "epoch-13.pt", "model.onnx"), checkpoints: filesIn("tokens", "epoch-11.pt", "epoch-12.pt", "epoch-13.pt"),
		fit:  []string{"--template", "tokens/model.onnx", "--task", "classes", "--pad", "0"},
		data: []string{"tokens/test.jsonl"}, few: []string{"tokens/one.jsonl", "tokens/unlabelled.jsonl"}, other: "tokens/other.jsonl",
		good: map[string][]string{
			"template": {"tokens/model.onnx"}, "task": {"classes"}, "pad": {"0", "ids=0"}, "class-axis": {"-1"}, "ignore-index": {"4"}, "shift": {"drop_tokens"}, "checkpoint": {"tokens/epoch-13.pt"},
			"mean": {"tokens/epoch-12.pt"}, "theta0": {"tokens/epoch-11.pt"}, "columns": {"ids"}, "iterates": {"X=tokens/*.pt"}, "method": {"temperature"},
		},
		make: func(m *maker) {
			lines := strings.SplitAfter(m.read("fixtures/dense/tokens/test.jsonl"), "\n")
			m.text("test.jsonl", strings.Join(lines[:sceneExamples], ""))
			m.text("one.jsonl", lines[0])
			m.text("unlabelled.jsonl", "{\"ids\": [1, 2, 3], \"labels\": [-100, -100, -100]}\n{\"ids\": [4], \"labels\": [-100]}\n")
			m.text("other.jsonl", strings.Join(lines[sceneExamples:2*sceneExamples], ""))
		},
	},
	{
		name: "words", from: smallFiles("language-1.onnx", "language-2.onnx"), fit: []string{"--task", "next-token", "--class-names", "words/names.txt"},
		data: []string{"words/text.txt", "words/ids.npy"}, few: []string{"words/short.txt"}, other: "words/ids.npy",
		good: map[string][]string{
			"coverage": nil, "set": nil, "by": nil,
			"task": {"next-token"}, "text": {"rows=4 bptt=5 reset=windows", "window=20 stride=10", "rows=2 reset=documents", "rows=4 vocabulary=words/names.txt"}, "class-names": {"words/names.txt"},
			"state": {"none"}, "class-axis": {"-1"}, "shift": {"drop_words"}, "method": {"temperature"},
		},
		make: func(m *maker) {
			m.text("text.txt", m.read("cmd/swagwrap/testdata/language.txt"))
			m.text("ids.npy", m.read("cmd/swagwrap/testdata/language.npy"))
			m.text("names.txt", m.read("cmd/swagwrap/testdata/language.vocab"))
			m.text("short.txt", strings.Repeat("w1 w2\n", 7))
		},
	},
	{
		name: "states", from: filesIn("internal/infer/testdata/states", "lstm2-a.onnx", "lstm2-b.onnx"), fit: []string{"--task", "next-token", "--class-names", "states/names.txt"},
		data: []string{"states/text.txt", "states/ids.npy"}, few: []string{"states/short.txt"}, other: "states/ids.npy",
		good: map[string][]string{
			"coverage": nil, "set": nil, "by": nil,
			"task": {"next-token"}, "text": {"rows=3 bptt=4", "rows=2 bptt=4 reset=windows", "rows=1 bptt=5 reset=documents"}, "state": {"h0=hn,c0=cn", "h0=hn@1,c0=cn@1"}, "class-names": {"states/names.txt"},
			"method": {"temperature"},
		},
		make: func(m *maker) {
			m.text("names.txt", "a\nb\nc\nd\ne\n<unk>\n<eos>\n")
			m.text("text.txt", strings.Repeat(" = c =\ne a b\n = a b =\na b c d e a b c a d e b a c\n = d e b =\nb c a a b e d c\na c d\n", 2))
			m.array("ids.npy", "", classes(7, 120))
			m.text("short.txt", strings.Repeat("a b\n", 7))
		},
	},
	{
		name: "table", from: smallFiles("table-1.onnx", "table-2.onnx"), fit: []string{"--task", "classes", "--columns", "age,bmi,bp"},
		data: []string{"table/test.csv", "table/test.jsonl", "table/test.tsv"}, few: []string{"table/one.csv", "table/unlabelled.csv"}, labels: []string{"table/labels.npy"}, other: "table/other.csv",
		guarantees: [][]string{{"--coverage", "60%", "--set", "raps"}},
		good: map[string][]string{
			"task": {"classes"}, "columns": {"age,bmi,bp", "x=age,bmi,bp", "b*,age"}, "shift": {"gaussian_noise"}, "groups": {"unit=table/test.csv:site", "report=table/test.csv:site"}, "threshold": {"risk=0.9", "0.4"},
			"arrays": {"seen", "auto"},
		},
		make: func(m *maker) {
			var csv, jsonl, other strings.Builder
			x := normalNumbers(sceneExamples, 3).values()
			csv.WriteString("age,bmi,bp,label,site\n")
			other.WriteString("age,bmi,bp,label,site\n")
			for i := range sceneExamples {
				a, b, c := x[3*i], x[3*i+1], x[3*i+2]
				fmt.Fprintf(&csv, "%v,%v,%v,%d,s%d\n", a, b, c, i%2, i%3)
				fmt.Fprintf(&other, "%v,%v,%v,%d,s%d\n", a*9, b, c, i%2, i%3)
				fmt.Fprintf(&jsonl, "{\"age\": %v, \"bmi\": %v, \"bp\": %v, \"label\": %d}\n", a, b, c, i%2)
			}
			m.text("test.csv", csv.String())
			m.text("test.tsv", strings.ReplaceAll(csv.String(), ",", "\t"))
			m.text("one.csv", "age,bmi,bp,label\n1,2,3,1\n")
			m.text("unlabelled.csv", "age,bmi,bp\n1,2,3\n4,5,6\n")
			m.text("other.csv", other.String())
			m.text("test.jsonl", jsonl.String())
			m.array("labels.npy", "", classes(2, sceneExamples))
		},
	},
	{
		name: "lists", from: smallFiles("tokens-1.onnx", "tokens-2.onnx"), fit: []string{"--task", "classes", "--pad", "ids=0,mask=0"}, training: []string{"lists/test.npz", "lists/test.parquet"},
		data: []string{"lists/test.npz", "lists/test.parquet"}, other: "lists/test.parquet",
		guarantees: [][]string{{"--coverage", "70%", "--by", "class"}},
		good:       map[string][]string{"task": {"classes"}, "pad": {"ids=0,mask=0"}, "columns": {"ids=ids"}, "shift": {"drop_tokens"}, "groups": {`unit=\[([0-9])`}},
		make: func(m *maker) {
			m.text("test.npz", m.read("cmd/swagwrap/testdata/tokens.npz"))
			m.text("test.parquet", m.read("cmd/swagwrap/testdata/tokens.parquet"))
		},
	},
	{
		name: "beside", from: smallFiles("beside-1.onnx", "beside-2.onnx"), fit: []string{"--task", "classes"}, training: []string{"beside/train.npz", "beside/test.csv"},
		data: []string{"beside/test.npz", "beside/test.csv"}, few: []string{"beside/one.npz"}, labels: []string{"beside/labels.npy"}, other: "beside/train.npz",
		guarantees: [][]string{{"--coverage", "70%"}},
		good:       map[string][]string{"task": {"classes"}, "preprocess": {"none", "crop-mode=squash"}, "columns": {"meta=meta_*"}, "augment": {"none"}},
		make: func(m *maker) {
			of, meta := classes(3, sceneExamples), normalNumbers(sceneExamples, 3)
			m.array("test.npz", "input", squarePictures(sceneExamples, 1), "meta", meta, "labels", of)
			m.array("train.npz", "input", squarePictures(2*sceneExamples, 2), "meta", normalNumbers(2*sceneExamples, 3))
			m.array("labels.npy", "", of)
			m.array("one.npz", "input", squarePictures(1, 4), "meta", normalNumbers(1, 3), "labels", classes(3, 1))
			var csv strings.Builder
			csv.WriteString("path,meta_a,meta_b,meta_c,label\n")
			for i := range sceneExamples {
				x := meta.values()[3*i:]
				fmt.Fprintf(&csv, "../shared/pictures/%d.png,%v,%v,%v,%d\n", i, x[0], x[1], x[2], i%3)
			}
			m.text("test.csv", csv.String())
		},
	},
}

// Numbers are an array of NumPy.
type ndarray struct {
	dtype string
	shape []int
	bytes []byte
}

// squarePictures are pictures of 4×4 pixels, and pixels those of other shapes.
func squarePictures(n int, seed uint64) ndarray { return pixels(seed, n, 1, 4, 4) }

func pixels(seed uint64, shape ...int) ndarray {
	a := ndarray{"|u1", shape, make([]byte, elementsOf(shape))}
	rand.NewChaCha8([32]byte{byte(seed)}).Read(a.bytes)
	return a
}

// classes are labels of n classes in turn, so that each class is there.
func classes(n int, shape ...int) ndarray {
	a := ndarray{"|u1", shape, make([]byte, elementsOf(shape))}
	for i := range a.bytes {
		a.bytes[i] = byte((i + i/7) % n)
	}
	if len(shape) == 1 {
		for i := range a.bytes {
			a.bytes[i] = byte(i % n)
		}
	}
	return a
}

func normalNumbers(shape ...int) ndarray {
	a := ndarray{"<f4", shape, nil}
	r := rand.New(rand.NewPCG(1, 2))
	for range elementsOf(shape) {
		a.bytes = binary.LittleEndian.AppendUint32(a.bytes, math.Float32bits(float32(r.NormFloat64())))
	}
	return a
}

func elementsOf(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// of returns row i.
func (a ndarray) of(i int) ndarray {
	n := len(a.bytes) / a.shape[0]
	return ndarray{a.dtype, a.shape[1:], a.bytes[i*n : (i+1)*n]}
}

// values returns the numbers of an array of floats.
func (a ndarray) values() (x []float32) {
	for b := a.bytes; len(b) > 0; b = b[4:] {
		x = append(x, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return x
}

func (a ndarray) npy() []byte { return append(numpy.Header(a.dtype, a.shape...), a.bytes...) }

// png returns a picture of shape [H W] or [channels H W].
func (a ndarray) png() ([]byte, error) {
	k := len(a.shape)
	h, w := a.shape[k-2], a.shape[k-1]
	var img draw.Image = image.NewGray(image.Rect(0, 0, w, h))
	if k == 3 && a.shape[0] == 3 {
		img = image.NewNRGBA(image.Rect(0, 0, w, h))
	}
	for p := range h * w {
		c := color.NRGBA{a.bytes[p], a.bytes[p], a.bytes[p], 255}
		if k == 3 && a.shape[0] == 3 {
			c.G, c.B = a.bytes[h*w+p], a.bytes[2*h*w+p]
		}
		img.Set(p%w, p/w, c)
	}
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

// A maker makes the files of scenes in the working folder. It keeps the first error.
type maker struct {
	scene string
	wrote map[string]bool // what the program did not make
	err   error
}

func (m *maker) must(err error) { m.err = errors.Join(m.err, err) }

func (m *maker) bytes(name string, b []byte) {
	path := filepath.Join(m.scene, name)
	m.wrote[path] = true
	m.must(os.MkdirAll(filepath.Dir(path), 0o777))
	m.must(os.WriteFile(path, b, 0o666))
}

func (m *maker) text(name, text string) { m.bytes(name, []byte(text)) }

// read returns a file of the repository.
func (m *maker) read(path string) string {
	b, err := os.ReadFile(filepath.Join(repository, path))
	m.must(err)
	return string(b)
}

// array writes an array to a file, or several ones with their names.
func (m *maker) array(name string, named ...any) {
	if filepath.Ext(name) == ".npy" {
		m.bytes(name, named[1].(ndarray).npy())
		return
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(named); i += 2 {
		w, err := z.Create(named[i].(string) + ".npy")
		m.must(err)
		_, err = w.Write(named[i+1].(ndarray).npy())
		m.must(err)
	}
	m.must(z.Close())
	m.bytes(name, b.Bytes())
}

func (m *maker) picture(name string, a ndarray) {
	b, err := a.png()
	m.must(err)
	m.bytes(name, b)
}

// listed writes a list of labelled pictures, and a tar of them.
func (m *maker) listed(list, archive string, seen ndarray) {
	var csv strings.Builder
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	csv.WriteString("path,label\n")
	for i := range seen.shape[0] {
		class := []string{"cat", "dog", "owl"}[i%3]
		fmt.Fprintf(&csv, "pictures/%s/%d.png,%s\n", class, i, class)
		p, err := seen.of(i).png()
		m.must(err)
		for _, file := range [][2]string{{".cls", fmt.Sprint(i % 3)}, {".png", string(p)}} {
			m.must(t.WriteHeader(&tar.Header{Name: fmt.Sprint(i) + file[0], Size: int64(len(file[1])), Mode: 0o644}))
			_, err := t.Write([]byte(file[1]))
			m.must(err)
		}
	}
	m.must(t.Close())
	m.text(list, csv.String())
	m.bytes(archive, b.Bytes())
}

// all makes the files of all scenes, what the program makes of them, and files that it did not make.
func (m *maker) all() {
	m.scene = "shared"
	seen := squarePictures(sceneExamples, 1)
	for i := range sceneExamples {
		m.picture(fmt.Sprintf("pictures/%d.png", i), seen.of(i))
	}
	m.scene = foreignFiles
	for _, ext := range []string{".csv", ".jsonl", ".parquet", ".npz", ".npy", ".html", ".json", ".safetensors", ".onnx", ".txt", "/notes.txt"} {
		m.text("x"+ext, "what a user wrote\n")
	}
	m.must(os.Symlink("x.csv", foreignFiles+"/link.csv"))
	m.must(os.Mkdir(newFiles, 0o777))
	for _, s := range scenes {
		m.network(s)
	}
	m.own()
}

// network copies the networks of a scene, and makes its data. Then the program fits, draws and scores.
func (m *maker) network(s *scene) {
	m.scene = s.name
	for i, path := range s.from {
		name := filepath.Base(path)
		if s.checkpoints == nil {
			name = fmt.Sprint(i+1) + filepath.Ext(path)
		}
		m.text(name, m.read(path))
	}
	s.make(m)
	p, e := s.at("p.safetensors"), s.at("e.safetensors")
	networks := s.networks()
	m.run(slices.Concat([]string{"fit", "-q", "-o", p}, s.fit, networks)...)
	m.run(slices.Concat([]string{"fit", "-q", "-o", s.at("p1.safetensors")}, s.fit, networks[len(networks)-1:])...)
	m.text("card.json", m.run("inspect", "--json", p))
	m.run(slices.Concat([]string{"sample", "-q", "-n", "3", "-o", e}, s.trained(), []string{p})...)
	m.run("score", "-q", "-o", s.at("rows.csv"), e, s.data[0])
	m.run("score", "-q", "--probs", "-o", s.at("rows.npz"), e, s.data[0])
	if s.probs() != s.at("rows.npz") {
		m.run("score", "-q", "--probs", "-o", s.probs(), e, s.data[0])
	}
	m.parts(s, "parts.csv", e)
	for k, flags := range s.guarantees {
		m.run(slices.Concat([]string{"calibrate", "-q", "-o", s.guaranteed(k), "--ensemble", e}, flags, []string{s.probs()})...)
		m.parts(s, fmt.Sprintf("promised%d.csv", k), s.guaranteed(k))
	}
}

// probs returns the predictions that have the names of examples, if a format of rows holds them.
func (s *scene) probs() string {
	if slices.Contains(severalPositions, s.name) {
		return s.at("rows.npz")
	}
	return s.at("probs.csv")
}

// parts makes the two parts of predictions.
func (m *maker) parts(s *scene, name, ensemble string) {
	for _, part := range []string{"0/2", "1/2"} {
		m.run("score", "-q", "-b", "2", "--part", part, "-o", s.at(name), ensemble, s.data[0])
	}
}

// determined makes predictions that determine a calibration, and returns their file.
func (m *maker) determined(s *scene) string {
	rows, out := s.probs(), s.at("determined.csv")
	text, err := os.ReadFile(rows)
	m.must(err)
	changed, err := plausibly(string(text))
	m.must(err)
	about, err := os.ReadFile(rows + ".meta.json")
	m.must(errors.Join(err, os.WriteFile(out, []byte(changed), 0o666), os.WriteFile(out+".meta.json", about, 0o666)))
	return out
}

// own makes one output of each kind, which later commands may replace.
func (m *maker) own() {
	s := scenes[0]
	p, e, data, study := s.at("p.safetensors"), s.at("e.safetensors"), s.data[0], slices.Concat(s.trained(), []string{"-q", "-n", "2", "--methods", "sgd,swa,swag", "--val", s.data[0]})
	m.must(os.Mkdir(oldFiles, 0o777))
	m.run(slices.Concat([]string{"sample", "-q", "-n", "6", "-o", s.at("six.safetensors")}, s.trained(), []string{p})...)
	m.run("settle", "-q", "--within", "0.9,1%", "-o", s.at("settled.safetensors"), s.at("six.safetensors"), data)
	determined := m.determined(s)
	m.run("calibrate", "-q", "-o", s.at("calibrated.safetensors"), "--ensemble", e, determined)
	m.run(slices.Concat([]string{"compare", "--tune", s.at("settings.json")}, study, []string{p, data})...)
	m.run(slices.Concat([]string{"fit", "-q", "-o", oldFiles + "/x.safetensors"}, s.fit, s.networks())...)
	m.run("export", "-q", "-o", oldFiles+"/x.onnx", e)
	m.run("list", "-q", "-o", oldFiles+"/list.parquet", "shared/pictures")
	m.run("calibrate", "-q", "-o", oldFiles+"/x.json", "--save", oldFiles+"/saved.csv", determined)
	for _, ext := range []string{".csv", ".jsonl", ".parquet", ".npz"} {
		m.run("score", "-q", "-o", oldFiles+"/x"+ext, e, data)
	}
	m.run("score", "-q", "-o", oldFiles+"/y.csv", "--montage", oldFiles+"/montage.html", "--save-batch", oldFiles+"/x.npy", e, data)
	m.run(slices.Concat([]string{"compare", "--report", oldFiles + "/x.html", "--plots", oldFiles + "/plots", "--store", oldFiles + "/store", "--save", oldFiles + "/saved.npz"}, study, []string{p, data})...)
	m.run("score", "-q", "--maps", oldFiles+"/maps", "-o", oldFiles+"/z.csv", "pixels/e.safetensors", "pixels/pictures")
	m.run(slices.Concat([]string{"try", "-o", oldFiles + "/result"}, s.fit, study, s.networks(), []string{data})...)
}

// networks are the checkpoints of a scene.
func (s *scene) networks() []string {
	if s.checkpoints != nil {
		return s.checkpoints
	}
	var paths []string
	for i := range s.from {
		paths = append(paths, s.at(fmt.Sprint(i+1)+".onnx"))
	}
	return paths
}

// trained returns --bn-data, if the network has batch norm.
func (s *scene) trained() []string {
	if s.training == nil {
		return nil
	}
	return []string{"--bn-data", s.training[0]}
}

// run runs the program, which must succeed. It returns what it prints.
func (m *maker) run(args ...string) string {
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), append([]string{"swagwrap"}, args...), &stdout, &stderr); code != 0 {
		m.must(fmt.Errorf("%s: exit code %d: %s", console.Shell(args...), code, &stderr))
	}
	return stdout.String()
}
