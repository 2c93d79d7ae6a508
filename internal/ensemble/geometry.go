package ensemble

import (
	"context"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/swag/geometry"
	"github.com/swagwrap/swagwrap/weights"
)

// Landscape is the loss around θ_SWA along the directions in which SWAG's
// low-rank covariance is largest, on lines and planes through it (section 5 of the
// paper, figure "geometry"). Batch-norm statistics are recomputed at each point,
// from the same images.
//
// Distances are Euclidean in weight space; where they are in posterior standard
// deviations, those are √(α·v_iᵀΣv_i), the diagonal part included.
type Landscape struct {
	Network   *Network
	Geometry  *geometry.Geometry
	BatchNorm BatchNormData
	Data      dataset.Dataset

	Scale      float64 // α of the standard deviations
	Directions int     // how many lines; fewer where there are fewer directions
	Grid       int     // points on a line, and on each side of a plane; odd, at least 3
	Extent     float64 // how far lines go to each side, in posterior standard deviations
	// Decay is λ of the weight decay that the network was trained with. The paper's
	// loss is NLL + λ/2·‖θ‖², a posterior density with a Gaussian prior; ‖θ‖ is over
	// the weights that the posterior is of.
	Decay float64

	known map[string]LossPoint
	drawn []float32 // the weights at a point, where they fit
}

// LossPoint is the loss at a point of weight space.
type LossPoint struct {
	At       []float64 // distance from θ_SWA along v_1, v_2 …; those beyond are 0
	NLL      float64   // mean per image, nats
	Penalty  float64   // λ/2·‖θ‖²
	Accuracy float64
}

// Loss returns NLL + λ/2·‖θ‖².
func (p LossPoint) Loss() float64 { return p.NLL + p.Penalty }

// LossLine is the loss along direction I, counted from 0.
type LossLine struct {
	I         int
	Deviation float64 // a posterior standard deviation
	Points    []LossPoint
}

// LossPlane is the loss on the plane of directions I and J.
type LossPlane struct {
	I, J int
	X, Y []float64 // distances along them
	// Covariance of members projected on the plane, α·v_iᵀΣv_j.
	XX, XY, YY float64
	Points     [][]LossPoint // Points[k][n] is at X[n], Y[k]
}

// planes are the paper's: directions 1 and 2, and 3 and 4.
func (l *Landscape) planes() (out [][2]int) {
	for i := 0; i+1 < min(4, l.Geometry.Directions()); i += 2 {
		out = append(out, [2]int{i, i + 1})
	}
	return out
}

// Deviation returns the posterior standard deviation along direction i.
func (l *Landscape) Deviation(i int) float64 {
	return math.Sqrt(l.Scale * l.Geometry.Covariance(i, i))
}

// axis returns the distances along direction i: evenly spaced, 0 in the middle.
func (l *Landscape) axis(i int) []float64 {
	out := make([]float64, l.Grid)
	for k := range out {
		out[k] = l.Extent * l.Deviation(i) * float64(2*k-(l.Grid-1)) / float64(l.Grid-1)
	}
	return out
}

// lines returns how many directions have a line.
func (l *Landscape) lines() int { return min(l.Directions, l.Geometry.Directions()) }

// Points returns how many networks Run runs. The middle lines of a plane are lines
// of its directions, and all go through θ_SWA.
func (l *Landscape) Points() int {
	seen := map[string]bool{}
	for i := range l.lines() {
		for _, t := range l.axis(i) {
			seen[key(coordinates(i, t, 0, 0))] = true
		}
	}
	for _, p := range l.planes() {
		for _, x := range l.axis(p[0]) {
			for _, y := range l.axis(p[1]) {
				seen[key(coordinates(p[0], x, p[1], y))] = true
			}
		}
	}
	return len(seen)
}

// Images returns how many images Run sends through networks.
func (l *Landscape) Images() int64 {
	return int64(l.Points()) * int64(l.Data.Len()+l.BatchNorm.Images())
}

