package calibrate

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

const (
	// MinMonteCarlo is the least number of members from which their spread can be
	// told.
	MinMonteCarlo = 5
	// noticeable is the part of the standard error of the NLL, which the number of
	// images leaves, that more members may still change it by: they then add 6 % to
	// its variance.
	noticeable = 0.25
)

// MonteCarloError says how far the NLL of an average over S members is from that of
// infinitely many, by the delta method. With p_mi for member m's probability of
// image i's true class and p̄_i for their mean over members, the NLL is that of
// p̄, and
//
//	Variance ≈ Var_m( mean_i p_mi/p̄_i ) / S,   Excess ≈ mean_i Var_m(p_mi)/p̄_i² / 2S
//
// The excess is what an average over few members loses: −log is convex.
type MonteCarloError struct {
	Members  int
	Standard float64 // error of the NLL for the choice of the members, in nats; NaN of one member
	Excess   float64 // of the NLL over that of infinitely many, in nats; NaN of one member
	// Images is the standard error of the NLL for the choice of the images.
	Images float64
	// Tolerance is what the root mean square of the change that infinitely many
	// members would make is compared with.
	Tolerance float64
	// Enough is the least number of members from which more no longer matter: the
	// root of Standard² + Excess², both taken on to that number, is within
	// Tolerance. It can be more than Members, and is 0 where they are fewer than
	// [MinMonteCarlo].
	Enough int
}

// Change is the root mean square of what infinitely many members would change.
func (e MonteCarloError) Change() float64 { return math.Hypot(e.Standard, e.Excess) }

// NewMonteCarloError measures the error of members of equal weight, of each of which
// truths has the probabilities of the true classes of the same images. tolerance is
// in nats; 0 means a quarter of the error that the choice of the images leaves.
func NewMonteCarloError(truths [][]float64, tolerance float64) MonteCarloError {
	losses := averageLosses(truths)
	s, n := float64(len(truths)), float64(len(losses))
	out := MonteCarloError{Members: len(truths), Tolerance: tolerance, Images: stat.StdDev(losses, nil) / math.Sqrt(n)}
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
	if v, e := out.Standard*out.Standard*s, out.Excess*s; len(truths) >= MinMonteCarlo && out.Tolerance > 0 {
		// (v/m + (e/m)²) ≤ tolerance², a quadratic in 1/m.
		t := out.Tolerance * out.Tolerance
		most := 2 * t / (v + math.Sqrt(v*v+4*e*e*t)) // 1/m at most
		if m := math.Ceil(1 / most * (1 - 1e-12)); m < math.MaxInt32 {
			out.Enough = max(1, int(m))
		}
	}
	return out
}

// averageLosses returns the NLL of the members' average for each image.
func averageLosses(truths [][]float64) []float64 {
	losses := make([]float64, columns(truths))
	for i := range losses {
		for _, p := range truths {
			losses[i] += p[i]
		}
		losses[i] = -math.Log(losses[i] / float64(len(truths)))
	}
	return losses
}

// memberOrderStream keeps the orders of members apart from other uses of a seed.
const memberOrderStream = 0x6d656d62657273 // "members"

// NLLByMembers returns for 1 … S members the mean NLL of their average over random
// choices of so many of all, in nats, with the 5th and 95th percentile. truths has
// each member's probabilities of the true classes of the same images. It takes 20 to
// 200 random orders, some 10⁸ logarithms in all, and fails only where ctx ends.
func NLLByMembers(ctx context.Context, truths [][]float64, seed uint64) ([]Interval, error) {
	const work, most, least = 100_000_000, 200, 20 // logarithms, orders
	members, images := len(truths), columns(truths)
	orders := min(max(work/(members*images), least), most)
	rng := rand.New(rand.NewPCG(seed, memberOrderStream))
	nll := make([][]float64, members)
	sum := make([]float64, images)
	for range orders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		clear(sum)
		for m, k := range rng.Perm(members) {
			loss := 0.0
			for i, p := range truths[k] {
				sum[i] += p
				loss -= math.Log(sum[i] / float64(m+1))
			}
			nll[m] = append(nll[m], loss/float64(images))
		}
	}
	out := make([]Interval, members)
	for m, values := range nll {
		slices.Sort(values)
		cut := len(values) / 20
		out[m] = Interval{stat.Mean(values, nil), values[cut], values[len(values)-1-cut]}
	}
	return out, nil
}
