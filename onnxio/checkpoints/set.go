package checkpoints

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Set is the checkpoints of one network, matched tensor by tensor.
type Set struct {
	Layout *weights.Layout
	// Models are the checkpoints in the given order. Their tensors are known by the names of the layout.
	Models []*onnxio.Model
	// Reference is the index of the model that gives the names. It is the last among those with the most tensors,
	// since exporters merge tensors that happen to be equal.
	Reference int
	// ByPlace says that a checkpoint has other names, and its tensors were matched by their place in the sequence of
	// nodes.
	ByPlace bool

	unreleased weights.Unreleased
	touched    touched
}

// New compares the checkpoints of one network and decides which tensors form the flat vector. It gives each
// floating-point tensor a role. Tensors from which batch norm nodes read their running statistics are statistics.
// Tensors that are equal in all checkpoints are constants. The rest are parameters or buffers, wherever the model
// keeps them. A buffer is state of training that is no weight, such as the vectors of spectral norm.
// [weights.Tensor].Reason says why a tensor is a buffer. The rules come first; a rule that matches no tensor is an
// error. Tensors are in the order of the reference's file.
//
// Matrices that are equal in every checkpoint, or the transpose of each other, are one weight that an exporter wrote
// twice (pytorch#108342). They are tied.
//
// With a single checkpoint no differences are visible. Then every float initializer that is not a scalar counts as
// one that differs.
//
// Errors are of type [*onnxio.Error]. The models may be of different networks (see [Match]), or elements may be
// unreadable. A statistic or constant may have a value that no training leaves behind, or this kind of network may
// not support a posterior.
func New(models []*onnxio.Model, rules ...RoleRule) (set *Set, err error) {
	err = weights.Guarded(func() error { // reads every byte of the models
		set, err = compare(models, rules)
		return err
	})()
	return set, err
}

func compare(models []*onnxio.Model, rules []RoleRule) (*Set, error) {
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
		s.ByPlace = s.ByPlace || slices.ContainsFunc(floats(ref), func(t *onnxio.Tensor) bool {
			return names[t.Name] != same.Tensor(t.Name)
		})
	}
	if err := s.narrow(ref); err != nil {
		return nil, err
	}
	bns, err := ref.BatchNorms()
	if err != nil {
		return nil, err
	}
	statistic := make(map[string]bool)
	for _, bn := range bns {
		statistic[bn.Mean], statistic[bn.Var] = true, true
	}
	r := s.newRoles(ref, rules)
	var tensors []weights.Tensor
	known := make(map[tieKey][]weights.Tensor)
	for _, t := range floats(ref) {
		entry := weights.Tensor{Name: t.Name, Shape: t.Shape, DType: t.ElemType.DType()}
		switch {
		case statistic[t.Name]:
			entry.Role = weights.Statistic
		case len(models) == 1 && len(t.Shape) > 0 && r.initializers[t.Name], s.differs(t.Name):
			if entry.Role, entry.Reason = r.decide(t); entry.Role == weights.Parameter {
				s.tie(&entry, known)
			}
		}
		tensors = append(tensors, entry)
	}
	if rule := r.unused(); rule != nil {
		return nil, &onnxio.Error{
			Path: ref.Path,
			What: fmt.Sprintf("%s: no tensor of this name differs between the checkpoints", setting.Role.With(rule.String())),
			Hint: setting.Line(setting.Inspect.String()) + " lists the tensors with their roles",
		}
	}
	if err := r.unasked(ref); err != nil {
		return nil, err
	}
	if s.Layout, err = weights.NewLayout(tensors); err != nil {
		return nil, &onnxio.Error{Path: ref.Path, Err: err}
	}
	if err := s.sound(s.Models[s.Reference]); err != nil {
		return nil, err
	}
	if err := lifted(ref, s.Layout); err != nil {
		return nil, err
	}
	return s, s.distinct()
}

// lifted fails if no tensor is a parameter, because the exporter turned all weights into constants. PyTorch's dynamo exporter
// does so with weights that no module owns, such as those of Keras 3 with the backend torch.
func lifted(ref *onnxio.Model, l *weights.Layout) error {
	if l.Len(weights.Parameter) > 0 {
		return nil
	}
	for _, t := range l.Tensors {
		if t.Role == weights.Buffer && strings.HasPrefix(t.Name, "lifted_tensor_") {
			return &onnxio.Error{
				Path:   ref.Path,
				Tensor: t.Name,
				What:   "a constant in place of a weight: the exporter found no parameters of the network",
				Hint:   kerasHint,
			}
		}
	}
	return nil
}

