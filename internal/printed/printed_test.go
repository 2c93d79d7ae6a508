package printed

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func TestMain(m *testing.M) { infertest.Main(m) }

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		text string
		want string // name value half, or the error
	}{
		{"accuracy=0.953 loss=0.2011 n=5000", "accuracy 0.953 0.0005; loss 0.2011 5e-05; n 5000"},
		{"acc: 95.3%, val_loss: 2e-1", "acc 0.953 0.0005; val_loss 0.2 0.05"},
		{"acc@1=95.30;test/loss_epoch=0.20110", "acc@1 0.953 5e-05; test/loss_epoch 0.2011 5e-06"},
		{"eval_sparse_categorical_accuracy = 0.9531, eval_loss = 1.5e-3", "eval_sparse_categorical_accuracy 0.9531 5e-05; eval_loss 0.0015 5e-05"},
		{"average_precision=0.5 mean_iou=0.61", "average_precision 0.5 0.05; mean_iou 0.61 0.005"},
		{"rmse=12", "rmse 12 0.5"},
		{"{'eval_loss': 0.2011, 'eval_accuracy': 0.953}", "eval_loss 0.2011 5e-05; eval_accuracy 0.953 0.0005"},
		{"val_loss: 0.8882 - val_sparse_categorical_accuracy: 0.7333", "val_loss 0.8882 5e-05; val_sparse_categorical_accuracy 0.7333 5e-05"},
		{"accuracy=0.95x", `"0.95x"`},
		{"accuracy=nan", `"nan"`},
		{"accuracy=-0.5", "want a share"},
		{"accuracy=101", "want a share"},
		{"accuracy=0", "agrees with nearly everything"},
		{"loss=0", "agrees with nearly everything"},
		{"loss=20%", "no share"},
		{"n=0 loss=1.0", "want a number of examples"},
		{"speed=3", "speed: want one of accuracy"},
		{"", "no number"},
		{"accuracy", `"accuracy": want NAME=NUMBER`},
	} {
		x, err := Parse(tc.text)
		got := fmt.Sprint(err)
		if err == nil {
			var all []string
			for _, one := range x.List {
				all = append(all, fmt.Sprintf("%s %.6g %.3g", one.Name, one.value, one.half))
			}
			if got = strings.Join(all, "; "); x.Examples > 0 {
				got += fmt.Sprintf("; n %d", x.Examples)
			}
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%q: %s, want %s", tc.text, got, tc.want)
		}
	}
}

