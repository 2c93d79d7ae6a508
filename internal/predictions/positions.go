package predictions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Positions are saved predictions of pixels or tokens: a float array [N C H W] or [N T C], C numbers for each
// position. They stay in their file, since they may not fit into memory.
type Positions struct {
	Path, SHA256 string
	From         string // where they come from, such as `probabilities (array "probs")`
	Task         task.Task
	Len          int           // N
	Labels       target.Target // integers [N H W] or [N T], below 0 where unknown; independent labels have the shape of the predictions

	file        *numpy.File
	key         string
	independent bool // labels, not classes
}

// OpenPositions opens the predictions in an .npz or .npy for the named task, classes or labels. It returns nil if the array
// has one position for an example, as [Read] reads it. The caller closes the file.
func OpenPositions(path, of string, opts ReadOptions) (*Positions, error) {
	f, err := numpy.Open(path)
	if err != nil {
		return nil, err
	}
	p := &Positions{Path: path, SHA256: f.SHA256, file: f}
	several, err := p.open(of, opts)
	if err != nil || !several {
		f.Close()
		return nil, err
	}
	return p, nil
}

// Close closes the file.
func (p *Positions) Close() { p.file.Close() }

func (p *Positions) open(of string, opts ReadOptions) (several bool, err error) {
	if p.key, err = pickPredictions(p.file.Keys, opts.Key); err != nil {
		return false, nil // [Read] reports what is wrong
	}
	_, shape, err := p.file.Shape(p.key)
	if err != nil || len(shape) < 3 {
		return false, err
	}
	p.independent = task.TraitsOf(of).Alone
	axis, err := p.axis(shape, opts)
	if err != nil {
		return false, err
	}
	spec := task.OutputSpec{Output: p.key, Axis: axis, Count: shape[1], Positions: 1}
	sides := shape[2:]
	if axis == -1 {
		spec.Count, sides = shape[len(shape)-1], shape[1:len(shape)-1]
	}
	if len(sides) > len(spec.Sides) {
		return false, fmt.Errorf("%s: shape %d, want [N C H W] for pixels or [N T C] for tokens", p.file.Where(p.key), shape)
	}
	for i, n := range sides {
		spec.Sides[i], spec.Positions = n, spec.Positions*n
	}
	p.Len = shape[0]
	if err := p.readLabels(of, opts.Labels, spec); err != nil {
		return false, err
	}
	from := "the array"
	if p.key != "" {
		from = fmt.Sprintf("array %q", p.key)
	}
	spec.Form = task.Logits
	if meaning(p.key) == "probabilities" || meaning(p.key) == "" && p.distributions(spec) {
		spec.Form = task.Probabilities
	}
	p.From = fmt.Sprintf("%s (%s)", spec.Form, from)
	if p.Task, err = task.New(of, spec); err != nil {
		return false, fmt.Errorf("%s: %w", p.file.Where(p.key), err)
	}
	if opts.Key == "" {
		err = p.same(shape)
	}
	return true, err
}

// same fails if the file also has probabilities, and they are not those of the logits. It looks at the first examples.
func (p *Positions) same(shape []int) error {
	const looked = 16
	other := slices.IndexFunc(p.file.Keys, func(key string) bool { return slices.Contains(probabilityNames, strings.ToLower(key)) })
	if meaning(p.key) != "logits" || other < 0 {
		return nil
	}
	key := p.file.Keys[other]
	if _, second, err := p.file.Shape(key); err != nil || !slices.Equal(second, shape) {
		return nil
	}
	read := func(key string) (rows [][]float64, err error) {
		err = p.file.Each(key, predictionRole, func(i int, one numpy.Array) error {
			if rows = append(rows, slices.Clone(one.Float64s())); len(rows) == looked {
				return errStop
			}
			return nil
		})
		if errors.Is(err, errStop) {
			err = nil
		}
		return rows, err
	}
	logits, err := read(p.key)
	if err != nil {
		return err
	}
	probs, err := read(key)
	if err != nil {
		return err
	}
	for i, row := range logits {
		if !agree(row, probs[i], task.SpecOf(p.Task), p.independent) {
			return fmt.Errorf("%s: %w", p.Path, &TwoError{fmt.Sprintf("array %q", p.key), fmt.Sprintf("array %q", key), i})
		}
	}
	return nil
}

// agree reports whether probabilities are the sigmoids of the scores of an example, or the softmax at each position.
func agree(scores, probs []float64, s task.OutputSpec, independent bool) bool {
	sums := make([]float64, s.Positions)
	at := func(k int) int {
		if s.Axis == 1 {
			return k % s.Positions
		}
		return k / s.Count
	}
	most := slices.Repeat([]float64{math.Inf(-1)}, s.Positions)
	for k, v := range scores {
		most[at(k)] = math.Max(most[at(k)], v)
	}
	for k, v := range scores {
		sums[at(k)] += math.Exp(v - most[at(k)])
	}
	for k, v := range scores {
		want := math.Exp(v-most[at(k)]) / sums[at(k)]
		if independent {
			want = 1 / (1 + math.Exp(-v))
		}
		if math.Abs(want-probs[k]) > savedRounding {
			return false
		}
	}
	return true
}

// An AxisError is the error for scores of pixels or tokens whose shape does not tell which axis has the classes.
type AxisError struct {
	Where string
	Shape []int
}

func (e *AxisError) Error() string {
	return fmt.Sprintf("%s: shape %d, and labels that fit both ways: which axis has the classes?", e.Where, e.Shape)
}

// Hint says how to answer.
func (e *AxisError) Hint() string {
	return setting.ClassAxis.With("-1") + ": the last, as in [N T C]\n" +
		setting.ClassAxis.With("1") + ": the one after the batch, as in [N C T] and [N C H W]"
}

