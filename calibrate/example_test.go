package calibrate_test

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
)

// Scores of three predictions, one of them wrong.
func Example() {
	probs := []float64{
		0.7, 0.2, 0.1,
		0.1, 0.8, 0.1,
		0.5, 0.1, 0.4,
	}
	p, err := calibrate.NewPredictions(probs, 3, []int{0, 1, 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := calibrate.Evaluate(p, calibrate.EvaluateOptions{ECE: calibrate.ECEOptions{Bins: 1}})
	fmt.Printf("accuracy %.3f, NLL %.3f, Brier %.3f, ECE %.3f\n", m.Accuracy, m.NLL, m.Brier, m.ECE)
	for _, w := range m.Warnings {
		fmt.Println("warning:", w)
	}
	// Output:
	// accuracy 0.667, NLL 0.499, Brier 0.273, ECE 0.000
	// warning: ECE is mostly noise: 3 predictions, want at least 10 (10 per bin)
	// warning: set size: 3 predictions, want at least 9 in each half for sets of 90 %
}

// The averaged prediction of two members gets its own temperature, then goes
// through the same functions as any other.
func ExampleFitTemperature() {
	a := []float64{0.99, 0.01, 0.98, 0.02, 0.10, 0.90, 0.95, 0.05}
	b := []float64{0.97, 0.03, 0.90, 0.10, 0.20, 0.80, 0.99, 0.01}
	labels := []int{0, 0, 1, 1}
	mean := make([]float64, len(a))
	for i := range mean {
		mean[i] = (a[i] + b[i]) / 2
	}

	logits := calibrate.LogProbs(nil, mean)
	t, err := calibrate.FitTemperature(logits, 2, labels)
	if err != nil {
		fmt.Println(err)
		return
	}
	scaled := calibrate.Softmax(nil, logits, 2, t.T)
	fmt.Printf("T = %.2f, NLL %.3f before and %.3f after\n", t.T, t.NLLBefore, t.NLLAfter)
	fmt.Printf("first image: %.3f before and %.3f after\n", mean[0], scaled[0])
	// Output:
	// T = 3.59, NLL 0.938 before and 0.611 after
	// first image: 0.980 before and 0.747 after
}

// Sets of classes that hold the true one nine times in ten, from 1,000 labelled
// predictions that the network was not trained on.
func ExampleFitAPS() {
	p := calibrate.Predictions{Classes: 3}
	for i := range 1000 {
		p.Probs = append(p.Probs, 0.6, 0.3, 0.1)
		p.Labels = append(p.Labels, []int{0, 0, 1, 0, 1, 0, 2, 1, 0, 0}[i%10])
	}
	sets, err := calibrate.FitAPS(p, 0.9, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	unsure := calibrate.Predictions{Classes: 3, Probs: []float64{0.9, 0.09, 0.01, 0.4, 0.3, 0.3}, Labels: []int{0, 2}}
	fmt.Println("classes in the sets of two images:", sets.Sizes(nil, unsure))
	// Output:
	// classes in the sets of two images: [1 2]
}

// The entropies of images of the training domain and of others.
func ExampleAUROC() {
	in := []float64{0.1, 0.2, 0.3, 0.9}
	out := []float64{0.8, 1.2, 1.1}
	fmt.Printf("AUROC %.3f, AUPR %.3f, FPR at 95 %% %.2f\n",
		detect.AUROC(in, out), detect.AUPR(in, out), detect.FPRAt(in, out, 0.95))
	// Output:
	// AUROC 0.917, AUPR 0.917, FPR at 95 % 0.25
}
