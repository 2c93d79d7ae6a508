package landscape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/screen"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/geometry"
	"github.com/swagwrap/swagwrap/weights"
)

func TestMain(m *testing.M) { infertest.Main(m) }

func open(t *testing.T, n *infer.Network) *Landscape {
	t.Helper()
	g, err := geometry.New(t.Context(), n.Posterior, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &Landscape{Network: n, Geometry: g, BatchNorm: batchnorm.Training{Data: infertest.Digits(t, "train.npz"), Order: dataset.Order{Limit: 256}},
		Data: dataset.Subset(infertest.Digits(t, "test.npz"), dataset.Order{Limit: 200}), Scale: 0.5, Grid: 3, Extent: 2}
}

// plainLoss is the NLL with the given weights, their statistics recomputed.
func plainLoss(t *testing.T, e infer.Run, l *Landscape, parameters weights.Vector) (nll, accuracy float64) {
	t.Helper()
	fresh, err := batchnorm.Recompute(t.Context(), e, l.Network, parameters, l.BatchNorm)
	if err != nil {
		t.Fatal(err)
	}
	model, err := l.Network.Model("plain", parameters, weights.Slice(fresh.Statistics))
	if err != nil {
		t.Fatal(err)
	}
	sums := &infer.Sums{}
	if err := e.Predict(t.Context(), model, l.Data, sums); err != nil {
		t.Fatal(err)
	}
	p, err := calibrate.NewPredictions(sums.Mean(), 10, l.Data.Labels().Classes)
	if err != nil {
		t.Fatal(err)
	}
	return calibrate.NegLogLikelihood(p), calibrate.Accuracy(p)
}

// The middle of every line and plane is SWA; planes contain their lines; axes go
// as many posterior standard deviations to both sides as stated.
func TestLandscape(t *testing.T) {
	t.Parallel()
	l := open(t, infertest.Network(t, infertest.Posterior(t)))
	images := int64(0)
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1})}
	e.Progress = func(n int) { images += int64(n) }
	want := l.Images()
	r, err := l.Run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	// Two planes of 3×3 with the 4 lines; SWA is one.
	if l.Points() != 2*9-1 || images != want {
		t.Errorf("%d points, %d images; want %d", l.Points(), images, want)
	}
	lines, planes := r.Lines, r.Planes
	var nll, accuracy float64
	err = infer.EachMember(t.Context(), nil, l.Network.Posterior, swag.SampleOptions{}, 0, 1, func(_ int, parameters weights.Vector) error {
		nll, accuracy = plainLoss(t, e, l, parameters)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 4 || len(planes) != 2 {
		t.Fatalf("%d lines, %d planes", len(lines), len(planes))
	}
	for i, line := range lines {
		if p := line.Points[1]; len(p.At) != i+1 || p.At[i] != 0 || p.NLL() != nll || p.Value("accuracy") != accuracy || p.Loss() != nll {
			t.Errorf("line %d has %+v in its middle, SWA has NLL %v, accuracy %v", i, p, nll, accuracy)
		}
		sd := math.Sqrt(0.5 * l.Geometry.Covariance(i, i))
		if ends := [2]float64{line.Points[0].At[i], line.Points[2].At[i]}; ends != [2]float64{-2 * sd, 2 * sd} || line.Deviation != sd {
			t.Errorf("line %d goes from %v to %v, want ±2·%v", i, ends[0], ends[1], sd)
		}
	}
	for _, p := range planes {
		for k := range 3 {
			if p.Points[1][k].NLL() != lines[p.I].Points[k].NLL() || p.Points[k][1].NLL() != lines[p.J].Points[k].NLL() {
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
	if lines[0].Points[0].NLL() == nll {
		t.Error("the loss does not change along the first direction")
	}
	checkShown(t, r)
}

// Text, page and JSON show the same figures.
func checkShown(t *testing.T, r *Result) {
	t.Helper()
	r.Statistics = study.BatchNorm{Networks: []*infer.Network{r.Network}, Records: []*batchnorm.Record{nil}}
	var text bytes.Buffer
	if err := study.WriteText(&text, report.Screen{Verbose: true}, nil, r.Show()); err != nil {
		t.Fatal(err)
	}
	ends := fmt.Sprintf("−2.00 σ       %s", report.Fixed(r.Lines[0].Points[0].NLL(), 4))
	for _, want := range []string{"200 images, 19,714 weights, rank 20, scale 0.5\n\n", "direction  low-rank variance", "\n NLL at  direction 1", ends, "accuracy at  direction 1",
		strings.Join(shown{r}.verdict(), "\n") + "\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	screen.Fits(t, r.Show())
	page := r.Show().Page()
	if len(page.Tables) != 3 || len(page.Lines) != 2 || page.Lead == nil || len(page.Surfaces) != 1 || !page.Tables[0].Folded || !slices.Equal(page.Verdict, (shown{r}).verdict()) {
		t.Errorf("a page of %d tables, %d figures of lines and %d of planes", len(page.Tables), len(page.Lines), len(page.Surfaces))
	}
	for i, l := range r.Lines {
		if s := page.Lines[1].Series[i]; s.X[0] != -2 || s.Y[2] != l.Points[2].NLL() || page.Lines[0].Series[i].X[0] != l.Points[0].At[i] {
			t.Errorf("the curve of line %d: %+v", i, s)
		}
	}
	for _, p := range r.Planes {
		s := shown{r}.surface(p)
		if s.Z[2][0] != p.Points[2][0].NLL() || len(s.Ellipses) != 2 || s.Points[0].Name != "SWA" {
			t.Errorf("plane %d, %d: %+v", p.I, p.J, s)
		}
		inside := 0
		if len(s.Points) > 1 {
			inside = len(s.Points[1].X)
		}
		if want := fmt.Sprintf("%d of the last 20 iterates lie outside", 20-inside); inside < 20 && !strings.Contains(s.Note, want) {
			t.Errorf("plane %d, %d: %q, want %q", p.I, p.J, s.Note, want)
		}
	}
	js, err := json.Marshal(shown{r}.row())
	if err != nil {
		t.Fatal(err)
	}
	type point struct {
		At                  []float64
		NLL, Loss, Accuracy float64
	}
	var got struct {
		Spectrum, Iterates []any
		Lines              []struct{ Points []point }
		Planes             []struct{ Points [][]point }
		Verdict            []string
	}
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Spectrum) != len(r.Geometry.Eigenvalues) || len(got.Iterates) != 20 || !slices.Equal(got.Verdict, (shown{r}).verdict()) {
		t.Errorf("%s", js)
	}
	for i, l := range r.Lines {
		for k, p := range l.Points {
			if q := got.Lines[i].Points[k]; q.NLL != p.NLL() || q.Loss != p.Loss() || q.Accuracy != p.Value("accuracy") || !slices.Equal(q.At, p.At) {
				t.Errorf("line %d: %+v, want %+v", i, q, p)
			}
		}
	}
	if q, p := got.Planes[1].Points[2][0], r.Planes[1].Points[2][0]; q.NLL != p.NLL() {
		t.Errorf("plane: %+v, want %+v", q, p)
	}
}

// gone is data that cannot be read.
type gone struct{ dataset.Dataset }

func (gone) Read(dataset.Values, int) error { return errors.New("test.npz: gone") }

// What fails says at which point it was.
func TestLandscapeFails(t *testing.T) {
	t.Parallel()
	l, e := open(t, infertest.Network(t, infertest.Fit(t, infertest.Checkpoints(t)[25:]...))), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1})}
	l.Data = gone{l.Data}
	_, err := l.Run(t.Context(), e)
	if err == nil || !strings.Contains(err.Error(), "posterior.safetensors: at the distances [") || !strings.Contains(err.Error(), "test.npz: gone") {
		t.Errorf("error %v", err)
	}
	l.BatchNorm.Data = gone{l.BatchNorm.Data}
	if _, err := l.At(t.Context(), e, nil); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("error %v", err)
	}
}

// With all directions, the coordinates of an iterate give its weights, so the loss
// there is the iterate's own with recomputed statistics. Its weights are rounded
// to float32, which changes the NLL by less than 1e-5.
func TestLandscapeAtIterate(t *testing.T) {
	t.Parallel()
	set := infertest.Checkpoints(t)
	l, e := open(t, infertest.Network(t, infertest.Posterior(t))), infertest.Run(t)
	l.Decay = 1e-3
	if got := (shown{&Result{Landscape: l}}).loss(); got != "NLL + 0.001/2·‖θ‖²" {
		t.Errorf("the loss is called %q", got)
	}
	for _, it := range l.Geometry.Positions()[17:] { // the last three of twenty
		parameters, _, err := l.Network.Vectors(set[it.Model])
		if err != nil {
			t.Fatal(err)
		}
		nll, accuracy := plainLoss(t, e, l, parameters)
		got, err := l.At(t.Context(), e, it.Along)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.NLL()-nll) > 1e-5 || got.Value("accuracy") != accuracy {
			t.Errorf("model %d: NLL %v, accuracy %v; at its coordinates %v, %v", it.Model, nll, accuracy, got.NLL(), got.Value("accuracy"))
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
