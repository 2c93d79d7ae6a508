package multilabel_test

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
)

// Two labels of four pictures, of one of which the second is not known.
func Example() {
	probs := []float64{
		0.9, 0.2,
		0.8, 0.6,
		0.3, 0.1,
		0.6, 0.4,
	}
	targets := []int{
		1, 0,
		1, 1,
		0, multilabel.Unknown,
		0, 0,
	}
	p, err := multilabel.NewPredictions(probs, nil, 2, targets)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := multilabel.Evaluate(p, calibrate.ECEOptions{Bins: 1})
	fmt.Printf("%d labels known: NLL %.3f, Brier %.3f, mAP %.2f, AUROC %.2f, macro ECE %.3f\n",
		m.Known, m.NLL, m.Brier, m.MeanAveragePrecision, m.AUROC, m.MacroECE)

	s, err := multilabel.ByTemperature.Fit(multilabel.LogOdds(probs, nil), 2, targets)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("T = %.2f, NLL %.3f after\n", 1/s.A[0], s.NLLAfter)
	// Output:
	// 7 labels known: NLL 0.407, Brier 0.123, mAP 1.00, AUROC 1.00, macro ECE 0.108
	// T = 0.34, NLL 0.300 after
}
