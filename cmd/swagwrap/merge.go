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
		Usage:     "make one file of predictions of the parts that score --part wrote",
		ArgsUsage: "[PART...]",
		Description: `Writes the very file that one run of score would have written, and FILE.meta.json beside it. The parts are those of
OUT, OUT.part-0000-of-0050 and so on, or the files that are named, in any order. Neither networks nor images nor ONNX
Runtime are needed.

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
	format, err := predictions.Format(output)
	if err != nil {
		return flags.Usagef("say where the predictions go: -o predictions.csv", "%w", err)
	}
	out, err := flags.CreateOutput(output, c.Bool("force"))
	if err != nil {
		return err
	}
	defer out.Abort()
	parts, err := readParts(output, c.Args().Slice())
	if err != nil {
		return err
	}
	schema := parts[0].Schema
	if format == ".npz" && !hasOutcomes(schema) {
		return flags.BadInput(fmt.Errorf("%s: has no probabilities, which %s needs", parts[0].Path, output), "score the parts with --probs, or with -o "+filepath.Base(output))
	}
	if machines := processors(parts); len(machines) > 1 {
		a.Warnf(c, "parts were scored on %s, which may differ in the last bits: %s", report.Plural(len(machines), "kind of processor"), strings.Join(machines, ", "))
	}
	failed := 0
	for _, p := range parts {
		failed += p.Errors
	}
	var sum summary
	t, err := taskOf(parts[0])
	if err != nil {
		return err
	}
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
	if c.Bool("remove") {
		for _, p := range parts {
			if err := os.Remove(p.Path); err != nil {
				return flags.BadOutput(file.Error(p.Path, err))
			}
		}
	}
	a.Logf(c, "%s: %s of %s", output, report.Plural(sum.rows, "example"), report.Plural(len(parts), "part"))
	return a.tell(c, output, &sum)
}

// readParts reads the heads of all parts, and every row once, so that nothing is begun
// that cannot be ended. They come back in order.
func readParts(output string, paths []string) ([]*predictions.PartFile, error) {
	var err error
	if len(paths) == 0 {
		if paths, err = predictions.PartNames(output); err != nil {
			return nil, flags.BadInput(err)
		}
		if len(paths) == 0 {
			return nil, flags.Usagef("name them: swagwrap merge -o OUT PART...", "%s: has no parts, such as %s", output, filepath.Base(predictions.PartName(output, 0, 50)))
		}
	}
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
	if len(parts) == 0 {
		return nil, flags.BadInput(broken[0])
	}
	slices.SortFunc(parts, func(a, b *predictions.PartFile) int { return cmp.Or(a.Index-b.Index, strings.Compare(a.Path, b.Path)) })
	if err := oneRun(parts); err != nil {
		return nil, flags.BadInput(err)
	}
	return parts, complete(output, parts, broken)
}

// oneRun refuses parts of different runs, and one that is there twice.
func oneRun(parts []*predictions.PartFile) error {
	first := parts[0]
	for i, p := range parts[1:] {
		if p.Of != first.Of {
			return fmt.Errorf("%s: is one of %d parts, and %s one of %d", p.Path, p.Of, first.Path, first.Of)
		}
		if d := first.Parameters.Differences(p.Parameters); d != nil {
			return fmt.Errorf("%s: is not of the same run as %s: %s", p.Path, first.Path, strings.Join(d, "; "))
		}
		switch before := parts[i]; { // the one before p
		case p.Index == before.Index:
			return fmt.Errorf("%s: is part %d, and so is %s", p.Path, p.Index, before.Path)
		case p.Examples != first.Examples, p.Index == before.Index+1 && p.First != before.End:
			return fmt.Errorf("%s: has examples %d to %d of %d, behind %d to %d of %s", p.Path, p.First, p.End, p.Examples, before.First, before.End, before.Path)
		}
	}
	return nil
}

// complete says which parts are missing.
func complete(output string, parts []*predictions.PartFile, broken []error) error {
	of := parts[0].Of
	there := make([]bool, of)
	for _, p := range parts {
		there[p.Index] = true
	}
	var missing []int
	for i := range there {
		if !there[i] {
			missing = append(missing, i)
		}
	}
	last := parts[len(parts)-1]
	switch {
	case missing == nil && (parts[0].First != 0 || last.End != last.Examples):
		return flags.BadInput(fmt.Errorf("%s: ends with example %d of %d", last.Path, last.End, last.Examples))
	case missing == nil:
		return nil
	}
	why := ""
	if broken != nil {
		why = fmt.Sprintf(" (%v)", broken[0])
	}
	return flags.Missing("run them again: sbatch --array="+ranges(missing)+" …, or score --part I/"+strconv.Itoa(of)+" for each",
		"%s: %s of %d missing: --array=%s%s", output, report.Plural(len(missing), "part"), of, ranges(missing), why)
}

// ranges writes numbers as Slurm's --array takes them: 3,17-19.
func ranges(sorted []int) string {
	var list []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		word := strconv.Itoa(sorted[i])
		if j > i {
			word += "-" + strconv.Itoa(sorted[j])
		}
		list, i = append(list, word), j+1
	}
	return strings.Join(list, ",")
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

func hasOutcomes(s *predictions.Schema) bool {
	return slices.ContainsFunc(s.Columns, func(c task.Column) bool {
		return !c.Hidden && c.Kind != task.Ranked && len(c.Shape) == 1 && c.Shape[0] == s.Width
	})
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
