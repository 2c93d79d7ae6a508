package dataset

import (
	"encoding/binary"
	"hash/maphash"
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// Sharing says how many examples two datasets have in common, by their content.
type Sharing struct {
	Examples int  // examples of the first dataset that the second has too
	All      bool // both have the same examples
}

// mostFiles bounds the files of a dataset that are read to compare it with another. Of more candidates only some are.
const mostFiles = 20000

// Shared compares the examples of two datasets, without their labels. Image files are compared if they have the same size,
// by three blocks of their bytes. Other examples are in memory, and are compared by their values. A table with few
// different rows has many of them twice: then equal rows are no sign, and nothing is shared unless all is. Of files and an
// array of pictures the count is of some of the files.
func Shared(a, b Dataset) Sharing {
	x, y := newPrinter(a), newPrinter(b)
	if len(x.files) != len(y.files) || len(x.values) != len(y.values) {
		n := max(sharedPictures(x, y), sharedPictures(y, x))
		return Sharing{n, n == a.Len() && n == b.Len()}
	}
	rows, others := x.candidates(y), y.candidates(x)
	seed := maphash.MakeSeed()
	s := InCommon(x.prints(seed, rows), y.prints(seed, others), len(x.files) > 0)
	s.All = s.All && len(rows) == a.Len() && len(others) == b.Len()
	return s
}

// InCommon counts the hashes that own shares with theirs. If others than files have twins among themselves, in either set, equal
// hashes may be chance. Then all are shared, or more than twice as many as chance gives, or none.
func InCommon(own, theirs []uint64, files bool) Sharing {
	have := make(map[uint64]int, len(theirs))
	for _, p := range theirs {
		have[p]++
	}
	twice := make(map[uint64]int, len(own))
	for _, p := range own {
		twice[p]++
	}
	s := Sharing{All: len(own) > 0 && len(own) == len(theirs)}
	twins, theirTwins := 0, 0
	for _, p := range own {
		if have[p] > 0 {
			s.Examples++
		}
		if twice[p] > 1 {
			twins++
		}
		s.All = s.All && have[p] == twice[p]
	}
	chance := float64(twins) * float64(len(theirs)) / float64(len(own))
	for _, n := range have { // a row of own has a twin in theirs as often as a row of theirs has
		if n > 1 {
			theirTwins += n
		}
	}
	chance = max(chance, float64(theirTwins)*float64(len(own))/float64(max(1, len(theirs))))
	if !files && !s.All && float64(s.Examples) <= 2*chance {
		s.Examples = 0
	}
	return s
}

// printer identifies the examples of a dataset by their content.
type printer struct {
	n      int
	files  []func(i int) (*listing.Example, error) // of the inputs that are image files
	size   func(i int) int64                       // of the first of them, or nil
	values []Dataset                               // of the others
	fields []int                                   // their numbers
	all    Dataset
}

func newPrinter(d Dataset) *printer {
	p := &printer{n: d.Len(), all: d}
	parts := []Dataset{d}
	if r, ok := d.(*record); ok {
		parts = r.parts
	}
	for field, part := range parts {
		if at := examplesIn(part).file; at != nil {
			if p.files == nil {
				p.size = examplesIn(part).fileSize
			}
			p.files = append(p.files, at)
		} else {
			p.values, p.fields = append(p.values, part), append(p.fields, field)
		}
	}
	return p
}

// candidates returns the examples that other may have too: those of files whose size a file of other has.
func (p *printer) candidates(other *printer) (rows []int) {
	sizes := map[int64]bool{}
	if len(p.files) > 0 {
		for _, size := range other.sizes() {
			sizes[size] = true
		}
		delete(sizes, 0)
	}
	for i, size := range p.sizes() {
		if len(p.files) == 0 || sizes[size] {
			rows = append(rows, i)
		}
	}
	if n := len(rows); len(p.files) > 0 && n > mostFiles {
		for i := range mostFiles {
			rows[i] = rows[i*n/mostFiles]
		}
		rows = rows[:mostFiles]
	}
	return rows
}

// sizes returns the size of the first file of each example, or 0.
func (p *printer) sizes() []int64 {
	out := make([]int64, p.n)
	for i := range out {
		if p.size != nil {
			out[i] = p.size(i)
		}
	}
	return out
}

// prints returns the hashes of the examples in rows. It leaves out those that cannot be read.
func (p *printer) prints(seed maphash.Seed, rows []int) (out []uint64) {
	read := make([]func(h *maphash.Hash, i int) error, len(p.values))
	for k, d := range p.values {
		read[k] = printValues(d, func(i int) int { return Length(p.all, p.fields[k], i) })
	}
	for _, i := range rows {
		var h maphash.Hash
		h.SetSeed(seed)
		ok := true
		for _, at := range p.files {
			x, err := at(i)
			ok = ok && err == nil && x.Print(&h) == nil
		}
		for _, add := range read {
			ok = ok && add(&h, i) == nil
		}
		if ok {
			out = append(out, h.Sum64())
		}
	}
	return out
}

// printValues returns a function that adds an example to a hash. Pixels and long examples count as they are stored. Others
// count as the values that the network takes, because these do not depend on the format of the file. length is the length
// of an example that is filled up, or −1.
func printValues(d Dataset, length func(i int) int) func(h *maphash.Hash, i int) error {
	e := examplesIn(d)
	if stored := e.stored; stored != nil && (e.bytes || len(stored(0)) > 3*listing.Block) {
		return func(h *maphash.Hash, i int) error {
			b := stored(i)
			for _, at := range listing.Blocks(int64(len(b))) {
				h.Write(b[at[0]:at[1]])
			}
			return nil
		}
	}
	values := e.size.Make(1)
	var b []byte
	return func(h *maphash.Hash, i int) error {
		if err := d.Read(values, i); err != nil {
			return err
		}
		b = b[:0]
		floats, ints := values.Floats, values.Ints
		if n := length(i); n >= 0 { // other data may be filled up to another length
			most := int(e.shape[0])
			floats, ints = floats[:len(floats)/most*n], ints[:len(ints)/most*n]
		}
		for _, v := range floats {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		for _, v := range ints {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		h.Write(b)
		return nil
	}
}

// mostDecoded bounds the image files that are decoded to compare them with an array of pictures.
const mostDecoded = 500

// sharedPictures compares image files with an array of uint8 pictures. It decodes some of the files, and counts those whose
// pixels are in the array.
func sharedPictures(files, array *printer) int {
	e := examplesIn(array.all)
	if len(files.files) != 1 || len(files.values) > 0 || len(array.files) > 0 || len(array.values) != 1 || !e.bytes {
		return 0
	}
	seed := maphash.MakeSeed()
	have := map[uint64]bool{}
	for i := range array.n {
		have[maphash.Bytes(seed, e.stored(i))] = true
	}
	decoder, step := listing.Decoder{Budget: listing.NewBudget(0), Orientation: orientation(files.all)}, max(1, files.n/mostDecoded)
	found := 0
	for i := 0; i < files.n; i += step {
		x, err := files.files[0](i)
		if err != nil {
			continue
		}
		for _, layout := range layoutsOf(e.storedShape) {
			isIn := false
			x.Picture(decoder, layout.channels == 1, func(p picture.Picture) error { // one that cannot be read is not there
				b := layout.bytes(p)
				isIn = b != nil && have[maphash.Bytes(seed, b)]
				return nil
			})
			if isIn {
				found++
				break
			}
		}
	}
	return found
}

// orientation returns that of the pictures in d, which has image files.
func orientation(d Dataset) picture.Orientation {
	if p := examplesIn(d).pictures; p != nil {
		return p.Orientation
	}
	return picture.Pillow
}

// storedLayout says how an array stores pictures.
type storedLayout struct {
	h, w, channels int
	planes         bool // channel by channel
}

// layoutsOf returns the layouts that an array with examples of that shape may have.
func layoutsOf(shape []int64) (all []storedLayout) {
	if len(shape) == 2 {
		return []storedLayout{{int(shape[0]), int(shape[1]), 1, false}}
	}
	if len(shape) != 3 {
		return nil
	}
	a, b, c := int(shape[0]), int(shape[1]), int(shape[2])
	if c == 1 || c == 3 {
		all = append(all, storedLayout{a, b, c, false})
	}
	if a == 1 || a == 3 {
		all = append(all, storedLayout{b, c, a, true})
	}
	return all
}

// bytes returns the picture as the array would store it, or nil if it has another size.
func (l storedLayout) bytes(p picture.Picture) []byte {
	if p.H != l.h || p.W != l.w || p.C != l.channels {
		return nil
	}
	if !l.planes || l.channels == 1 {
		return p.Pix
	}
	out, n := make([]byte, len(p.Pix)), p.H*p.W
	for k, v := range p.Pix {
		out[k%p.C*n+k/p.C] = v
	}
	return out
}
