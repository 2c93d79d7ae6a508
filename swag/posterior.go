package swag

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/swagwrap/swagwrap/weights"
)

// Kind and version of a posterior file; see docs/formats.md for the promise
// that goes with the version.
const (
	PosteriorKind    = "swagwrap.posterior"
	PosteriorVersion = 1
)

// Sections of a posterior file.
const (
	meanSection       = "mean"
	varianceSection   = "variance"
	deviationsSection = "deviations"
	statisticsSection = "statistics"
	graphSection      = "graph"
)

// Options are a posterior's choices as its file records them.
type Options struct {
	Rank       int    `json:"rank"`       // K as asked for; 0 with the diagonal alone
	Columns    int    `json:"columns"`    // deviation columns present: K, or fewer when there were fewer iterates
	Deviations string `json:"deviations"` // "running": from the running mean, as in Algorithm 1
	Theta0     bool   `json:"theta0"`     // θ0 counted as a model
	Models     int    `json:"models"`     // iterates in the moments, θ0 included
	Dropout    bool   `json:"dropout"`    // Dropout stays on in predictions, as the graph has it
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
	Statistics  weights.Slice // of the last checkpoint
	Graph       []byte        // as given to Fit

	file                       *weights.Safetensors
	mean, variance, deviations weights.View
}

func metadata(it Iterates, opts Options, producer string) (map[string]string, error) {
	return weights.NewMetadata(PosteriorKind, PosteriorVersion, producer, map[string]any{
		"options":     opts,
		"checkpoints": it.Checkpoints,
		"theta0":      it.Theta0,
		"layout":      it.Layout.Tensors,
		"warnings":    append([]string{}, it.Warnings...),
	})
}

// writer fills the sections of a posterior file block by block.
type writer struct {
	sw                                            *weights.SafetensorsWriter
	mean, variance, deviations, statistics, graph io.Writer
	buf                                           []byte
}

func newWriter(w io.WriterAt, it Iterates, opts FitOptions, columns int) (*writer, error) {
	o := Options{Rank: opts.Rank, Columns: columns, Deviations: "running", Theta0: it.Theta0 != nil, Models: len(it.all()), Dropout: opts.Dropout}
	if opts.DiagOnly {
		o.Rank = 0
	}
	meta, err := metadata(it, o, opts.Producer)
	if err != nil {
		return nil, err
	}
	d := it.Layout.Len(weights.Parameter)
	// The widest elements come first, so that every section is aligned.
	sw, err := weights.NewSafetensorsWriter(w, []weights.Section{
		{Name: meanSection, DType: weights.F64, Shape: []int64{d}},
		{Name: varianceSection, DType: weights.F64, Shape: []int64{d}},
		{Name: deviationsSection, DType: weights.F32, Shape: []int64{d, int64(columns)}},
		{Name: statisticsSection, DType: weights.F32, Shape: []int64{it.Layout.Len(weights.Statistic)}},
		{Name: graphSection, DType: weights.U8, Shape: []int64{int64(len(it.Graph))}},
	}, meta)
	if err != nil {
		return nil, err
	}
	return &writer{sw: sw, mean: sw.Section(0), variance: sw.Section(1), deviations: sw.Section(2),
		statistics: sw.Section(3), graph: sw.Section(4)}, nil
}

// append writes the next block.
func (w *writer) append(m *moments) error {
	for _, part := range []struct {
		to     io.Writer
		values []float64
	}{{w.mean, m.mean}, {w.variance, m.variance}} {
		w.buf = w.buf[:0]
		for _, v := range part.values {
			w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(v))
		}
		if _, err := part.to.Write(w.buf); err != nil {
			return err
		}
	}
	return w.float32s(w.deviations, m.deviations)
}

func (w *writer) float32s(to io.Writer, values []float32) error {
	w.buf = append(w.buf[:0], make([]byte, 4*len(values))...)
	weights.F32.PutFloat32s(w.buf, values)
	_, err := to.Write(w.buf)
	return err
}

// finish writes what does not come in blocks, and the header.
func (w *writer) finish(it Iterates) error {
	if it.Statistics != nil {
		statistics := make([]float32, it.Statistics.Len())
		if err := it.Statistics.ReadAt(statistics, 0); err != nil {
			return err
		}
		if err := w.float32s(w.statistics, statistics); err != nil {
			return err
		}
	}
	if _, err := w.graph.Write(it.Graph); err != nil {
		return err
	}
	return w.sw.Close()
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
	})
	if err != nil {
		return nil, err
	}
	if p.Layout, err = weights.NewLayout(tensors); err != nil {
		return nil, err
	}
	if k, n := p.Options.Columns, len(p.Checkpoints); k < 0 || k == 1 || k > n {
		return nil, fmt.Errorf("metadata \"options\": %d deviation columns of %d checkpoints", k, n)
	}
	var statistics, graph weights.View
	d := p.Layout.Len(weights.Parameter)
	for _, s := range []struct {
		name  string
		dtype weights.DType
		len   int64 // or -1
		view  *weights.View
	}{
		{meanSection, weights.F64, d, &p.mean},
		{varianceSection, weights.F64, d, &p.variance},
		{deviationsSection, weights.F32, d * int64(p.Options.Columns), &p.deviations},
		{statisticsSection, weights.F32, p.Layout.Len(weights.Statistic), &statistics},
		{graphSection, weights.U8, -1, &graph},
	} {
		v, ok := st.View(s.name)
		if !ok || v.DType != s.dtype || s.len >= 0 && v.Len() != s.len {
			return nil, fmt.Errorf("section %q: want %v with %d elements", s.name, s.dtype, s.len)
		}
		*s.view = v
	}
	p.Graph = graph.Data
	p.Statistics = make(weights.Slice, statistics.Len())
	statistics.Float32s(p.Statistics, 0)
	return p, nil
}

// Close releases the file. Views and samplers of it are invalid afterwards.
func (p *Posterior) Close() error { return p.file.Close() }

// Verify reads the whole file and checks it against its checksums.
func (p *Posterior) Verify() error { return p.file.Verify() }

// Len returns d, the number of weights.
func (p *Posterior) Len() int64 { return p.mean.Len() }

// Mean reads θ_SWA[off : off+len(dst)].
func (p *Posterior) Mean(dst []float64, off int64) { p.mean.Float64s(dst, off) }

// Variance reads the diagonal of Σ_diag, [off : off+len(dst)]: the variance of
// the iterates, with their number as divisor.
func (p *Posterior) Variance(dst []float64, off int64) { p.variance.Float64s(dst, off) }

// Deviations reads rows [off, off+len(dst)/K) of D̂, a d×K matrix of the
// deviations of the last K iterates, oldest first, where K is Options.Columns.
func (p *Posterior) Deviations(dst []float32, off int64) {
	p.deviations.Float32s(dst, off*int64(p.Options.Columns))
}
