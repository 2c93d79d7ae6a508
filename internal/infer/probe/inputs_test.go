package probe_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/target"
)

func TestMain(m *testing.M) { infertest.Main(m) }

// mnist is how the network of fixtures/mnist was trained.
var mnist = preprocess.Settings{Mean: []float64{0.1307}, Std: []float64{0.3081}}

// array writes float32 examples to a .npy file.
func array(t *testing.T, examples [][]float32, shape ...int) string {
	t.Helper()
	b := numpy.Header("<f4", append([]int{len(examples)}, shape...)...)
	for _, x := range examples {
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// digits are the first pixels of a file of fixtures/mnist, between 0 and 1, changed.
func digits(t *testing.T, name string, n int, f func(p float32) float32) [][]float32 {
	t.Helper()
	d := infertest.Digits(t, name).(dataset.Bytes)
	var out [][]float32
	b := make([]byte, 28*28)
	for i := range n {
		if err := d.Pixels(b, i); err != nil {
			t.Fatal(err)
		}
		x := make([]float32, len(b))
		for k, v := range b {
			x[k] = f(float32(v) / 255)
		}
		out = append(out, x)
	}
	return out
}

func hold(t *testing.T, path string, opts dataset.Options) *probe.Sample {
	t.Helper()
	s, err := probe.Hold(infertest.Data(t, path, opts), 1<<30, 2)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, s *probe.Sample, fields []dataset.Field, how probe.Inputs) *probe.Report {
	t.Helper()
	r := &probe.Report{}
	if err := r.CheckInputs(t.Context(), s, fields, how); err != nil {
		t.Fatal(err)
	}
	return r
}

// Faults of pictures are named by what training had, by the mean and standard deviation
// alone, and by the first batch-norm layer.
func TestPictures(t *testing.T) {
	t.Parallel()
	n, e := infertest.Network(t, infertest.Posterior(t)), infertest.Engine(t)
	run, err := probe.NewRunner(e, n)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	normalise := func(p float32) float32 { return (p - 0.1307) / 0.3081 }
	same := func(p float32) float32 { return p }
	opts := func(a dataset.Arrays) dataset.Options {
		return dataset.Options{Shape: n.Input.Shape[1:], Fields: n.Fields(), Preprocess: mnist, Arrays: a}
	}
	train := check(t, hold(t, array(t, digits(t, "train.npz", 256, normalise), 1, 28, 28), opts(dataset.Seen)), n.Fields(), probe.Inputs{Preprocess: mnist, Training: true})
	if len(train.Warnings) > 0 || len(train.Inputs) != 1 || train.Inputs[0].Examples != 256 {
		t.Fatalf("%+v", train)
	}
	known := probe.Inputs{Preprocess: mnist, Trained: train.Inputs, From: "train.npz"}
	card := probe.Inputs{Preprocess: mnist}
	layer := probe.Inputs{Preprocess: preprocess.Settings{}, Run: run}
	foreign := known
	foreign.Holds = probe.Foreign
	found := map[string]bool{}
	for _, tc := range []struct {
		name   string
		change func(float32) float32
		arrays dataset.Arrays
		how    probe.Inputs
		want   string // "" for no warning
		fix    string
	}{
		{"clean", same, dataset.Pixels, known, "", ""},
		{"clean, as seen", normalise, dataset.Seen, known, "", ""},
		{"twice", normalise, dataset.Pixels, known, "normalised twice", "Arrays seen"},
		{"twice in the file", func(p float32) float32 { return normalise(normalise(p)) }, dataset.Seen, known, "normalised twice", "save the array"},
		{"raw", same, dataset.Seen, known, "not normalised", "Arrays pixels"},
		{"0 to 255", func(p float32) float32 { return 255 * p }, dataset.Pixels, known, "from 0 to 255 were normalised", "uint8"},
		{"0 to 255, as seen", func(p float32) float32 { return 255 * p }, dataset.Seen, known, "from 0 to 255 that were not", "uint8"},
		{"inverted", func(p float32) float32 { return 1 - p }, dataset.Pixels, known, "inverted", "1 - x"},
		{"a third of the contrast", func(p float32) float32 { return 0.1307 + 0.3*(p-0.1307) }, dataset.Pixels, known, "lower contrast", "SaveBatch"},
		{"a third of the contrast, grey", func(p float32) float32 { return 0.35 + 0.3*p }, dataset.Pixels, known, "lower contrast", "SaveBatch"},
		{"a third of the contrast, dark", func(p float32) float32 { return 0.3 * p }, dataset.Pixels, known, "lower contrast", "SaveBatch"},
		{"noise", func(float32) float32 { return rand.Float32() }, dataset.Pixels, known, "another data set", "SaveBatch"},

		{"clean, by the card", same, dataset.Pixels, card, "", ""},
		{"clean, as seen, by the card", normalise, dataset.Seen, card, "", ""},
		{"twice, by the card", normalise, dataset.Pixels, card, "normalised twice", "Arrays seen"},
		{"raw, by the card", same, dataset.Seen, card, "not normalised", "Arrays pixels"},
		{"0 to 255, by the card", func(p float32) float32 { return 255 * p }, dataset.Pixels, card, "from 0 to 255", "uint8"},

		{"clean, by the layer", normalise, dataset.Seen, layer, "", ""},
		{"raw, by the layer", same, dataset.Seen, layer, "another mean and standard deviation", "mean=M"},
		{"255 times, by the layer", func(p float32) float32 { return 255 * normalise(p) }, dataset.Seen, layer, "255 times", "uint8"},
		{"/255, by the layer", func(p float32) float32 { return normalise(p) / 255 }, dataset.Seen, layer, "divided by 255", "multiply"},

		{"another mean, by the layer", func(p float32) float32 { return normalise(p) - 1.2 }, dataset.Seen, layer, "another data set", "SaveBatch"},

		{"another domain", func(float32) float32 { return rand.Float32() }, dataset.Pixels, foreign, "", ""},
		{"another domain, inverted", func(p float32) float32 { return 1 - p }, dataset.Pixels, foreign, "", ""},
		{"another domain, twice", normalise, dataset.Pixels, foreign, "normalised twice", "Arrays seen"},
	} {
		o := opts(tc.arrays)
		o.Preprocess = tc.how.Preprocess
		r := check(t, hold(t, array(t, digits(t, "test.npz", 64, tc.change), 1, 28, 28), o), n.Fields(), tc.how)
		all := strings.Join(r.Warnings, "\n")
		if tc.want == "" && all != "" || tc.want != "" && (len(r.Warnings) != 1 || !strings.Contains(all, tc.want) || !strings.Contains(all, "To fix it: ") || !strings.Contains(all[strings.Index(all, "To fix it"):], tc.fix)) {
			t.Errorf("%s: %q, want %q and %q", tc.name, all, tc.want, tc.fix)
		}
		for _, f := range r.Found {
			found[f.Name] = true
		}
	}
	if !found["another spread at the first layer"] || !found["other data at the first layer"] {
		t.Errorf("found %v", found)
	}
	if r := check(t, hold(t, array(t, digits(t, "test.npz", 64, same), 1, 28, 28), opts(dataset.Seen)), n.Fields(), probe.Inputs{Preprocess: mnist, Training: true, Noted: true}); len(r.Warnings) > 0 || len(r.Inputs) != 1 {
		t.Errorf("judged twice: %+v", r)
	}
}

// Pictures in BGR instead of RGB are found by the contrast of their colours.
func TestColours(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	imagenet, err := preprocess.Preset("imagenet")
	if err != nil {
		t.Fatal(err)
	}
	draw := func(n int, order ...int) (out [][]float32) {
		for range n {
			x, light, tint := make([]float32, 3*8*8), 0.42+0.15*rng.NormFloat64(), 0.05+0.05*rng.NormFloat64()
			for k := range x {
				p := light + 0.2*rng.NormFloat64() + tint*float64(1-order[k/64])
				x[k] = float32(min(max(p, 0), 1))
			}
			out = append(out, x)
		}
		return out
	}
	opts := dataset.Options{Shape: []int64{3, 8, 8}, Preprocess: imagenet}
	fields := []dataset.Field{{Name: "input", Shape: []int64{3, 8, 8}, Type: "float32"}}
	train := check(t, hold(t, array(t, draw(256, 0, 1, 2), 3, 8, 8), opts), fields, probe.Inputs{Preprocess: imagenet, Training: true})
	how := probe.Inputs{Preprocess: imagenet, Trained: train.Inputs, From: "train.npz"}
	if r := check(t, hold(t, array(t, draw(200, 0, 1, 2), 3, 8, 8), opts), fields, how); len(r.Warnings) > 0 {
		t.Errorf("clean: %q", r.Warnings)
	}
	r := check(t, hold(t, array(t, draw(200, 2, 1, 0), 3, 8, 8), opts), fields, how)
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "BGR in place of RGB") {
		t.Errorf("BGR: %q", r.Warnings)
	}
}

// A record of numbers, token ids and a mask: each input is compared with its own.
func TestRecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	fields := []dataset.Field{
		{Name: "meta", Shape: []int64{3}, Type: "float32"},
		{Name: "ids", Shape: []int64{-1}, Dims: []string{"t"}, Type: "int64"},
		{Name: "mask", Shape: []int64{-1}, Dims: []string{"t"}, Type: "int64"},
	}
	fields[0].Dims = []string{""}
	write := func(n int, meta func([]float64), shift int64) string {
		dir := t.TempDir()
		m, ids, mask := numpy.Header("<f4", n, 3), numpy.Header("<i8", n, 12), numpy.Header("<i8", n, 12)
		for range n {
			x := []float64{20 + 5*rng.NormFloat64(), math.Exp(rng.NormFloat64()), rng.NormFloat64()}
			meta(x)
			for _, v := range x {
				m = binary.LittleEndian.AppendUint32(m, math.Float32bits(float32(v)))
			}
			length := 4 + rng.IntN(8)
			for k := range 12 {
				id, on := shift, uint64(0)
				if k < length {
					id, on = shift+10+int64(rng.ExpFloat64()*5)*7%50, 1
				}
				ids, mask = binary.LittleEndian.AppendUint64(ids, uint64(id)), binary.LittleEndian.AppendUint64(mask, on)
			}
		}
		for name, b := range map[string][]byte{"meta": m, "ids": ids, "mask": mask} {
			if err := os.WriteFile(filepath.Join(dir, name+".npy"), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	none := func([]float64) {}
	opts := dataset.Options{Fields: fields, Arrays: dataset.Auto}
	train := check(t, hold(t, write(256, none, 0), opts), fields, probe.Inputs{Training: true})
	var names []string
	for _, in := range train.Inputs {
		names = append(names, in.Input+" "+string(in.Kind))
	}
	if !slices.Equal(names, []string{"meta columns", "ids tokens", "mask tokens"}) {
		t.Fatalf("%q", names)
	}
	how := probe.Inputs{Trained: train.Inputs, From: "train"}
	for name, tc := range map[string]struct {
		path string
		want string
	}{
		"clean":       {write(100, none, 0), ""},
		"°F":          {write(100, func(x []float64) { x[0] = 32 + 1.8*x[0] }, 0), "column 0 has °F, where training had °C"},
		"×1,000":      {write(100, func(x []float64) { x[1] *= 1000 }, 0), "column 1 has 1,000 times those of training"},
		"swapped":     {write(100, func(x []float64) { x[0], x[1] = x[1], x[0] }, 0), "column 0 has the values that column 1 had in training"},
		"ids shifted": {write(100, none, 1), "every token id is off by +1"},
		"other ids":   {write(100, none, 500), `input "ids" are not like those of training, so predictions may be wrong. Likely cause: 100 % of the texts have ids that training did not have`},
	} {
		r := check(t, hold(t, tc.path, opts), fields, how)
		if all := strings.Join(r.Warnings, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) || len(r.Warnings) > 1 {
			t.Errorf("%s: %q, want %q", name, all, tc.want)
		}
	}
}

// What a file keeps of training can be compared with again.
func TestKept(t *testing.T) {
	s := moments.NewSample(moments.Columns, 2, 1, [][]float32{{1, 2}, {3, 4}, {5, 6}})
	if moments.Comparable(s.Summary(), moments.NewSample(moments.Columns, 3, 1, [][]float32{{1, 2, 3}})) {
		t.Error("2 columns and 3 columns are compared")
	}
	// A file of a stranger may lack what a comparison needs.
	for name, damage := range map[string]func(*moments.Summary){
		"no quantiles":          func(s *moments.Summary) { s.Groups[1].Quantiles = nil },
		"few quantiles":         func(s *moments.Summary) { s.Groups[0].Quantiles = s.Groups[0].Quantiles[:3] },
		"no correlation":        func(s *moments.Summary) { s.Correlation = nil },
		"negative examples":     func(s *moments.Summary) { s.Examples = -1 },
		"tokens without ids":    func(s *moments.Summary) { s.Kind, s.Groups = moments.Tokens, nil },
		"channels, not columns": func(s *moments.Summary) { s.Kind = moments.Channels },
	} {
		forged := s.Summary()
		damage(&forged)
		if moments.Comparable(forged, s) || moments.Comparable(forged, moments.NewTokens([][]int64{{1}})) {
			t.Errorf("%s: compared", name)
		}
	}
}

// drawn is some examples of a data set.
type drawn struct {
	dataset.Dataset
	rows []int
}

func (d drawn) Len() int                             { return len(d.rows) }
func (d drawn) Labels() target.Target                { return d.Dataset.Labels().Pick(d.rows) }
func (d drawn) Read(dst dataset.Values, i int) error { return d.Dataset.Read(dst, d.rows[i]) }

// In many clean resamples at most 1 % give a warning: of digits, and of photographs that
// training saw shifted, with black borders, and flipped. Each resample has another mixture of
// classes, such as 25 % of one and 2 % of another, and 32 to 256 examples.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	runs := reliability.Figure(250, 1000)
	imagenet, err := preprocess.Preset("imagenet")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		name, train, test string
		shape             []int64
		preprocess        preprocess.Settings
	}{
		{"digits", infertest.Path("fixtures", "mnist", "train.npz"), infertest.Path("fixtures", "mnist", "test.npz"), []int64{1, 28, 28}, mnist},
		{"augmented photographs", infertest.Path("fixtures", "augmented", "loader.npz"), infertest.Path("fixtures", "augmented", "train.npz"), []int64{3, 32, 32}, imagenet},
	} {
		rng := rand.New(rand.NewPCG(1, 28))
		opts := dataset.Options{Shape: of.shape, Preprocess: of.preprocess}
		fields := []dataset.Field{{Name: "input", Shape: of.shape, Type: "float32"}}
		train, test := infertest.Data(t, of.train, opts), infertest.Data(t, of.test, opts)
		classes := make([][]int, 10)
		for i, c := range test.Labels().Classes {
			classes[c] = append(classes[c], i)
		}
		held := func(d dataset.Dataset, rows []int) *probe.Sample {
			s, err := probe.Hold(drawn{d, rows}, 1<<30, 2)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		alarms := 0
		var trained []moments.Summary
		for run := range runs {
			if run%20 == 0 {
				trained = check(t, held(train, rng.Perm(train.Len())[:256]), fields, probe.Inputs{Preprocess: of.preprocess, Training: true}).Inputs
			}
			weights := make([]float64, 10)
			total := 0.0
			for c := range weights {
				weights[c] = rng.ExpFloat64()
				total += weights[c]
			}
			var rows []int
			for range 32 << rng.IntN(4) {
				c, at := 0, rng.Float64()*total
				for ; c < 9 && at > weights[c]; c++ {
					at -= weights[c]
				}
				rows = append(rows, classes[c][rng.IntN(len(classes[c]))])
			}
			if r := check(t, held(test, rows), fields, probe.Inputs{Preprocess: of.preprocess, Trained: trained, From: "training"}); len(r.Warnings) > 0 {
				if alarms++; alarms == 1 {
					t.Logf("%s: %q", of.name, r.Warnings)
				}
			}
		}
		if t.Logf("%s: %d of %d", of.name, alarms, runs); alarms > runs/100 {
			t.Errorf("%s: %d false alarms in %d clean resamples, want at most 1 %%", of.name, alarms, runs)
		}
	}
}
