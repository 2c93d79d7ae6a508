package baseline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// laplace is the Kronecker-factored Laplace approximation (Ritter, Botev and
// Barber, "A scalable Laplace approximation for neural networks", ICLR 2018) of
// the last layer (Daxberger et al., "Laplace redux", NeurIPS 2021) about the SWA
// weights. All below the layer stays as it is, so the layer's features are
// enough, and no gradients are needed.
var laplace = &Method{
	Key:  "swa-laplace",
	Name: called("SWA-Laplace, last layer"),
	Needs: func(in *Inputs) string {
		if in.BatchNorm.Data == nil {
			return "training images"
		}
		return ""
	},
	Cost: func(in *Inputs, c Cost) int64 { return c.Data + int64(in.BatchNorm.Visited()) },
	Run:  (*work).laplace,
}

func (w *work) laplace() error {
	swa, err := w.swa(0)
	if err != nil {
		return err
	}
	layer, err := w.openLastLayer(swa)
	if err != nil {
		return err
	}
	defer layer.Close()
	k, err := w.curvature(layer)
	if err != nil {
		return err
	}
	p := w.predicted()
	var sets []*featureSet
	for _, d := range w.targets.all() {
		set, err := w.features(layer, d)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	p.Members = w.Members
	if err := w.choosePrior(p, k, sets); err != nil {
		return err
	}
	return w.yield(p)
}

// kfac is a matrix normal over the weights W of the last layer, scores×columns,
//
//	MN(W_SWA, U, V)    U = (√N·G + √τ·I)⁻¹    V = (√N·A + √τ·I)⁻¹
//
// whose covariance is the Kronecker product of U and V: equation (9) of Ritter et
// al., with A = E[ããᵀ] of the features ã, the bias's 1 among them, and G the
// expected Hessian of the loss in the scores, which for a softmax is E[diag(p) −
// ppᵀ] and depends on no label. N is the number of training images and τ the
// precision of the prior.
type kfac struct {
	task   task.Curved
	mean   *mat.Dense // W_SWA
	images float64    // N
	a, g   *mat.SymDense
}

// at returns U⁻¹ by its Cholesky factor, and V, at prior precision tau.
func (k *kfac) at(tau float64) (u mat.Cholesky, v *mat.SymDense, err error) {
	damped := func(m *mat.SymDense) *mat.SymDense {
		out := mat.NewSymDense(m.SymmetricDim(), nil)
		out.ScaleSym(math.Sqrt(k.images), m)
		for i := range m.SymmetricDim() {
			out.SetSym(i, i, out.At(i, i)+math.Sqrt(tau))
		}
		return out
	}
	var inner mat.Cholesky
	if !u.Factorize(damped(k.g)) || !inner.Factorize(damped(k.a)) {
		return u, nil, fmt.Errorf("the curvature of the last layer is not positive at prior precision %g", tau)
	}
	v = &mat.SymDense{}
	if err := inner.InverseTo(v); err != nil {
		return u, nil, fmt.Errorf("the curvature of the last layer at prior precision %g: %w", tau, err)
	}
	return u, v, nil
}

// draws returns n draws from N(0, U), one a row. The normal variates are the same
// at every tau.
func draws(u *mat.Cholesky, seed uint64, n int) (*mat.Dense, error) {
	var l mat.TriDense
	u.LTo(&l)
	scores := u.SymmetricDim()
	out := mat.NewDense(n, scores, nil)
	z := mat.NewVecDense(scores, nil)
	for k := range n {
		rng := rand.New(rand.NewPCG(seed^laplaceStream, uint64(k)))
		for i := range scores {
			z.SetVec(i, rng.NormFloat64())
		}
		x := mat.NewVecDense(scores, out.RawRowView(k))
		if err := x.SolveVec(l.T(), z); err != nil { // Lᵀx = z has the covariance (LLᵀ)⁻¹
			return nil, err
		}
	}
	return out, nil
}

// curvature runs the training images through the network.
func (w *work) curvature(l *lastLayer) (*kfac, error) {
	train := w.BatchNorm
	size, err := w.engine.TrainingBatch(l.Session)
	if err != nil {
		return nil, err
	}
	scores, columns := l.mean.Dims()
	a, g := mat.NewDense(columns, columns, nil), mat.NewDense(scores, scores, nil)
	seen := 0
	batches := slices.Collect(train.Order.Batches(train.Data.Len(), size))
	err = w.eachBatch(l, train.Data, batches, func(_ int, x *mat.Dense) error {
		n, _ := x.Dims()
		seen += n
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, x.RawMatrix(), x.RawMatrix(), 1, a.RawMatrix())
		var logits mat.Dense
		logits.Mul(x, l.mean.T())
		l.task.AddCurvature(g, &logits)
		return nil
	})
	if err != nil {
		return nil, err
	}
	mean := func(sum *mat.Dense) *mat.SymDense {
		n, _ := sum.Dims()
		m := mat.NewSymDense(n, nil)
		for i := range n {
			for j := i; j < n; j++ {
				m.SetSym(i, j, sum.At(i, j)/float64(seen))
			}
		}
		return m
	}
	return &kfac{task: l.task, mean: l.mean, images: float64(train.Data.Len()), a: mean(a), g: mean(g)}, nil
}

