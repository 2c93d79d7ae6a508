package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

func (a *app) mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "make one file of the parts that score --part or sample --part wrote",
		ArgsUsage: "[PART...]",
		Description: `Writes the very file that one run of score or of sample would have written, and for score FILE.meta.json beside it. The
parts are those of OUT, OUT.part-0000-of-0050 and so on, or the files that are named, in any order. Neither networks nor
images nor ONNX Runtime are needed.

   swagwrap score --part 3/50 -o predictions.csv ensemble.safetensors images/    # for each of 0 to 49, anywhere
   swagwrap merge -o predictions.csv

Where parts are missing or damaged nothing is written: the exit code is 4, and the error lists them as an array of Slurm's.`,
		Flags: flags.Join(flags.OutputFlags, []cli.Flag{
			&cli.BoolFlag{Name: "remove", Usage: "remove the parts once the output is on disk"},
		}),
		Action: a.merge,
	}
}

func (a *app) merge(c *cli.Context) error {
	output := c.String("output")
	if flags.IsStdout(output) {
		return flags.Usagef("name a file: -o predictions.csv", "merge does not write to standard output")
	}
	isEnsemble := filepath.Ext(output) == ".safetensors"
	format, err := predictions.Format(output)
	if err != nil && !isEnsemble {
		return flags.Usagef("say where the result goes: -o predictions.csv, or -o ensemble.safetensors", "%w", err)
	}
	out, err := flags.CreateOutput(output, c.Bool("force"))
	if err != nil {
		return err
	}
	defer out.Abort()
	paths, err := findParts(c, output)
	if err != nil {
		return err
	}
	merge := func() error { return a.mergePredictions(c, out, format, paths) }
	if isEnsemble {
		merge = func() error { return a.mergeEnsemble(c, out, paths) }
	}
	if err := merge(); err != nil {
		return err
	}
	if c.Bool("remove") {
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				return flags.BadOutput(file.Error(path, err))
			}
		}
	}
	return nil
}

