package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/report/plot"
)

// sampleReport is a rich report with everything in it, and n methods.
func sampleReport(n int) *Report {
	names := []string{"SWA-Temp", "your network", "SGD, all iterates", "SWA, stale BN", "SWA", "SWA-Vector", "SWAG-Diag", "SWAG",
		"isotropic noise, equal trace", "MC dropout", "KFAC-Laplace, last layer", "MultiSWAG"}[:n]
	r := &Report{
		Steps: true,
		Title: "compare: posterior.safetensors on test.npz",
		Verdict: []string{"SWAG is better than temperature scaling on this data: NLL −0.012 [−0.020, −0.004].",
			"MultiSWAG is better still, at three times the cost of training. Accuracy is the same for all methods but stale batch-norm statistics."},
		Do:       []string{"swagwrap sample -o ensemble.safetensors --scale 0.5 --bn-data train.npz posterior.safetensors", "swagwrap export -o ensemble.onnx ensemble.safetensors"},
		Warnings: []string{"SWA, stale BN: batch-norm statistics do not belong to these weights; recompute them (--bn-data)", "ECE: 2 of 20 bins of SGD, all iterates are empty, because confidences are equal or few"},
		Findings: []Finding{{"The 30 checkpoints tell as much as 2.1 unrelated ones: this is common at a constant learning rate, where the weights wander. It does not hurt SWA. The variance of SWAG grows with the number of checkpoints.", false}},
		Facts: []Fact{{"test images", "5,000"}, {"members", "30"}, {"scale", "0.5"}, {"rank", "20"}, {"seed", "1"}, {"validation images", "2,000"},
			{"BN images", "1,000"}, {"classes", "10"}},
		Command: "swagwrap compare --bn-data train.npz --val val.npz --members 30 --seed 1 --report report.html posterior.safetensors test.npz",
		Program: "swagwrap 0.4.0, ONNX Runtime 1.23.1, linux/amd64", Created: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Provenance: []Fact{{"posterior.safetensors, SHA-256", strings.Repeat("9f86d081884c7d65", 4)}, {"test.npz, SHA-256", strings.Repeat("60303ae22b998861", 4)}},
	}
	random := rand.New(rand.NewPCG(1, 2))
	table := NewTable(Column{Header: "method"}, Column{Header: "accuracy", Align: Decimal}, Column{Header: "NLL", Align: Decimal}, Column{Header: "(at best T)", Align: Decimal},
		Column{Header: "ECE", Align: Decimal}, Column{Header: "Brier", Align: Decimal}, Column{Header: "AURC", Align: Decimal},
		Column{Header: "NLL − NLL(SWA-Temp)", Align: Decimal}, Column{Header: "95 %", Align: Decimal}, Column{Header: "", Empty: " "})
	differences := plot.Differences{Title: "NLL against temperature scaling", Label: "NLL − NLL(SWA-Temp), nats", Baseline: "SWA-Temp", Note: "Paired bootstrap over 5,000 images, 2,000 resamples."}
	for i, name := range names {
		p := samplePredictions(random, 4000, 10, 0.8+0.12*float64(i%7))
		r.Methods = append(r.Methods, plot.Method{Name: name, Minor: name != "SWA-Temp" && name != "your network" && name != "SWA" && name != "SWAG",
			Label: "ECE " + Fixed(calibrate.ECE(p, calibrate.ECEOptions{}), 4), Reliability: calibrate.Reliability(p, calibrate.ECEOptions{}), RiskCoverage: calibrate.RiskCoverage(p)})
		d := 0.0008*float64(i-5) - 0.004
		if name == "SWA, stale BN" {
			d = 15.49
		}
		row := []string{name, Percent(calibrate.Accuracy(p), 1), Fixed(0.15+d, 4), Fixed(0.14+d/2, 4), Fixed(calibrate.ECE(p, calibrate.ECEOptions{}), 4), Fixed(calibrate.Brier(p), 4), Fixed(calibrate.AURC(p), 4)}
		if i > 0 {
			row = append(row, Signed(d, 4), Interval(d-0.002, d+0.002, 4))
			differences.Rows = append(differences.Rows, plot.Difference{Name: name, Value: d, Lower: d - 0.002, Upper: d + 0.002})
		}
		if d > 1 {
			row = append(row, "!")
		}
		table.Row(row...)
		r.Entropies = append(r.Entropies, plot.HistogramPair{Name: name, Note: "AUROC 0.91, symmetrised KL 1.31",
			In: sampleEntropies(random, 5000, -3+0.1*float64(i), 1.6), Out: sampleEntropies(random, 3000, -0.6, 0.7)})
	}
	table.Note("5,000 test images, 30 members, scale 0.5, rank 20, seed 1; T fitted on 2,000 validation images")
	table.Note("! batch-norm statistics do not belong to these weights: recompute them (--bn-data)")
	r.Tables = []NamedTable{{Title: "Scores", Explanation: "All methods on the same test images.", Table: table},
		{Title: "Hidden numbers", Explanation: "Nobody needs them at once.", Table: table, Folded: true}}
	if lead := plot.DrawDifferences([]plot.Differences{differences}); lead != nil {
		r.Lead, differences.Title = lead[0], "Error rate against temperature scaling"
	}
	r.Differences = []plot.Differences{differences}
	r.Sweeps = sampleSweeps(random)
	spectrum := plot.Curve{Title: "Spectrum", XLabel: "direction", YLabel: "variance along the direction", LogY: true, Series: make([]plot.Series, 1), Note: "The low-rank part holds 38 % of the variance, the diagonal part 62 %. Effective number of directions: 6.4."}
	for k := range 20 {
		of := &spectrum.Series[0]
		of.X, of.Y = append(of.X, float64(k+1)), append(of.Y, 0.8*math.Exp(-0.3*float64(k)))
	}
	r.Spectrum = []plot.Curve{spectrum}
	for k := range 2 {
		line := plot.Curve{Title: fmt.Sprintf("Loss along direction %d", k+1), XLabel: "distance from SWA, posterior standard deviations (σ)", YLabel: "NLL, nats", Marks: []plot.Tick{{At: 0, Label: "SWA"}}}
		s := plot.Series{Name: "test"}
		u := plot.Series{Name: "training"}
		for i := range 21 {
			x := float64(i-10) / 2.5
			s.X, s.Y = append(s.X, x), append(s.Y, 0.15+0.02*x*x*(1+0.1*x))
			u.X, u.Y = append(u.X, x), append(u.Y, 0.05+0.017*x*x)
		}
		line.Series = []plot.Series{s, u}
		r.Lines = append(r.Lines, line)
	}
	r.Surfaces = []plot.Surface{sampleSurface("Plane of directions 1 and 2", 1, 2), sampleSurface("Plane of directions 3 and 4", 3, 4)}
	return r
}

