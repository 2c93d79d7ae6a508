package dataset

import (
	"bufio"
	"encoding/binary"
	"io"
	"iter"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// Order says which examples are visited, and in which order. The zero value is
// every example in file order.
//
// A shuffle is the same on every machine and in every version of this program.
// It is Fisher and Yates's: for i from n−1 down to 1, swap a[i] with a[j], j
// uniform in 0..i by Lemire's method (arXiv:1805.10941): j is the high word of
// r·(i+1), drawn again while the low word is below 2⁶⁴ mod (i+1). r comes from
// math/rand/v2's PCG seeded with (Seed, 0x64617461736574).
type Order struct {
	Shuffle bool
	Seed    uint64 // used only with Shuffle
	// Limit keeps the first Limit examples, after the shuffle. 0 or less means all.
	Limit int
}

// orderStream keeps the shuffle apart from other uses of one seed: "dataset".
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

// uniform draws from 0..n-1. It is written out because rand.Rand's own way from
// bits to a bounded number may change.
func uniform(rng *rand.PCG, n uint64) uint64 {
	hi, lo := bits.Mul64(rng.Uint64(), n)
	for reject := -n % n; lo < reject; {
		hi, lo = bits.Mul64(rng.Uint64(), n)
	}
	return hi
}

// Batches yields Indices(n) in pieces of batchSize; the last may be shorter. The
// pieces share memory with each other and must not be changed. Batches panics if
// batchSize is less than 1.
func (o Order) Batches(n, batchSize int) iter.Seq[[]int] {
	return slices.Chunk(o.Indices(n), batchSize)
}

// ReadBatch reads the examples idx, one after the other, into dst and returns
// the part of dst that they fill, so that one buffer serves all batches. It stops
// at the first error. It panics if dst is too short.
func ReadBatch(d Dataset, dst []float32, idx []int) ([]float32, error) {
	elems := 1
	for _, s := range d.Shape() {
		elems *= int(s)
	}
	if len(dst) < len(idx)*elems {
		panic("dataset: dst is too short for the batch")
	}
	for k, i := range idx {
		if err := d.Read(dst[k*elems:(k+1)*elems], i); err != nil {
			return nil, err
		}
	}
	return dst[:len(idx)*elems], nil
}

// WriteBatch writes the first n examples, or all if there are fewer, as the
// network sees them: a .npy array of shape [n, Shape...], float32, or uint8 for
// a network that takes that. With skip, an example that cannot be read is zeros
// before they are normalised; else it is an error.
func WriteBatch(w io.Writer, d Dataset, n int, asBytes, skip bool) error {
	n = min(n, d.Len())
	shape, size := []int{n}, 1
	for _, s := range d.Shape() {
		shape, size = append(shape, int(s)), size*int(s)
	}
	dtype := "<f4"
	if asBytes {
		dtype = "|u1"
	}
	out := bufio.NewWriter(w)
	out.Write(numpy.Header(dtype, shape...)) // a bufio.Writer keeps its error for Flush
	values := make([]float32, size)
	for i := range n {
		if err := d.Read(values, i); err != nil {
			if !skip {
				return err
			}
			clear(values)
			if b, ok := d.(Bytes); ok {
				b.Normalize(values, make([]byte, size))
			}
		}
		if asBytes {
			for _, v := range values {
				out.WriteByte(byte(v))
			}
		} else {
			binary.Write(out, binary.LittleEndian, values)
		}
	}
	return out.Flush()
}
