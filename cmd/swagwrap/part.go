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

// partFlag is that of a command which does a part of something.
func partFlag(what string) cli.Flag {
	return &cli.StringFlag{Name: "part", Usage: what + " part `I/N` only, I from 0, into OUT.part-I-of-N for merge; auto/N takes I from Slurm, Kubernetes or AWS Batch"}
}

// indices are the environment variables in which schedulers say which task of an array
// a process is. How many there are none of them says: of a part of an array that is run
// again they count that part.
var indices = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX"}

// partOf reads --part of a command that writes a file: part i of n, or of 0 if it is not
// given.
func partOf(c *cli.Context, others ...string) (i, n int, err error) {
	if i, n, err = parsePart(c, others...); n > 0 && err == nil && flags.IsStdout(c.String("output")) {
		err = flags.Usagef("write to a file: -o FILE", "--part: standard output cannot be merged")
	}
	return i, n, err
}

// parsePart reads --part. others are flags that do not go with it.
func parsePart(c *cli.Context, others ...string) (i, n int, err error) {
	s := c.String("part")
	if !c.IsSet("part") {
		return 0, 0, nil
	}
	which, of, _ := strings.Cut(s, "/")
	if n, err = strconv.Atoi(of); err != nil || n < 1 {
		return 0, 0, flags.Usagef("--part 3/50 is the fourth of fifty parts", "--part %q: want I/N or auto/N", s)
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

// ownIndex is what the scheduler says.
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

// target is the path of what the run writes.
func (job *scoreJob) target() string {
	if p := job.part; p != nil {
		return predictions.PartName(job.output, p.Index, p.Of)
	}
	return job.output
}

// rows is how many there will be.
func (job *scoreJob) rows() int {
	if p := job.part; p != nil {
		return p.End - p.First
	}
	return job.data.Len()
}

// scorePart writes the rows of a part to its file. What an earlier run of it left is
// gone on with: a scheduler starts the same command again.
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
	if done, err := a.partComplete(c, job); done || err != nil { // another job of the same index may just have done so
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

// partComplete reports whether the part's file is there and whole. One of other
// parameters is an error, a damaged one is made anew.
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
