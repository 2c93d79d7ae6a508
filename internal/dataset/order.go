package dataset

import (
	"iter"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Order says which examples are visited, and in which order. The zero value visits every example in the order of the
// file.
//
// A shuffle is the same on every machine and in every version of this program. It is the Fisher-Yates shuffle: for i
// from n−1 down to 1, it swaps a[i] with a[j]. j is uniform in 0..i by Lemire's method (arXiv:1805.10941). It is the
// high word of r·(i+1), drawn again while the low word is below 2⁶⁴ mod (i+1). r comes from the PCG of math/rand/v2
// seeded with (Seed, 0x64617461736574).
type Order struct {
	Shuffle bool
	Seed    uint64 // used only with Shuffle
	// Limit keeps the first Limit examples, after the shuffle. 0 or less means all.
	Limit int
}

// orderStream separates the shuffle from other uses of the same seed. Its bytes spell "dataset".
const orderStream = 0x64617461736574

// Indices lists the examples to visit among n.
func (o Order) Indices(n int) []int {
	a := make([]int, n)
	for i := range a {
		a[i] = i
	}
	if o.Shuffle {
		rng := rand.NewPCG(o.Seed, orderStream)
		for i := n - 1; i > 0; i-- {
			j := uniform(rng, uint64(i)+1)
			a[i], a[j] = a[j], a[i]
		}
	}
	if o.Limit > 0 && o.Limit < n {
		a = a[:o.Limit]
	}
	return a
}

// uniform returns a random number in [0, n). It does not use rand.Rand, whose method for bounded numbers may change.
func uniform(rng *rand.PCG, n uint64) uint64 {
	hi, lo := bits.Mul64(rng.Uint64(), n)
	for reject := -n % n; lo < reject; {
		hi, lo = bits.Mul64(rng.Uint64(), n)
	}
	return hi
}

// Batches yields Indices(n) in batches of batchSize. The last may be shorter. Batches share memory, and must not be
// changed. Batches panics if batchSize is less than 1.
func (o Order) Batches(n, batchSize int) iter.Seq[[]int] {
	return slices.Chunk(o.Indices(n), batchSize)
}

// ReadBatch reads the examples idx, one after the other, into dst. It returns the part of dst that they fill, so one
// buffer serves all batches. It stops at the first error. It panics if dst is too short.
func ReadBatch(d Dataset, dst Values, idx []int) (Values, error) {
	size, err := SizeOf(d)
	if err != nil {
		return Values{}, err
	}
	if len(dst.Floats) < len(idx)*size.Floats || len(dst.Ints) < len(idx)*size.Ints {
		panic("dataset: dst is too short for the batch")
	}
	for k, i := range idx {
		if err := d.Read(dst.Rows(size, k, k+1), i); err != nil {
			return Values{}, err
		}
	}
	return dst.Rows(size, 0, len(idx)), nil
}
