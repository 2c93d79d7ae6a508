package batchnorm_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// The network of fixtures/augmented was trained on shifted and flipped images, and
// two more runs of it with frozen batch norm; its make.py says how.

// augmentedRun fits a posterior to one of the fixture's runs.
func augmentedRun(t *testing.T, run string, epochs int) *swag.Posterior {
	t.Helper()
	return infertest.Fit(t, infertest.Epochs(t, infertest.Path(infertest.Augmented, run), epochs)...)
}

// inTraining is how the fixture's images were normalised.
var inTraining = preprocess.Settings{Mean: []float64{0.485, 0.456, 0.406}, Std: []float64{0.229, 0.224, 0.225}}

// augmentedData opens stored pixels as they are.
func augmentedData(t *testing.T, name string) dataset.Dataset {
	t.Helper()
	return infertest.Data(t, infertest.Path(infertest.Augmented, name), dataset.Options{Preprocess: inTraining})
}

// loaderBatches are what the training loader yielded, saved as a user would save
// it: one array of floats, which is used as it is.
func loaderBatches(t *testing.T) dataset.Dataset {
	t.Helper()
	d := augmentedData(t, "loader.npz")
	f := create(t, "batches.npy")
	if err := dataset.WriteBatch(f, d, d.Len(), false, false); err != nil {
		t.Fatal(err)
	}
	return infertest.Data(t, f.Name(), dataset.Options{Arrays: dataset.Seen})
}

// epochs are so many epochs of the plain images, augmented by ourselves as in
// training.
func epochs(t *testing.T, count int) dataset.Dataset {
	t.Helper()
	aug, err := augment.Parse("RandomCrop(32, padding=4), RandomHorizontalFlip()")
	if err != nil {
		t.Fatal(err)
	}
	plain := augmentedData(t, "train.npz").(dataset.Bytes)
	f := create(t, "epochs.npy")
	pixels := numpy.Header("|u1", count*plain.Len(), 3, 32, 32)
	for range count {
		for i := range plain.Len() {
			example := make([]byte, 3*32*32)
			if err := plain.Pixels(example, i); err != nil {
				t.Fatal(err)
			}
			pixels = append(pixels, example...)
		}
	}
	if _, err := f.Write(pixels); err != nil {
		t.Fatal(err)
	}
	return infertest.Data(t, f.Name(), dataset.Options{Preprocess: inTraining, Augment: aug, Cache: memory.NewPool(64 << 20)})
}

func create(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// checkSWA compares SWA's statistics and logits with PyTorch's, whose names begin
// with prefix.
func checkSWA(t *testing.T, n *infer.Network, data batchnorm.Training, images int, prefix string) {
	t.Helper()
	st, e := golden(t, infertest.Path(infertest.Augmented)), infertest.Run(t)
	infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
		got, err := batchnorm.Recompute(t.Context(), e, n, parameters, data)
		if err != nil {
			return err
		}
		if got.Images != images {
			t.Errorf("%d images, want %d", got.Images, images)
		}
		checkStatistics(t, n, got.Statistics, st, prefix)
		model, err := n.Model("SWA", parameters, weights.Slice(got.Statistics))
		if err != nil {
			return err
		}
		checkLogits(t, e, model, augmentedData(t, "test.npz"), float64s(t, st, prefix+"logits"))
		return nil
	})
}

// Both sources of statistics against PyTorch's: the batches that the loader yields,
// and the images as they are. The last batch of the latter is short.
func TestAugmentedGolden(t *testing.T) {
	t.Parallel()
	n := infertest.Network(t, augmentedRun(t, "checkpoints", 8))
	if !n.Recomputes() || len(n.Kept()) != 0 {
		t.Fatalf("recomputes %v, keeps %q", n.Recomputes(), n.Kept())
	}
	t.Run("loader", func(t *testing.T) {
		checkSWA(t, n, batchnorm.Training{Data: loaderBatches(t)}, 512, "loader.")
	})
	t.Run("plain", func(t *testing.T) {
		checkSWA(t, n, batchnorm.Training{Data: augmentedData(t, "train.npz")}, 400, "plain.")
	})
}

