package swag

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// Kind and versions of a posterior file. docs/formats.md says what a version guarantees. Only weights that rise need the second: a
// reader of the first would compute other checkpoints from the deviations.
const (
	PosteriorKind    = "swagwrap.posterior"
	PosteriorVersion = 1
	risingVersion    = 2
)

// Names of the sections of a posterior file.
const (
	meanSection       = "mean"
	varianceSection   = "variance"
	beforeSection     = "before"
	deviationsSection = "deviations"
	mixingSection     = "mixing"
	lastSection       = "last"
	trajectorySection = "trajectory"
	statisticsSection = "statistics"
	healthSection     = "health"
	graphSection      = "graph"
)

// templateKey and meanKey are metadata keys. Only posteriors of checkpoints that are not models of their own have the
// first, and only those with a given mean have the second.
const (
	templateKey = "template"
	meanKey     = "mean"
)

// compatReference is the value of [Options.Compat] for a posterior computed like the authors' code.
const compatReference = "reference"

// Options are the choices of a fit, as the posterior's file records them.
type Options struct {
	Rank       int        `json:"rank"`    // K as requested; 0 with the diagonal alone
	Columns    int        `json:"columns"` // columns of D: K, or fewer if there were fewer iterates
	Divisor    int        `json:"divisor"` // Σ_lr = D̂D̂ᵀ/divisor
	Deviations Deviations `json:"deviations"`
	Compat     string     `json:"compat"`          // "reference": computed like the authors' code; else empty
	Theta0     bool       `json:"theta0"`          // θ0 counted as a model
	Models     int        `json:"models"`          // models in the moments, θ0 included
	Referenced bool       `json:"referenced"`      // D̂ is not in the file but in the checkpoints
	Power      int        `json:"power,omitempty"` // see [FitOptions.Power]
	// Roles are the user's rules for the roles of tensors, as NAME=ROLE.
	Roles []string `json:"roles,omitempty"`
}

// Posterior is an open posterior file.
type Posterior struct {
	Path        string
	ID          string // identifies the file's content
	Layout      *weights.Layout
	Options     Options
	Checkpoints []Checkpoint // Theta is not set
	Theta0      *Checkpoint
	GivenMean   *Checkpoint // the file of the mean, if it was given; Theta is not set
	Warnings    []string
	Card        Card
	Template    json.RawMessage // the recipe that was given to Fit, or nil
	Health      json.RawMessage // see FitOptions.Health
	// Statistics are the batch-norm statistics and buffers of the last checkpoint, as one
	// flat vector: see [weights.Role.Vector].
	Statistics weights.Slice
	// StoredStatistics are those of each checkpoint, in their order.
	StoredStatistics [][]float32
	Graph            []byte // the graph that was given to Fit
	// Mixing says how much of each model's deviation goes into each column of D̂, as K×Models numbers. It is nil
	// unless deviations are from the final mean.
	Mixing [][]float64

	file                                                 *weights.Safetensors
	mean, variance, before, deviations, last, trajectory weights.View

	// attached and released are set once the checkpoints that the posterior refers to are attached.
	attached []weights.Vector
	released func()
	scratch  sync.Pool // of *rebuilding

	onClose    []func() error
	unreleased weights.Unreleased
}

// Open maps the posterior file at path and checks its header. It does not read
// the whole file: see [Posterior.Verify].
func Open(path string) (*Posterior, error) {
	st, err := weights.OpenSafetensors(path)
	return opened(st, err)
}

// Read is [Open] for a file that is open already. Close closes it, and so does Read if it fails.
func Read(st *weights.Safetensors) (*Posterior, error) { return opened(st, nil) }

// Parse is [Open] for a file in memory; path is for error messages.
func Parse(path string, data []byte) (*Posterior, error) {
	st, err := weights.ParseSafetensors(path, data)
	return opened(st, err)
}

func opened(st *weights.Safetensors, err error) (*Posterior, error) {
	if err != nil {
		return nil, err
	}
	p, err := read(st)
	if err != nil {
		st.Close()
		return nil, fmt.Errorf("%s: %w", st.Path, err)
	}
	return p, nil
}