// A TwinsError is about models that hold the same weights.
type TwinsError struct {
	Fault *onnxio.Error
	Pairs []Pair
}

func (e *TwinsError) Error() string { return e.Fault.Error() }
func (e *TwinsError) Unwrap() error { return e.Fault }

// distinct fails if checkpoints hold the same weights, even in different files. Training scripts often save the
// last or best checkpoint under a second name.
func (s *Set) distinct() error {
	parameters := s.Layout.Role(weights.Parameter)
	var pairs []Pair
	for k := range s.Models {
		for i := range k {
			a, b := s.Models[i], s.Models[k]
			if len(parameters) == 0 && sharedData(a, b) == "" || slices.ContainsFunc(parameters, func(t weights.Tensor) bool {
				return !s.equal(i, t.Name, k, t.Name)
			}) {
				continue
			}
			pairs = append(pairs, Pair{i, k})
		}
	}
	if pairs == nil {
		return nil
	}
	a, b := s.Models[pairs[0][0]], s.Models[pairs[0][1]]
	return &TwinsError{&onnxio.Error{Path: b.Path, What: "has the same weights as " + a.Path, Hint: GivenOnce(a, b)}, pairs}
}

// odd returns the error relative to the first model if possible, because a user compares the others with it.
func odd(models []*onnxio.Model, err error) error {
	for _, m := range models[1:] {
		if _, first := Match(m, models[0]); first != nil {
			return first
		}
	}
	return err
}

func (s *Set) elements(k int, name string) []byte {
	m := s.Models[k]
	return m.Elements(m.Tensor(name))
}

// differs reports whether a tensor is not equal in all models.
func (s *Set) differs(name string) bool {
	return !s.always(func(k int) bool { return s.equal(0, name, k, name) })
}

func (s *Set) equal(i int, a string, k int, b string) bool {
	if i == k && a == b {
		return true
	}
	x, y := s.Models[i].Tensor(a), s.Models[k].Tensor(b)
	if x == nil || y == nil {
		return true // a constant that has no place in a simplified model: see Match
	}
	return x.Len() == y.Len() && sameStretches(x.Len(), stretchesOf(s.Models[i], x), stretchesOf(s.Models[k], y), func(x, y []byte) bool {
		s.read(len(x), s.Models[i])
		s.read(len(y), s.Models[k])
		return bytes.Equal(x, y)
	})
}

// stretchesOf returns a function that reads elements [off, off+n) of a tensor.
func stretchesOf(m *onnxio.Model, t *onnxio.Tensor) func(off, n int64) []byte {
	return func(off, n int64) []byte { return m.Stretch(t, off, n) }
}

// sameStretches reads n elements of two tensors, some at a time, until same is false.
func sameStretches(n int64, a, b func(off, n int64) []byte, same func(x, y []byte) bool) bool {
	for off, n := range stretches(n) {
		if !same(a(off, n), b(off, n)) {
			return false
		}
	}
	return true
}

// stretches cuts n elements into ranges that are read at a time: offset and number. The first range is short, since
// most tensors that differ do so at once.
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

// Numbers of elements that are read at a time.
const (
	firstStretch   = 1 << 10
	compareStretch = 1 << 20
)

// around is the number of bytes that the system may map around one that is read: a huge page.
const around = 2 << 20

// read notes that n bytes in a row were read of a model. It gives the memory of the models that were read back from time
// to time.
func (s *Set) read(n int, m *onnxio.Model) {
	s.touched.add(m)
	s.unreleased.Read(int64(max(n, around)), s.touched.release)
}

// touched are models that were read since their memory was given back.
type touched struct {
	mu     sync.Mutex
	models map[*onnxio.Model]bool
}

func (t *touched) add(m *onnxio.Model) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.models == nil {
		t.models = make(map[*onnxio.Model]bool)
	}
	t.models[m] = true
}

func (t *touched) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for m := range t.models {
		m.Release()
	}
	clear(t.models)
}

// A tieKey is equal for tensors that have the same elements in the same order in every model. Another key is equal
// for matrices that are the transpose of each other. Other tensors rarely share a key.
type tieKey struct {
	dtype      weights.DType
	len        int64
	transposes bool
	sum        uint64
}

