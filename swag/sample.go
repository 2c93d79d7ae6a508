package swag

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// Covariance names the covariance that members are drawn with.
type Covariance int

const (
	// LowRankPlusDiagonal is Σ_diag + Σ_lr: SWAG.
	LowRankPlusDiagonal Covariance = iota
	// Diagonal is Σ_diag alone: SWAG-Diagonal.
	Diagonal
	// Isotropic is tr(Σ_diag + Σ_lr)/d · I: noise that moves the weights as far as SWAG does on average, but without
	// SWAG's directions. Where it does as well as SWAG, the shape of SWAG's covariance is of no use.
	Isotropic
)

var covariances = []string{"swag", "swag-diag", "isotropic"}

// String returns "swag", "swag-diag" or "isotropic".
func (c Covariance) String() string { return covariances[c] }

// ParseCovariance is the inverse of [Covariance.String].
func ParseCovariance(s string) (Covariance, error) {
	if i := slices.Index(covariances, s); i >= 0 {
		return Covariance(i), nil
	}
	return 0, fmt.Errorf("covariance %q: want swag, swag-diag or isotropic", s)
}

// DefaultScale returns the paper's α for the covariance. It is 1 with the diagonal alone. It is ½ with the low-rank
// part, since both parts hold the variance of the weights (footnote to section 3.4). Isotropic has the scale of SWAG,
// and so its trace.
func (c Covariance) DefaultScale() float64 {
	if c == Diagonal {
		return 1
	}
	return 0.5
}

// SampleOptions select the distribution to draw from. Scale has no default: see [Covariance.DefaultScale].
//
// Random numbers are common. With one seed, member m has the same z1 and z2 at every scale, with every covariance and
// from every posterior. So differences between draws are not due to luck.
type SampleOptions struct {
	Seed       uint64
	Scale      float64 // α ≥ 0, a factor of the covariance; 0 gives θ_SWA
	Covariance Covariance
	// Rank, if not 0, is the number of columns of D̂ to use, from 2 to Options.Columns of the posterior. They are the
	// columns that a fit of that rank would have kept, with its divisor. Members are those of such a fit, bit for
	// bit. Rank has no effect with the diagonal alone.
	Rank int
	// Antithetic draws members in pairs about the mean: member 2j+1 has −z1 and −z2 of member 2j. Each is a draw of the
	// posterior, and their average has no error of odd order. Drawn one after the other they cost less than two draws.
	Antithetic bool
	// Orthogonal draws the z2 of antithetic pairs at right angles: those of pairs iK to iK+K−1, for K columns of D̂. Each is still
	// N(0, I), and the average over pairs has less error of even order.
	Orthogonal bool
	Workers    int // 0 means one per core. Never changes a draw
}

// drawBlock is the number of weights that a worker of Draw takes at a time.
const drawBlock = 1 << 16

// A Sampler draws members from a posterior.
type Sampler struct {
	p       *Posterior
	opts    SampleOptions
	k       int // columns of D̂ that members are drawn with
	columns int // columns of D̂ in the covariance: k, except for Isotropic
	divisor int // Σ_lr = D̂D̂ᵀ/divisor

	isotropic sync.Mutex // guards known and variance
	known     bool
	variance  float64 // variance of every weight, for isotropic noise
}

// ErrSingle is the error for members of a posterior that is [Posterior.Single].
var ErrSingle = errors.New("holds one checkpoint, and so no spread to draw members from")

// NewSampler checks the options against the posterior. It reads no weights. It fails with [ErrSingle] if the posterior
// has no spread and the scale is above 0.
func NewSampler(p *Posterior, opts SampleOptions) (*Sampler, error) {
	if !(opts.Scale >= 0) || math.IsInf(opts.Scale, 0) {
		return nil, fmt.Errorf("scale %v: want a finite number of at least 0", opts.Scale)
	}
	if opts.Orthogonal && !opts.Antithetic {
		return nil, errors.New("orthogonal draws that are not antithetic")
	}
	if p.Single() && opts.Scale > 0 {
		return nil, fmt.Errorf("%s: %w", p.Path, ErrSingle)
	}
	s := &Sampler{p: p, opts: opts}
	if opts.Covariance != Diagonal && opts.Scale > 0 {
		var err error
		if s.columns, s.divisor, err = p.LowRank(opts.Rank); err != nil {
			return nil, err
		}
		if opts.Covariance == LowRankPlusDiagonal {
			s.k = s.columns
		}
	}
	if opts.Workers <= 0 {
		s.opts.Workers = runtime.GOMAXPROCS(0)
	}
	return s, nil
}