func read(st *weights.Safetensors) (*Posterior, error) {
	if err := st.CheckKind(PosteriorKind, risingVersion); err != nil {
		return nil, err
	}
	p := &Posterior{Path: st.Path, ID: st.ID(), file: st}
	var tensors []weights.Tensor
	err := st.DecodeMetadata(map[string]any{
		"options":     &p.Options,
		"checkpoints": &p.Checkpoints,
		"theta0":      &p.Theta0,
		"layout":      &tensors,
		"warnings":    &p.Warnings,
		"card":        &p.Card,
	})
	if err != nil {
		return nil, err
	}
	if js := st.Metadata[templateKey]; js != "" {
		p.Template = json.RawMessage(js)
	}
	if js := st.Metadata[meanKey]; js != "" {
		if err := json.Unmarshal([]byte(js), &p.GivenMean); err != nil {
			return nil, fmt.Errorf("metadata %q: %w", meanKey, err)
		}
	}
	if p.Layout, err = weights.NewLayout(tensors); err != nil {
		return nil, err
	}
	if err := p.Options.check(len(p.Checkpoints), p.Theta0 != nil); err != nil {
		return nil, fmt.Errorf("metadata \"options\": %w", err)
	}
	o := p.Options
	if (o.Deviations == Given) != (p.GivenMean != nil) {
		return nil, fmt.Errorf("deviations %q, but metadata %q is %q", o.Deviations, meanKey, st.Metadata[meanKey])
	}
	views := make(map[string]weights.View)
	for _, s := range o.sections(p.Layout, len(p.Checkpoints)) {
		v, ok := st.View(s.Name)
		switch {
		case ok && !s.wanted:
			return nil, fmt.Errorf("section %q: is not of a posterior with these options", s.Name)
		case s.wanted && (!ok || v.DType != s.DType || s.Shape != nil && !slices.Equal(v.Shape, s.Shape)):
			return nil, fmt.Errorf("section %q: want %v %v", s.Name, s.DType, s.Shape)
		}
		views[s.Name] = v
	}
	p.mean, p.variance, p.before, p.deviations, p.last, p.trajectory = views[meanSection], views[varianceSection], views[beforeSection],
		views[deviationsSection], views[lastSection], views[trajectorySection]
	if err := json.Unmarshal(views[healthSection].Data, &p.Health); err != nil {
		return nil, fmt.Errorf("section %q: %w", healthSection, err)
	}
	p.Graph = views[graphSection].Data
	statistics := views[statisticsSection]
	p.StoredStatistics = dense.Rows[float32](len(p.Checkpoints), int(statistics.Shape[1]))
	for t, row := range p.StoredStatistics {
		statistics.Float32s(row, int64(t)*statistics.Shape[1])
	}
	p.Statistics = p.StoredStatistics[len(p.Checkpoints)-1]
	if o.mixes() {
		p.Mixing = dense.Rows[float64](o.Columns, o.Models)
		for k, row := range p.Mixing {
			views[mixingSection].Float64s(row, int64(k*o.Models))
		}
	}
	return p, nil
}

// check refuses options that no fit can write.
func (o Options) check(checkpoints int, theta0 bool) error {
	models := checkpoints
	if theta0 {
		models++
	}
	switch {
	case o.Models != models || o.Theta0 != theta0 || checkpoints == 0 || checkpoints == 1 && theta0:
		return fmt.Errorf("%d models of %d checkpoints", o.Models, checkpoints)
	case o.Power < 0 || o.Power > MaxPower || o.Power > 0 && (o.Deviations != Running || o.Compat != ""):
		return fmt.Errorf("power %d with deviations %q, compat %q", o.Power, o.Deviations, o.Compat)
	case models == 1 && (o.Columns != 0 || o.Divisor != 0 || o.Compat != "" || o.Referenced):
		return errors.New("one checkpoint has no deviations")
	case o.Columns < 0 || o.Columns > models || o.Columns > 0 && o.Divisor < 1 || o.Columns == 0 && o.Deviations == Final:
		return fmt.Errorf("%d deviation columns of %d checkpoints, divided by %d", o.Columns, checkpoints, o.Divisor)
	case o.Deviations == Given && (models == 1 || theta0 || o.Compat != "" || o.Referenced):
		return errors.New("deviations from a given mean, with options that no fit combines with it")
	case o.Deviations != Running && o.Deviations != Final && o.Deviations != Given || o.Compat != "" && o.Compat != compatReference:
		return fmt.Errorf("deviations %q, compat %q: written by another version", o.Deviations, o.Compat)
	case o.Referenced && (o.Columns == 0 || o.Columns > checkpoints):
		return fmt.Errorf("%d deviation columns in %d checkpoints", o.Columns, checkpoints)
	}
	return nil
}

// keepsLast reports whether the file needs a section for the last checkpoint, because the deviations do not hold it.
func (o Options) keepsLast() bool {
	return o.Models > 1 && (o.Columns == 0 || o.Deviations == Final && !o.Referenced)
}

// mixes reports whether the columns of D̂ are combinations of deviations.
func (o Options) mixes() bool { return o.Deviations == Final }

// Close unmaps the file and calls the functions given to [Posterior.OnClose]. Views and samplers of the posterior are
// invalid afterwards.
func (p *Posterior) Close() error {
	err := p.file.Close()
	for _, f := range p.onClose {
		err = errors.Join(err, f())
	}
	p.onClose = nil
	return err
}

// OnClose makes Close call f too. It is for other files that the posterior is read with, such as those of attached
// checkpoints.
func (p *Posterior) OnClose(f func() error) { p.onClose = append(p.onClose, f) }

