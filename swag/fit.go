package swag

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// DefaultRank is the paper's K, the number of deviation columns kept
// (section 5, "we use K = 20").
const DefaultRank = 20

// defaultBlock is the number of weights that a worker holds at a time, from every checkpoint: 1.3 MB for 20
// checkpoints. It is a multiple of dense.GramLen.
const defaultBlock = 1 << 14

// Checkpoint is one file and the SGD iterate that it holds.
type Checkpoint struct {
	// Path is the file's path as the posterior records it: relative to the posterior's folder, or absolute.
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // of the file, in hex
	// StateDict is the key of the weights in the file, if the file holds several sets of weights.
	StateDict string         `json:"state_dict,omitempty"`
	Given     string         `json:"-"` // the path as the user wrote it, for errors; empty means Path
	Theta     weights.Vector `json:"-"` // its parameters
	// Statistics are the batch-norm statistics that it stores. They are not part of the posterior. Nil if the layout
	// has none.
	Statistics weights.Vector `json:"-"`
}

func (c Checkpoint) String() string { return cmp.Or(c.Given, c.Path) }

// Card is the model card. It describes the network's inputs and outputs, and is given once, when the posterior is
// made.
type Card struct {
	// Augment says how training pictures were augmented, in the syntax of package internal/augment. It is empty if
	// not given, and "none" if pictures were not augmented.
	Augment string `json:"augment,omitempty"`
	// Output names the graph's output with the scores; empty means the first output.
	Output string `json:"output,omitempty"`
	// Task says what the scores mean, by a name of package internal/task; empty if not given.
	Task string `json:"task,omitempty"`
	// Scores says what the scores of a classifier are: "logits", "probabilities" or "log-probabilities". It is empty
	// if the graph does not prove it and the user did not give it.
	Scores string `json:"scores,omitempty"`
	// Targets says what the scores of a regression are. Nil for other tasks or if not given.
	Targets *Targets `json:"targets,omitempty"`
	// ClassNames has the name of every class, or is nil.
	ClassNames []string `json:"class_names,omitempty"`
	// ClassAxis is the axis of the scores in an output with scores for several positions of an example, such as pixels
	// or tokens: 1 for [N C H W], −1 for [N T C]. It is 0 if an example has one row of scores.
	ClassAxis int `json:"class_axis,omitempty"`
	// IgnoreIndex is the label of positions that count nowhere, such as 255; nil if not given. Negative labels never
	// count.
	IgnoreIndex *int `json:"ignore_index,omitempty"`
	// FileOrder says in which order files belong to the rows of an array: "text", "number" or "given", of package
	// internal/dataset/fileorder. It is empty if nobody gave it.
	FileOrder string `json:"file_order,omitempty"`
	// Columns maps the name of an input to the table columns that feed it. Pad maps the name of an input to the value
	// that fills up short lists. Both are nil if not given.
	Columns map[string][]string `json:"columns,omitempty"`
	Pad     map[string]float64  `json:"pad,omitempty"`
	// State pairs inputs with the outputs that give their next values, as the hidden states of a language model. It is empty
	// if the network has none, and nil if nobody looked for them.
	State []StatePair `json:"state,omitzero"`
	// Updates are the numbers of updates of batch-norm statistics between the last two checkpoints, by the name of a running mean. It is
	// nil if all layers have equally many, and if nobody counted them.
	Updates map[string]int64 `json:"updates,omitempty"`
	// Preprocess says how pictures become inputs, as JSON of package internal/preprocess. Nil means that pixels are
	// only scaled to [0, 1].
	Preprocess json.RawMessage `json:"preprocess,omitempty"`
	// Parity says how the network with the weights of the checkpoints was held against numbers of the training framework. Nil if
	// it was not.
	Parity *Parity `json:"parity,omitempty"`
}

// Parity is what a comparison with reference outputs showed: what the training framework itself computed for a few examples.
type Parity struct {
	File   string `json:"file"`             // name of the file with them
	SHA256 string `json:"sha256,omitempty"` // of the file
	// Off is the reason why nothing was compared, or "".
	Off string `json:"off,omitempty"`
	// Held is the number of checkpoints whose outputs are equal, of the number Of that were fitted. It is 0 if the outputs are
	// those of the graph alone, with the weights that it was exported with.
	Held     int `json:"held"`
	Of       int `json:"of"`
	Examples int `json:"examples"` // of the last one. Of the others there are at most two.
	// Difference is the largest, in units of the largest number of its output. Tolerance is what rounding explains.
	Difference float64 `json:"difference"`
	Tolerance  float64 `json:"tolerance"`
	// Made is the part of the framework's report that tells how the numbers were made: device, type, version.
	Made string `json:"made,omitempty"`
	// Loader is how equal the tensors of the training program are to those that the preprocessing on the card makes of its pictures.
	Loader string `json:"loader,omitempty"`
}