// A network that was fine-tuned with all batch norm frozen keeps what it has. To
// recompute it all the same is the user's choice, and gives something else.
//
// Kills: frozen statistics recomputed; those of the mean, or of the first
// checkpoint, or zeros in their place.
func TestFrozenAll(t *testing.T) {
	t.Parallel()
	p := augmentedRun(t, "frozen-all", 3)
	layers := []string{"bn1.running_mean", "bn2.running_mean", "bn3.running_mean"}
	plain := batchnorm.Training{Data: augmentedData(t, "train.npz")}

	n := infertest.Network(t, p)
	if n.Recomputes() || !slices.Equal(n.Kept(), layers) || n.Passes.Stale {
		t.Fatalf("recomputes %v, keeps %q, stale %v", n.Recomputes(), n.Kept(), n.Passes.Stale)
	}
	checkSWA(t, n, batchnorm.Training{}, 0, "frozen-all.")
	if _, records, err := batchnorm.ChooseSampleSize(t.Context(), infertest.Run(t), []*infer.Network{n}, batchnorm.Training{}, batchnorm.SampleSizing{}); err != nil || !slices.Equal(records[0].Kept, layers) || records[0].AllWarnings() != nil {
		t.Errorf("settled without images: %+v, %v", records, err)
	}

	keep, err := infer.NewNetwork(p, infer.KeepAll, "")
	if err != nil {
		t.Fatal(err)
	}
	if keep.Recomputes() || !slices.Equal(keep.Kept(), layers) || keep.Passes.Stale {
		t.Fatalf("asked to keep: recomputes %v, keeps %q, stale %v", keep.Recomputes(), keep.Kept(), keep.Passes.Stale)
	}
	checkSWA(t, keep, batchnorm.Training{}, 0, "frozen-all.")

	all, err := infer.NewNetwork(p, infer.RecomputeAll, "")
	if err != nil {
		t.Fatal(err)
	}
	if !all.Recomputes() || len(all.Kept()) != 0 {
		t.Fatalf("asked to recompute: recomputes %v, keeps %q", all.Recomputes(), all.Kept())
	}
	infertest.SWA(t, p, func(parameters weights.Vector) error {
		r, err := batchnorm.Recompute(t.Context(), infertest.Run(t), all, parameters, plain)
		if err != nil {
			return err
		}
		for _, tensor := range p.Layout.Role(weights.Statistic) {
			at := tensor.Offset
			if got, own := r.Statistics[at:][:tensor.Len()], p.Statistics[at:][:tensor.Len()]; slices.Equal(got, own) {
				t.Errorf("%s is the checkpoints' own, although it was to be recomputed", tensor.Name)
			}
		}
		return nil
	})
}

// Where one layer was frozen, it keeps its statistics, and normalises by them while
// those of the layers after it are recomputed.
//
// Kills: the frozen layer normalised by its batch in the pass; its statistics
// averaged, recomputed or left at 0.
func TestFrozenSome(t *testing.T) {
	t.Parallel()
	p := augmentedRun(t, "frozen-some", 3)
	n := infertest.Network(t, p)
	if !n.Recomputes() || !slices.Equal(n.Kept(), []string{"bn1.running_mean"}) || n.Passes.Stale {
		t.Fatalf("recomputes %v, keeps %q, stale %v", n.Recomputes(), n.Kept(), n.Passes.Stale)
	}
	checkSWA(t, n, batchnorm.Training{Data: augmentedData(t, "train.npz")}, 400, "frozen-some.")

	// To keep all of them is the user's choice: those of the last checkpoint.
	keep, err := infer.NewNetwork(p, infer.KeepAll, "")
	if err != nil {
		t.Fatal(err)
	}
	infertest.SWA(t, p, func(parameters weights.Vector) error {
		r, err := batchnorm.Recompute(t.Context(), infertest.Run(t), keep, parameters, batchnorm.Training{})
		if err != nil {
			return err
		}
		last := p.StoredStatistics[len(p.StoredStatistics)-1]
		if !slices.Equal(r.Statistics, last) || keep.Recomputes() || len(keep.Kept()) != 3 || !keep.Passes.Stale {
			t.Errorf("asked to keep: recomputes %v, keeps %q, stale %v", keep.Recomputes(), keep.Kept(), keep.Passes.Stale)
		}
		return nil
	})
}

