package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
)

// partFlag returns --part for a command. what describes its work.
func partFlag(what string) cli.Flag {
	return &cli.StringFlag{Name: "part", Usage: what + " part `I/N` only, I from 0, into OUT.part-I-of-N for merge; auto/N takes I from Slurm, Kubernetes or AWS Batch"}
}

// indices are the environment variables with the index of a task in a scheduler's array. None of them gives the size of
// the original array: if some tasks of an array run again, schedulers count only these.
var indices = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX"}

// partOf reads --part of a command that writes a file. It returns part i of n. n is 0 if the flag was not given.
func partOf(c *cli.Context, others ...string) (i, n int, err error) {
	if i, n, err = parsePart(c, others...); n > 0 && err == nil && flags.IsStdout(c.String("output")) {
		err = flags.Usagef("write to a file: -o FILE", "--part: standard output cannot be merged")
	}
	return i, n, err
}

// parsePart reads --part. others are flags that conflict with it.
func parsePart(c *cli.Context, others ...string) (i, n int, err error) {
	s := c.String("part")
	if !c.IsSet("part") {
		return 0, 0, nil
	}
	which, of, _ := strings.Cut(s, "/")
	if n, err = strconv.Atoi(of); err != nil || n < 1 || n > predictions.MaxParts {
		return 0, 0, flags.Usagef("--part 3/50 is the fourth of fifty parts", "--part %q: want I/N or auto/N, N from 1 to %d", s, predictions.MaxParts)
	}
	if which == "auto" {
		if which, err = ownIndex(); err != nil {
			return 0, 0, err
		}
	}
	if i, err = strconv.Atoi(which); err != nil || i < 0 || i >= n {
		return 0, 0, flags.Usagef(fmt.Sprintf("parts are counted from 0: an array of all is 0-%d", n-1), "--part %s: part %s, want one of 0 to %d", s, which, n-1)
	}
	for _, flag := range others {
		if c.IsSet(flag) {
			return 0, 0, flags.Usagef("", "--%s is not for a part", flag)
		}
	}
	return i, n, nil
}

// ownIndex returns the index that the scheduler sets.
func ownIndex() (index string, err error) {
	from := ""
	for _, name := range indices {
		switch v := os.Getenv(name); {
		case v == "":
		case index == "" || v == index:
			index, from = v, name
		default:
			return "", flags.Usagef("", "--part auto: %s is %s and %s is %s", from, index, name, v)
		}
	}
	if index == "" {
		return "", flags.Usagef("outside of a scheduler's array say which part it is: --part 3/50", "--part auto: none of %s is set", strings.Join(indices, ", "))
	}
	return index, nil
}

// target returns the path of the run's output.
func (job *scoreJob) target() string {
	if p := job.part; p != nil {
		return predictions.PartName(job.output, p.Index, p.Of)
	}
	return job.output
}

// rows returns the number of rows that the run writes.
func (job *scoreJob) rows() int {
	if p := job.part; p != nil {
		return p.End - p.First
	}
	return job.data.Len()
}

// scorePart writes the rows of a part to its file. It continues the work of an earlier run, because a scheduler starts
// the same command again.
func (a *app) scorePart(c *cli.Context, job *scoreJob, engine *infer.Engine) error {
	p := job.part
	p.Schema, p.Task, p.Processor = job.schema, job.scorer.Task().Name(), ort.Processor()
	about, err := json.Marshal(job.about(c))
	if err != nil {
		return err
	}
	p.About = about
	if done, err := a.partComplete(c, job); done || err != nil {
		return err
	}
	records, err := a.openRecords(c, job)
	if err != nil {
		return err
	}
	if done, err := a.partComplete(c, job); done || err != nil { // another job of the same index may just have completed it
		return errors.Join(err, records.Remove())
	}
	if p.First < p.End {
		err = a.addRows(c, job, engine, records)
	}
	if err == nil {
		err = flags.BadOutput(records.Publish(job.target()))
	}
	if err != nil {
		return keep(records, job, err)
	}
	a.Logf(c, "%s: %s from %s of %s, %s", job.target(), report.Plural(job.rows(), "example"), report.Thousands(p.First), report.Thousands(p.Examples),
		report.Plural(job.ensemble.Members(), "member"))
	if n := records.Errors(); n > 0 {
		a.Warnf(c, "%s of %s rows have an error; merge says so with exit code 3", report.Thousands(n), report.Thousands(job.rows()))
	}
	return nil
}

// partComplete reports whether the part's file exists and is complete. A file with other parameters is an error. A
// damaged file is written again.
func (a *app) partComplete(c *cli.Context, job *scoreJob) (bool, error) {
	if c.Bool("force") {
		return false, nil
	}
	was, err := predictions.ReadPart(job.target())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, predictions.ErrDamaged):
		a.Warnf(c, "%v: it is scored again", err)
		return false, nil
	case err != nil:
		return false, flags.BadOutput(err)
	}
	if d := was.Differences(job.parameters, job.part); d != nil {
		return false, flags.BadInput(&predictions.ChangedError{Path: was.Path, Differences: d}, "--force scores it anew")
	}
	a.Logf(c, "%s: is complete", was.Path)
	return true, nil
}