// Proves reports whether every checkpoint has outputs of the training framework, and the graph gives them.
func (p *Parity) Proves() bool { return p != nil && p.Off == "" && p.Held > 0 && p.Held == p.Of }

// ProvesInputs reports whether the preprocessing on the card makes the tensors of the training program.
func (p *Parity) ProvesInputs() bool { return p != nil && p.Loader != "" }

// String says it in words.
func (p *Parity) String() string {
	text := "not checked"
	switch {
	case p == nil:
	case p.Off != "":
		text += ": " + p.Off
	case p.Held == 0:
		text = fmt.Sprintf("the exported graph, largest difference %.1g", p.Difference)
	default:
		text = fmt.Sprintf("%d of %d checkpoints, largest difference %.1g", p.Held, p.Of, p.Difference)
	}
	if p.ProvesInputs() {
		text += "; preprocessing as in training: " + p.Loader
	}
	return text
}

// StatePair is a state of a network: the output Out of a batch is the input In of the next one. Axis is that of the batch
// in both.
type StatePair struct {
	In   string `json:"in"`
	Out  string `json:"out"`
	Axis int    `json:"axis"`
}

// Targets are the numbers that a regression predicts. Each list has one number for each target, or one for all.
type Targets struct {
	// VarianceHead says what the second half of the scores is, by a name of package calibrate/regression. It is empty
	// if all scores are means.
	VarianceHead string `json:"variance_head,omitempty"`
	// Mean and Std convert the network's numbers z to targets: Mean + Std·z. They are nil if the numbers are the
	// targets.
	Mean []float64 `json:"mean,omitempty"`
	Std  []float64 `json:"std,omitempty"`
	// NoiseStd is the standard deviation of targets about their means, in units of the targets. It is for networks
	// without a variance head.
	NoiseStd []float64 `json:"noise_std,omitempty"`
}

// Input is the input of [Fit].
type Input struct {
	Layout      *weights.Layout
	Checkpoints []Checkpoint // in training order
	// Theta0 is the pre-trained network that the iterates started from, or nil. It counts as one model in the
	// moments, as in Algorithm 1, line 1. It adds no deviation from the running mean. The reference's CIFAR script
	// leaves it out.
	Theta0 *Checkpoint
	// Mean is an average of weights that exists already, or nil. It takes the place of the mean of the checkpoints: see
	// [Given].
	Mean *Checkpoint
	// Previous is a posterior of the same layout that the checkpoints continue,
	// or nil. Its options apply; see [Posterior.Continues].
	Previous *Posterior
	// Warnings are notes that a user of the posterior must know. The file keeps them.
	Warnings []string
	Card     Card
	// Template says, in JSON, how to read checkpoints that are not models of their own. It is nil if all are models.
	// Fit stores it unchanged.
	Template json.RawMessage
	// Graph holds what the caller needs to turn a vector back into a model. Fit stores it unchanged.
	Graph []byte
	// Release, if not nil, is called each time a large part of the checkpoints has been read. It gives the memory of
	// mapped files back.
	Release func()
}

// FitFile writes the posterior of [Fit] to a new file at path, and opens it. It fails if there is a file of that name. After
// another error there is none.
func FitFile(ctx context.Context, path string, in Input, opts FitOptions) (*Posterior, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(Fit(ctx, f, in, opts), f.Close()); err != nil {
		os.Remove(path)
		return nil, err
	}
	return Open(path)
}

// Deviations names the mean from which the columns of D deviate.
type Deviations string