// Verify reads the whole file. It checks the checksums, and that each number is one that a fit can write. Another
// program may have written impossible numbers, and results of the posterior must not carry them on. The error of an
// impossible number is a [*weights.ImplausibleError] with the path and the section.
//
// Statistics must only be finite here. Whether batch norm can have them depends on the graph.
func (p *Posterior) Verify() error {
	if err := p.file.Verify(); err != nil {
		return err
	}
	return weights.Guarded(p.possible)()
}

// possible checks the numbers of all sections.
func (p *Posterior) possible() error {
	for _, s := range p.Options.sections(p.Layout, len(p.Checkpoints)) {
		if !s.wanted || s.DType == weights.U8 {
			continue
		}
		if err := p.section(s.Name, s.quantity); err != nil {
			return fmt.Errorf("%s: section %q: %w", p.Path, s.Name, err)
		}
	}
	return nil
}

// section checks the numbers of one section.
func (p *Posterior) section(name string, q weights.Quantity) error {
	const length = 1 << 22 // bytes
	v, _ := p.file.View(name)
	for off := 0; off < len(v.Data); off += length {
		part := v.Data[off:min(len(v.Data), off+length)]
		i := q.FirstImpossible(v.DType, part)
		p.read(int64(len(part)))
		if i < 0 {
			continue
		}
		i += int64(off) / v.DType.Size()
		t, at := p.place(name, i)
		t.DType = v.DType
		value := make([]float32, 1)
		v.Float32s(value, i)
		return &weights.ImplausibleError{Tensor: t, Index: at, Value: value[0], Want: q.Want()}
	}
	return nil
}

// place returns the tensor of element i of a section, and the index in that tensor. The trajectory and mixing
// sections have no tensors, so each counts as one.
func (p *Posterior) place(section string, i int64) (weights.Tensor, int64) {
	role := weights.Parameter
	switch section {
	case mixingSection, trajectorySection:
		return weights.Tensor{Name: section}, i
	case statisticsSection:
		role = weights.Statistic
	}
	return p.Layout.At(role, i%p.Layout.Len(role))
}

// Len returns d, the number of weights.
func (p *Posterior) Len() int64 { return p.mean.Len() }

// Mean reads θ_SWA[off : off+len(dst)].
func (p *Posterior) Mean(dst []float64, off int64) {
	p.mean.Float64s(dst, off)
	p.read(8 * int64(len(dst)))
}

// Single reports whether the posterior holds one checkpoint. Then its mean is that checkpoint, and it has neither a
// variance nor deviations: [NewSampler] accepts the scale 0 only.
func (p *Posterior) Single() bool { return p.Options.Models == 1 }

// Variance reads elements [off, off+len(dst)) of the diagonal of Σ_diag. It is the variance of the iterates, with their
// number as divisor. Variance panics if the posterior is [Posterior.Single].
func (p *Posterior) Variance(dst []float64, off int64) {
	p.variance.Float64s(dst, off)
	p.read(8 * int64(len(dst)))
}

// Deviations sets dst[k] to elements [off, off+len(dst[k])) of column k of D̂, for all K = Options.Columns columns.
// All rows of dst have the same length. With deviations from the running mean, column k belongs to the k-th of the
// last K iterates, oldest first, as it does with a given mean. With deviations from the final mean, it is the k-th
// principal direction, largest first. Deviations fails if a checkpoint that holds them cannot be read.
//
// If dst has fewer rows, they are the columns that a fit of that rank would have kept. These belong to the last
// iterates, or are the first principal directions.
func (p *Posterior) Deviations(dst [][]float32, off int64) error {
	first := p.Options.Columns - len(dst)
	if p.Options.Deviations == Final {
		first = 0
	}
	if p.Options.Referenced {
		return p.rebuild(dst, off)
	}
	p.storedDeviations(dst, first, off)
	return nil
}

// storedDeviations reads the columns of the file, starting at first.
func (p *Posterior) storedDeviations(dst [][]float32, first int, off int64) {
	for k, row := range dst {
		p.deviations.Float32s(row, int64(first+k)*p.Len()+off)
		p.read(4 * int64(len(row)))
	}
}

// trajectoryRow reads the weights of model t that the posterior keeps.
func (p *Posterior) trajectoryRow(t int) []float32 {
	row := make([]float32, p.trajectory.Shape[1])
	p.trajectory.Float32s(row, int64(t)*int64(len(row)))
	return row
}

// read notes that n bytes of mapped files have been read. It gives their memory back once there are many.
func (p *Posterior) read(n int64) {
	p.unreleased.Read(n, p.release)
}

// release gives the memory of mapped files back.
func (p *Posterior) release() {
	p.file.Release()
	if p.released != nil {
		p.released()
	}
}