// What the loader yields fits what the checkpoints store, the plain images do not, and
// the first layer says so. Plain images that we augment ourselves fit, too. How far the
// last checkpoint's statistics are from recomputed ones is held against PyTorch's numbers.
func TestAugmentedCheck(t *testing.T) {
	t.Parallel()
	var g struct {
		CheckBatch int                                                      `json:"check_batch"`
		Check      map[string]map[string]struct{ Means, Variances float64 } // by images and layer
	}
	testfile.JSON(t, infertest.Path(infertest.Augmented, "golden.json"), &g)
	n, e := infertest.Network(t, augmentedRun(t, "checkpoints", 8)), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: g.CheckBatch})}
	for _, tc := range []struct {
		key    string
		data   batchnorm.Training
		images int
		off    bool
	}{
		{"loader", batchnorm.Training{Data: loaderBatches(t)}, 512, false},
		{"plain", batchnorm.Training{Data: augmentedData(t, "train.npz")}, 400, true},
		{"augmented", batchnorm.Training{Data: epochs(t, 1)}, 400, false},
	} {
		last, err := batchnorm.Recompute(t.Context(), e, n, n.Posterior.Last(), tc.data)
		if err != nil {
			t.Fatal(err)
		}
		for i, layer := range []string{"bn1", "bn2", "bn3"} {
			want, ok := g.Check[tc.key][layer]
			if ok != (tc.key != "augmented") {
				t.Fatalf("%s: golden numbers %v", tc.key, g.Check)
			}
			means, variances := distances(n.Posterior.Layout, n.Posterior.Statistics, last.Statistics, i)
			if ok && (infertest.Far(means, want.Means, 1e-4, 0) || infertest.Far(variances, want.Variances, 1e-4, 0)) {
				t.Errorf("%s, %s: means %v and variances %v, want %+v", tc.key, layer, means, variances, want)
			}
		}
		_, records, err := batchnorm.ChooseSampleSize(t.Context(), e, []*infer.Network{n}, tc.data, batchnorm.SampleSizing{})
		if err != nil {
			t.Fatal(err)
		}
		c := records[0].Check
		if c == nil || c.Examples >= c.Wide || c.Wide > 512 || c.Wide < tc.images*3/4 || len(c.Layers) != 3 || c.Unchecked != 0 || c.Checkpoints != bnupdate.Compared {
			t.Fatalf("%s: %+v", tc.key, c)
		}
		for i, l := range c.Layers {
			t.Logf("%s: %+v, score %.2f", tc.key, l, c.Score(i))
		}
		if c.FirstOff() != tc.off || !tc.off && c.Off() != nil {
			t.Errorf("%s: first layer off %v; off: %+v", tc.key, c.FirstOff(), c.Off())
		}
	}
}

// A check of few images takes small batches at each checkpoint, and all images at SWA. It says how many images it needs, where
// it cannot be made.
func TestCheckOfFewImages(t *testing.T) {
	t.Parallel()
	n, e := infertest.Network(t, augmentedRun(t, "checkpoints", 8)), infertest.Run(t)
	loader := loaderBatches(t)
	for _, tc := range []struct{ images, checked, more int }{{512, 512, 0}, {100, 100, 0}, {64, 64, 0}, {63, 0, 1}, {20, 0, 44}} {
		data := batchnorm.Training{Data: loader, Order: dataset.Order{Shuffle: true, Seed: 1, Limit: tc.images}}
		_, records, err := batchnorm.ChooseSampleSize(t.Context(), e, []*infer.Network{n}, data, batchnorm.SampleSizing{})
		if err != nil {
			t.Fatal(err)
		}
		r, checked := records[0], 0
		if r.Check != nil {
			checked = r.Check.Wide
			if r.Check.Off() != nil {
				t.Errorf("%d images: %+v is off", tc.images, r.Check)
			}
		}
		if checked != tc.checked || r.MoreExamples != tc.more {
			t.Errorf("%d images: %d were checked and %d more are wanted, want %d and %d", tc.images, checked, r.MoreExamples, tc.checked, tc.more)
		}
	}
	// Images that were never divided by 255 are found with the fewest that there may be.
	raw := infertest.Data(t, infertest.Path(infertest.Augmented, "train.npz"), dataset.Options{Preprocess: preprocess.Settings{Std: []float64{1. / 255, 1. / 255, 1. / 255}}})
	data := batchnorm.Training{Data: raw, Order: dataset.Order{Shuffle: true, Seed: 1, Limit: 64}}
	_, records, err := batchnorm.ChooseSampleSize(t.Context(), e, []*infer.Network{n}, data, batchnorm.SampleSizing{})
	if err != nil {
		t.Fatal(err)
	}
	if c := records[0].Check; c == nil || !c.FirstOff() {
		t.Errorf("values up to 255 in 64 images: %+v", c)
	}
}