const (
	// Running is the paper's Algorithm 1: the deviations of the last K iterates, each from the mean of all iterates
	// up to and including itself. The zero value of [FitOptions] means Running.
	Running Deviations = "running"
	// Final takes the deviations of all T models from θ_SWA itself. It keeps the best approximation of rank K of
	// their covariance with divisor T−1. Algorithm 1 would have to keep T models for this.
	Final Deviations = "final"
	// Given stands for a mean from [Input.Mean], such as the average over all batches of an epoch, or an exponential
	// moving average. The paper has such a mean for its language models: "to estimate the mean θ_SWA we average weights
	// after each mini-batch of data rather than once per epoch" (appendix "Language Modeling"). It does not say what
	// Σ is then.
	//
	// Here Σ describes the checkpoints about the given mean m. The diagonal is their second moment about it, Σ(θ_t−m)²/T,
	// and the columns of D are θ_t−m of the last K checkpoints, with divisor K−1. Both parts have one centre, and no
	// variance is negative, as E[θ²]−m² may be. The checkpoints' own variance is smaller by the square of the distance
	// from their mean to m.
	Given Deviations = "given"
)

// FitOptions are the options of [Fit]. The zero value is the paper's choice.
type FitOptions struct {
	Rank       int  // K, the number of columns of D; 0 means DefaultRank
	DiagOnly   bool // no deviations: SWAG-Diagonal
	Deviations Deviations
	// Power makes the weights of the models rise towards the end of training, as t^Power: the power profile of Karras et al. 2024
	// (arXiv:2312.02696, equation 123 in its discrete form). Model n has the share 1−(1−1/n)^(Power+1) in the mean of the first n.
	// Mean, variance and running means of the deviations have these weights. Zero weighs all models alike, as the paper does. It is
	// at most [MaxPower].
	Power int
	// Reference computes the numbers of the authors' code. Moments are float32, with a lower bound on the variance.
	// The divisor of the low-rank part is K−1, even with fewer columns than K.
	Reference bool
	// ReferToCheckpoints leaves the deviations out of the file. A reader computes them from the checkpoints, with the
	// same bits. See [Posterior.Needs].
	ReferToCheckpoints bool
	Roles              []string // noted in the file: see [Options.Roles]
	Producer           string
	// Health, if not nil, judges whether SWAG can describe the trajectory. The file keeps the returned value as JSON.
	// See trajectory.Describe.
	Health func(Trajectory) any

	BlockLen int                     // weights per block; 0 means the default. Never changes the result
	Workers  int                     // 0 means one per core. Never changes the result
	Progress func(done, total int64) // called with the bytes of checkpoints done and in total; may be nil
}

// Fit computes the moments and the low-rank deviations of the iterates and writes the posterior file to w. Mean and
// variance are those of the n models seen, with divisor n.
//
// A single checkpoint has no spread. Fit then writes its weights as the mean, and neither variance nor deviations: see
// [Posterior.Single].
//
// A weight that is NaN, infinite or too large to be [weights.Plausible] is an error that names checkpoint, tensor and
// index. The file is complete only if Fit returns nil.
func Fit(ctx context.Context, w io.WriterAt, in Input, opts FitOptions) error {
	f, err := newFitter(in, opts)
	if err != nil {
		return err
	}
	if f.out, err = newWriter(w, f); err != nil {
		return err
	}
	if err := f.pass(ctx, f.moments, f.writeMoments); err != nil {
		return err
	}
	if f.options.Deviations == Final {
		var ok bool
		if f.mixing, _, ok = dense.Principal(f.gram, f.options.Columns); !ok {
			return errors.New("the eigenvectors of the checkpoints' inner products were not found")
		}
		if !f.options.Referenced {
			if err := f.pass(ctx, f.mixed, f.writeDeviations); err != nil {
				return err
			}
		}
	}
	return f.finish()
}

// fitter holds the state of a fit.
type fitter struct {
	in      Input
	models  []Checkpoint // θ0, if it counts, then the checkpoints
	options Options
	opts    FitOptions
	d       int64
	seen    int // models in the posterior that the fit continues
	kept    int // columns taken from that posterior

	out        *writer
	width      int64 // bytes of one model's parameters
	done       int64 // weights read, over all passes
	unreleased weights.Unreleased
	gram       *mat.SymDense // inner products of all models' deviations from θ_SWA, for Final
	mixing     [][]float64
	trajectory [][]float32 // a row for each model, including those of Previous
	centre     []float32   // the given mean at the same weights
	frozen     int64
	subUlp     int64
}

