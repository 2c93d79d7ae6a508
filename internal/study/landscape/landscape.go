// Package landscape computes the loss around θ_SWA, on lines and planes along the directions in which SWAG's low-rank
// covariance is largest. See section 4 of the paper, figure "geometry".
package landscape

import (
	"context"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag/geometry"
	"github.com/swagwrap/swagwrap/weights"
)

// UsualExtent shows the region that nearly all members lie in.
const UsualExtent = 2.5

// Landscape describes the points and the data for computing the loss. Batch-norm statistics are recomputed at each
// point, from the same images.
//
// Distances are Euclidean in weight space. A posterior standard deviation along v_i is √(α·v_iᵀΣv_i), including the
// diagonal part.
type Landscape struct {
	Network   *infer.Network
	Geometry  *geometry.Geometry
	BatchNorm batchnorm.Training
	Data      dataset.Dataset

	Scale  float64 // α of the standard deviations
	Grid   int     // points on a line, and on each side of a plane; odd, at least 3
	Extent float64 // length of lines to each side, in posterior standard deviations; see UsualExtent
	// Decay is λ of the weight decay in training. The paper's loss is NLL + λ/2·‖θ‖², the posterior density with a
	// Gaussian prior. ‖θ‖ is the norm of the weights in the posterior.
	Decay float64

	known map[string]Point
	drawn []float32 // buffer for the weights at a point, if they fit
}

// Point is the loss at a point of weight space.
type Point struct {
	At      []float64 // distances from θ_SWA along v_1, v_2 …; the others are 0
	Penalty float64   // λ/2·‖θ‖²
	*task.Evaluation
}

// NLL returns the mean per image, in nats.
func (p Point) NLL() float64 { return p.Value("nll") }

// Loss returns NLL + λ/2·‖θ‖².
func (p Point) Loss() float64 { return p.NLL() + p.Penalty }

// Line is the loss along direction I, counted from 0.
type Line struct {
	I         int
	Deviation float64 // a posterior standard deviation
	Points    []Point
}

// Plane is the loss on the plane of directions I and J.
type Plane struct {
	I, J int
	X, Y []float64 // distances along them
	// Covariance of members projected on the plane, α·v_iᵀΣv_j.
	XX, XY, YY float64
	Points     [][]Point // Points[k][n] is at X[n], Y[k]
}

// mostLines is the number of directions in the paper's planes.
const mostLines = 4

// planes returns the paper's planes: directions 1 and 2, and directions 3 and 4.
func (l *Landscape) planes() (out [][2]int) {
	for i := 0; i+1 < l.lines(); i += 2 {
		out = append(out, [2]int{i, i + 1})
	}
	return out
}

// Deviation returns the posterior standard deviation along direction i.
func (l *Landscape) Deviation(i int) float64 {
	return math.Sqrt(l.Scale * l.Geometry.Covariance(i, i))
}

// axis returns the distances along direction i: evenly spaced, with 0 in the middle.
func (l *Landscape) axis(i int) []float64 {
	out := make([]float64, l.Grid)
	for k := range out {
		out[k] = l.Extent * l.Deviation(i) * float64(2*k-(l.Grid-1)) / float64(l.Grid-1)
	}
	return out
}

// lines returns the number of directions with a line.
func (l *Landscape) lines() int { return min(mostLines, l.Geometry.Directions()) }

// Points returns the number of networks that Run runs. The middle lines of a plane are also lines of its directions,
// and all lines contain θ_SWA.
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

// Result is the loss on all lines and planes.
type Result struct {
	*Landscape
	Lines      []Line
	Planes     []Plane
	Statistics study.BatchNorm
	Runtime    string // the version of ONNX Runtime
}

// Run computes the loss on the lines and planes.
func (l *Landscape) Run(ctx context.Context, run infer.Run) (*Result, error) {
	r := &Result{Landscape: l, Runtime: run.About()}
	for i := range l.lines() {
		line := Line{I: i, Deviation: l.Deviation(i)}
		for _, t := range l.axis(i) {
			p, err := l.At(ctx, run, coordinates(i, t, 0, 0))
			if err != nil {
				return nil, err
			}
			line.Points = append(line.Points, p)
		}
		r.Lines = append(r.Lines, line)
	}
	for _, pair := range l.planes() {
		i, j := pair[0], pair[1]
		plane := Plane{I: i, J: j, X: l.axis(i), Y: l.axis(j),
			XX: l.Scale * l.Geometry.Covariance(i, i), XY: l.Scale * l.Geometry.Covariance(i, j), YY: l.Scale * l.Geometry.Covariance(j, j)}
		for _, y := range plane.Y {
			var row []Point
			for _, x := range plane.X {
				p, err := l.At(ctx, run, coordinates(i, x, j, y))
				if err != nil {
					return nil, err
				}
				row = append(row, p)
			}
			plane.Points = append(plane.Points, row)
		}
		r.Planes = append(r.Planes, plane)
	}
	return r, nil
}

// coordinates returns the coordinates of a point on the plane of directions i and j.
func coordinates(i int, x float64, j int, y float64) []float64 {
	at := make([]float64, max(i, j)+1)
	at[i] += x
	at[j] += y
	return at
}

// key returns a unique key for a point. Trailing zeros do not matter.
func key(at []float64) string {
	for len(at) > 0 && at[len(at)-1] == 0 {
		at = at[:len(at)-1]
	}
	return fmt.Sprint(at)
}

// At returns the loss at a point. It runs each point only once. Without coordinates the point is θ_SWA.
func (l *Landscape) At(ctx context.Context, run infer.Run, at []float64) (Point, error) {
	k := key(at)
	if p, ok := l.known[k]; ok {
		p.At = at // the known point may have another number of zeros at the end of its coordinates
		return p, nil
	}
	p, err := l.run(ctx, run, at)
	if err != nil {
		return p, fmt.Errorf("%s: at the distances %v from SWA: %w", l.Network.Posterior.Path, at, err)
	}
	if l.known == nil {
		l.known = map[string]Point{}
	}
	l.known[k] = p
	return p, nil
}

func (l *Landscape) run(ctx context.Context, run infer.Run, at []float64) (p Point, err error) {
	parameters, err := l.weights(ctx, run, at)
	if err != nil {
		return p, err
	}
	fresh, err := batchnorm.Recompute(ctx, run, l.Network, parameters, l.BatchNorm)
	if err != nil {
		return p, err
	}
	model, err := l.Network.Model("the network", parameters, weights.Slice(fresh.Statistics))
	if err != nil {
		return p, err
	}
	sums := &infer.Sums{}
	if err := run.Predict(ctx, model, l.Data, sums); err != nil {
		return p, err
	}
	evaluation, err := sums.Evaluate(l.Data.Labels(), task.EvaluateOptions{MainOnly: true})
	if err != nil {
		return p, err
	}
	evaluation.Losses = nil // one per image, at each point
	p = Point{At: at, Evaluation: evaluation}
	if l.Decay > 0 {
		var norm float64
		norm, err = squaredNorm(parameters)
		p.Penalty = l.Decay / 2 * norm
	}
	return p, err
}

// weights computes the weights at a point, unless they are too large to hold.
func (l *Landscape) weights(ctx context.Context, run infer.Run, at []float64) (weights.Vector, error) {
	point := l.Geometry.Point(ctx, at)
	if 4*point.Len() > run.Memory().Weights() {
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
