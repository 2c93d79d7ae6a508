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

// mergePredictions merges parts of predictions into one file.
func (a *app) mergePredictions(c *cli.Context, out *flags.Output, format string, paths []string) error {
	output := out.Path
	parts, err := readParts(c, output, paths)
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
	sum.scores = t.NewEvaluator(task.EvaluateOptions{MainOnly: true, NoLosses: true})
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
	beside, err := merged(output, format, parts[0], failed)
	if err != nil {
		return err
	}
	if err := flags.Commit(beside, out); err != nil {
		return err
	}
	a.Logf(c, "%s: %s of %s", output, report.Plural(sum.rows, "example"), report.Plural(len(parts), "part"))
	return a.tell(c, output, &sum)
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

// piece describes one part of predictions or of an ensemble.
type piece struct {
	path                  string
	index, of, first, end int
	all                   int // number of examples or members of all parts
}

// assembly collects the parts of one run. Its memory grows with the parts that exist, not with the missing ones.
type assembly[P any] struct {
	output string
	of     func(P) piece
	unlike func(part, first P) []string // differences that show another run
	parts  []P
	broken error // error of the first part that cannot be read
}

// add adds a part. It refuses a part of another run.
func (a *assembly[P]) add(part P) error {
	if len(a.parts) > 0 {
		p, first := a.of(part), a.of(a.parts[0])
		if p.of != first.of {
			return flags.BadInput(fmt.Errorf("%s: is one of %d parts, and %s one of %d", p.path, p.of, first.path, first.of))
		}
		if d := a.unlike(part, a.parts[0]); d != nil {
			return flags.BadInput(fmt.Errorf("%s: is not of the same run as %s: %s", p.path, first.path, strings.Join(d, "; ")))
		}
	}
	a.parts = append(a.parts, part)
	return nil
}

// damaged records a part that cannot be read. It counts as missing.
func (a *assembly[P]) damaged(err error) {
	if a.broken == nil {
		a.broken = err
	}
}

// inOrder returns all parts in order. It fails if a part occurs twice or is missing, or if two parts do not adjoin.
func (a *assembly[P]) inOrder() ([]P, error) {
	if len(a.parts) == 0 {
		return nil, flags.BadInput(a.broken)
	}
	slices.SortFunc(a.parts, func(p, q P) int {
		return cmp.Or(a.of(p).index-a.of(q).index, strings.Compare(a.of(p).path, a.of(q).path))
	})
	first := a.of(a.parts[0])
	before, gaps := piece{index: -1}, gaps{}
	for _, part := range a.parts {
		p := a.of(part)
		switch {
		case p.index == before.index:
			return nil, flags.BadInput(fmt.Errorf("%s: is part %d, and so is %s", p.path, p.index, before.path))
		case p.all != first.all, p.index == before.index+1 && p.first != before.end, p.index == p.of-1 && p.end != p.all:
			return nil, flags.BadInput(fmt.Errorf("%s: has %d to %d of %d, want from %d of %d", p.path, p.first, p.end, p.all, before.end, first.all))
		}
		gaps.add(before.index+1, p.index)
		before = p
	}
	gaps.add(before.index+1, first.of)
	if gaps.count == 0 {
		return a.parts, nil
	}
	array, why := strings.Join(gaps.ranges, ","), ""
	if a.broken != nil {
		why = fmt.Sprintf(" (%v)", a.broken)
	}
	return nil, flags.Missing("run them again: sbatch --array="+array+" …, or the same command with --part I/"+strconv.Itoa(first.of)+" for each",
		"%s: %s of %d missing: --array=%s%s", a.output, report.Plural(gaps.count, "part"), first.of, array, why)
}

// gaps holds the numbers of missing parts, as ranges.
type gaps struct {
	count  int
	ranges []string
}

// add adds the numbers in [from, end).
func (g *gaps) add(from, end int) {
	switch n := end - from; {
	case n <= 0:
		return
	case n == 1:
		g.ranges = append(g.ranges, strconv.Itoa(from))
	default:
		g.ranges = append(g.ranges, fmt.Sprintf("%d-%d", from, end-1))
	}
	g.count += end - from
}

// readParts reads the heads of all parts, and every row once, so that it finds damaged parts before the merge begins.
// It returns the parts in order.
func readParts(c *cli.Context, output string, paths []string) ([]*predictions.PartFile, error) {
	all := assembly[*predictions.PartFile]{output: output, unlike: (*predictions.PartFile).Unlike,
		of: func(p *predictions.PartFile) piece { return piece{p.Path, p.Index, p.Of, p.First, p.End, p.Examples} }}
	for _, path := range paths {
		p, err := predictions.ReadPart(path)
		switch {
		case errors.Is(err, predictions.ErrDamaged) && isOther(path, flags.ScorePart):
			return nil, flags.WrongKind(c, err, path, flags.ScorePart)
		case errors.Is(err, predictions.ErrDamaged), errors.Is(err, fs.ErrNotExist):
			all.damaged(err)
			continue
		case err != nil:
			return nil, flags.BadOutput(err)
		}
		if p.Index > 0 {
			p.About = nil // part 0 has the same
		}
		if err := all.add(p); err != nil {
			return nil, err
		}
	}
	return all.inOrder()
}

// isOther reports whether a file that cannot be read as a part has another kind, and is not just damaged.
func isOther(path string, part flags.Kind) bool {
	kind := flags.KindOf(path)
	return kind != part && kind != flags.Unknown && kind != flags.WorkFile
}

// processors lists the processors on which the parts were scored.
func processors(parts []*predictions.PartFile) []string {
	var names []string
	for _, p := range parts {
		if !slices.Contains(names, p.Processor) {
			names = append(names, p.Processor)
		}
	}
	return names
}

// warnProcessors warns if the work was done on several kinds of processors. done describes the work.
func (a *app) warnProcessors(c *cli.Context, done string, kinds []string) {
	if len(kinds) > 1 {
		a.Warnf(c, "%s on %s, which may differ in the last bits: %s", done, report.Plural(len(kinds), "kind of processor"), strings.Join(kinds, ", "))
	}
}

// hasOutcomes reports whether rows have all columns for the averaged outcomes of a task.
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

// merged writes the sidecar of the result, with the content that score writes.
func merged(output, format string, p *predictions.PartFile, failed int) (*flags.Output, error) {
	var s sidecar
	if err := json.Unmarshal(p.About, &s); err != nil {
		return nil, flags.BadInput(file.Error(p.Path, err))
	}
	s.Command, s.Format, s.Columns, s.Rows, s.Errors, s.Parameters = os.Args, format, p.Schema.Header(), p.Examples, failed, p.Parameters
	return s.write(output)
}
