package open

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/weights"
)

// ScoredOptions say how the data of an ensemble is read.
type ScoredOptions struct {
	Reading  DataOptions
	Tiling   dataset.Tiling // Size is 0 for whole pictures
	Original bool           // predictions get the size that pictures had
	Parted   bool           // only a part may be read
	Pipes    bool           // the commands that a listing names are run. Otherwise they are refused.
	Blocks   bool           // each block keeps its own pictures
	Measured bool           // a precision is measured first, which must know the form of the scores
	Expected bool           // the same for [ExpectOptions]
}

// OpenScored opens data for the networks of an ensemble. Names of folders that are not classes of the network give no labels.
func (a *Opener) OpenScored(ctx context.Context, o ScoredOptions, paths []string, n *infer.Network) (dataset.Dataset, error) {
	opts, err := ReadAs(o.Reading, o.Reading.Labels.Main, n)
	if err != nil {
		return nil, err
	}
	opts.Tiling, opts.Original, opts.Parted, opts.Sideways = o.Tiling, o.Original, o.Parted, &a.Sideways
	if !o.Blocks {
		opts.Cache = again(opts.Shape, o.Reading.Memory)
	}
	if o.Pipes {
		opts.Pipes = ctx
	}
	d, err := dataset.Open(paths, opts)
	unknown := (*names.ClassError)(nil)
	if errors.As(err, &unknown) && unknown.Folders || errors.As(err, new(*names.CountError)) {
		why := err
		opts.Known.Classes, opts.Unlabelled = nil, true
		if d, err = dataset.Open(paths, opts); err == nil {
			dataset.Doubt(d, fmt.Sprintf("labels are left out: %v", why))
		}
	}
	return d, WrongData(err, paths...)
}

// again returns memory for the pictures that a check of data decodes, and that the run needs again. It is nil if their size is
// not known.
func again(shape []int64, b *memory.Budget) *memory.Pool {
	n, err := weights.Within(shape, math.MaxInt32)
	if err != nil {
		return nil
	}
	const floats = 4 // the check holds floats, and the cache bytes
	return memory.NewPool(min(probe.Examples*n, b.Checked()/floats))
}

// CheckScored checks the data and the networks' scores on it. Messages call the data path. All parts check the same examples,
// which are spread over all data. If commands make the images, a part checks only its own, because it must not run the
// other commands. The scores of a run on the processor are checked when its first batch has them. A part's first batch is not
// that of the other parts.
func (a *Opener) CheckScored(ctx context.Context, e *infer.Engine, job *ensemble.Scoring, path string,
	o ScoredOptions) (_ []*probe.Report, err error) {
	data := job.Data
	if job.Part != nil && o.Pipes {
		if data, err = job.Own(e); err != nil {
			return nil, BadInput(err)
		}
	}
	var looks *Looks
	if job.Part == nil && job.Blocks == nil && !o.Expected && (e.Provider().Name == ort.CPU || !e.Provider().GPU() && !o.Measured) {
		looks = &Looks{of: map[*infer.Graph]func(*infer.FirstScores) error{}}
		job.Look = looks.Look
	}
	return a.CheckInputs(ctx, e, Probe{
		Looks:      looks,
		Networks:   job.Networks,
		Earlier:    job.Ensemble.Checked(),
		Data:       data,
		Path:       path,
		SkipErrors: job.SkipErrors,
		Scored:     true,
		Target:     job.Blocks != nil,
		Trained:    job.Ensemble.Components[0].Probe,
		Adapted:    job.Ensemble.Components[0].Adapted,
		Preprocess: o.Reading.Preprocess,
	})
}
