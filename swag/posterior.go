package swag

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// Kind and version of a posterior file; see docs/formats.md for the promise
// that goes with the version.
const (
	PosteriorKind    = "swagwrap.posterior"
	PosteriorVersion = 1
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

// templateKey is the metadata that only posteriors of checkpoints have that are no
// models of their own.
const templateKey = "template"

// compatReference is [Options.Compat] of a posterior as the authors' code
// computes it.
const compatReference = "reference"

// releaseBytes is how much of mapped files is read before their memory is given
// back.
const releaseBytes = 64 << 20

// Options are a posterior's choices as its file records them.
type Options struct {
	Rank       int        `json:"rank"`    // K as asked for; 0 with the diagonal alone
	Columns    int        `json:"columns"` // columns of D: K, or fewer when there were fewer iterates
	Divisor    int        `json:"divisor"` // Σ_lr = D̂D̂ᵀ/divisor
	Deviations Deviations `json:"deviations"`
	Compat     string     `json:"compat"`     // "reference": as the authors' code computes it; else empty
	Theta0     bool       `json:"theta0"`     // θ0 counted as a model
	Models     int        `json:"models"`     // models in the moments, θ0 included
	Dropout    bool       `json:"dropout"`    // Dropout stays on in predictions, as the graph has it
	Referenced bool       `json:"referenced"` // D̂ is not in the file but in the checkpoints
}

// Posterior is an open posterior file.
type Posterior struct {
	Path        string
	ID          string // identifies the file's content
	Layout      *weights.Layout
	Options     Options
	Checkpoints []Checkpoint // Theta is not set
	Theta0      *Checkpoint
	Warnings    []string
	Card        Card
	Template    json.RawMessage // as given to Fit, or nil
	Health      json.RawMessage // see FitOptions.Health
	Statistics  weights.Slice   // batch-norm statistics of the last checkpoint
	// StoredStatistics are those of each checkpoint, in their order.
	StoredStatistics [][]float32
	Graph            []byte // as given to Fit
	// Mixing is, with deviations from the final mean, how much of each model's
	// deviation goes into each column of D̂, K×Models; else nil.
	Mixing [][]float64

	file                                                 *weights.Safetensors
	mean, variance, before, deviations, last, trajectory weights.View

	// Of a posterior that refers to its checkpoints, once they are attached.
	attached []weights.Vector
	released func()
	scratch  sync.Pool // of *rebuilding

	onClose    []func() error
	unreleased atomic.Int64 // bytes read since the memory was last given back
}

// Open maps the posterior file at path and checks its header. It does not read
// the whole file: see [Posterior.Verify].
func Open(path string) (*Posterior, error) {
	st, err := weights.OpenSafetensors(path)
	if err != nil {
		return nil, err
	}
	p, err := read(st)
	if err != nil {
		st.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Parse is [Open] for a file in memory; path is for error messages.
func Parse(path string, data []byte) (*Posterior, error) {
	st, err := weights.ParseSafetensors(path, data)
	if err != nil {
		return nil, err
	}
	p, err := read(st)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func read(st *weights.Safetensors) (*Posterior, error) {
	if err := st.CheckKind(PosteriorKind, PosteriorVersion); err != nil {
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
	if p.Layout, err = weights.NewLayout(tensors); err != nil {
		return nil, err
	}
	if err := p.Options.check(len(p.Checkpoints), p.Theta0 != nil); err != nil {
		return nil, fmt.Errorf("metadata \"options\": %w", err)
	}
	o := p.Options
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

// check refuses options that no fit has.
func (o Options) check(checkpoints int, theta0 bool) error {
	models := checkpoints
	if theta0 {
		models++
	}
	switch {
	case o.Models != models || o.Theta0 != theta0:
		return fmt.Errorf("%d models of %d checkpoints", o.Models, checkpoints)
	case o.Columns < 0 || o.Columns > models || o.Columns > 0 && o.Divisor < 1 || o.Columns == 0 && o.Deviations == Final:
		return fmt.Errorf("%d deviation columns of %d checkpoints, divided by %d", o.Columns, checkpoints, o.Divisor)
	case o.Deviations != Running && o.Deviations != Final || o.Compat != "" && o.Compat != compatReference:
		return fmt.Errorf("deviations %q, compat %q: written by another version", o.Deviations, o.Compat)
	case o.Referenced && (o.Columns == 0 || o.Columns > checkpoints):
		return fmt.Errorf("%d deviation columns in %d checkpoints", o.Columns, checkpoints)
	}
	return nil
}

// keepsBefore reports whether the running mean before the first deviation is
// needed to find the deviations again.
func (o Options) keepsBefore() bool { return o.Referenced && o.Deviations == Running }

// keepsLast reports whether the deviations do not hold the last checkpoint.
func (o Options) keepsLast() bool {
	return o.Columns == 0 || o.Deviations == Final && !o.Referenced
}

// mixes reports whether the columns of D̂ are combinations of deviations.
func (o Options) mixes() bool { return o.Deviations == Final }

// Close unmaps the file, and closes what [Posterior.OnClose] was told of. Views and
// samplers of it are invalid afterwards.
func (p *Posterior) Close() error {
	err := p.file.Close()
	for _, f := range p.onClose {
		err = errors.Join(err, f())
	}
	p.onClose = nil
	return err
}

// OnClose has Close call f too: the posterior is read together with files that it
// does not know, as those of attached checkpoints.
func (p *Posterior) OnClose(f func() error) { p.onClose = append(p.onClose, f) }

// Verify reads the whole file and checks it against its checksums.
func (p *Posterior) Verify() error { return p.file.Verify() }

// Len returns d, the number of weights.
func (p *Posterior) Len() int64 { return p.mean.Len() }

// Mean reads θ_SWA[off : off+len(dst)].
func (p *Posterior) Mean(dst []float64, off int64) {
	p.mean.Float64s(dst, off)
	p.read(8 * int64(len(dst)))
}

// Variance reads the diagonal of Σ_diag, [off : off+len(dst)]: the variance of
// the iterates, with their number as divisor.
func (p *Posterior) Variance(dst []float64, off int64) {
	p.variance.Float64s(dst, off)
	p.read(8 * int64(len(dst)))
}

// Deviations sets dst[k] to elements [off, off+len(dst[k])) of column k of D̂,
// for all K = Options.Columns of them; all of dst are of one length. With
// deviations from the running mean, column k is that of the k-th of the last K
// iterates, oldest first; with those from the final mean it is the k-th
// principal direction, largest first. It fails where a checkpoint that holds
// them cannot be read.
//
// With fewer rows in dst, they are the columns that a fit of that rank would have
// kept: those of the last iterates, or the first principal directions.
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

// storedDeviations reads the columns from first on.
func (p *Posterior) storedDeviations(dst [][]float32, first int, off int64) {
	for k, row := range dst {
		p.deviations.Float32s(row, int64(first+k)*p.Len()+off)
		p.read(4 * int64(len(row)))
	}
}

// trajectoryRow reads what the posterior keeps of a model.
func (p *Posterior) trajectoryRow(t int) []float32 {
	row := make([]float32, p.trajectory.Shape[1])
	p.trajectory.Float32s(row, int64(t)*int64(len(row)))
	return row
}

// read notes that n bytes of mapped files have been read, and gives their memory
// back when there are many.
func (p *Posterior) read(n int64) {
	if p.unreleased.Add(n) < releaseBytes {
		return
	}
	p.unreleased.Store(0)
	p.file.Release()
	if p.released != nil {
		p.released()
	}
}