// samplePredictions of images whose labels follow the probabilities sharpened by t.
func samplePredictions(random *rand.Rand, n, classes int, t float64) calibrate.Predictions {
	p := calibrate.Predictions{Probs: make([]float64, n*classes), Classes: classes, Labels: make([]int, n)}
	target := make([]float64, classes)
	for i := range n {
		row := p.Row(i)
		sum, sums := 0.0, 0.0
		for k := range row {
			z := random.NormFloat64()
			if k == i%classes {
				z += 2 + 4*random.Float64()
			}
			row[k], target[k] = math.Exp(z*1.6), math.Exp(z*1.6*t)
			sum, sums = sum+row[k], sums+target[k]
		}
		u := random.Float64() * sums
		for k := range row {
			row[k] /= sum
			if u -= target[k]; u > 0 && k+1 < classes {
				p.Labels[i] = k + 1
			}
		}
	}
	return p
}

func sampleEntropies(random *rand.Rand, n int, mean, sd float64) detect.Histogram {
	h := make([]float64, n)
	for i := range h {
		h[i] = min(math.Pow(10, mean+sd*random.NormFloat64()), 2.3)
	}
	return detect.EntropyHistogram(h)
}

func sampleSweeps(random *rand.Rand) []plot.Curve {
	members := plot.Curve{Title: "Number of members", XLabel: "members", YLabel: "NLL, nats", Marks: []plot.Tick{{At: 30, Label: "the paper's default"}, {At: 12, Label: "enough: 12"}}}
	s := plot.Series{Name: "SWAG"}
	for i := range 60 {
		x := float64(i + 1)
		y := 0.14 + 0.03/x + 0.0003*random.NormFloat64()
		s.X, s.Y, s.Lower, s.Upper = append(s.X, x), append(s.Y, y), append(s.Lower, y-0.004/math.Sqrt(x)), append(s.Upper, y+0.004/math.Sqrt(x))
	}
	members.Series = []plot.Series{s}
	scale := plot.Curve{Title: "Scale", XLabel: "scale α", YLabel: "NLL, nats", Marks: []plot.Tick{{At: 0.5, Label: "default and recommended"}}}
	for k, name := range []string{"BN recomputed", "BN stale"} {
		s := plot.Series{Name: name}
		for i, x := range []float64{0, 0.125, 0.25, 0.5, 1, 2, 4} {
			y := 0.15 + 0.003*float64((i-3)*(i-3)) + 0.02*float64(k)
			s.X, s.Y, s.Lower, s.Upper = append(s.X, x), append(s.Y, y), append(s.Lower, y-0.003), append(s.Upper, y+0.003)
		}
		scale.Series = append(scale.Series, s)
	}
	return []plot.Curve{members, scale}
}

func sampleSurface(title string, a, b int) plot.Surface {
	s := plot.Surface{Title: title, XLabel: fmt.Sprintf("direction %d, distance", a), YLabel: fmt.Sprintf("direction %d, distance", b), ZLabel: "NLL, nats",
		Note: "121 points, 500 images each."}
	for i := range 11 {
		s.X, s.Y = append(s.X, float64(i-5)*0.8), append(s.Y, float64(i-5)*0.6)
	}
	for _, y := range s.Y {
		var row []float64
		for _, x := range s.X {
			row = append(row, 0.15+0.05*x*x+0.13*y*y+0.08*x*y+0.01*x*x*x)
		}
		s.Z = append(s.Z, row)
	}
	for k := 1; k <= 3; k++ {
		s.Ellipses = append(s.Ellipses, plot.Ellipse{XX: 0.9, XY: -0.25, YY: 0.3, Radius: float64(k), Label: fmt.Sprintf("%dσ", k)})
	}
	iterates := plot.PointSet{Name: "iterates", Path: true}
	for k := range 12 {
		t := float64(k) * 2.4
		iterates.X, iterates.Y = append(iterates.X, 1.3*math.Cos(t)+0.03*float64(k)), append(iterates.Y, 0.5*math.Sin(t)-0.2*math.Cos(t))
	}
	s.Points = []plot.PointSet{{Name: "SWA", X: []float64{0}, Y: []float64{0}}, iterates}
	return s
}