func newFitter(in Input, opts FitOptions) (*fitter, error) {
	f := &fitter{in: in, models: in.Checkpoints, opts: opts, d: in.Layout.Len(weights.Parameter)}
	if in.Theta0 != nil {
		f.models = append([]Checkpoint{*in.Theta0}, in.Checkpoints...)
	}
	f.opts.Rank, f.opts.Deviations = cmp.Or(opts.Rank, DefaultRank), cmp.Or(opts.Deviations, Running)
	if f.opts.Workers <= 0 {
		f.opts.Workers = runtime.GOMAXPROCS(0)
	}
	if f.opts.BlockLen <= 0 {
		f.opts.BlockLen = defaultBlock
	}
	if f.opts.Deviations == Final {
		f.opts.BlockLen = (f.opts.BlockLen + dense.GramLen - 1) / dense.GramLen * dense.GramLen
	}
	if in.Mean != nil {
		f.opts.Deviations = Given
	}
	if p := in.Previous; p != nil {
		if err := p.Continues(); err != nil {
			return nil, err
		}
		if !p.Layout.Equal(in.Layout) || in.Theta0 != nil {
			return nil, fmt.Errorf("%s: is of another network", p.Path)
		}
		f.opts.Rank, f.opts.DiagOnly, f.opts.Deviations = p.Options.Rank, p.Options.Rank == 0, p.Options.Deviations
		f.opts.Power, f.seen = p.Options.Power, p.Options.Models
	}
	f.plan()
	if err := f.check(); err != nil {
		return nil, err
	}
	for _, t := range in.Layout.Role(weights.Parameter) {
		f.width += t.Len() * t.DType.Size()
	}
	f.trajectory = make([][]float32, f.options.Models)
	if f.options.Deviations == Final {
		f.gram = mat.NewSymDense(len(f.models), nil)
	}
	if p := in.Previous; p != nil {
		for t := range f.seen {
			f.trajectory[t] = p.trajectoryRow(t)
		}
	}
	return f, nil
}

// plan sets the options that the file will record.
func (f *fitter) plan() {
	checkpoints := len(f.in.Checkpoints)
	if p := f.in.Previous; p != nil {
		checkpoints += len(p.Checkpoints)
	}
	o := Options{Rank: f.opts.Rank, Deviations: f.opts.Deviations, Models: f.seen + len(f.models),
		Theta0: f.in.Theta0 != nil || f.in.Previous != nil && f.in.Previous.Options.Theta0, Power: f.opts.Power, Roles: f.opts.Roles}
	if f.opts.DiagOnly {
		o.Rank = 0
		if o.Deviations != Given {
			o.Deviations = Running
		}
	}
	switch {
	case o.Models == 1 || f.opts.DiagOnly: // no columns
	case f.opts.Reference: // θ0 counts like any other model there
		o.Columns, o.Divisor = min(o.Rank, o.Models), o.Rank-1
	case o.Deviations == Final: // the deviations of T models from their mean have T−1 dimensions
		o.Columns, o.Divisor = min(o.Rank, o.Models-1), o.Models-1
	default:
		o.Columns = min(o.Rank, checkpoints)
		o.Divisor = o.Columns - 1
	}
	if f.opts.Reference {
		o.Compat = compatReference
	}
	o.Referenced = f.opts.ReferToCheckpoints && o.Columns > 0
	f.kept = max(0, o.Columns-len(f.models))
	f.options = o
}

func (f *fitter) check() error {
	switch n := len(f.in.Checkpoints); {
	case f.in.Mean != nil && (n < 2 || f.in.Theta0 != nil || f.in.Previous != nil || f.opts.Reference || f.options.Referenced):
		return errors.New("a given mean needs at least 2 checkpoints, and goes with no other choice than the rank")
	case f.in.Mean == nil && f.opts.Deviations == Given:
		return errors.New("deviations from a given mean need the mean")
	case f.opts.Power < 0 || f.opts.Power > MaxPower:
		return fmt.Errorf("power %d, want 0 to %d", f.opts.Power, MaxPower)
	case f.opts.Power > 0 && (f.options.Deviations != Running || f.opts.Reference):
		return errors.New("weights that rise go with deviations from the running mean")
	case n == 0 || n == 1 && f.in.Theta0 != nil:
		return fmt.Errorf("%d checkpoints: a covariance needs at least 2", n)
	case f.options.Models == 1 && (f.opts.Reference || f.opts.Deviations == Final || f.opts.ReferToCheckpoints):
		return errors.New("one checkpoint has no deviations")
	}
	if !f.opts.DiagOnly && f.opts.Rank < 2 {
		return fmt.Errorf("rank %d: the low-rank part is divided by K−1, so K must be at least 2", f.opts.Rank)
	}
	if f.opts.Reference && (f.options.Deviations != Running || f.options.Referenced || f.seen > 0) {
		return errors.New("the reference's code knows the deviations from the running mean only, stored, and starts anew")
	}
	if f.options.Referenced && f.seen > 0 {
		return errors.New("a posterior that refers to its checkpoints is fitted anew from all of them")
	}
	if f.d == 0 {
		return errors.New("there is nothing to fit: no tensor of weights differs between the checkpoints, or there is none")
	}
	for _, c := range f.in.Checkpoints {
		var statistics int64
		if c.Statistics != nil {
			statistics = c.Statistics.Len()
		}
		if want := f.in.Layout.Len(weights.Statistic); statistics != want {
			return fmt.Errorf("%s: %d batch-norm statistics and buffers, want %d", c, statistics, want)
		}
	}
	models := f.models
	if f.in.Mean != nil {
		models = append(slices.Clone(models), *f.in.Mean)
	}
	for _, c := range models {
		if c.Theta.Len() != f.d {
			return fmt.Errorf("%s: %d weights, want %d", c, c.Theta.Len(), f.d)
		}
	}
	return nil
}

