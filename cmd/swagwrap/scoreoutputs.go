package main

import (
	"archive/zip"
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
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
// meaning here. Each output is a pass over the data.
func (a *app) scoreOutputs(ctx context.Context, job *scoreJob) error {
	if err := flags.RefuseGiven(job.ofRows, task.NoScoresHint(), "--* is for predictions: "+task.NoScores(job.ensemble).Error()); err != nil {
		return err
	}
	if job.format != ".npz" || job.output == "-" {
		return console.Usagef("-o outputs.npz", "%s: its task is none, and score writes arrays of its outputs, which only .npz holds", job.ensemble)
	}
	out, err := a.CreateResult(job.output, job.existing.force, false)
	if err != nil {
		return err
	}
	defer out.Abort()
	if job.engine, err = a.Engine(job.runtime); err != nil {
		return err
	}
	opened, err := a.OpenComponents(ctx, job.members, job.Ensemble)
	defer open.CloseNetworks(opened)
	if err != nil {
		return err
	}
	names, left := opened[0].Outputs()
	if chosen := job.members.Network.Output; chosen != "" {
		names, left = []string{chosen}, nil
	}
	if len(left) > 0 {
		a.Logf("left out: outputs %s", first(left))
	}
	how := open.ScoredOptions{Reading: job.reading, Pipes: job.pipes}
	if job.Data, err = a.OpenScored(ctx, how, job.data, opened[0]); err != nil {
		return err
	}
	w := &outputArrays{zip: numpy.NewArchive(out), rows: job.Data.Len()}
	failed := 0
	for _, name := range names {
		networks, err := ofOutput(opened, name)
		if err == nil && name == names[0] {
			_, err = a.CheckIntake(ctx, job.engine, open.Intake{Networks: networks, Data: job.Data, Path: open.Shortened(job.data), SkipErrors: job.SkipErrors, Scored: true, Trained: job.Ensemble.Components[0].Intake, Preprocess: job.reading.Preprocess})
		}
		if err == nil {
			failed, err = a.scoreOutput(ctx, job, networks, name, w)
		}
		if err != nil {
			return err
		}
	}
	if err := w.zip.Close(); err != nil {
		return console.BadOutput(err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	a.Logf("%s: mean and standard deviation over %s of %s, for %s: arrays NAME_mean and NAME_std", job.output, report.Plural(job.Ensemble.Members(), "member"), first(names), report.Plural(w.rows, "example"))
	if failed > 0 {
		return console.Incomplete("%s: %s without numbers: their rows are NaN", job.output, report.Plural(failed, "example"))
	}
	return nil
}

// ofOutput returns the networks with one of their outputs. They have the posteriors of the others.
func ofOutput(opened []*infer.Network, output string) (networks []*infer.Network, err error) {
	for _, n := range opened {
		if n, err = infer.NewNetwork(n.Posterior, infer.KeepAll, output); err != nil {
			return nil, console.BadInput(err)
		}
		networks = append(networks, n)
	}
	return networks, nil
}

// scoreOutput writes the arrays of one output. It returns the number of examples without numbers.
func (a *app) scoreOutput(ctx context.Context, job *scoreJob, networks []*infer.Network, name string, w *outputArrays) (failed int, err error) {
	s, err := ensemble.NewSpread(ctx, job.engine, job.Ensemble, networks, job.Data, job.SkipErrors)
	if err != nil {
		return 0, console.BadInput(err)
	}
	bar := a.Progress(ctx, "score "+name, int64(job.runs()))
	defer bar.Done()
	if err := w.begin(name, s.Shape); err != nil {
		return 0, err
	}
	defer w.abort()
	err = s.Each(ctx, bar.Add, func(i int, mean, std []float64, why error) error {
		if why != nil {
			failed++
			a.Warnf("%s: %v", job.Data.Name(i), why)
		}
		return w.add(mean, std)
	})
	if err != nil {
		return failed, console.BadInput(err)
	}
	return failed, w.end()
}

// outputArrays writes two arrays for each output. Means go to the archive at once, and standard deviations to a temporary file
// first, because an archive takes one array after the other.
type outputArrays struct {
	zip  *zip.Writer
	rows int

	name  string
	shape []int
	mean  *bufio.Writer
	later *os.File
	std   *bufio.Writer
	row   []float32
}

func (w *outputArrays) begin(name string, shape []int64) (err error) {
	w.name, w.shape = name, []int{w.rows}
	n := 1
	for _, d := range shape {
		w.shape, n = append(w.shape, int(d)), n*int(d)
	}
	w.row = make([]float32, n)
	if w.mean, err = w.array("mean"); err != nil {
		return err
	}
	if w.later, err = tempfile.Temporary(); err != nil {
		return err
	}
	w.std = bufio.NewWriterSize(w.later, 1<<20)
	return nil
}

// array begins an array of the archive.
func (w *outputArrays) array(what string) (*bufio.Writer, error) {
	f, err := w.zip.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%s_%s.npy", w.name, what), Method: zip.Store})
	if err != nil {
		return nil, console.BadOutput(err)
	}
	b := bufio.NewWriterSize(f, 1<<20)
	_, err = b.Write(numpy.Header("<f4", w.shape...))
	return b, console.BadOutput(err)
}

// add adds the numbers of an example, or NaNs.
func (w *outputArrays) add(mean, std []float64) error {
	for _, of := range []struct {
		to     *bufio.Writer
		values []float64
	}{{w.mean, mean}, {w.std, std}} {
		for i := range w.row {
			if w.row[i] = float32(math.NaN()); of.values != nil {
				w.row[i] = float32(of.values[i])
			}
		}
		if err := weights.WriteFloats(of.to, w.row); err != nil {
			return console.BadOutput(err)
		}
	}
	return nil
}

// end completes the arrays of an output.
func (w *outputArrays) end() error {
	if err := w.mean.Flush(); err != nil {
		return console.BadOutput(err)
	}
	if err := w.std.Flush(); err != nil {
		return console.BadOutput(err)
	}
	std, err := w.array("std")
	if err == nil {
		_, err = w.later.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = io.Copy(std, w.later)
	}
	if err == nil {
		err = std.Flush()
	}
	return console.BadOutput(err)
}

// abort closes the temporary file.
func (w *outputArrays) abort() {
	if w.later != nil {
		tempfile.Remove(w.later.Name())
		w.later.Close()
		w.later = nil
	}
}
