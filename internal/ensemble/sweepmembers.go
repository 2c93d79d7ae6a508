package ensemble

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
)

const (
	// maxAutoMembers bounds the number of members where it is not given.
	maxAutoMembers = 256
	// minAutoMembers is the least from which their spread can be told.
	minAutoMembers = 5
	// noticeable is the part of the standard error of the NLL, which the number of
	// images leaves, that more members may still change it by: they then add 6 % to
	// its variance.
	noticeable = 0.25
)

// MemberNoise says how far the NLL of an average over S members is from that of
// infinitely many, by the delta method. With p_mi for member m's probability of
// image i's true class and p̄_i for their mean over members, the NLL is that of
// p̄, and
//
//	Variance ≈ Var_m( mean_i p_mi/p̄_i ) / S,   Excess ≈ mean_i Var_m(p_mi)/p̄_i² / 2S
//
// The excess is what an average over few members loses: −log is convex.
type MemberNoise struct {
	Members  int
	Standard float64 // error of the NLL for the choice of the members, in nats
	Excess   float64 // of the NLL over that of infinitely many, in nats
	// Images is the standard error of the NLL for the choice of the test images.
	Images float64
	// Tolerance is what the root mean square of the change that infinitely many
	// members would make is compared with.
	Tolerance float64
	// Enough is the least number of members from which more no longer matter: the
	// root of Standard² + Excess², both taken on to that number, is within
	// Tolerance. It can be more than Members, and is 0 where they are too few to
	// tell.
	Enough int
}

// Change is the root mean square of what infinitely many members would change.
func (n MemberNoise) Change() float64 { return math.Hypot(n.Standard, n.Excess) }

// memberCurve follows the average while members join it.
type memberCurve struct {
	sweep  *Sweep
	points []CurvePoint
	truths [][]float64 // for each member its probability of each image's true class
}

// add takes in a member and the average with it. Where the number of members is
// open, it returns errEnough once they are.
func (c *memberCurve) add(member, all *Sums) error {
	labels := c.sweep.Test.Labels()
	p := make([]float64, len(labels))
	for i, label := range labels {
		p[i] = member.Prob[i*member.Classes+label]
	}
	c.truths = append(c.truths, p)
	scores, err := c.sweep.score(all, c.sweep.Test)
	if err != nil {
		return err
	}
	n := newMemberNoise(c.truths, scores.losses, c.sweep.Tolerance)
	scores.losses, scores.briers, scores.wrongs = nil, nil, nil
	c.points = append(c.points, CurvePoint{Members: len(c.truths), Scores: scores})
	if c.sweep.Members == 0 && n.Enough > 0 && n.Enough <= n.Members {
		return errEnough
	}
	return nil
}

// newMemberNoise measures the noise of members with the given probabilities of the
// true classes, whose average has the given losses.
func newMemberNoise(truths [][]float64, losses []float64, tolerance float64) MemberNoise {
	s, n := float64(len(truths)), float64(len(losses))
	out := MemberNoise{Members: len(truths), Tolerance: tolerance, Images: stat.StdDev(losses, nil) / math.Sqrt(n)}
	if tolerance == 0 {
		out.Tolerance = noticeable * out.Images
	}
	if len(truths) < 2 {
		out.Standard, out.Excess = math.NaN(), math.NaN()
		return out
	}
	influence := make([]float64, len(truths)) // mean_i p_mi/p̄_i
	for i, loss := range losses {
		mean, squares := math.Exp(-loss), 0.0
		for m, p := range truths {
			influence[m] += p[i] / mean / n
			squares += (p[i]/mean - 1) * (p[i]/mean - 1)
		}
		out.Excess += squares / (s - 1) / n / (2 * s)
	}
	out.Standard = math.Sqrt(stat.Variance(influence, nil) / s)
	if v, e := out.Standard*out.Standard*s, out.Excess*s; len(truths) >= minAutoMembers && out.Tolerance > 0 {
		// (v/m + (e/m)²) ≤ tolerance², a quadratic in 1/m.
		t := out.Tolerance * out.Tolerance
		most := 2 * t / (v + math.Sqrt(v*v+4*e*e*t)) // 1/m at most
		if m := math.Ceil(1 / most * (1 - 1e-12)); m < math.MaxInt32 {
			out.Enough = max(1, int(m))
		}
	}
	return out
}

// finish returns the curve and the noise of all members.
func (c *memberCurve) finish(ctx context.Context, seed uint64) ([]CurvePoint, MemberNoise) {
	losses := make([]float64, len(c.truths[0]))
	for i := range losses {
		for _, p := range c.truths {
			losses[i] += p[i]
		}
		losses[i] = -math.Log(losses[i] / float64(len(c.truths)))
	}
	for m, band := range c.anyOrder(ctx, seed) {
		c.points[m].AnyOrder = band
	}
	return c.points, newMemberNoise(c.truths, losses, c.sweep.Tolerance)
}

// memberOrderStream keeps the orders of members apart from other uses of a seed.
const memberOrderStream = 0x6d656d62657273 // "members"

// anyOrder returns for each number of members the mean of the NLL over random
// orders, with the 5th and 95th percentile.
func (c *memberCurve) anyOrder(ctx context.Context, seed uint64) []calibrate.Interval {
	const work, most, least = 100_000_000, 200, 20 // logarithms, orders
	members, images := len(c.truths), len(c.truths[0])
	orders := min(max(work/(members*images), least), most)
	rng := rand.New(rand.NewPCG(seed, memberOrderStream))
	nll := make([][]float64, members)
	sum := make([]float64, images)
	for range orders {
		if ctx.Err() != nil {
			break
		}
		clear(sum)
		for m, k := range rng.Perm(members) {
			loss := 0.0
			for i, p := range c.truths[k] {
				sum[i] += p
				loss -= math.Log(sum[i] / float64(m+1))
			}
			nll[m] = append(nll[m], loss/float64(images))
		}
	}
	out := make([]calibrate.Interval, members)
	for m, values := range nll {
		if len(values) > 0 {
			slices.Sort(values)
			cut := len(values) / 20
			out[m] = calibrate.Interval{Mean: stat.Mean(values, nil), Low: values[cut], High: values[len(values)-1-cut]}
		}
	}
	return out
}