// block is a range of the vector: the models' weights there, and their moments.
type block struct {
	off            int64
	n              int
	theta          [][]float32 // a row for each model
	mean, variance []float64
	before         []float64   // the running mean before the first deviation
	deviations     [][]float32 // columns of D, as rows
	grams          []*mat.SymDense
	work           []float64
	samples        [][]float32 // the models at the trajectory's weights
	centre         []float32   // the given mean there
	frozen, subUlp int64
}

// pass computes all blocks in parallel and commits them in order.
func (f *fitter) pass(ctx context.Context, compute, commit func(b *block) error) error {
	length := int64(f.opts.BlockLen)
	return inOrder(ctx, int((f.d+length-1)/length), f.opts.Workers,
		func(i int, b *block) error {
			b.off = int64(i) * length
			b.n = int(min(length, f.d-b.off))
			if err := f.read(b); err != nil {
				return err
			}
			return compute(b)
		},
		func(_ int, b *block) error {
			f.progress(b)
			return commit(b)
		})
}

// read fills a block with the models' weights.
func (f *fitter) read(b *block) error {
	if b.theta == nil {
		length := f.opts.BlockLen
		b.theta = dense.Rows[float32](len(f.models), length)
		b.mean, b.variance, b.before = make([]float64, length), make([]float64, length), make([]float64, length)
		b.deviations = dense.Rows[float32](f.options.Columns, length)
		if f.options.Deviations == Final {
			b.work = make([]float64, len(f.models)*dense.GramLen)
		}
	}
	b.mean, b.variance, b.before = b.mean[:b.n], b.variance[:b.n], b.before[:b.n]
	for k := range b.deviations {
		b.deviations[k] = b.deviations[k][:b.n]
	}
	for t, c := range f.models {
		b.theta[t] = b.theta[t][:b.n]
		if err := c.Theta.ReadAt(b.theta[t], b.off); err != nil {
			return err
		}
	}
	return nil
}

// moments computes the mean, the variance and the deviations. Deviations from θ_SWA need a second pass.
func (f *fitter) moments(b *block) error {
	clear(b.mean)
	clear(b.variance)
	if p := f.in.Previous; p != nil {
		p.Mean(b.mean, b.off)
		p.Variance(b.variance, b.off)
		p.storedDeviations(b.deviations[:f.kept], p.Options.Columns-f.kept, b.off)
	}
	// first is the row of the first deviation that is made here.
	made := b.deviations[f.kept:]
	if f.options.Deviations == Final {
		made = nil
	}
	first := len(b.theta) - len(made)
	if f.options.Referenced {
		made = nil
	}
	switch {
	case f.options.Models == 1:
		for i, v := range b.theta[0] {
			b.mean[i] = float64(v) // the recurrence would lose the sign of a zero
		}
	case f.in.Mean != nil:
		if err := f.aboutGiven(b, made); err != nil {
			return err
		}
	case f.opts.Reference:
		reference(b.theta, b.mean, b.variance, made)
	default:
		running(b.theta[:first], f.seen, f.options.Power, b.mean, b.variance, nil)
		copy(b.before, b.mean)
		running(b.theta[first:], f.seen+first, f.options.Power, b.mean, b.variance, made)
	}
	if err := f.sound(b); err != nil {
		return err
	}
	if f.options.Deviations == Final {
		f.grams(b)
	}
	f.look(b)
	return nil
}