// keySeed is the seed of the sums in this process.
var keySeed = maphash.MakeSeed()

// orderKey reads a few elements of a tensor in every model.
func (s *Set) orderKey(t *weights.Tensor) tieKey {
	const read = 16
	n := t.Len()
	return s.tieKey(t, func(of func(at int64) uint64) (sum uint64) {
		for i := range min(read, n) {
			sum = 31*sum + of(i*(n-1)/read)
		}
		return 31*sum + of(n-1)
	})
}

// transposeKey reads a few elements of a matrix in every model: the first, the last, and pairs that transposing
// exchanges.
func (s *Set) transposeKey(t *weights.Tensor) tieKey {
	rows, columns := t.Shape[0], t.Shape[1]
	least := min(rows, columns)
	k := s.tieKey(t, func(of func(at int64) uint64) uint64 {
		sum := of(0) + 3*of(rows*columns-1)
		const pairs = 8
		for n := range min(pairs, least) {
			a, b := n*(least-1)/pairs, (n*n+1)%least
			sum += of(a*columns+b) + of(b*columns+a)
		}
		return sum
	})
	k.transposes = true
	return k
}

func (s *Set) tieKey(t *weights.Tensor, sum func(of func(at int64) uint64) uint64) tieKey {
	k := tieKey{dtype: t.DType, len: t.Len()}
	for i, m := range s.Models {
		held := m.Tensor(t.Name)
		k.sum += uint64(2*i+1) * sum(func(at int64) uint64 { return maphash.Bytes(keySeed, m.Stretch(held, at, 1)) })
		s.read(int(t.Len()*t.DType.Size()), m) // these elements are all over the tensor
	}
	return k
}

// tie sets entry.Tied if entry is a copy of one of the known tensors, or adds entry to them. Exporters that fold
// constants write a weight a second time in another shape, or transposed. Vectors are never tied. Two biases that
// started equal and always had the same gradient stay equal without being one weight.
func (s *Set) tie(entry *weights.Tensor, known map[tieKey][]weights.Tensor) {
	matrix := len(entry.Shape) == 2
	if entry.Len() < 2 || !matrix && onnxio.IsVector(entry.Shape) {
		return
	}
	order := s.orderKey(entry)
	for _, o := range known[order] {
		if s.always(func(k int) bool { return s.equal(k, o.Name, k, entry.Name) }) {
			entry.Tied = o.Name
			return
		}
	}
	if matrix {
		key := s.transposeKey(entry)
		for _, o := range known[key] {
			rows, columns, size := int(o.Shape[0]), int(o.Shape[1]), int(o.DType.Size())
			if entry.Shape[0] == o.Shape[1] && s.always(func(k int) bool {
				a, b := s.elements(k, o.Name), s.elements(k, entry.Name)
				defer s.read(len(a)+len(b), s.Models[k])
				return transposes(a, b, rows, columns, size)
			}) {
				entry.Tied, entry.Transposed = o.Name, true
				return
			}
		}
		known[key] = append(known[key], *entry)
	}
	known[order] = append(known[order], *entry)
}

func (s *Set) always(equal func(k int) bool) bool {
	for k := range s.Models {
		if !equal(k) {
			return false
		}
	}
	return true
}

// transposes reports whether b is the transpose of a, a matrix of rows × columns elements of the given size.
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

// quantised are the operators that compute with integers instead of the floats that a network was trained with.
var quantised = map[string]bool{
	"QLinearConv": true, "QLinearMatMul": true, "ConvInteger": true, "MatMulInteger": true,
	"DequantizeLinear": true, "QuantizeLinear": true, "DynamicQuantizeLinear": true, "MatMulNBits": true,
}

// random are the operators that draw numbers in every run. Dropout is not in the list: [onnxio.Edit.DisableDropout] switches it off.
var random = map[string]bool{
	"RandomNormal":      true,
	"RandomNormalLike":  true,
	"RandomUniform":     true,
	"RandomUniformLike": true,
	"Multinomial":       true,
	"Bernoulli":         true,
}

// classical are the operators of ai.onnx.ml that hold what was learned in their attributes.
var classical = map[string]bool{
	"LinearClassifier": true, "LinearRegressor": true, "SVMClassifier": true, "SVMRegressor": true,
	"TreeEnsembleClassifier": true, "TreeEnsembleRegressor": true, "TreeEnsemble": true,
}

