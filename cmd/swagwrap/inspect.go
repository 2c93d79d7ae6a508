package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights/torch"
)

func (a *app) inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "say what files are, what they were made from, and what to do with them",
		ArgsUsage: "FILE...",
		Description: `Says what files are, what they were made from, how good they are, and which command reads them. It knows posteriors,
ensembles, parts, stores, settings, calibrations, predictions, data and exported models.

For one checkpoint it prints inputs and outputs, producer, tensors with their roles and the reasons, and batch-norm layers. For
several it prints which tensors differ, how far each checkpoint moved from the one before, duplicates, and values that no training
leaves. PyTorch's files need --template for that. The last line is the verdict: usable, usable with warnings, or not usable and
why. The exit code is then 65.

   swagwrap inspect ensemble.safetensors
   swagwrap inspect val.npz
   swagwrap inspect checkpoints/epoch-01.onnx
   swagwrap inspect checkpoints/*.onnx
   swagwrap inspect --template model.onnx checkpoints/*.pt`,
		Flags: flags.Join([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of text"},
		}, flags.TemplateFlags),
		Action: a.inspect,
	}
}

// inspect prints without a check for failed writes, because [flags.Stdout] remembers the first one.
func (a *app) inspect(c *cli.Context) error {
	if done, err := a.describe(c, c.Args().Slice()); done || err != nil {
		return err
	}
	paths, err := a.Models(c, c.Args().Slice())
	if err != nil {
		return err
	}
	source, err := inputs.OpenSource(c, nil)
	if err != nil {
		return err
	}
	defer source.Close()
	if source.Template == nil && slices.ContainsFunc(paths, torch.Is) {
		return a.inspectTorch(c, paths)
	}
	models, err := source.Open(paths)
	if err != nil {
		return err
	}
	defer inputs.CloseModels(models)
	d, err := diagnosis.Of(c.Context, models)
	if err != nil {
		return flags.BadInput(err)
	}
	d.AllTensors = c.Bool("verbose")
	if c.Bool("json") {
		err = flags.WriteJSON(a.Stdout, d)
	} else if err = a.writeTemplate(c, paths, source); err == nil {
		err = d.WriteText(a.Stdout)
	}
	if err != nil {
		return err
	}
	if !d.Usable {
		return flags.BadInput(errors.New(d.Verdict), d.Hints...)
	}
	fit := []string{"swagwrap", "fit", "-o", "posterior.safetensors"}
	if c.IsSet("template") {
		fit = append(fit, "--template", c.String("template"))
	}
	if slices.ContainsFunc(d.Hints, func(hint string) bool { return strings.Contains(hint, "--task") }) {
		fit = append(fit, "--task", "TASK")
	}
	a.Next(c, study.Shell(append(fit, named(c)...)...))
	return nil
}

// named returns the arguments for another command, or a word for them if there are many.
func named(c *cli.Context) []string {
	if c.NArg() > 3 {
		return []string{"CHECKPOINTS"}
	}
	return c.Args().Slice()
}

// writeCard prints a model card. It prints the preprocessing in the form that --preprocess reads.
func writeCard(w io.Writer, js string) error {
	var card swag.Card
	if js == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(js), &card); err != nil {
		return fmt.Errorf("model card: %w", err)
	}
	preprocess, names := string(card.Preprocess), ""
	if preprocess == "" {
		preprocess = "pixels are scaled to [0, 1]"
	}
	if n := len(card.ClassNames); n > 0 {
		names = fmt.Sprintf("%s: %s", report.Thousands(n), strings.Join(card.ClassNames[:min(n, 20)], ", "))
		if n > 20 {
			names += ", …"
		}
	}
	var inputs []string
	for name, columns := range card.Columns {
		inputs = append(inputs, fmt.Sprintf("%s: %s", name, strings.Join(columns, ", ")))
	}
	for name, v := range card.Pad {
		inputs = append(inputs, fmt.Sprintf("%s is padded with %v", name, v))
	}
	slices.Sort(inputs)
	var states []string
	for _, p := range card.State {
		states = append(states, p.In+"="+p.Out)
	}
	scores := ""
	if !task.Numeric(card.Task) {
		scores = cmp.Or(card.Scores, "what the values say, as a run looks at them (--scores)")
	}
	fmt.Fprintln(w, "\nmodel card")
	for _, line := range [][2]string{{"output", cmp.Or(card.Output, "the first")}, {"task", cmp.Or(card.Task, "not told")}, {"scores", scores}, {"states", strings.Join(states, ", ")}, {"classes", cmp.Or(names, "no names")},
		{"targets", describeCardTargets(card.Targets)}, {"preprocess", preprocess}, {"augment", cmp.Or(card.Augment, "not told")}} {
		if line[1] != "" {
			text.Line(w, "  %-10s %s", line[0], line[1])
		}
	}
	for _, line := range inputs { // of tables
		text.Line(w, "  %-10s %s", "table", line)
	}
	return nil
}

// describeCardTargets describes a regression's targets in a model card. It returns "" for other tasks.
func describeCardTargets(t *swag.Targets) string {
	if t == nil {
		return ""
	}
	var parts []string
	for i, mean := range t.Mean {
		parts = append(parts, fmt.Sprintf("%g + %g·z", mean, t.Std[i]))
	}
	if parts == nil {
		parts = []string{"the network's numbers"}
	}
	switch {
	case t.VarianceHead != "":
		parts = append(parts, "variances by a head: "+t.VarianceHead)
	case t.NoiseStd != nil:
		parts = append(parts, fmt.Sprintf("noise %v", strings.Trim(fmt.Sprint(t.NoiseStd), "[]")))
	default:
		parts = append(parts, "noise is to be fitted: compare, calibrate")
	}
	return strings.Join(parts, "; ")
}