// axis returns the axis of the classes: the one that the labels leave over. If they fit both ways, probabilities tell, because they
// add up to 1 along one axis. Without labels of one class a position it is 1 for pixels, and the last for tokens.
func (p *Positions) axis(shape []int, opts ReadOptions) (int, error) {
	usual, end := 1, len(shape)-1
	if len(shape) == 3 {
		usual = -1
	}
	if opts.Axis != 0 {
		return opts.Axis, nil
	}
	if p.independent {
		return usual, nil
	}
	labels := p.labelShape(opts)
	second, last := slices.Equal(labels, shape[2:]), slices.Equal(labels, shape[1:end])
	if second && last {
		sides := 1
		for _, n := range labels {
			sides *= n
		}
		second = p.distributions(task.OutputSpec{Axis: 1, Count: shape[1], Positions: sides})
		last = p.distributions(task.OutputSpec{Axis: -1, Count: shape[end], Positions: sides})
		if second == last {
			return 0, &AxisError{p.file.Where(p.key), shape}
		}
	}
	switch {
	case second:
		return 1, nil
	case last:
		return -1, nil
	}
	return usual, nil
}

// labelShape returns the shape of the labels of an example, or nil if nobody knows it.
func (p *Positions) labelShape(opts ReadOptions) []int {
	f := p.file
	if opts.Labels != "" {
		other, err := numpy.Open(opts.Labels)
		if err != nil {
			return nil
		}
		defer other.Close()
		f = other
	}
	key, err := f.Pick(numpy.Labels, p.key)
	if err != nil {
		return nil
	}
	if _, shape, err := f.Shape(key); err == nil && len(shape) > 1 {
		return shape[1:]
	}
	return nil
}

// readLabels reads the labels from the file itself, or from the given one.
func (p *Positions) readLabels(of, path string, spec task.OutputSpec) (err error) {
	kind, at := task.TraitsOf(of).Labels, &target.Positions{Width: spec.LabelWidth(of), Axis: spec.Axis}
	if path != "" {
		p.Labels, _, err = numpy.OpenTargets(path, p.key, kind, at, p.Len, p.Path)
		return err
	}
	key, err := p.file.Pick(numpy.Labels, p.key)
	if err == nil && key == "" {
		err = fmt.Errorf("%s: %w", p.Path, ErrNoTargets)
	}
	if err == nil {
		p.Labels, err = p.file.ReadTargets(key, kind, at, p.Len, p.Path)
	}
	return err
}

// distributions reports whether all positions of the first example hold probabilities of classes.
func (p *Positions) distributions(s task.OutputSpec) bool {
	sums := make([]float64, s.Positions)
	bad := false
	var values []float64
	p.file.Each(p.key, predictionRole, func(_ int, one numpy.Array) error {
		values = one.Float64s()
		for i, v := range values {
			at := i / s.Count
			if s.Axis == 1 {
				at = i % s.Positions
			}
			sums[at] += v
			bad = bad || !inUnit(v)
		}
		return errStop
	})
	if bad {
		return false
	}
	r := roundingOf(values, s.Count)
	return !slices.ContainsFunc(sums, func(v float64) bool { return math.Abs(v-1) > r.tolerance })
}

var errStop = fmt.Errorf("enough")

// Unit returns the unit of chance of example i. It is the example, or one of 64 blocks of a text, whose windows stand in its
// order.
func (p *Positions) Unit(i int) int {
	const blocks = 64
	if !task.SpecOf(p.Task).Next {
		return i
	}
	return i * min(blocks, p.Len) / p.Len
}

// Each calls f with the outcome and the label of each example in turn. Tokens whose numbers are all NaN only fill up a text.
// skipped counts examples that are NaN everywhere: score could not read them.
func (p *Positions) Each(f func(i int, outcome []float64, label target.Target) error) (skipped int, err error) {
	outcome := make([]float64, p.Task.About().Width)
	var scores []float32
	var signs target.Signs
	spec := task.SpecOf(p.Task)
	err = p.file.Each(p.key, predictionRole, func(i int, one numpy.Array) error {
		scores = scores[:0]
		for _, v := range one.Float64s() {
			scores = append(scores, float32(v))
		}
		clear(outcome)
		if !p.pad(outcome, scores, spec) {
			skipped++
			return nil
		}
		_, err := task.AddPositions(p.Task, outcome, scores, 1, 0, spec.Positions)
		label := target.Target{}
		if err == nil {
			label, err = p.Labels.Load(i)
		}
		if err == nil {
			err = p.Task.CheckLabel(label)
		}
		if spec.Next {
			label.Text = &target.Text{Unit: slices.Repeat([]int{p.Unit(i)}, max(1, label.Positions))}
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
		for _, class := range label.Classes {
			signs.Add(float64(class))
		}
		for _, v := range label.Values {
			signs.Add(v)
		}
		return f(i, outcome, label)
	})
	if err == nil && (spec.Count == 2 || p.independent) {
		err = signs.Err()
	}
	return skipped, err
}

// pad marks the tokens whose scores are all NaN. It reports false if an example has no other scores.
func (p *Positions) pad(outcome []float64, scores []float32, spec task.OutputSpec) bool {
	isNumber := func(v float32) bool { return v == v }
	if spec.Axis == 1 {
		return slices.ContainsFunc(scores, isNumber)
	}
	own := 0
	for at := range spec.Positions {
		if slices.ContainsFunc(scores[at*spec.Count:][:spec.Count], isNumber) {
			own++
		} else {
			task.Pad(p.Task, outcome, at)
		}
	}
	return own > 0
}
