package ensemble

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Kind and version of an ensemble file; see docs/formats.md.
const (
	Kind    = "swagwrap.ensemble"
	Version = 1
)

const statisticsSection = "statistics"

// Ensemble is what makes S members, but for the posterior: that stays in its
// own file, which is large.
type Ensemble struct {
	Path       string
	Posterior  Reference
	Sampling   Sampling
	BatchNorm  *BatchNorm // nil for a network without batch norm
	Preprocess dataset.Preprocess
	// Statistics holds the recomputed batch-norm statistics of each member.
	Statistics [][]float32
}

// Reference names a posterior file and its content.
type Reference struct {
	Path string `json:"path"` // relative to the folder of the ensemble file, or absolute
	ID   string `json:"id"`
}

// Sampling says how the members were drawn.
type Sampling struct {
	Members    int     `json:"members"`
	Seed       uint64  `json:"seed"`
	Scale      float64 `json:"scale"`
	Covariance string  `json:"covariance"` // "swag" or "swag-diag"
}

// Options returns what a sampler needs.
func (s Sampling) Options() (swag.SampleOptions, error) {
	c, err := swag.ParseCovariance(s.Covariance)
	return swag.SampleOptions{Seed: s.Seed, Scale: s.Scale, Covariance: c}, err
}

// BatchNorm says what the statistics were recomputed from.
type BatchNorm struct {
	Sources   []dataset.Source `json:"sources"`
	Images    int              `json:"images"`
	BatchSize int              `json:"batch_size"`
	Rule      string           `json:"rule"`
	Shuffle   bool             `json:"shuffle"`
	Seed      uint64           `json:"seed"`
}

// Write writes the ensemble file.
func (e *Ensemble) Write(w io.WriterAt, producer string) error {
	meta, err := weights.NewMetadata(Kind, Version, producer, map[string]any{
		"posterior":  e.Posterior,
		"sampling":   e.Sampling,
		"batch_norm": e.BatchNorm,
		"preprocess": e.Preprocess,
	})
	if err != nil {
		return err
	}
	length := 0
	if len(e.Statistics) > 0 {
		length = len(e.Statistics[0])
	}
	sw, err := weights.NewSafetensorsWriter(w, []weights.Section{
		{Name: statisticsSection, DType: weights.F32, Shape: []int64{int64(len(e.Statistics)), int64(length)}},
	}, meta)
	if err != nil {
		return err
	}
	for _, s := range e.Statistics {
		b := make([]byte, 4*len(s))
		weights.F32.PutFloat32s(b, s)
		if _, err := sw.Section(0).Write(b); err != nil {
			return err
		}
	}
	return sw.Close()
}

// Open reads the ensemble file at path, whole, and checks its checksums.
func Open(path string) (*Ensemble, error) {
	st, err := weights.OpenSafetensors(path)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	if err := st.CheckKind(Kind, Version); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := st.Verify(); err != nil {
		return nil, err
	}
	e := &Ensemble{Path: path}
	err = st.DecodeMetadata(map[string]any{
		"posterior":  &e.Posterior,
		"sampling":   &e.Sampling,
		"batch_norm": &e.BatchNorm,
		"preprocess": &e.Preprocess,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	v, ok := st.View(statisticsSection)
	if !ok || v.DType != weights.F32 || len(v.Shape) != 2 || v.Shape[0] != int64(e.Sampling.Members) {
		return nil, fmt.Errorf("%s: section %q: want F32 with a row for each of %d members", path, statisticsSection, e.Sampling.Members)
	}
	for k := range v.Shape[0] {
		row := make([]float32, v.Shape[1])
		v.Float32s(row, k*v.Shape[1])
		e.Statistics = append(e.Statistics, row)
	}
	return e, nil
}

// OpenPosterior opens the posterior the members were drawn from: the file at
// path, or where that is empty the one the ensemble names. It fails if the
// content is not what it was.
func (e *Ensemble) OpenPosterior(path string) (*swag.Posterior, error) {
	if path == "" {
		path = e.Posterior.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(e.Path), path)
		}
	}
	p, err := swag.Open(path)
	if err != nil {
		return nil, err
	}
	if p.ID != e.Posterior.ID {
		p.Close()
		return nil, fmt.Errorf("%s: its content has the sum %s, but %s was drawn from %s", path, p.ID, e.Path, e.Posterior.ID)
	}
	if n := p.Layout.Len(weights.Statistic); len(e.Statistics) > 0 && int64(len(e.Statistics[0])) != n {
		p.Close()
		return nil, fmt.Errorf("%s: %d batch-norm statistics for each member, want %d", e.Path, len(e.Statistics[0]), n)
	}
	return p, nil
}