// LowRank returns the number of columns of D̂, and the divisor of Σ_lr, of a fit of the given rank. Rank 0 means the
// posterior's own. LowRank fails if there are no columns, or if they are in checkpoints that were not attached.
func (p *Posterior) LowRank(rank int) (columns, divisor int, err error) {
	o := p.Options
	switch {
	case p.Single():
		return 0, 0, fmt.Errorf("%s: %w", p.Path, ErrSingle)
	case o.Columns == 0:
		return 0, 0, fmt.Errorf("%s: holds the diagonal alone and cannot give SWAG members", p.Path)
	case rank != 0 && (rank < 2 || rank > o.Columns):
		return 0, 0, fmt.Errorf("rank %d: want 2 to %d, the columns of %s", rank, o.Columns, p.Path)
	case len(p.Needs()) > 0:
		return 0, 0, fmt.Errorf("%s: its deviations are in the checkpoints, which were not attached", p.Path)
	case rank == 0:
		return o.Columns, o.Divisor, nil
	case o.Deviations == Final:
		return rank, o.Divisor, nil // principal directions of T models: the divisor is T−1 at every rank
	}
	return rank, rank - 1, nil
}

// Draw fills dst[j] with member members[j], d weights each. It fails if a
// weight is not [weights.Plausible], naming member, tensor and index, or if ctx ends.
func (s *Sampler) Draw(ctx context.Context, dst [][]float32, members []int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.opts.Workers)
	for off := int64(0); off < s.p.Len(); off += drawBlock {
		end := min(off+drawBlock, s.p.Len())
		g.Go(weights.Guarded(func() error {
			part := make([][]float32, len(dst))
			for j := range dst {
				part[j] = dst[j][off:end]
			}
			return s.Block(ctx, part, members, off)
		}))
	}
	defer s.p.release() // the next member is drawn much later
	return g.Wait()
}

// Member returns the weights of a member: those that [Sampler.Draw] writes.
func (s *Sampler) Member(ctx context.Context, member int) ([]float32, error) {
	dst := make([]float32, s.p.Len())
	if err := s.Draw(ctx, [][]float32{dst}, []int{member}); err != nil {
		return nil, err
	}
	return dst, nil
}

// Block fills dst[j] with weights [off, off+len(dst[j])) of member members[j]. All of dst must have the same length.
// Block is for callers that cannot hold a whole member.
func (s *Sampler) Block(ctx context.Context, dst [][]float32, members []int, off int64) error {
	if err := ctx.Err(); err != nil || len(dst) == 0 {
		return err
	}
	for _, member := range members {
		if member < 0 || member >= MaxMembers {
			return fmt.Errorf("member %d: want 0 to %d", member, MaxMembers-1)
		}
	}
	t := s.newTile(members)
	for from, n := 0, len(dst[0]); from < n; from += tileLen {
		to := min(from+tileLen, n)
		if err := t.read(ctx, to-from, off+int64(from)); err != nil {
			return err
		}
		for j := range members {
			out := dst[j][from:to]
			t.draw(out, j)
			if err := s.p.Layout.Sound(weights.Parameter, out, t.off); err != nil {
				return fmt.Errorf("%s: member %d: %w", s.p.Path, members[j], err)
			}
		}
	}
	return nil
}

// Vector returns a member as a vector whose weights are drawn when they are read, until ctx ends. So a member larger
// than memory can be written piece by piece.
func (s *Sampler) Vector(ctx context.Context, member int) weights.Vector {
	return weights.Func{N: s.p.Len(), Read: func(dst []float32, off int64) error {
		return s.Block(ctx, [][]float32{dst}, []int{member}, off)
	}}
}

// tileLen is the number of weights that are drawn at a time. The deviations of a tile are read once for all members.
// With 20 columns they stay in the cache.
const tileLen = 1 << 10

// tile is a stretch of the posterior, and the members' random numbers.
type tile struct {
	s          *Sampler
	members    []int
	z2         [][]float32 // √(α/divisor)·z2 of each member, K numbers
	off        int64
	mean, sd   []float64 // sd is √α·Σ_diag^½, or the standard deviation of isotropic noise
	deviations [][]float32
	// The random part of the member that was drawn last: sign times that of a stream.
	stream  int // −1 if there is none
	sign    float64
	z1      []float64
	lowRank []float32
}

func (s *Sampler) newTile(members []int) *tile {
	t := &tile{s: s, members: members, z2: s.coefficients(members),
		mean: make([]float64, tileLen), sd: make([]float64, tileLen), z1: make([]float64, tileLen), lowRank: make([]float32, tileLen)}
	// Rows exactly 4 KiB from each other would evict each other from the L1 cache.
	t.deviations = dense.Rows[float32](s.k, tileLen+16)
	return t
}

// coefficients returns √(α/divisor)·z2 of each member. All tensors share one z2, which makes the low-rank part a
// covariance across tensors.
func (s *Sampler) coefficients(members []int) [][]float32 {
	out := make([][]float32, len(members))
	factor := math.Sqrt(s.opts.Scale / float64(s.divisor))
	for j, member := range members {
		stream, sign := s.stream(member)
		z := z2(s.opts.Seed, stream, s.k)
		if s.opts.Orthogonal {
			z = s.orthogonal(stream)
		}
		for _, z := range z {
			out[j] = append(out[j], float32(factor*sign*z))
		}
	}
	return out
}