// aboutGiven computes the moments and the deviations about a mean that was given.
func (f *fitter) aboutGiven(b *block, deviations [][]float32) error {
	given := make([]float32, b.n)
	if err := f.in.Mean.Theta.ReadAt(given, b.off); err != nil {
		return err
	}
	if err := f.in.Layout.Sound(weights.Parameter, given, b.off); err != nil {
		return fmt.Errorf("%s: %w", f.in.Mean, err)
	}
	about(b.theta, given, b.mean, b.variance, deviations)
	return nil
}

// sound fails if a weight is not [weights.Plausible]. The moments show such a weight: mean² + variance is the mean of
// the squares of n models, and one square is above the limit. The first model has the least share, (1/n)^(Power+1).
func (f *fitter) sound(b *block) error {
	bound := weights.MaxMagnitude * weights.MaxMagnitude / 2 // 2: float32 rounding
	for range f.options.Power + 1 {
		bound /= float64(f.options.Models)
	}
	for i, m := range b.mean {
		if m*m+b.variance[i] < bound {
			continue
		}
		for t, c := range f.models {
			if err := f.in.Layout.Sound(weights.Parameter, b.theta[t][i:i+1], b.off+int64(i)); err != nil {
				return fmt.Errorf("%s: %w", c, err)
			}
		}
		if m-m == 0 && b.variance[i]-b.variance[i] == 0 {
			continue
		}
		largest := 0
		for t := range f.models {
			if math.Abs(float64(b.theta[t][i])) > math.Abs(float64(b.theta[largest][i])) {
				largest = t
			}
		}
		tensor, at := f.in.Layout.At(weights.Parameter, b.off+int64(i))
		return fmt.Errorf("%s: tensor %q: value %v at index %d: the moments are beyond float32, which the reference's code computes in",
			f.models[largest], tensor.Name, b.theta[largest][i], at)
	}
	return nil
}

// grams computes the inner products of each dense.GramLen weights of the block.
func (f *fitter) grams(b *block) {
	b.grams = b.grams[:0]
	for lo := 0; lo < b.n; lo += dense.GramLen {
		hi := min(lo+dense.GramLen, b.n)
		sum := mat.NewSymDense(len(b.theta), nil)
		dense.AddGram(sum, dense.Cut(b.theta, lo, hi), b.mean[lo:hi], b.work)
		b.grams = append(b.grams, sum)
	}
}

// look counts the weights that sampling cannot move, and copies the block's part of the trajectory.
func (f *fitter) look(b *block) {
	b.frozen, b.subUlp = 0, 0
	for i, v := range b.variance {
		// half is half an ulp of the mean as float32: 2⁻²⁴ of the power of two below it.
		half := 0x1p-24 * float64(math.Float32frombits(math.Float32bits(float32(b.mean[i]))&0x7f800000))
		switch {
		case v <= frozenVariance:
			b.frozen++
		case v < half*half:
			b.subUlp++
		}
	}
	b.samples, b.centre = slices.Grow(b.samples[:0], len(b.theta))[:len(b.theta)], b.centre[:0]
	first, last := trajectoryRange(f.d, b.off, b.off+int64(b.n))
	for t, row := range b.theta {
		b.samples[t] = b.samples[t][:0]
		for j := first; j < last; j++ {
			b.samples[t] = append(b.samples[t], row[trajectoryIndex(f.d, j)-b.off])
		}
	}
	for j := first; j < last && f.in.Mean != nil; j++ {
		b.centre = append(b.centre, float32(b.mean[trajectoryIndex(f.d, j)-b.off]))
	}
}

// mixed computes the deviations from θ_SWA that the first pass chose.
func (f *fitter) mixed(b *block) error {
	clear(b.mean)
	clear(b.variance)
	running(b.theta, 0, 0, b.mean, b.variance, nil) // as in the first pass
	mixedDeviations(b.theta, f.mixing, b.mean, b.deviations)
	return nil
}

// progress reports a block that has been read.
func (f *fitter) progress(b *block) {
	f.done += int64(b.n)
	f.unreleased.Read(int64(len(f.models))*int64(b.n)*f.width/f.d, f.in.Release)
	if f.opts.Progress != nil {
		passes := int64(1)
		if f.options.Deviations == Final && !f.options.Referenced {
			passes = 2
		}
		total := f.width * int64(len(f.models)) * passes
		f.opts.Progress(int64(float64(f.done)/float64(f.d*passes)*float64(total)), total)
	}
}
