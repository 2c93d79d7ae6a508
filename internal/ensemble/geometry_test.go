package ensemble

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/geometry"
	"github.com/swagwrap/swagwrap/weights"
)

func landscape(t *testing.T, p *swag.Posterior) *Landscape {
	t.Helper()
	g, err := geometry.New(t.Context(), p, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &Landscape{Network: network(t, p), Geometry: g, BatchNorm: BatchNormData{Data: data(t, "train.npz"), Order: dataset.Order{Limit: 256}},
		Data: Subset(data(t, "test.npz"), dataset.Order{Limit: 200}), Scale: 0.5, Directions: 5, Grid: 3, Extent: 2}
}

// plainLoss is the NLL with the given weights, their statistics recomputed.
func plainLoss(t *testing.T, e *Engine, l *Landscape, parameters weights.Vector) (nll, accuracy float64) {
	t.Helper()
	fresh, err := e.Recompute(t.Context(), l.Network, parameters, l.BatchNorm)
	if err != nil {
		t.Fatal(err)
	}
	model, err := l.Network.Model(parameters, weights.Slice(fresh.Statistics))
	if err != nil {
		t.Fatal(err)
	}
	sums := &Sums{}
	if err := e.Predict(t.Context(), "plain", model, l.Data, 1, sums); err != nil {
		t.Fatal(err)
	}
	p, err := calibrate.NewPredictions(sums.Mean(), sums.Classes, l.Data.Labels())
	if err != nil {
		t.Fatal(err)
	}
	return calibrate.NegLogLikelihood(p), calibrate.Accuracy(p)
}

// The middle of every line and plane is SWA; planes contain their lines; axes go
// as many posterior standard deviations to both sides as was said.
func TestLandscape(t *testing.T) {
	l := landscape(t, fit(t, false))
	images := int64(0)
	e := &Engine{Runtime: openRuntime(t), Workers: 1, Progress: func(n int) { images += int64(n) }}
	want := l.Images()
	lines, planes, err := l.Run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	// Two planes of 3×3 with 4 of the lines, 2 more points on the fifth; SWA is one.
	if l.Points() != 2*9-1+2 || images != want {
		t.Errorf("%d points, %d images; want %d", l.Points(), images, want)
	}
	var nll, accuracy float64
	err = EachMember(t.Context(), l.Network.Posterior, swag.SampleOptions{}, 0, 1, func(_ int, parameters weights.Vector) error {
		nll, accuracy = plainLoss(t, e, l, parameters)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 5 || len(planes) != 2 {
		t.Fatalf("%d lines, %d planes", len(lines), len(planes))
	}
	for i, line := range lines {
		if p := line.Points[1]; len(p.At) != i+1 || p.At[i] != 0 || p.NLL != nll || p.Accuracy != accuracy || p.Loss() != nll {
			t.Errorf("line %d has %+v in its middle, SWA has NLL %v, accuracy %v", i, p, nll, accuracy)
		}
		sd := math.Sqrt(0.5 * l.Geometry.Covariance(i, i))
		if ends := [2]float64{line.Points[0].At[i], line.Points[2].At[i]}; ends != [2]float64{-2 * sd, 2 * sd} || line.Deviation != sd {
			t.Errorf("line %d goes from %v to %v, want ±2·%v", i, ends[0], ends[1], sd)
		}
	}
	for _, p := range planes {
		for k := range 3 {
			if p.Points[1][k].NLL != lines[p.I].Points[k].NLL || p.Points[k][1].NLL != lines[p.J].Points[k].NLL {
				t.Errorf("plane %d, %d does not contain its lines", p.I, p.J)
			}
		}
		if corner := p.Points[2][0].At; corner[p.I] != p.X[0] || corner[p.J] != p.Y[2] {
			t.Errorf("plane %d, %d: corner at %v, want %v, %v", p.I, p.J, corner, p.X[0], p.Y[2])
		}
		if p.XX != 0.5*l.Geometry.Covariance(p.I, p.I) || p.YY != 0.5*l.Geometry.Covariance(p.J, p.J) || p.XY != 0.5*l.Geometry.Covariance(p.I, p.J) {
			t.Errorf("plane %d, %d: covariance %v %v %v", p.I, p.J, p.XX, p.XY, p.YY)
		}
	}
	if lines[0].Points[0].NLL == nll {
		t.Error("the loss does not change along the first direction")
	}
}

// With all directions, the coordinates of an iterate give its weights, so the loss
// there is the iterate's own with recomputed statistics. Its weights are rounded
// to float32, which changes the NLL by less than 1e-5.
func TestLandscapeAtIterate(t *testing.T) {
	set := checkpoints(t)
	p := fit(t, false)
	l, e := landscape(t, p), &Engine{Runtime: openRuntime(t)}
	l.Decay = 1e-3
	for _, it := range l.Geometry.Positions()[17:] { // the last three of twenty
		parameters, _, err := l.Network.Checkpoint(set[it.Model])
		if err != nil {
			t.Fatal(err)
		}
		nll, accuracy := plainLoss(t, e, l, parameters)
		got, err := l.At(t.Context(), e, it.Along)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.NLL-nll) > 1e-5 || got.Accuracy != accuracy {
			t.Errorf("model %d: NLL %v, accuracy %v; at its coordinates %v, %v", it.Model, nll, accuracy, got.NLL, got.Accuracy)
		}
		norm := 0.0
		theta := make([]float32, parameters.Len())
		if err := parameters.ReadAt(theta, 0); err != nil {
			t.Fatal(err)
		}
		for _, v := range theta {
			norm += float64(v) * float64(v)
		}
		if want := nll + norm*1e-3/2; math.Abs(got.Loss()-want) > 1e-5*want {
			t.Errorf("model %d: loss %v with weight decay, want %v", it.Model, got.Loss(), want)
		}
	}
}
