package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/weights"
)

// check fails before the work if an output cannot be written.
func (job *scoreJob) check() error {
	overwrite := job.existing.force || job.existing.resume || job.Part != nil // a complete result is checked later
	paths := []string{job.montage, job.saveBatch}
	switch {
	case job.Part != nil:
		paths = append(paths, job.target(), partial(job.target()))
	case job.output.Path != "-":
		paths = append(paths, job.output.Path, job.output.Path+summary.Suffix, partial(job.target()))
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		create := console.CreateOutput
		if path == job.saveBatch {
			create = createBatch
		}
		out, err := create(path, overwrite || path == partial(job.target())) // openRows checks the work file
		if err != nil {
			return err
		}
		defer out.Abort()
	}
	return nil
}

// rows iterates over the rows of a chunk. An error that ends the run is the fault of the input, unless it is marked.
func (job *scoreJob) rows(chunk *infer.Chunk) iter.Seq[*predictions.Row] {
	return func(yield func(*predictions.Row) bool) {
		for row := range job.scorer.Rows(chunk) {
			row.Fatal = console.BadInput(row.Fatal)
			if !yield(row) {
				return
			}
		}
	}
}

// scoreStream writes rows to standard output as soon as they are ready.
func (job *scoreJob) scoreStream(ctx context.Context) error {
	if err := job.drawn.begin(nil, 0, job.Name); err != nil {
		return err
	}
	bar := job.Progress(ctx, "score", int64(job.runs()))
	if rows, _ := dataset.RowsOf(job.Data); rows > 1 {
		job.Logf("the order is that of windows: the first of each of %d rows, then the second of each. -o FILE has the order of the text",
			rows)
	}
	if _, err := job.summary.Corrected(job.corrects(), job.scorer.Task(), job.schema, job.scorer.Threshold(), nil); err != nil {
		return err // there is none: known shares correct rows when they are made
	}
	out := predictions.NewCSV(job.Stdout, job.schema)
	err := job.scorer.Run(ctx, job.scorer.Begin(0), bar.Add, func(chunk *infer.Chunk) error {
		if err := weights.Changed(); err != nil {
			return err
		}
		for row := range job.rows(chunk) {
			if row.Fatal != nil {
				return row.Fatal
			}
			job.note(row)
			if err := out.Write(row); err != nil {
				return console.BadOutput(err)
			}
		}
		return console.BadOutput(out.Flush())
	})
	bar.Done()
	job.blocks.Tell()
	job.tellWaits()
	if err != nil {
		return console.BadInput(err)
	}
	if err := commitBeside(job); err != nil {
		return err
	}
	return job.conclude()
}

// commitBeside puts the additional outputs in their places, together with the given files.
func commitBeside(job *scoreJob, files ...*console.Output) error {
	montage, err := drawMontage(job)
	if err != nil {
		return err
	}
	return console.Together{Check: job.drawn.finish}.Commit(append([]*console.Output{job.batch, montage}, files...)...)
}

// scoreFile collects rows in the work file, and writes the output when they are complete.
func (job *scoreJob) scoreFile(ctx context.Context) error {
	if done, err := job.complete(); done || err != nil {
		if done {
			err = cmp.Or(console.Commit(job.batch), err)
		}
		return err
	}
	head, err := job.head()
	if err != nil {
		return err
	}
	rows, err := job.openRows(job.existing, job.output.Path, records.Unfinished, head, job.whole)
	if err != nil {
		return err
	}
	// No other run can write the output now, but one may just have done so.
	if _, err = os.Lstat(job.output.Path); !job.existing.force && err == nil {
		err = console.BadOutput(fmt.Errorf("%s: appeared while this command ran", job.output.Path))
	} else {
		err = job.scoreRecords(ctx, rows)
	}
	if err != nil {
		return keep(rows, err)
	}
	if err := rows.Remove(); err != nil {
		return console.BadOutput(err)
	}
	return job.conclude()
}