// Every kind of wrong number is found with its cause, and the right ones agree. The numbers are computed here, from the outcomes of
// other networks and other examples.
func TestCauses(t *testing.T) {
	n := infertest.Network(t, infertest.Posterior(t))
	run, data := infertest.Run(t), infertest.Digits(t, "val.npz")
	p := n.Posterior
	last, err := n.LastCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	outcomes := func(m infer.Model) []float64 {
		sums := &infer.Sums{}
		if err := run.Predict(t.Context(), m, data, sums); err != nil {
			t.Fatal(err)
		}
		return sums.Outcome
	}
	labels := data.Labels().Classes
	all := len(labels)
	probs := outcomes(last)
	smoothed := func(p []float64, first, end int, smoothing float64, label func(int) int) (accuracy, loss float64) {
		var right, losses []float64
		for i := first; i < end; i++ {
			row := p[10*i:][:10]
			best, uniform := 0, 0.0
			for c, v := range row {
				if v > row[best] {
					best = c
				}
				uniform -= math.Log(v) / 10
			}
			hit := 0.0
			if best == label(labels[i]) {
				hit = 1
			}
			right, losses = append(right, hit), append(losses, (1-smoothing)*-math.Log(row[label(labels[i])])+smoothing*uniform)
		}
		return stat.Mean(right, nil), stat.Mean(losses, nil)
	}
	same := func(c int) int { return c }
	both := func(accuracy, loss float64) string { return fmt.Sprintf("accuracy=%.4f loss=%.4f", accuracy, loss) }
	plain := func(p []float64) string { return both(smoothed(p, 0, all, 0, same)) }
	overBatches := func(size int) string {
		var a, l []float64
		for i := 0; i < all; i += size {
			accuracy, loss := smoothed(probs, i, min(i+size, all), 0, same)
			a, l = append(a, accuracy), append(l, loss)
		}
		return fmt.Sprintf("accuracy=%.6f loss=%.6f", stat.Mean(a, nil), stat.Mean(l, nil))
	}
	s, err := swag.NewSampler(p, swag.SampleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	average, err := n.Model("SWA", s.Vector(t.Context(), 0), weights.Slice(p.Statistics))
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := n.AsIs(infertest.Checkpoints(t)[5])
	if err != nil {
		t.Fatal(err)
	}
	mean := outcomes(average)
	accuracy, loss := smoothed(probs, 0, all, 0, same)
	others := []Other{{Words: "SWA", Open: func(_ context.Context) (infer.Model, error) { return average, nil }},
		{Words: "epoch 5", Open: func(_ context.Context) (infer.Model, error) { return earlier, nil }}}
	for _, tc := range []struct {
		name, numbers string
		want          string // of the cause; "" if the numbers agree, and "?" if there is no cause
	}{
		{"right", plain(probs) + fmt.Sprintf(" n=%d", all), ""},
		{"right, by hand", fmt.Sprintf("top1=%.2f%% nll=%.3f", 100*accuracy, loss), ""},
		{"right, two examples", fmt.Sprintf("acc=%.6f", accuracy+2/float64(all)), ""},
		{"twenty examples", fmt.Sprintf("acc=%.6f", accuracy-20/float64(all)), "?"},
		{"another loss", both(accuracy, loss*1.5), "?"},
		{"other count", plain(probs) + " n=1500", "other examples: your evaluation counted 1500, and here are 2000"},
		{"more examples", plain(probs) + " n=9000", "other examples: your evaluation counted 9000"},
		{"fewer examples", both(smoothed(probs, 0, 1500, 0, same)) + " n=1500", "the first 1500 of 2000"},
		{"drop_last", func() string {
			a, l := smoothed(probs, 0, 1536, 0, same)
			return fmt.Sprintf("accuracy=%.7f loss=%.7f", a, l)
		}(), "the first 1536 of 2000, as a loader with batches of 512 and drop_last"},
		{"no share", fmt.Sprintf("accuracy=%.7f", accuracy+0.00413), "no number of right ones among 2000"},
		{"batches of 64", overBatches(64), "over batches of 64, of which the last has 16"},
		{"batches of 256", overBatches(256), "over batches of 256, of which the last has 208"},
		{"batches of 300", overBatches(300), "over batches of 300, of which the last has 200"},
		{"smoothing 0.1", both(smoothed(probs, 0, all, 0.1, same)), "label smoothing of 0.1"},
		{"smoothing 0.05", both(smoothed(probs, 0, all, 0.05, same)), "label smoothing of 0.05"},
		{"average", plain(mean), "these are the numbers of SWA"},
		{"earlier", plain(outcomes(earlier)), "these are the numbers of epoch 5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check(t, &Check{Network: n, Data: data, Run: run, Others: others}, tc.numbers, tc.want)
		})
	}
	order := []int{0, 1, 3, 2, 4, 5, 6, 8, 9, 7}
	for name, c := range map[string]*Check{
		"classes":        {Network: n, Data: relabelled{data, order}, Run: run},
		"large outcomes": {Network: n, Data: relabelled{data, order}, Run: run, most: 1},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c, plain(probs), "the examples with the label 2 are class 3 of the network")
		})
	}
	for _, bits := range []int{8} {
		rounded := make([]float32, p.Len())
		if err := p.Last().ReadAt(rounded, 0); err != nil {
			t.Fatal(err)
		}
		for i, v := range rounded {
			step := math.Exp2(math.Floor(math.Log2(math.Abs(float64(v)))) - float64(bits) + 1)
			if v != 0 {
				rounded[i] = float32(math.RoundToEven(float64(v)/step) * step)
			}
		}
		m, err := n.Model("half", weights.Slice(rounded), weights.Slice(p.Statistics))
		if err != nil {
			t.Fatal(err)
		}
		a, l := smoothed(outcomes(m), 0, all, 0, same)
		check(t, &Check{Network: n, Data: data, Run: run}, fmt.Sprintf("accuracy=%.5f loss=%.6f", a, l), "half precision")
	}
}

// check parses numbers, and compares the cause.
func check(t *testing.T, c *Check, numbers, want string) {
	t.Helper()
	var err error
	if c.Numbers, err = Parse(numbers); err != nil {
		t.Fatal(err)
	}
	r, err := c.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	if r.Cause != nil {
		got = r.Cause.Words
	} else if !r.Equal {
		got = "?"
	}
	if r.Equal != (want == "") || !strings.Contains(got, want) {
		t.Errorf("%s: %v: cause %q, want %q", numbers, r, got, want)
	}
}

// relabelled is data whose classes have another order.
type relabelled struct {
	dataset.Dataset
	order []int // the class in the labels of each class of the network
}

func (d relabelled) Labels() target.Target {
	out := d.Dataset.Labels()
	out.Classes = slices.Clone(out.Classes)
	for i, c := range out.Classes {
		out.Classes[i] = slices.Index(d.order, c)
	}
	return out
}
