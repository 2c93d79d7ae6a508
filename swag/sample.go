package swag

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/weights"
)

// Covariance names the covariance that members are drawn with.
type Covariance int

const (
	// LowRankPlusDiagonal is Σ_diag + Σ_lr: SWAG.
	LowRankPlusDiagonal Covariance = iota
	// Diagonal is Σ_diag alone: SWAG-Diagonal.
	Diagonal
)

// String returns "swag" or "swag-diag".
func (c Covariance) String() string {
	if c == Diagonal {
		return "swag-diag"
	}
	return "swag"
}

// ParseCovariance is the inverse of [Covariance.String].
func ParseCovariance(s string) (Covariance, error) {
	for _, c := range []Covariance{LowRankPlusDiagonal, Diagonal} {
		if s == c.String() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("covariance %q: want swag or swag-diag", s)
}

// DefaultScale is the paper's α for the covariance: ½ with the low-rank part,
// since both parts hold the variance of the weights (footnote to section 4.2),
// and 1 with the diagonal alone.
func (c Covariance) DefaultScale() float64 {
	if c == Diagonal {
		return 1
	}
	return 0.5
}

// SampleOptions say which distribution to draw from. Scale has no default:
// see [Covariance.DefaultScale].
type SampleOptions struct {
	Seed       uint64
	Scale      float64 // α ≥ 0, a factor of the covariance; 0 gives θ_SWA
	Covariance Covariance
	Workers    int // 0 means one per core. Never changes a draw
}

// MaxMembers bounds the index of a member, exclusive.
const MaxMembers = 1 << 20

// drawBlock is the number of weights that a worker of Draw takes at a time.
const drawBlock = 16 * chunk

// A Sampler draws members from a posterior.
type Sampler struct {
	p    *Posterior
	opts SampleOptions
	k    int // columns of D in use
}

// NewSampler checks the options against the posterior.
func NewSampler(p *Posterior, opts SampleOptions) (*Sampler, error) {
	if !(opts.Scale >= 0) || math.IsInf(opts.Scale, 0) {
		return nil, fmt.Errorf("scale %v: want a finite number of at least 0", opts.Scale)
	}
	s := &Sampler{p: p, opts: opts, k: p.Options.Columns}
	if opts.Covariance == Diagonal || opts.Scale == 0 {
		s.k = 0
	} else if s.k == 0 {
		return nil, fmt.Errorf("%s: holds the diagonal alone and cannot give SWAG members", p.Path)
	}
	if opts.Workers <= 0 {
		s.opts.Workers = runtime.GOMAXPROCS(0)
	}
	return s, nil
}

// Draw fills dst[j] with member members[j], d weights each. It fails if a
// weight is beyond float32, naming member, tensor and index, or if ctx ends.
func (s *Sampler) Draw(ctx context.Context, dst [][]float32, members []int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.opts.Workers)
	for off := int64(0); off < s.p.Len(); off += drawBlock {
		end := min(off+drawBlock, s.p.Len())
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			part := make([][]float32, len(dst))
			for j := range dst {
				part[j] = dst[j][off:end]
			}
			return s.Block(part, members, off)
		})
	}
	return g.Wait()
}

// Block fills dst[j] with weights [off, off+len(dst[j])) of member members[j];
// all of dst must be of one length. It is what Draw is made of, for callers
// that cannot hold a whole member.
//
// A weight is equation (1): sd holds √α·Σ_diag^½, and z2 holds √(α/(K−1))·z2.
func (s *Sampler) Block(dst [][]float32, members []int, off int64) error {
	if len(dst) == 0 {
		return nil
	}
	for _, member := range members {
		if member < 0 || member >= MaxMembers {
			return fmt.Errorf("member %d: want 0 to %d", member, MaxMembers-1)
		}
	}
	n := int64(len(dst[0]))
	mean, sd := make([]float64, chunk), make([]float64, chunk)
	z1 := make([]float64, chunk)
	deviations := make([]float32, chunk*s.k)
	z2 := s.coefficients(members)
	sums := make([][group]float32, chunk) // stays 0 with the diagonal alone
	for at := off; at < off+n; {
		// One chunk of normals at a time, and of it the part asked for.
		c := at / chunk
		from, to := at-c*chunk, min((c+1)*chunk, off+n)-c*chunk
		w := to - from
		s.p.Mean(mean[:w], at)
		s.p.Variance(sd[:w], at)
		for i, v := range sd[:w] {
			sd[i] = math.Sqrt(float64(s.opts.Scale * v))
		}
		s.p.Deviations(deviations[:w*int64(s.k)], at)
		for j, member := range members {
			if j%group == 0 && s.k > 0 {
				lowRank(sums[:w], deviations, z2[j/group])
			}
			out := dst[j][at-off:][:w]
			if s.opts.Scale == 0 {
				for i := range out {
					out[i] = float32(mean[i])
				}
			} else {
				normals(z1[:to], s.opts.Seed, member, c)
				for i, z := range z1[from:to] {
					out[i] = float32(mean[i] + (float64(sd[i]*z) + float64(sums[i][j%group])))
				}
			}
			for i, v := range out {
				if v-v != 0 {
					tensor, index := s.p.Layout.At(weights.Parameter, at+int64(i))
					return fmt.Errorf("%s: member %d: tensor %q: value at index %d is beyond float32", s.p.Path, member, tensor.Name, index)
				}
			}
		}
		at += w
	}
	return nil
}

// group is the number of members whose low-rank parts are computed together:
// their sums are independent, so the processor works at all of them at once.
const group = 4

// lowRank sets sums[i] to row i of D̂·z2 for each member of a group, summed in
// the order of the columns. Explicit conversions, here and in Block, keep
// processors that could fuse a product and a sum from doing so.
func lowRank(sums [][group]float32, deviations []float32, z2 [][group]float32) {
	for i := range sums {
		row := deviations[i*len(z2):][:len(z2)]
		var a, b, c, d float32
		for k, v := range row {
			z := &z2[k]
			a += float32(v * z[0])
			b += float32(v * z[1])
			c += float32(v * z[2])
			d += float32(v * z[3])
		}
		sums[i] = [group]float32{a, b, c, d}
	}
}

// coefficients returns √(α/(K−1))·z2 of each member, K×4 for a group: one z2
// for all tensors, which is what makes the low-rank part a covariance across
// tensors.
func (s *Sampler) coefficients(members []int) [][][group]float32 {
	out := make([][][group]float32, (len(members)+group-1)/group)
	if s.k == 0 {
		return out
	}
	z2 := make([]float64, s.k)
	factor := math.Sqrt(s.opts.Scale / float64(s.k-1))
	for j, member := range members {
		if j%group == 0 {
			out[j/group] = make([][group]float32, s.k)
		}
		normals(z2, s.opts.Seed, member, z2Chunk)
		for k, z := range z2 {
			out[j/group][k][j%group] = float32(factor * z)
		}
	}
	return out
}