// complete reports whether the output of a run with the same parameters already exists. With --resume a finished job
// may be started again.
func (job *scoreJob) complete() (bool, error) {
	if !job.existing.resume {
		return false, nil
	}
	if _, err := os.Stat(job.output.Path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var was summary.Sidecar
	js, err := file.Content(job.output.Path+summary.Suffix, summary.MaxSidecar)
	if err == nil {
		err = json.Unmarshal(js, &was)
	}
	if err != nil {
		return false, console.BadInput(fmt.Errorf("%s: exists, and no FILE.meta.json says what it was made from: %w", job.output.Path, err),
			"--force overwrites it")
	}
	if d := was.Parameters.Differences(job.parameters); d != nil {
		return false, console.BadInput(&records.ChangedError{Path: job.output.Path, Differences: d}, "--force overwrites it")
	}
	if err := job.madeWith(job.output.Path); err != nil {
		return false, err
	}
	job.Logf("%s: is complete", job.output.Path)
	if head, err := job.head(); err == nil {
		if rows, err := records.Open(partial(job.output.Path), records.Unfinished, head, records.Resume); err == nil {
			rows.Remove() // the run was killed before it removed the file
		}
	}
	if was.Errors > 0 {
		return true, incomplete(job.output.Path, was.Errors, was.Rows)
	}
	return true, nil
}

// madeWith fails if the montage or the maps that are asked for are not there. Only examples that are scored give them.
func (o scoreOptions) madeWith(done string) error {
	return cmp.Or(wasDrawn("maps", o.maps.folder, done), wasDrawn("montage", o.montage, done))
}

func wasDrawn(flag, path, done string) error {
	if _, err := os.Stat(path); path == "" || err == nil {
		return nil
	}
	return console.Usagef("--force scores all examples again", "--%s: %s has rows already, and %s is not there", flag, done, path)
}

// addRows computes the missing rows.
func (job *scoreJob) addRows(ctx context.Context, rows *records.File) error {
	members, from := job.Ensemble.Members(), rows.Rows()
	if err := job.drawn.begin(job.Part, from, job.Name); err != nil {
		return err
	}
	bar := job.Progress(ctx, "score", int64(members)*int64(rows.Head.Part.Rows()))
	bar.Add(members * from)
	err := job.scorer.Run(ctx, job.scorer.Begin(from), bar.Add, func(chunk *infer.Chunk) error {
		if err := weights.Changed(); err != nil {
			return err // stored rows must come from the posterior that was opened
		}
		err := rows.Append(job.scorer.Begun(chunk), job.rows(chunk))
		if job.drawn != nil {
			job.drawn.keep = rows.Rows() > 0 // the maps of a run that can be resumed
		}
		return console.BadOutput(err)
	})
	bar.Done()
	job.blocks.Tell()
	job.tellWaits()
	if err != nil {
		return console.BadInput(err)
	}
	if rows.Errors() > 0 && !job.schema.Errors {
		return console.BadInput(fmt.Errorf("%s: %d rows have an error", rows.Path, rows.Errors()),
			"--on-error skip writes them as they are")
	}
	return nil
}

// tellWaits says with -v where the time went.
func (job *scoreJob) tellWaits() {
	job.Debugf("%s", infer.Waited(job.scorer.Scorer))
	if traffic := job.engine.Runtime().Traffic(); traffic != "" {
		job.Debugf("%s", traffic)
	}
}

// scoreRecords computes the missing rows, and then writes the output.
func (job *scoreJob) scoreRecords(ctx context.Context, rows *records.File) error {
	if err := job.addRows(ctx, rows); err != nil {
		return err
	}
	out, err := console.CreateOutput(job.output.Path, job.existing.force)
	if err != nil {
		return err
	}
	defer out.Abort()
	each, err := job.summary.Corrected(job.corrects(), job.scorer.Task(), job.schema, job.scorer.Threshold(),
		job.schema.InOrder(rows.Rows(), rows.Each))
	if err != nil {
		return console.BadOutput(err)
	}
	if err := writeRows(ctx, out, job.format, job.schema, job.note, each); err != nil {
		return err
	}
	beside := job.about()
	beside.Errors = rows.Errors()
	beside.Fill(job.summary)
	beside.Runs = tally.From(ctx).Counts()
	meta, err := writeSidecar(beside, job.output.Path)
	if err != nil {
		return err
	}
	defer meta.Abort()
	return commitBeside(job, meta, out)
}

// writeRows writes all rows, which each passes to its argument. It also calls note with each row.
func writeRows(ctx context.Context, out *console.Output, format string, s *predictions.Schema, note func(*records.Row),
	each func(func(*records.Row) error) error) error {
	err := predictions.Write(out, format, s, filepath.Dir(out.Path), func(write func(*records.Row) error) error {
		return each(func(r *records.Row) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			note(r)
			return write(r)
		})
	})
	return console.BadOutput(err)
}

func (job *scoreJob) target() string {
	if p := job.Part; p != nil {
		return records.PartName(job.output.Path, p.Index, p.Of)
	}
	return job.output.Path
}

// head returns the head of the work file.
func (job *scoreJob) head() (*records.Head, error) {
	part := records.Part{Of: 1, End: job.examples, All: job.examples}
	if job.Part != nil {
		part = *job.Part
	}
	return job.schema.Head(job.scorer.Task().About().Name, part, job.parameters)
}

func (job *scoreJob) scorePart(ctx context.Context) error {
	head, err := job.head()
	if err != nil {
		return err
	}
	if head.About, err = json.Marshal(job.about()); err != nil {
		return err
	}
	p, path := head.Part, job.target()
	rows, err := job.runPart(job.existing, path, head, job.whole, func(rows *records.File) error {
		if p.Rows() == 0 {
			return nil
		}
		if err := job.addRows(ctx, rows); err != nil {
			return err
		}
		return job.drawn.finish()
	})
	if rows == nil {
		return cmp.Or(err, job.madeWith(path))
	}
	job.Logf("%s: %s from %s of %s, %s", path, report.Plural(p.Rows(), "example"), report.Thousands(p.First), report.Thousands(p.All),
		report.Plural(job.Ensemble.Members(), "member"))
	if n := rows.Errors(); n > 0 {
		job.Warnf("%s of %s rows have an error; merge says so with exit code 3", report.Thousands(n), report.Thousands(p.Rows()))
	}
	return nil
}
