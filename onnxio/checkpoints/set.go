package checkpoints

import (
	"bytes"
	"iter"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Set is the checkpoints of one network, matched tensor by tensor.
type Set struct {
	Layout *weights.Layout
	// Models are the checkpoints in the order given, with their tensors known by
	// the names of the layout.
	Models []*onnxio.Model
	// Reference is the index of the model that the names are of: the last among
	// those with the most tensors, since exporters merge tensors that happen to
	// be equal.
	Reference int
	// ByPlace says that some checkpoint has other names, and its tensors were
	// matched by their place in the sequence of nodes.
	ByPlace bool

	unreleased int // bytes
}

// New compares the checkpoints of one network and says which tensors make
// the flat vector. Of the floating-point tensors, those that batch norm nodes
// read their running statistics from are statistics, those that differ between
// checkpoints are parameters, wherever the model keeps them, and the rest are
// constants. The order is that of the reference's file.
//
// Matrices that are equal in every checkpoint, or each other's transpose, are
// one weight that an exporter wrote twice (pytorch#108342): they are tied.
//
// With a single checkpoint nothing can be seen to differ: then every float
// initializer that is not a scalar is taken for a parameter.
//
// Errors are of type [*onnxio.Error]: the models are not of one network (see
// [Match]), elements cannot be read, a statistic or constant has a value that no
// training leaves, or the network is of a kind that cannot have a posterior.
func New(models []*onnxio.Model) (set *Set, err error) {
	err = weights.Guarded(func() error { // every byte of the models is read here
		set, err = compare(models)
		return err
	})()
	return set, err
}

func compare(models []*onnxio.Model) (*Set, error) {
	s := &Set{}
	for i, m := range models {
		if len(floats(m)) >= len(floats(models[s.Reference])) {
			s.Reference = i
		}
	}
	ref := models[s.Reference]
	if err := unsupported(ref); err != nil {
		return nil, err
	}
	for _, m := range models {
		for _, t := range m.Tensors() {
			if err := m.Readable(t); err != nil {
				return nil, err
			}
		}
		same, err := Match(m, ref)
		if err != nil {
			return nil, odd(models, err)
		}
		s.Models = append(s.Models, same)
		names := namesOf(m)
		s.ByPlace = s.ByPlace || slices.ContainsFunc(floats(ref), func(t *onnxio.Tensor) bool { return names[t.Name] != same.Tensor(t.Name) })
	}
	bns, err := ref.BatchNorms()
	if err != nil {
		return nil, err
	}
	statistic := make(map[string]bool)
	for _, bn := range bns {
		statistic[bn.Mean], statistic[bn.Var] = true, true
	}
	initializer := make(map[*onnxio.Tensor]bool)
	for _, g := range ref.Graphs() {
		for _, t := range g.Initializers {
			initializer[t] = true
		}
	}

	var tensors []weights.Tensor
	for _, t := range floats(ref) {
		entry := weights.Tensor{Name: t.Name, Shape: t.Shape, DType: t.ElemType.DType()}
		switch {
		case statistic[t.Name]:
			entry.Role = weights.Statistic
		case len(models) == 1 && len(t.Shape) > 0 && initializer[t], s.differs(t.Name):
			entry.Role = weights.Parameter
			s.tie(&entry, tensors)
		}
		tensors = append(tensors, entry)
	}
	if s.Layout, err = weights.NewLayout(tensors); err != nil {
		return nil, &onnxio.Error{Path: ref.Path, Err: err}
	}
	if err := s.sound(s.Models[s.Reference]); err != nil {
		return nil, err
	}
	return s, s.distinct()
}

// distinct fails if two checkpoints hold the same weights, whatever their files are:
// training scripts save the last or best one under a second name.
func (s *Set) distinct() error {
	parameters := s.Layout.Role(weights.Parameter)
	for k := range s.Models {
		for i := range k {
			if len(parameters) > 0 && !slices.ContainsFunc(parameters, func(t weights.Tensor) bool { return !s.equal(i, t.Name, k, t.Name) }) {
				return &onnxio.Error{Path: s.Models[k].Path, What: "has the same weights as " + s.Models[i].Path, Hint: "give every checkpoint once"}
			}
		}
	}
	return nil
}

// odd returns the error in terms of the first model where it can: that is the
// one a user compares the others with.
func odd(models []*onnxio.Model, err error) error {
	for _, m := range models[1:] {
		if _, first := Match(m, models[0]); first != nil {
			return first
		}
	}
	return err
}

// elements returns a tensor's elements in model k.
func (s *Set) elements(k int, name string) []byte {
	m := s.Models[k]
	return m.Elements(m.Tensor(name))
}

// differs reports whether a tensor is not equal in all models.
func (s *Set) differs(name string) bool {
	return !s.always(func(k int) bool { return s.equal(0, name, k, name) })
}

// equal compares a tensor of model i with one of model k.
func (s *Set) equal(i int, a string, k int, b string) bool {
	if i == k && a == b {
		return true
	}
	return sameBits(s.Models[i], s.Models[i].Tensor(a), s.Models[k], s.Models[k].Tensor(b), s.read)
}

// sameBits compares the elements of two tensors, and tells read, if it is not nil,
// how many bytes it has read.
func sameBits(m *onnxio.Model, a *onnxio.Tensor, o *onnxio.Model, b *onnxio.Tensor, read func(bytes int)) bool {
	if a.Len() != b.Len() {
		return false
	}
	for off, n := range stretches(a.Len()) {
		x, y := m.Stretch(a, off, n), o.Stretch(b, off, n)
		if !bytes.Equal(x, y) {
			return false
		}
		if read != nil {
			read(len(x) + len(y))
		}
	}
	return true
}

// stretches cuts n elements into what is read at a time: offset and number. The first
// is short, since most tensors that differ do so at once.
func stretches(n int64) iter.Seq2[int64, int64] {
	return func(yield func(off, n int64) bool) {
		count := int64(firstStretch)
		for off := int64(0); off < n; count = compareStretch {
			count = min(count, n-off)
			if !yield(off, count) {
				return
			}
			off += count
		}
	}
}

// How many elements are read at a time.
const (
	firstStretch   = 1 << 10
	compareStretch = 1 << 20
)

// releaseBytes is how much is read before the memory that it took is given back.
const releaseBytes = 64 << 20

// read notes that so many bytes were read, and gives their memory back now and
// then.
func (s *Set) read(n int) {
	if s.unreleased += n; s.unreleased >= releaseBytes {
		s.unreleased = 0
		for _, m := range s.Models {
			m.Release()
		}
	}
}

// tie notes which of the matrices before it entry is a copy of. Vectors are
// never tied: two biases that started equal and always had the same gradient
// stay equal without being one weight.
func (s *Set) tie(entry *weights.Tensor, before []weights.Tensor) {
	if len(entry.Shape) != 2 || entry.Len() < 2 {
		return
	}
	for _, o := range before {
		if o.Role != weights.Parameter || o.Tied != "" || o.DType != entry.DType || len(o.Shape) != 2 || o.Len() != entry.Len() {
			continue
		}
		if slices.Equal(o.Shape, entry.Shape) && s.always(func(k int) bool { return s.equal(k, o.Name, k, entry.Name) }) {
			entry.Tied = o.Name
			return
		}
		rows, columns, size := int(o.Shape[0]), int(o.Shape[1]), int(o.DType.Size())
		if entry.Shape[0] == o.Shape[1] && s.always(func(k int) bool {
			a, b := s.elements(k, o.Name), s.elements(k, entry.Name)
			defer s.read(len(a) + len(b))
			return transposes(a, b, rows, columns, size)
		}) {
			entry.Tied, entry.Transposed = o.Name, true
			return
		}
	}
}

func (s *Set) always(equal func(k int) bool) bool {
	for k := range s.Models {
		if !equal(k) {
			return false
		}
	}
	return true
}

// transposes reports whether b is the transpose of a, rows × columns elements of
// the given size.
func transposes(a, b []byte, rows, columns, size int) bool {
	for r := range rows {
		for c := range columns {
			i, j := (r*columns+c)*size, (c*rows+r)*size
			if !bytes.Equal(a[i:i+size], b[j:j+size]) {
				return false
			}
		}
	}
	return true
}
