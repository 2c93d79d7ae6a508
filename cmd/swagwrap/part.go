package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/report"
)

// indices are the environment variables with the index of a task in a scheduler's array. None of them gives the size of
// the original array: if some tasks of an array run again, schedulers count only these.
var indices = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX"}

// part is one of several parts of the work, counted from 0. Of is 0 for the whole.
type part struct{ Index, Of int }

// partRow makes the row of --part. Flags with the case part are refused with it.
func partRow(r flags.Row, field *part) *flags.Row {
	r.Name, r.Hint = "part", "--part 3/50 is the fourth of fifty parts"
	return flags.Parsed(r, field, parsePart)
}

func parsePart(s string) (p part, err error) {
	which, of, _ := strings.Cut(s, "/")
	if p.Of, err = strconv.Atoi(of); err != nil || p.Of < 1 || p.Of > records.MaxParts {
		return p, fmt.Errorf("%q: want I/N or auto/N, N from 1 to %d", s, records.MaxParts)
	}
	if which == "auto" {
		if which, err = ownIndex(); err != nil {
			return p, err
		}
	}
	if p.Index, err = strconv.Atoi(which); err != nil || p.Index < 0 || p.Index >= p.Of {
		return p, console.Usagef(fmt.Sprintf("parts are counted from 0: an array of all is 0-%d", p.Of-1),
			"--part %s: part %s, want one of 0 to %d", s, which, p.Of-1)
	}
	return p, nil
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
			return "", console.Usagef("", "--part auto: %s is %s and %s is %s", from, index, name, v)
		}
	}
	if index == "" {
		return "", console.Usagef("outside of a scheduler's array say which part it is: --part 3/50", "--part auto: none of %s is set",
			strings.Join(indices, ", "))
	}
	return index, nil
}

// existing says what a run does with an output or with unfinished work that is there.
type existing struct{ force, resume bool }

// runPart makes the file of a part of predictions. compute appends its rows. It continues the work of an earlier run,
// because a scheduler starts the same command again. A run can be continued after each multiple of whole rows. runPart
// returns nil if the file is complete already.
func (job *scoreJob) runPart(e existing, path string, head *records.Head, whole int,
	compute func(*records.File) error) (*records.File, error) {
	head.Processor = ort.Processor()
	if done, err := job.partDone(e, path, head); done || err != nil {
		return nil, err
	}
	rows, err := job.openRows(e, path, records.ScorePart, head, whole)
	if err != nil {
		return nil, err
	}
	if done, err := job.partDone(e, path, head); done || err != nil { // another job of the same index may just have completed it
		return nil, errors.Join(err, rows.Remove())
	}
	if err = compute(rows); err == nil {
		err = console.BadOutput(rows.Publish(path))
	}
	if err != nil {
		return nil, keep(rows, err)
	}
	return rows, nil
}

// partDone reports whether the file of a part exists and is complete. A file with other parameters is an error. A
// damaged file is written again.
func (job *scoreJob) partDone(e existing, path string, head *records.Head) (bool, error) {
	if e.force {
		return false, nil
	}
	was, err := predictions.ReadPart(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, records.ErrDamaged):
		job.Warnf("%v: it is scored again", err)
		return false, nil
	case err != nil:
		return false, console.BadOutput(err)
	}
	if d := was.Differences(head); d != nil {
		return false, console.BadInput(&records.ChangedError{Path: path, Differences: d}, "--force scores it anew")
	}
	job.Logf("%s: is complete", path)
	return true, nil
}

// partial returns the path of the work file of an output.
func partial(output string) string { return output + kind.WorkSuffix }

func (job *scoreJob) openRows(e existing, path string, kind records.Kind, head *records.Head, whole int) (*records.File, error) {
	how := records.Refuse
	if e.force {
		how = records.Discard
	} else if e.resume || kind != records.Unfinished {
		how = records.Resume
	}
	rows, err := records.Open(partial(path), kind, head, how)
	switch changed := new(records.ChangedError); {
	case errors.As(err, &changed):
		return nil, console.BadInput(err, "use the earlier settings, or start over: --force")
	case errors.Is(err, records.ErrUnfinished):
		return nil, console.Usagef("--resume goes on with it\n--force begins anew", "%w", err)
	case errors.Is(err, records.ErrBusy):
		return nil, console.BadOutput(err)
	case err != nil:
		return nil, console.BadOutput(err, "--force begins anew")
	}
	if n, all := rows.Rows(), head.Part.Rows(); n > 0 {
		if n%whole > 0 && n < all {
			rows.Close()
			return nil, console.BadInput(fmt.Errorf("%s: ends after %d rows, inside a batch of %d whose examples depend on each other",
				rows.Path, n, whole), "start over: --force")
		}
		job.Logf("%s: %s of %s rows are done", rows.Path, report.Thousands(n), report.Thousands(all))
	}
	return rows, nil
}

// keep closes the work file of a failed run. It removes the file if it has no rows.
func keep(rows *records.File, err error) error {
	n := rows.Rows()
	if n == 0 {
		rows.Remove()
		return err
	}
	if cerr := rows.Close(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	kept := fmt.Sprintf("%s keeps %s of %s rows", rows.Path, report.Thousands(n), report.Thousands(rows.Head.Part.Rows()))
	return &console.Unfinished{Err: err, Kept: kept, Plain: rows.Kind != records.Unfinished}
}