// distances are root mean squares over all channels: of means in standard
// deviations, and of logarithms of variances. With layers, they are of these only.
func distances(l *weights.Layout, got, want []float32, layers ...int) (means, variances float64) {
	tensors, n := l.Role(weights.Statistic), 0.0
	for i := 0; i < len(tensors); i += 2 { // a mean, then its variance
		if len(layers) > 0 && !slices.Contains(layers, i/2) {
			continue
		}
		for c := range tensors[i].Len() {
			m, v := tensors[i].Offset+c, tensors[i+1].Offset+c
			d, r := float64(got[m])-float64(want[m]), math.Log(float64(got[v])/float64(want[v]))
			means, variances, n = means+d*d/float64(want[v]), variances+r*r, n+1
		}
	}
	return math.Sqrt(means / n), math.Sqrt(variances / n)
}

// Members that see few images, corrected by what SWA's statistics are from as many
// and from all, have nearly the statistics that all images give.
func TestSampleSizeControl(t *testing.T) {
	t.Parallel()
	n, e := infertest.Network(t, augmentedRun(t, "checkpoints", 8)), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 32})}
	how := swag.SampleOptions{Seed: 5, Scale: swag.LowRankPlusDiagonal.DefaultScale()}
	all := batchnorm.Training{Data: epochs(t, 8), Order: dataset.Order{Shuffle: true, Seed: 1}}
	settled, records, err := batchnorm.ChooseSampleSize(t.Context(), e, []*infer.Network{n}, all, batchnorm.SampleSizing{Auto: true, Members: how})
	if err != nil {
		t.Fatal(err)
	}
	if r := records[0]; r.Examples != all.Images() || r.MemberExamples != settled.Images() || 2*r.MemberExamples > r.Examples {
		t.Fatalf("SWA sees %d of %d images, members %d, want all and half of them at most", r.Examples, all.Images(), r.MemberExamples)
	}
	if settled.Visited() != all.Images() {
		t.Errorf("other uses of the images see %d of %d", settled.Visited(), all.Images())
	}
	few := settled.Uncontrolled()

	var with, without [2]float64 // sums of squares
	recompute := func(parameters weights.Vector, data batchnorm.Training) bnupdate.Result {
		r, err := batchnorm.Recompute(t.Context(), e, n, parameters, data)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const members = 3
	err = infer.EachMember(t.Context(), nil, n.Posterior, how, 0, members, func(_ int, parameters weights.Vector) error {
		want := recompute(parameters, all)
		for _, x := range []struct {
			data batchnorm.Training
			sum  *[2]float64
		}{{settled, &with}, {few, &without}} {
			got := recompute(parameters, x.data)
			if got.Images != settled.Images() {
				t.Errorf("a member saw %d images, want %d", got.Images, settled.Images())
			}
			m, v := distances(n.Posterior.Layout, got.Statistics, want.Statistics)
			x.sum[0], x.sum[1] = x.sum[0]+m*m/members, x.sum[1]+v*v/members
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, what := range []string{"means", "variances"} {
		a, b, times := math.Sqrt(with[i]), math.Sqrt(without[i]), []float64{4, 3}[i]
		t.Logf("%s: %.2g with the control, %.2g without, of %d images beside %d", what, a, b, settled.Images(), all.Images())
		if !(times*a < b) {
			t.Errorf("%s: %.2g with the control, %.2g without, want %v times less", what, a, b, times)
		}
	}

	// SWA itself comes to what all images give.
	infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
		if got, want := recompute(parameters, settled).Statistics, recompute(parameters, all).Statistics; !slices.Equal(got, want) {
			m, v := distances(n.Posterior.Layout, got, want)
			t.Errorf("SWA is off by %g in means and %g in variances", m, v)
		}
		return nil
	})
}
