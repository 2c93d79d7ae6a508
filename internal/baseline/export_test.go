package baseline

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Keys that no other package needs.
const (
	SGDEnsemble = "sgd-ensemble"
	Isotropic   = "isotropic"
	DeepSGD     = "deep-sgd"
	DeepSWA     = "deep-swa"
)

var (
	Dropout     = dropout.Key
	Draws       = draws
	HeadWeights = headWeights
	Lowest      = lowest
)

// LastLayer is the open last layer of the first run's SWA.
type LastLayer struct {
	w *work
	*lastLayer
}

// OpenLastLayer opens it.
func OpenLastLayer(ctx context.Context, run infer.Run, in *Inputs) (*LastLayer, error) {
	w := newWork(run, in, Targets{})
	swa, err := w.swa(ctx, 0)
	if err != nil {
		return nil, err
	}
	l, err := w.openLastLayer(ctx, swa)
	return &LastLayer{w, l}, err
}

// Mean returns the layer's weights, scores×columns, with the bias in the last column.
func (l *LastLayer) Mean() *mat.Dense { return l.mean }

// Compare compares the outputs of the layer with those of the network, for the first n examples.
func (l *LastLayer) Compare(ctx context.Context, d dataset.Dataset, n int) error {
	batches := [][]int{dataset.Order{Limit: n}.Indices(d.Len())}
	return l.w.eachBatch(ctx, l.lastLayer, d, batches, func(int, *mat.Dense) error { return nil })
}

// Curvature returns the layer's curvature on the training images.
func (l *LastLayer) Curvature(ctx context.Context) (*KFAC, error) {
	return l.w.curvature(ctx, l.lastLayer)
}

// Average returns the sums of some members for all examples of a data set.
func (l *LastLayer) Average(ctx context.Context, k *KFAC, d dataset.Dataset, tau float64, members int) (*infer.Sums, error) {
	set, err := l.w.features(ctx, l.lastLayer, d)
	if err != nil {
		return nil, err
	}
	sums := &infer.Sums{}
	return sums, k.add(ctx, set, dataset.Order{}.Indices(d.Len()), tau, l.w.Seed, members/2, sums)
}

// add adds pairs of draws of one group.
func (k *kfac) add(ctx context.Context, set *featureSet, rows []int, tau float64, seed uint64, pairs int, sums *infer.Sums) error {
	s, err := k.scatter(ctx, set, rows, tau, seed, max(pairs, drawPool))
	if err != nil {
		return err
	}
	return k.average(ctx, set, s, rows, 0, pairs, true, sums)
}

// KFAC is a Gaussian over the weights of a last layer.
type KFAC = kfac

// Covariance returns the covariance of the weights in row-major order, scores×columns.
func (k *kfac) Covariance(tau float64) (*mat.Dense, error) {
	u, v, err := k.at(tau)
	if err != nil {
		return nil, err
	}
	var scores mat.SymDense
	if err := u.InverseTo(&scores); err != nil {
		return nil, err
	}
	var out mat.Dense
	out.Kronecker(&scores, v)
	return &out, nil
}

// Equal returns the predictions of one pair of draws for equal images, with one weight and one score.
func Equal(ctx context.Context, images int, t task.Task) (*infer.Sums, error) {
	one := mat.NewSymDense(1, []float64{1})
	k := &kfac{task: t.(task.Curved), mean: mat.NewDense(1, 1, nil), images: 1, a: one, g: one}
	set := &featureSet{mean: make([]float32, images)}
	for range images {
		set.features = append(set.features, 1)
		set.mean[len(set.features)-1] = 1
	}
	sums := &infer.Sums{}
	return sums, k.add(ctx, set, dataset.Order{Limit: images}.Indices(images), 1, 1, 1, sums)
}

// SetMost sets the size above which temperatures of texts are fitted to a sample, until restore is called.
func SetMost(bytes int) (restore func()) {
	was := most
	most = bytes
	return func() { most = was }
}