// mergePredictions makes one file of rows.
func (a *app) mergePredictions(c *cli.Context, out *flags.Output, format string, paths []string) error {
	output := out.Path
	parts, err := readParts(output, paths)
	if err != nil {
		return err
	}
	schema := parts[0].Schema
	t, err := taskOf(parts[0])
	if err != nil {
		return err
	}
	if format == ".npz" && !hasOutcomes(t, schema) {
		return flags.BadInput(fmt.Errorf("%s: has no probabilities, which %s needs", parts[0].Path, output), "score the parts with --probs, or with -o "+filepath.Base(output))
	}
	a.warnProcessors(c, "parts were scored", processors(parts))
	failed := 0
	for _, p := range parts {
		failed += p.Errors
	}
	var sum summary
	sum.scores = t.NewSummary()
	err = predictions.Write(out, format, schema, filepath.Dir(output), func(write func(*predictions.Row) error) error {
		for _, p := range parts {
			err := p.Each(func(r *predictions.Row) error {
				if err := c.Context.Err(); err != nil {
					return err
				}
				sum.add(r)
				return write(r)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return flags.BadOutput(err)
	}
	if err := writeMerged(output, format, parts[0], failed); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	a.Logf(c, "%s: %s of %s", output, report.Plural(sum.rows, "example"), report.Plural(len(parts), "part"))
	return a.tell(c, output, &sum)
}

// piece is what is common to parts of all kinds.
type piece struct {
	path                  string
	index, of, first, end int
	all                   int // examples or members of all parts
}

// findParts lists the files of the parts to merge.
func findParts(c *cli.Context, output string) ([]string, error) {
	if c.NArg() > 0 {
		return c.Args().Slice(), nil
	}
	paths, err := predictions.PartNames(output)
	if err != nil {
		return nil, flags.BadInput(err)
	}
	if len(paths) == 0 {
		return nil, flags.Usagef("name them: swagwrap merge -o OUT PART...", "%s: has no parts, such as %s", output, filepath.Base(predictions.PartName(output, 0, 50)))
	}
	return paths, nil
}

// inOrder puts parts in order. It refuses parts of different runs, one that is there twice,
// and, with what was wrong with those that could not be read, that some are missing. differ
// says in what parts of different runs differ.
func inOrder[P any](output string, parts []P, broken []error, of func(P) piece, differ func(a, b P) []string) error {
	if len(parts) == 0 {
		return flags.BadInput(broken[0])
	}
	slices.SortFunc(parts, func(a, b P) int { return cmp.Or(of(a).index-of(b).index, strings.Compare(of(a).path, of(b).path)) })
	first := of(parts[0])
	before, missing := piece{index: -1}, []int(nil)
	for _, part := range parts {
		p := of(part)
		if p.of != first.of {
			return flags.BadInput(fmt.Errorf("%s: is one of %d parts, and %s one of %d", p.path, p.of, first.path, first.of))
		}
		if d := differ(parts[0], part); d != nil {
			return flags.BadInput(fmt.Errorf("%s: is not of the same run as %s: %s", p.path, first.path, strings.Join(d, "; ")))
		}
		switch {
		case p.index == before.index:
			return flags.BadInput(fmt.Errorf("%s: is part %d, and so is %s", p.path, p.index, before.path))
		case p.all != first.all, p.index == before.index+1 && p.first != before.end, p.index == p.of-1 && p.end != p.all:
			return flags.BadInput(fmt.Errorf("%s: has %d to %d of %d, want from %d of %d", p.path, p.first, p.end, p.all, before.end, first.all))
		}
		for i := before.index + 1; i < p.index; i++ {
			missing = append(missing, i)
		}
		before = p
	}
	for i := before.index + 1; i < first.of; i++ {
		missing = append(missing, i)
	}
	if missing == nil {
		return nil
	}
	array, why := ensemble.Ranges(missing), ""
	if broken != nil {
		why = fmt.Sprintf(" (%v)", broken[0])
	}
	return flags.Missing("run them again: sbatch --array="+array+" …, or the same command with --part I/"+strconv.Itoa(first.of)+" for each",
		"%s: %s of %d missing: --array=%s%s", output, report.Plural(len(missing), "part"), first.of, array, why)
}

// readParts reads the heads of all parts, and every row once, so that nothing is begun
// that cannot be ended. They come back in order.
func readParts(output string, paths []string) ([]*predictions.PartFile, error) {
	var parts []*predictions.PartFile
	var broken []error
	for _, path := range paths {
		p, err := predictions.ReadPart(path)
		switch {
		case errors.Is(err, predictions.ErrDamaged), errors.Is(err, fs.ErrNotExist):
			broken = append(broken, err)
		case err != nil:
			return nil, flags.BadOutput(err)
		default:
			parts = append(parts, p)
		}
	}
	return parts, inOrder(output, parts, broken,
		func(p *predictions.PartFile) piece { return piece{p.Path, p.Index, p.Of, p.First, p.End, p.Examples} },
		func(a, b *predictions.PartFile) []string { return a.Parameters.Differences(b.Parameters) })
}

// processors lists those that parts were scored on.
func processors(parts []*predictions.PartFile) []string {
	var names []string
	for _, p := range parts {
		if !slices.Contains(names, p.Processor) {
			names = append(names, p.Processor)
		}
	}
	return names
}

// hasOutcomes reports whether rows have all that a task has of averaged outcomes.
// warnProcessors says that what was done was done on processors of several kinds, if it was.
func (a *app) warnProcessors(c *cli.Context, done string, kinds []string) {
	if len(kinds) > 1 {
		a.Warnf(c, "%s on %s, which may differ in the last bits: %s", done, report.Plural(len(kinds), "kind of processor"), strings.Join(kinds, ", "))
	}
}

func hasOutcomes(t task.Task, s *predictions.Schema) bool {
	for _, want := range t.Columns(task.Want{Outcomes: true}) {
		if !slices.ContainsFunc(s.Columns, func(c task.Column) bool { return c.Name == want.Name }) {
			return false
		}
	}
	return true
}

func taskOf(p *predictions.PartFile) (task.Task, error) {
	t, err := task.OfWidth(p.Task, p.Schema.Width)
	if err != nil {
		return nil, flags.BadInput(file.Error(p.Path, err))
	}
	return t, nil
}

// writeMerged writes what score writes beside its result.
func writeMerged(output, format string, p *predictions.PartFile, failed int) error {
	var s sidecar
	if err := json.Unmarshal(p.About, &s); err != nil {
		return flags.BadInput(file.Error(p.Path, err))
	}
	s.Command, s.Format, s.Columns, s.Rows, s.Errors, s.Parameters = os.Args, format, p.Schema.Header(), p.Examples, failed, p.Parameters
	return s.write(output)
}