// unsupported returns an error if a model of this kind cannot have a posterior, whatever its checkpoints are.
func unsupported(m *onnxio.Model) error {
	for _, p := range m.Places() {
		if quantised[p.Node.OpType] {
			return &onnxio.Error{Path: m.Path, What: fmt.Sprintf("is quantised: node %q is %s", p.Node.Name, p.Node.OpType),
				Hint: "a posterior is over the weights that SGD moved: export the float network, and quantise what " +
					setting.Line(setting.Export.String()) + " writes"}
		}
		if p.Node.Domain == "ai.onnx.ml" && classical[p.Node.OpType] {
			return &onnxio.Error{
				Path: m.Path,
				What: fmt.Sprintf("its weights are attributes of a node of type %s, and no tensors", p.Node.OpType),
				Hint: "a posterior is over tensors that SGD moved: of scikit-learn's models, MLPClassifier and MLPRegressor have such " +
					"tensors",
			}
		}
		if random[p.Node.OpType] {
			return &onnxio.Error{Path: m.Path, What: fmt.Sprintf("draws at random: node %q is %s", p.Node.Name, p.Node.OpType),
				Hint: "its predictions are others in every run, so that no result could be had twice: export the network in evaluation " +
					"mode, without the noise"}
		}
	}
	for _, t := range m.Tensors() {
		if t.ElemType == onnxio.String {
			return &onnxio.Error{Path: m.Path, Tensor: t.Name, What: "holds strings, which no network is trained with",
				Hint: "export the network alone, without the look-up of its class names"}
		}
	}
	return nil
}

// narrow fails for a tensor of a type below 16 bits that differs between the models. It is read as a constant, so that an average would
// have one model's.
func (s *Set) narrow(ref *onnxio.Model) error {
	elements := func(m *onnxio.Model, t *onnxio.Tensor) []byte {
		fields, packed := t.Body()
		if packed.Len() > 0 {
			return m.Content().Copy(packed)
		}
		return append(m.Content().Copy(fields), m.Elements(t)...)
	}
	all := func(m *onnxio.Model) (out []*onnxio.Tensor) {
		for _, t := range m.Tensors() {
			if t.ElemType.IsNarrow() {
				out = append(out, t)
			}
		}
		return out
	}
	want := all(ref)
	for _, m := range s.Models {
		own := all(m)
		for i, t := range own[:min(len(own), len(want))] {
			if !bytes.Equal(elements(m, t), elements(ref, want[i])) {
				return &onnxio.Error{
					Path:   m.Path,
					Tensor: t.Name,
					What: fmt.Sprintf("%v elements that differ from those of %s: such numbers are no weights that SGD moves", t.ElemType,
						ref.Path),
					Hint: "export the float network, and quantise what " + setting.Line(setting.Export.String()) + " writes",
				}
			}
		}
	}
	return nil
}

// sampleRun is the number of weights side by side that a sample takes at a place.
const sampleRun = 32

// Sample returns some of the parameters of every model, the same in all: about most of them, from all over each tensor, and some of
// every tensor. It reads only these places.
func (s *Set) Sample(most int) (values [][]float32, err error) {
	err = weights.Guarded(func() error {
		values, err = s.sample(most)
		return err
	})()
	return values, err
}

func (s *Set) sample(most int) ([][]float32, error) {
	values := make([][]float32, len(s.Models))
	total := s.Layout.Len(weights.Parameter)
	for _, t := range s.Layout.Role(weights.Parameter) {
		runs := max(1, int64(most)*t.Len()/(total*sampleRun))
		step := max(1, t.Len()/runs)
		for k, m := range s.Models {
			held, err := m.Lookup(t)
			if err != nil {
				return nil, err
			}
			for off := int64(0); off < t.Len(); off += max(step, sampleRun) {
				row := make([]float32, min(sampleRun, t.Len()-off))
				t.DType.Float32s(row, m.Stretch(held, off, int64(len(row))))
				values[k] = append(values[k], row...)
			}
			s.read(int(min(t.Len()*t.DType.Size(), runs<<12)), m)
		}
	}
	s.touched.release()
	if i := slices.IndexFunc(values, func(v []float32) bool { return len(v) != len(values[0]) }); i > 0 {
		return nil, fmt.Errorf("checkpoints: %d weights of %s, want %d", len(values[i]), s.Models[i].Path, len(values[0]))
	}
	return values, nil
}
