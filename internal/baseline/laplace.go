package baseline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// laplace is the Kronecker-factored Laplace approximation of the last layer at the SWA weights. The layers below it
// do not change, so it needs only the last layer's features, and no gradients. See Ritter, Botev and Barber, "A
// scalable Laplace approximation for neural networks", ICLR 2018, and Daxberger et al., "Laplace redux", NeurIPS
// 2021.
var laplace = &Method{
	Key:        Laplace,
	Outcomes:   true,
	Features:   true,
	Name:       func(in *Inputs) string { return in.centre() + "-Laplace, last layer" },
	OneNetwork: true,
	Fits:       true, // the fit uses features
	Needs: func(in *Inputs) string {
		if in.BatchNorm.Data == nil {
			return "training data (" + setting.BNData.String() + ")"
		}
		return ""
	},
	Cost: func(in *Inputs, c Cost) int64 { return c.Data + int64(in.BatchNorm.Visited()) },
	Run:  func(ctx context.Context, w *work) error { return w.laplace(ctx) },
}

func (w *work) laplace(ctx context.Context) error {
	if w.shard != nil {
		return nil
	}
	swa, err := w.swa(ctx, 0)
	if err != nil {
		return err
	}
	layer, err := w.openLastLayer(ctx, swa)
	if err != nil {
		return err
	}
	defer layer.Close()
	k, err := w.curvature(ctx, layer)
	if err != nil {
		return err
	}
	p := w.random(w.own())
	var sets []*featureSet
	for _, d := range w.targets.all() {
		set, err := w.features(ctx, layer, d)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	if err := w.choosePrior(ctx, p, k, sets); err != nil {
		return err
	}
	return w.yield(p)
}

// TauNote explains the number in the name of Laplace and its convention. The covariance equals that of laplace-torch
// 0.3 (KronDecomposed) with damping, up to rounding. Its default, (N·G⊗A + τ·I)⁻¹, is wider at the same τ.
const TauNote = "τ: precision of the prior N(0, I/τ) of the last layer's weights, prior_precision in Laplace Redux (Daxberger et al. " +
	"2021); " +
	"covariance (√N·G + √τ·I)⁻¹ ⊗ (√N·A + √τ·I)⁻¹, as Ritter et al. 2018 damp it"

// kfac is a matrix normal distribution over the weights W of the last layer, scores×columns,
//
//	MN(W_SWA, U, V)    U = (√N·G + √τ·I)⁻¹    V = (√N·A + √τ·I)⁻¹
//
// with covariance U⊗V: equation (9) of Ritter et al. Here A = E[ããᵀ] for the features ã, which include a 1 for the
// bias. G is the expected Hessian of the loss in the scores. For a softmax it is E[diag(p) − ppᵀ], and it depends on
// no label. N is the number of training images and τ the precision of the prior.
type kfac struct {
	task   task.Curved
	mean   *mat.Dense // W_SWA
	images float64    // N
	a, g   *mat.SymDense
}

// at returns the Cholesky factor of U⁻¹, and V, at prior precision tau.
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

// draws returns n draws from N(0, U) as rows. Each is one half of an antithetic pair. The normal variates are the
// same at every tau.
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

// curvature computes A and G from the training images.
func (w *work) curvature(ctx context.Context, l *lastLayer) (*kfac, error) {
	train := w.BatchNorm
	size, err := w.run.TrainingBatch(l.Session)
	if err != nil {
		return nil, err
	}
	scores, columns := l.mean.Dims()
	a, g := mat.NewDense(columns, columns, nil), mat.NewDense(scores, scores, nil)
	seen := 0
	batches := slices.Collect(train.Order.Batches(train.Data.Len(), size))
	err = w.eachBatch(ctx, l, train.Data, batches, func(_ int, x *mat.Dense) error {
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

// featureSet holds the inputs of the last layer for a data set, and its scores at the mean weights.
type featureSet struct {
	data     dataset.Dataset
	features []float32 // n×columns
	mean     []float32 // n×scores
}

func (w *work) features(ctx context.Context, l *lastLayer, data dataset.Dataset) (*featureSet, error) {
	size, err := w.run.TrainingBatch(l.Session)
	if err != nil {
		return nil, err
	}
	scores, columns := l.mean.Dims()
	set := &featureSet{data: data, features: make([]float32, 0, data.Len()*columns), mean: make([]float32, 0, data.Len()*scores)}
	batches := slices.Collect(dataset.Order{}.Batches(data.Len(), size))
	return set, w.eachBatch(ctx, l, data, batches, func(_ int, x *mat.Dense) error {
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

// Draws are cheap once the features are known. 500 per image make their noise negligible. Each group has laplacePairs
// pairs per image, from a pool of drawPool draws. A pair is a draw and its negative, which cancels the odd part of
// the noise.
const (
	laplaceGroups = 10
	laplacePairs  = 25
	drawPool      = 500
	tuningPairs   = 5 // the same pairs at every precision
)

// scatter is the distribution of the scores of some images at one prior precision.
type scatter struct {
	rows   []int
	spread []float64  // √(ãᵀVã) of each row
	drawn  *mat.Dense // draws from N(0, U), with a pool for each group
	pool   int
}

// scatter computes the distribution of scores at τ. Scores are linear in W, so those of an image are N(W_SWA·ã,
// (ãᵀVã)·U). Drawing scores instead of W gives the same averages in a thousandth of the time (the local
// reparameterisation of Kingma et al. 2015). It fails if ctx ends.
func (k *kfac) scatter(ctx context.Context, set *featureSet, rows []int, tau float64, seed uint64, pool int) (*scatter, error) {
	_, columns := k.mean.Dims()
	u, v, err := k.at(tau)
	if err != nil {
		return nil, err
	}
	out := &scatter{rows: rows, spread: make([]float64, len(rows)), pool: pool}
	if out.drawn, err = draws(&u, seed, laplaceGroups*pool); err != nil {
		return nil, err
	}
	return out, eachPart(ctx, len(rows), func(from, to int) {
		x := mat.NewDense(to-from, columns, nil)
		for i, r := range rows[from:to] {
			row := x.RawRowView(i)
			for j, f := range set.features[r*columns:][:columns] {
				row[j] = float64(f)
			}
		}
		var xv mat.Dense
		xv.Mul(x, v)
		for i := range to - from {
			out.spread[from+i] = math.Sqrt(max(0, mat.Dot(xv.RowView(i), x.RowView(i))))
		}
	})
}

// eachPart calls f for ranges of n rows in parallel.
func eachPart(ctx context.Context, n int, f func(from, to int)) error {
	const chunk = 256
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < n; from += chunk {
		g.Go(weights.Guarded(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			f(from, min(from+chunk, n))
			return nil
		}))
	}
	return g.Wait()
}

// average adds pairs of draws of a group to sums, with their entropies if wanted. The places of the images of s in
// sums are into. It fails if ctx ends.
// Each image starts at another place in the pool, so that one unlucky draw does not affect all images.
func (k *kfac) average(ctx context.Context, set *featureSet, s *scatter, into []int, group, pairs int, entropies bool,
	sums *infer.Sums) error {
	scores, _ := k.mean.Dims()
	sums.Init("Laplace", len(s.rows), k.task)
	sums.Members += 2 * pairs
	sums.Weight += float64(2 * pairs)
	return eachPart(ctx, len(s.rows), func(from, to int) {
		p, logits := make([]float64, k.task.About().Width), make([]float64, scores)
		for i := from; i < to; i++ {
			r := s.rows[i]
			for m := range pairs {
				draw := s.drawn.RawRowView(group*s.pool + (r*poolStride+m)%s.pool)
				for _, spread := range [2]float64{s.spread[i], -s.spread[i]} {
					for c, f := range set.mean[r*scores:][:scores] {
						logits[c] = float64(f) + spread*draw[c]
					}
					k.task.Link(p, logits)
					entropy := 0.0
					if entropies {
						entropy = calibrate.Entropy(p)
					}
					sums.Add(into[i], p, entropy, 1)
				}
			}
		}
	})
}

// poolStride is the distance between the starts of two images in the pool, a prime.
const poolStride = 181

// The prior precision is chosen among powers of ten, and then also among the two half powers next to the best one.
const (
	minPriorPower = -3
	maxPriorPower = 5
)

// tuningRows bounds the number of images for choosing the precision. They are as good a guide as all images.
const tuningRows = 2000

// tune returns the precision with the lowest NLL on the given rows, and whether it is at the end of the grid.
func (k *kfac) tune(ctx context.Context, set *featureSet, rows []int, seed uint64) (best float64, atBound bool, err error) {
	rows = rows[:min(len(rows), tuningRows)]
	least, power := math.Inf(1), 0.0
	try := func(at float64) error {
		s, err := k.scatter(ctx, set, rows, math.Pow(10, at), seed, drawPool)
		if err != nil {
			return err
		}
		sums := &infer.Sums{}
		for g := range laplaceGroups {
			if err := k.average(ctx, set, s, dataset.Order{}.Indices(len(rows)), g, tuningPairs, false, sums); err != nil {
				return err
			}
		}
		losses, err := task.Losses(k.task, sums.Mean(), set.data.Labels().Pick(rows), task.EvaluateOptions{})
		if err != nil {
			return err
		}
		if nll := stat.Mean(losses[0].Values, nil); nll < least {
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

// choosePrior fits the precision on the validation data and adds the predictions to p. Without validation data it
// fits on each half of the data for the other half.
func (w *work) choosePrior(ctx context.Context, p *Predicted, k *kfac, sets []*featureSet) error {
	last := sets[len(sets)-1]
	labels, n := last.data.Labels(), last.data.Len()
	switch {
	case w.targets.Validation == nil && len(sets) > 1 || labels.None():
		return &unfit{err: errors.New("its prior precision must be fitted on validation data (" + setting.Val.String() + ")"), plain: true}
	case n < 2:
		return &unfit{err: errors.New("its prior precision cannot be fitted on one example")}
	}
	scatters := make([][]*scatter, len(sets))
	var taus []string
	var err error
	fit := func(rows []int) (float64, error) { return w.prior(ctx, p, k, last, rows) }
	use := func(tau float64, rows []int) {
		taus = append(taus, fmt.Sprintf("%.2g", tau))
		for i, set := range sets[:len(p.sums())] {
			if w.targets.Validation != nil {
				rows = dataset.Order{}.Indices(set.data.Len())
			}
			s, failed := k.scatter(ctx, set, rows, tau, w.Seed, drawPool)
			scatters[i], err = append(scatters[i], s), cmp.Or(err, failed)
		}
	}
	folds := calibrate.Folds(n, 2, w.Seed)
	if w.targets.Validation == nil {
		folds = calibrate.UnitFolds(w.targets.Units, n, 2, w.Seed)
		if err := calibrate.CrossFit(folds, fit, use); err != nil {
			return err
		}
	} else {
		tau, err := fit(slices.Concat(folds...))
		if err != nil {
			return err
		}
		use(tau, nil)
	}
	if err != nil {
		return err
	}
	p.Name = fmt.Sprintf("%s-Laplace (τ = %s)", w.centre(), strings.Join(taus, ", "))
	for g := range laplaceGroups {
		part := w.result(p.Validation != nil)
		for i, sums := range part.sums() {
			sums.Init("Laplace", sets[i].data.Len(), k.task)
			for _, s := range scatters[i] {
				if err := k.average(ctx, sets[i], s, s.rows, g, laplacePairs, w.targets.Entropies, sums); err != nil {
					return err
				}
			}
			sums.Members, sums.Weight, sums.Evidence = 2*laplacePairs, 2*laplacePairs, nil
		}
		part.Members = 2 * laplacePairs
		p.Take(part, g)
	}
	return nil
}

// prior returns the precision for some rows. It adds a note if the rows do not determine it.
func (w *work) prior(ctx context.Context, p *Predicted, k *kfac, set *featureSet, rows []int) (float64, error) {
	tau, atBound, err := k.tune(ctx, set, rows, w.Seed)
	if atBound && len(p.Notes) == 0 {
		p.Notes = append(p.Notes, errors.New("the prior precision is at the end of its grid, because the data does not determine it"))
	}
	return tau, err
}