// Run looks at the lines and planes.
func (l *Landscape) Run(ctx context.Context, e *Engine) (lines []LossLine, planes []LossPlane, err error) {
	if _, err := l.At(ctx, e, nil); err != nil { // θ_SWA settles the batch-norm images
		return nil, nil, err
	}
	for i := range l.lines() {
		line := LossLine{I: i, Deviation: l.Deviation(i)}
		for _, t := range l.axis(i) {
			p, err := l.At(ctx, e, coordinates(i, t, 0, 0))
			if err != nil {
				return nil, nil, err
			}
			line.Points = append(line.Points, p)
		}
		lines = append(lines, line)
	}
	for _, pair := range l.planes() {
		i, j := pair[0], pair[1]
		plane := LossPlane{I: i, J: j, X: l.axis(i), Y: l.axis(j),
			XX: l.Scale * l.Geometry.Covariance(i, i), XY: l.Scale * l.Geometry.Covariance(i, j), YY: l.Scale * l.Geometry.Covariance(j, j)}
		for _, y := range plane.Y {
			var row []LossPoint
			for _, x := range plane.X {
				p, err := l.At(ctx, e, coordinates(i, x, j, y))
				if err != nil {
					return nil, nil, err
				}
				row = append(row, p)
			}
			plane.Points = append(plane.Points, row)
		}
		planes = append(planes, plane)
	}
	return lines, planes, nil
}

// coordinates are those of a point on the plane of directions i and j.
func coordinates(i int, x float64, j int, y float64) []float64 {
	at := make([]float64, max(i, j)+1)
	at[i] += x
	at[j] += y
	return at
}

// key names a point: zeros at its end do not matter.
func key(at []float64) string {
	for len(at) > 0 && at[len(at)-1] == 0 {
		at = at[:len(at)-1]
	}
	return fmt.Sprint(at)
}

// At returns the loss at a point, which is run once only. Without coordinates it
// is θ_SWA.
func (l *Landscape) At(ctx context.Context, e *Engine, at []float64) (LossPoint, error) {
	k := key(at)
	if p, ok := l.known[k]; ok {
		p.At = at // may have other zeros at its end
		return p, nil
	}
	p, err := l.run(ctx, e, at)
	if err != nil {
		return p, fmt.Errorf("%s: at the distances %v from SWA: %w", l.Network.Posterior.Path, at, err)
	}
	if l.known == nil {
		l.known = map[string]LossPoint{}
	}
	l.known[k] = p
	return p, nil
}

func (l *Landscape) run(ctx context.Context, e *Engine, at []float64) (p LossPoint, err error) {
	parameters, err := l.weights(ctx, at)
	if err != nil {
		return p, err
	}
	fresh, err := e.Recompute(ctx, l.Network, parameters, l.BatchNorm)
	if err != nil {
		return p, err
	}
	model, err := l.Network.Model(parameters, weights.Slice(fresh.Statistics))
	if err != nil {
		return p, err
	}
	sums := &Sums{}
	if err := e.Predict(ctx, "the network", model, l.Data, 1, sums); err != nil {
		return p, err
	}
	predictions, err := calibrate.NewPredictions(sums.Mean(), sums.Classes, l.Data.Labels())
	if err != nil {
		return p, err
	}
	p = LossPoint{At: at, NLL: calibrate.NegLogLikelihood(predictions), Accuracy: calibrate.Accuracy(predictions)}
	if l.Decay > 0 {
		var norm float64
		norm, err = squaredNorm(parameters)
		p.Penalty = l.Decay / 2 * norm
	}
	return p, err
}

// weights computes the weights at a point, unless they are too large to hold.
func (l *Landscape) weights(ctx context.Context, at []float64) (weights.Vector, error) {
	point := l.Geometry.Point(ctx, at)
	if 4*point.Len() > groupBytes {
		return point, nil
	}
	if l.drawn == nil {
		l.drawn = make([]float32, point.Len())
	}
	return weights.Slice(l.drawn), point.ReadAt(l.drawn, 0)
}

func squaredNorm(v weights.Vector) (sum float64, err error) {
	block := make([]float32, 1<<14)
	for off := int64(0); off < v.Len(); off += int64(len(block)) {
		block = block[:min(int64(len(block)), v.Len()-off)]
		if err := v.ReadAt(block, off); err != nil {
			return 0, err
		}
		for _, x := range block {
			sum += float64(x) * float64(x)
		}
	}
	return sum, nil
}