// featureSet is what the last layer is given of a data set, and its scores under
// the mean.
type featureSet struct {
	data     dataset.Dataset
	features []float32 // n×columns
	mean     []float32 // n×scores
}

// features runs a data set through the network.
func (w *work) features(l *lastLayer, data dataset.Dataset) (*featureSet, error) {
	size, err := w.engine.TrainingBatch(l.Session)
	if err != nil {
		return nil, err
	}
	scores, columns := l.mean.Dims()
	set := &featureSet{data: data, features: make([]float32, 0, data.Len()*columns), mean: make([]float32, 0, data.Len()*scores)}
	batches := slices.Collect(dataset.Order{}.Batches(data.Len(), size))
	return set, w.eachBatch(l, data, batches, func(_ int, x *mat.Dense) error {
		var mean mat.Dense
		mean.Mul(x, l.mean.T())
		for _, v := range x.RawMatrix().Data {
			set.features = append(set.features, float32(v))
		}
		for _, v := range mean.RawMatrix().Data {
			set.mean = append(set.mean, float32(v))
		}
		return nil
	})
}

// drawPool is how many draws from N(0, U) there are at least.
const drawPool = 1000

// average adds S members at prior precision tau to sums, whose row r is of
// example rows[r]. It fails if ctx ends.
//
// Scores are linear in W, so those of an image are N(W_SWA·ã, (ãᵀVã)·U): a member
// draws from that instead of W itself, which gives the same averages and takes a
// thousandth of the time (the local reparameterisation of Kingma et al. 2015). The
// draws from N(0, U) come from a pool, each image's from another place in it:
// with the same draws for all images one unlucky draw would affect them all.
func (k *kfac) average(ctx context.Context, set *featureSet, rows []int, tau float64, seed uint64, members int, sums *infer.Sums) error {
	scores, columns := k.mean.Dims()
	sums.Init("Laplace", len(rows), k.task)
	u, v, err := k.at(tau)
	if err != nil {
		return err
	}
	pool := max(members, drawPool)
	drawn, err := draws(&u, seed, pool)
	if err != nil {
		return err
	}
	const chunk = 256 // rows
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < len(rows); from += chunk {
		part := rows[from:min(from+chunk, len(rows))]
		g.Go(weights.Guarded(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			x := mat.NewDense(len(part), columns, nil)
			for i, r := range part {
				row := x.RawRowView(i)
				for j, f := range set.features[r*columns:][:columns] {
					row[j] = float64(f)
				}
			}
			var xv mat.Dense
			xv.Mul(x, v)
			p, logits := make([]float64, k.task.Width()), make([]float64, scores)
			for i, r := range part {
				spread := math.Sqrt(max(0, mat.Dot(xv.RowView(i), x.RowView(i))))
				for m := range members {
					draw := drawn.RawRowView((r*members + m) % pool)
					for c, f := range set.mean[r*scores:][:scores] {
						logits[c] = float64(f) + spread*draw[c]
					}
					k.task.Link(p, logits)
					sums.Add(from+i, p, calibrate.Entropy(p), 1)
				}
			}
			return nil
		}))
	}
	sums.Members += members
	sums.Weight += float64(members)
	return g.Wait()
}

// The prior's precision is chosen among powers of ten, and then from the half
// powers beside the best one.
const (
	minPriorPower = -3
	maxPriorPower = 5
)