// orthogonal returns the z2 of a pair at right angles to those of the pairs before it in its block of K. It has the length of the
// pair's independent z2, and the direction that Gram and Schmidt give it. The direction is uniform and independent of the length,
// so z2 is N(0, I).
func (s *Sampler) orthogonal(stream int) (z []float64) {
	if s.k == 0 {
		return nil
	}
	block := stream / 2 / s.k * s.k // its first pair
	var before [][]float64          // unit vectors
	length := 0.0
	for pair := block; pair <= stream/2; pair++ {
		z = z2(s.opts.Seed, 2*pair, s.k)
		length = norm(z)
		for range 2 { // once more, for the rounding of nearly parallel vectors
			for _, u := range before {
				along := 0.0
				for i, v := range u {
					along += float64(v * z[i])
				}
				for i, v := range u {
					z[i] -= float64(along * v)
				}
			}
		}
		if pair == stream/2 {
			break
		}
		scale(z, 1/norm(z))
		before = append(before, z)
	}
	scale(z, length/norm(z)) // exactly 1 for the first pair
	return z
}

func norm(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v * v)
	}
	return math.Sqrt(sum)
}

func scale(x []float64, by float64) {
	for i := range x {
		x[i] *= by
	}
}

// stream returns the member whose random numbers a member uses, and their sign.
func (s *Sampler) stream(member int) (stream int, sign float64) {
	if s.opts.Antithetic && member%2 == 1 {
		return member - 1, -1
	}
	return member, 1
}

// read moves the tile to weights [off, off+n).
func (t *tile) read(ctx context.Context, n int, off int64) error {
	t.off, t.stream = off, -1
	t.mean, t.sd, t.z1, t.lowRank = t.mean[:n], t.sd[:n], t.z1[:n], t.lowRank[:n]
	t.s.p.Mean(t.mean, off)
	if t.s.opts.Scale == 0 {
		return nil
	}
	if err := t.s.spread(ctx, t.sd, off); err != nil {
		return err
	}
	for k := range t.deviations {
		t.deviations[k] = t.deviations[k][:n]
	}
	if t.s.k == 0 {
		return nil
	}
	return t.s.p.Deviations(t.deviations, off)
}

// spread sets dst to the standard deviations that z1 is multiplied by.
func (s *Sampler) spread(ctx context.Context, dst []float64, off int64) error {
	if s.opts.Covariance != Isotropic {
		s.p.Variance(dst, off)
	} else {
		v, err := s.isotropicVariance(ctx)
		if err != nil {
			return err
		}
		for i := range dst {
			dst[i] = v
		}
	}
	for i, v := range dst {
		dst[i] = math.Sqrt(float64(s.opts.Scale * v))
	}
	return nil
}

// draw fills out with the tile's weights of member members[j], equation (1). If it follows the other member of its antithetic
// pair, the random part is that member's, negated.
func (t *tile) draw(out []float32, j int) {
	if t.s.opts.Scale == 0 {
		for i, m := range t.mean {
			out[i] = float32(m)
		}
		return
	}
	stream, sign := t.s.stream(t.members[j])
	if stream != t.stream {
		lowRank(t.lowRank, t.deviations, t.z2[j]) // zeros with the diagonal alone
		normals(t.z1, t.s.opts.Seed, stream, t.off)
		if sign < 0 {
			negate(t.z1)
		}
	} else if sign != t.sign {
		negate(t.z1)
		negate(t.lowRank)
	}
	t.stream, t.sign = stream, sign
	combine(out, t.mean, t.sd, t.z1, t.lowRank)
}

// negate changes the signs of numbers, except that of 0: a sum that is 0 has the sign + whatever the signs of its terms are.
func negate[F float32 | float64](x []F) {
	for i, v := range x {
		x[i] = 0 - v
	}
}

// isotropicVariance returns tr(Σ_diag + Σ_lr)/d, the variance of every weight in isotropic noise with SWAG's total
// variance. It reads the posterior once. The sums run in float64 and in order, over blocks of drawBlock weights and
// then over the blocks. The bits of isotropic members depend on this order: see docs/formats.md.
func (s *Sampler) isotropicVariance(ctx context.Context) (float64, error) {
	s.isotropic.Lock()
	defer s.isotropic.Unlock()
	if s.known {
		return s.variance, nil
	}
	type traces struct{ diagonal, lowRank float64 }
	var sum traces
	err := Reduce(ctx, s.p, s.columns, drawBlock, func(b *Block, of *traces) {
		*of = traces{}
		for _, v := range b.Variance {
			of.diagonal += v
		}
		for _, row := range b.Deviations {
			for _, v := range row {
				of.lowRank += float64(float64(v) * float64(v))
			}
		}
	}, func(of *traces) {
		sum.diagonal += of.diagonal
		sum.lowRank += of.lowRank
	})
	if err != nil {
		return 0, err
	}
	s.known, s.variance = true, (sum.diagonal+sum.lowRank/float64(s.divisor))/float64(s.p.Len())
	return s.variance, nil
}
