package swag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/swagwrap/swagwrap/weights"
)

// DefaultRank is the paper's K, the number of deviation columns kept
// (section 5, "we use K = 20").
const DefaultRank = 20

// defaultBlock is the number of weights a worker holds at a time: with 20
// deviation columns it keeps 1.6 MB in flight, which stays in a core's cache.
const defaultBlock = 1 << 14

// Checkpoint is one SGD iterate.
type Checkpoint struct {
	Path   string         `json:"path"`
	SHA256 string         `json:"sha256"` // of the file, in hex
	Theta  weights.Vector `json:"-"`      // its parameters
}

// Iterates is what a posterior is fitted to.
type Iterates struct {
	Layout      *weights.Layout
	Checkpoints []Checkpoint // in training order
	// Theta0 is the pre-trained network the iterates started from. If it is not
	// nil, it counts as one model in the moments, as in Algorithm 1, line 1; it
	// adds no deviation. The reference's CIFAR script leaves it out.
	Theta0 *Checkpoint
	// Statistics are the batch-norm statistics of the last checkpoint, kept so
	// that a network can be written without recomputing them ("stale").
	Statistics weights.Vector
	// Warnings are what a user of the posterior must know; they stay with it.
	Warnings []string
	// Graph is what the caller needs to turn a vector back into a model; it is
	// kept as it is.
	Graph []byte
}

// FitOptions are the choices of a fit. The zero value is the paper's.
type FitOptions struct {
	Rank     int  // K, the number of last deviations kept; 0 means DefaultRank
	DiagOnly bool // keep no deviations: SWAG-Diagonal
	Dropout  bool // noted in the file, for whoever runs the graph
	Producer string

	BlockLen int                     // weights per block; 0 means a good one. Never changes the result
	Workers  int                     // 0 means one per core. Never changes the result
	Progress func(done, total int64) // called with weights done; may be nil
}

// Fit runs the paper's Algorithm 1 over the iterates and writes the posterior
// file to w. With n models seen, mean and variance are those of the n iterates
// with divisor n, and column i of D is θ_i − θ̄_i, the deviation from the
// running mean after the update.
//
// A weight that is NaN or infinite is an error that names checkpoint, tensor
// and index. The file is complete only if Fit returns nil.
func Fit(ctx context.Context, w io.WriterAt, it Iterates, opts FitOptions) error {
	if opts.Rank == 0 {
		opts.Rank = DefaultRank
	}
	if opts.BlockLen <= 0 {
		opts.BlockLen = defaultBlock
	}
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if err := it.check(opts); err != nil {
		return err
	}
	columns := min(opts.Rank, len(it.Checkpoints))
	if opts.DiagOnly {
		columns = 0
	}
	out, err := newWriter(w, it, opts, columns)
	if err != nil {
		return err
	}
	d := it.Layout.Len(weights.Parameter)
	block := int64(opts.BlockLen)
	err = inOrder(ctx, int((d+block-1)/block), opts.Workers,
		func(i int, m *moments) error {
			off := int64(i) * block
			return m.collect(it, columns, off, min(block, d-off))
		},
		func(i int, m *moments) error {
			if opts.Progress != nil {
				opts.Progress(min(int64(i+1)*block, d), d)
			}
			return out.append(m)
		})
	if err != nil {
		return err
	}
	return out.finish(it)
}

func (it Iterates) check(opts FitOptions) error {
	if len(it.Checkpoints) < 2 {
		return fmt.Errorf("%d checkpoints: a covariance needs at least 2", len(it.Checkpoints))
	}
	if !opts.DiagOnly && opts.Rank < 2 {
		return fmt.Errorf("rank %d: the low-rank part is divided by K−1, so K must be at least 2", opts.Rank)
	}
	d := it.Layout.Len(weights.Parameter)
	if d == 0 {
		return errors.New("no tensor differs between the checkpoints: there is nothing to fit")
	}
	var statistics int64
	if it.Statistics != nil {
		statistics = it.Statistics.Len()
	}
	if want := it.Layout.Len(weights.Statistic); statistics != want {
		return fmt.Errorf("%d batch-norm statistics, want %d", statistics, want)
	}
	for _, c := range it.all() {
		if c.Theta.Len() != d {
			return fmt.Errorf("%s: %d weights, want %d", c.Path, c.Theta.Len(), d)
		}
	}
	return nil
}

// all returns θ0, if it counts, and the checkpoints.
func (it Iterates) all() []Checkpoint {
	if it.Theta0 == nil {
		return it.Checkpoints
	}
	return append([]Checkpoint{*it.Theta0}, it.Checkpoints...)
}

// moments are one block's sums, and its stretches of the posterior's sections.
type moments struct {
	theta          []float32
	mean, variance []float64
	deviations     []float32 // row-major, a row of K for each weight
}

func (m *moments) reset(n int64, columns int) {
	if int64(cap(m.theta)) < n {
		m.theta = make([]float32, n)
		m.mean, m.variance = make([]float64, n), make([]float64, n)
		m.deviations = make([]float32, n*int64(columns))
	}
	m.theta, m.mean, m.variance = m.theta[:n], m.mean[:n], m.variance[:n]
	m.deviations = m.deviations[:n*int64(columns)]
	clear(m.mean)
	clear(m.variance)
}

// collect runs Algorithm 1 over weights [off, off+n) of every iterate.
func (m *moments) collect(it Iterates, columns int, off, n int64) error {
	m.reset(n, columns)
	all := it.all()
	squares := m.variance // Welford's sum of squared deviations, until divided
	for t, c := range all {
		if err := c.Theta.ReadAt(m.theta, off); err != nil {
			return err
		}
		count := float64(t + 1)
		for i, v := range m.theta {
			if v-v != 0 {
				tensor, at := it.Layout.At(weights.Parameter, off+int64(i))
				return fmt.Errorf("%s: tensor %q: value %v at index %d, want finite weights", c.Path, tensor.Name, v, at)
			}
			before := float64(v) - m.mean[i]
			m.mean[i] += before / count
			squares[i] += float64(before * (float64(v) - m.mean[i]))
		}
		if k := t - (len(all) - columns); k >= 0 {
			for i, v := range m.theta {
				m.deviations[i*columns+k] = float32(float64(v) - m.mean[i])
			}
		}
	}
	for i := range squares {
		squares[i] /= float64(len(all))
	}
	return nil
}
