package main

import (
	"archive/zip"
	"bufio"
	"context"
	"io"
	"math"
	"os"
	"slices"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/weights"
)

// scoreOutputs writes the mean and the standard deviation over the members of each output, for networks whose outputs have no
// meaning here. One pass over the data serves all outputs.
func (job *scoreJob) scoreOutputs(ctx context.Context) error {
	if err := job.Refuse("outputs", task.NoScoresHint(),
		"--* is for predictions: "+task.NoScores(job.ensemble).Error()); err != nil {
		return err
	}
	if job.format != ".npz" || job.output.Path == "-" {
		return console.Usagef("-o outputs.npz", "%s: its task is none, and score writes arrays of its outputs, which only .npz holds",
			job.ensemble)
	}
	out, err := job.CreateResult(job.output.Path, job.existing.force, false)
	if err != nil {
		return err
	}
	defer out.Abort()
	if job.engine, err = job.Engine(job.runtime); err != nil {
		return err
	}
	opened, err := job.OpenComponents(ctx, job.members, job.Ensemble)
	defer open.CloseNetworks(opened)
	if err != nil {
		return err
	}
	names, left := opened[0].Outputs()
	if chosen := job.members.Network.Output; chosen != "" {
		names, left = []string{chosen}, nil
	}
	if len(left) > 0 {
		job.Logf("left out: outputs %s", first(left))
	}
	how := open.ScoredOptions{Reading: job.reading, Pipes: job.pipes}
	if job.Data, err = job.OpenScored(ctx, how, job.data, opened[0]); err != nil {
		return err
	}
	_, err = job.CheckInputs(ctx, job.engine, open.Probe{
		Networks:   opened,
		Data:       job.Data,
		Path:       open.Shortened(job.data),
		SkipErrors: job.SkipErrors,
		Scored:     true,
		Trained:    job.Ensemble.Components[0].Probe,
		Preprocess: job.reading.Preprocess,
	})
	if err != nil {
		return err
	}
	w := &outputArrays{zip: numpy.NewArchive(out), rows: job.Data.Len()}
	defer w.abort()
	failed, err := job.spread(ctx, opened, names, w)
	if err != nil {
		return err
	}
	if err := w.zip.Close(); err != nil {
		return console.BadOutput(err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	job.Logf("%s: mean and standard deviation over %s of %s, for %s: arrays NAME_mean and NAME_std", job.output.Path,
		report.Plural(job.Ensemble.Members(), "member"), first(names), report.Plural(w.rows, "example"))
	if failed > 0 {
		return console.Incomplete("%s: %s without numbers: their rows are NaN", job.output.Path, report.Plural(failed, "example"))
	}
	return nil
}

// spread writes the arrays of the outputs. It returns the number of examples without numbers.
func (job *scoreJob) spread(ctx context.Context, networks []*infer.Network, names []string,
	w *outputArrays) (failed int, err error) {
	s, err := ensemble.NewSpread(ctx, job.engine, job.Ensemble, networks, names, job.Data, job.SkipErrors)
	if err != nil {
		return 0, console.BadInput(err)
	}
	bar := job.Progress(ctx, "score", int64(job.runs()))
	defer bar.Done()
	if err := w.begin(s.Outputs); err != nil {
		return 0, err
	}
	err = s.Each(ctx, bar.Add, func(i int, mean, std []float64, why error) error {
		if why != nil {
			failed++
			job.Warnf("%s: %v", job.Data.Name(i), why)
		}
		return w.add(mean, std)
	})
	if err != nil {
		return failed, console.BadInput(err)
	}
	return failed, w.end()
}

// outputArrays writes two arrays for each output. The means of the first output go to the archive at once. The others go to
// temporary files first, because an archive takes one array after the other.
type outputArrays struct {
	zip    *zip.Writer
	rows   int
	arrays []*outputArray
	row    []float32
}

// An outputArray has the means or the standard deviations of an output.
type outputArray struct {
	name  string
	shape []int
	std   bool
	first int // place among the numbers of an example
	count int
	out   *bufio.Writer
	later *os.File // nil for the first array
}

func (w *outputArrays) begin(outputs []infer.OutputPart) error {
	first := 0
	for _, o := range outputs {
		shape := []int{w.rows}
		for _, d := range o.Shape {
			shape = append(shape, int(d))
		}
		for _, std := range []bool{false, true} {
			of := &outputArray{name: o.Name + "_mean", shape: shape, std: std, first: first, count: o.Count}
			if std {
				of.name = o.Name + "_std"
			}
			w.arrays = append(w.arrays, of)
		}
		first += o.Count
	}
	for i, of := range w.arrays {
		if i == 0 {
			out, err := w.array(of)
			if err != nil {
				return err
			}
			of.out = bufio.NewWriterSize(out, 1<<20)
			continue
		}
		var err error
		if of.later, err = tempfile.Temporary(); err != nil {
			return err
		}
		of.out = bufio.NewWriterSize(of.later, 1<<20)
	}
	return nil
}

// array begins an array of the archive.
func (w *outputArrays) array(of *outputArray) (io.Writer, error) {
	out, err := w.zip.CreateHeader(&zip.FileHeader{Name: of.name + ".npy", Method: zip.Store})
	if err == nil {
		_, err = out.Write(numpy.Header("<f4", of.shape...))
	}
	return out, console.BadOutput(err)
}

// add adds the numbers of an example, or NaNs.
func (w *outputArrays) add(mean, std []float64) error {
	for _, of := range w.arrays {
		values := mean
		if of.std {
			values = std
		}
		w.row = slices.Grow(w.row[:0], of.count)[:of.count]
		for i := range w.row {
			if w.row[i] = float32(math.NaN()); values != nil {
				w.row[i] = float32(values[of.first+i])
			}
		}
		if err := weights.WriteFloats(of.out, w.row); err != nil {
			return console.BadOutput(err)
		}
	}
	return nil
}

// end completes the arrays.
func (w *outputArrays) end() error {
	for _, of := range w.arrays {
		if err := of.out.Flush(); err != nil {
			return console.BadOutput(err)
		}
	}
	for _, of := range w.arrays[1:] {
		out, err := w.array(of)
		if err != nil {
			return err
		}
		if _, err = of.later.Seek(0, io.SeekStart); err == nil {
			_, err = io.Copy(out, of.later)
		}
		if err != nil {
			return console.BadOutput(err)
		}
	}
	return nil
}

// abort closes the temporary files.
func (w *outputArrays) abort() {
	for _, of := range w.arrays {
		if of.later != nil {
			tempfile.Remove(of.later.Name())
			of.later.Close()
		}
	}
}