// tuningRows bounds the images that the precision is chosen on: their NLL is as
// good a guide as that of all.
const tuningRows = 2000

// tune returns the precision with the least NLL on the given rows.
func (k *kfac) tune(ctx context.Context, set *featureSet, rows []int, seed uint64, members int) (best float64, atBound bool, err error) {
	rows = rows[:min(len(rows), tuningRows)]
	least, power := math.Inf(1), 0.0
	try := func(at float64) error {
		sums := &infer.Sums{}
		if err := k.average(ctx, set, rows, math.Pow(10, at), seed, members, sums); err != nil {
			return err
		}
		labels := make([]int, len(rows))
		for r, row := range rows {
			labels[r] = set.data.Labels()[row]
		}
		loss, err := k.task.Evaluate(sums.Mean(), labels, task.EvaluateOptions{MainOnly: true})
		if err != nil {
			return err
		}
		if nll := stat.Mean(loss.Losses[0], nil); nll < least {
			least, power = nll, at
		}
		return nil
	}
	for at := minPriorPower; at <= maxPriorPower; at++ {
		if err := try(float64(at)); err != nil {
			return 0, false, err
		}
	}
	atBound = power == minPriorPower || power == maxPriorPower
	for _, at := range []float64{power - 0.5, power + 0.5} {
		if at > minPriorPower && at < maxPriorPower {
			if err := try(at); err != nil {
				return 0, false, err
			}
		}
	}
	return math.Pow(10, power), atBound, nil
}

// choosePrior fits the precision on the validation data, or on each half of the
// data for the other, and averages the members.
func (w *work) choosePrior(p *Predicted, k *kfac, sets []*featureSet) error {
	last := sets[len(sets)-1]
	labels, n := last.data.Labels(), last.data.Len()
	switch {
	case w.targets.Validation == nil && len(sets) > 1 || labels == nil:
		return &unfit{err: errors.New("its prior precision is fitted on validation data (--val)"), plain: true}
	case n < 2:
		return &unfit{err: errors.New("its prior precision cannot be fitted on one image")}
	}
	for _, label := range labels {
		if err := k.task.CheckLabel(label); err != nil {
			return err
		}
	}
	order := rand.New(rand.NewPCG(w.Seed^laplaceStream, math.MaxUint64)).Perm(n)
	if w.targets.Validation == nil {
		return w.crossPrior(p, k, last, order)
	}
	tau, err := w.prior(p, k, last, order)
	if err != nil {
		return err
	}
	p.Name = fmt.Sprintf("SWA-Laplace (τ = %.2g)", tau)
	for i, sums := range p.sums() {
		if err := k.average(w.ctx, sets[i], dataset.Order{}.Indices(sets[i].data.Len()), tau, w.Seed, w.Members, sums); err != nil {
			return err
		}
	}
	return nil
}

// prior is the precision for some rows, with a note where they do not determine it.
func (w *work) prior(p *Predicted, k *kfac, set *featureSet, rows []int) (float64, error) {
	tau, atBound, err := k.tune(w.ctx, set, rows, w.Seed, w.Members)
	if atBound && len(p.Notes) == 0 {
		p.Notes = append(p.Notes, errors.New("the prior precision is at the end of its grid: the data that it is fitted on does not determine it"))
	}
	return tau, err
}

// crossPrior predicts each half of the data with the precision that is best for
// the other.
func (w *work) crossPrior(p *Predicted, k *kfac, set *featureSet, order []int) error {
	sums := p.Data[0]
	sums.Init("Laplace", len(order), k.task)
	var taus []float64
	halves := [][]int{order[:len(order)/2], order[len(order)/2:]}
	for i, rows := range halves {
		tau, err := w.prior(p, k, set, halves[1-i])
		if err != nil {
			return err
		}
		taus = append(taus, tau)
		half := &infer.Sums{}
		if err := k.average(w.ctx, set, rows, tau, w.Seed, w.Members, half); err != nil {
			return err
		}
		for r, row := range rows {
			width := k.task.Width()
			copy(sums.Outcome[row*width:][:width], half.Outcome[r*width:])
			sums.Entropy[row] = half.Entropy[r]
		}
		sums.Members, sums.Weight = half.Members, half.Weight
	}
	p.Name = fmt.Sprintf("SWA-Laplace (τ = %.2g, %.2g)", taus[0], taus[1])
	return nil
}
