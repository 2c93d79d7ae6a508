package chance

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

const (
	// MinMonteCarlo is the smallest number of independent members from which their spread can be estimated.
	MinMonteCarlo = 5
	// noticeable is the change of the NLL that counts as small, as a part of the NLL's standard error from the choice
	// of the examples. Such a change adds 6 % to its variance.
	noticeable = 0.25
)

// MonteCarloError is the estimated difference between the NLL of an average over S members and that of infinitely
// many, by the delta method. Let p_mi be member m's probability of example i's true class, and p̄_i the mean over
// members. The NLL is that of p̄, and
//
//	Variance ≈ Var_m( mean_i p_mi/p̄_i ) / S,   Excess ≈ mean_i Var_m(p_mi)/p̄_i² / 2S
//
// An average over few members has the excess loss because −log is convex.
type MonteCarloError struct {
	Members  int
	Standard float64 // standard error of the NLL from the choice of the members, in nats; NaN for one member
	Excess   float64 // expected NLL minus that of infinitely many members, in nats; NaN for one member
	// Images is the standard error of the NLL from the choice of the examples.
	Images float64
	// Tolerance is the limit for Change.
	Tolerance float64
	// Enough is the smallest number of members from which more do not matter: the extrapolated root of Standard² +
	// Excess² is within Tolerance. It can exceed Members. It is 0 if Members is below [MinMonteCarlo].
	Enough int
}

// Change returns the root mean square of the change that infinitely many members would make.
func (e MonteCarloError) Change() float64 { return math.Hypot(e.Standard, e.Excess) }

// NewMonteCarloError estimates the error for members of equal weight. Each slice of targets holds one member's
// probabilities of the true classes of the same examples. Antithetic pairs are the units of chance: their averages take the
// place of members. The tolerance is in nats; 0 means a quarter of the standard
// error from the choice of the examples.
func NewMonteCarloError(targets [][]float64, antithetic bool, tolerance float64) MonteCarloError {
	losses := averageLosses(targets)
	n := float64(len(losses))
	out := MonteCarloError{Members: len(targets), Tolerance: tolerance, Images: stat.StdDev(losses, nil) / math.Sqrt(n)}
	if tolerance == 0 {
		out.Tolerance = noticeable * out.Images
	}
	unit, least := 1, MinMonteCarlo
	if antithetic {
		unit, least, targets = 2, leastPairs, averages(targets)
		losses = averageLosses(targets)
	}
	s := float64(len(targets))
	if len(targets) < 2 {
		out.Standard, out.Excess = math.NaN(), math.NaN()
		return out
	}
	influence := make([]float64, len(targets)) // mean_i p_mi/p̄_i
	for i, loss := range losses {
		mean, squares := math.Exp(-loss), 0.0
		for m, p := range targets {
			influence[m] += p[i] / mean / n
			squares += (p[i]/mean - 1) * (p[i]/mean - 1)
		}
		out.Excess += squares / (s - 1) / n / (2 * s)
	}
	out.Standard = math.Sqrt(stat.Variance(influence, nil) / s)
	if v, e := out.Standard*out.Standard*s, out.Excess*s; len(targets) >= least && out.Tolerance > 0 {
		// (v/m + (e/m)²) ≤ tolerance², a quadratic in 1/m.
		t := out.Tolerance * out.Tolerance
		most := 2 * t / (v + math.Sqrt(v*v+4*e*e*t)) // the largest possible 1/m
		if m := math.Ceil(1 / most * (1 - 1e-12)); m < math.MaxInt32 {
			out.Enough = unit * max(1, int(m))
		}
	}
	return out
}

// averages returns the averages of antithetic pairs, without a last member that has no partner.
func averages(targets [][]float64) (out [][]float64) {
	for k := 0; k+1 < len(targets); k += 2 {
		both := make([]float64, len(targets[k]))
		for i, p := range targets[k] {
			both[i] = (p + targets[k+1][i]) / 2
		}
		out = append(out, both)
	}
	return out
}

const badRows = "chance: members of different examples, or none"

// columns returns the common length of all rows. It panics if the lengths differ or are 0.
func columns(rows [][]float64) int {
	if len(rows) == 0 || len(rows[0]) == 0 || slices.ContainsFunc(rows, func(r []float64) bool { return len(r) != len(rows[0]) }) {
		panic(badRows)
	}
	return len(rows[0])
}

// averageLosses returns the NLL of the members' average for each example.
func averageLosses(targets [][]float64) []float64 {
	losses := make([]float64, columns(targets))
	for i := range losses {
		for _, p := range targets {
			losses[i] += p[i]
		}
		losses[i] = -math.Log(losses[i] / float64(len(targets)))
	}
	return losses
}

// memberOrderStream separates the orders of members from other uses of a seed.
const memberOrderStream = 0x6d656d62657273 // "members"

// NLLByMembers returns the mean NLL of averages over 1 … S randomly chosen members, in nats, with the 5th and 95th
// percentile. Each slice of targets holds one member's probabilities of the true classes of the same examples. Antithetic pairs
// stay together. It uses 20 to 200 random orders, about 10⁸ logarithms in all. It fails only if ctx ends.
func NLLByMembers(ctx context.Context, targets [][]float64, antithetic bool, seed uint64) ([]Interval, error) {
	const work, most, least = 100_000_000, 200, 20 // logarithms, orders
	members, examples := len(targets), columns(targets)
	orders := min(max(work/(members*examples), least), most)
	rng := rand.New(rand.NewPCG(seed, memberOrderStream))
	nll := make([][]float64, members)
	sum := make([]float64, examples)
	for range orders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		clear(sum)
		for m, k := range order(rng, members, antithetic) {
			loss := 0.0
			for i, p := range targets[k] {
				sum[i] += p
				loss -= math.Log(sum[i] / float64(m+1))
			}
			nll[m] = append(nll[m], loss/float64(examples))
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

// order returns a random order of members.
func order(rng *rand.Rand, members int, antithetic bool) (all []int) {
	if !antithetic {
		return rng.Perm(members)
	}
	for _, pair := range rng.Perm(members / 2) {
		all = append(all, 2*pair, 2*pair+1)
	}
	if members%2 == 1 {
		all = append(all, members-1)
	}
	return all
}
