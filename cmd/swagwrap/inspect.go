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
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/torch"
)

func (a *app) inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "say what models hold, whether a posterior can be built from them, and if not, why",
		ArgsUsage: "FILE...",
		Description: `For one ONNX model: its inputs and outputs, producer, tensors with their roles and the reasons, batch-norm layers. For several: which
tensors differ between them, how far each checkpoint moved from the one before, duplicates and values that no
training leaves. For a posterior or ensemble: what it was made of. For PyTorch's checkpoints: the
state_dicts in them; with --template, the exported graph, the same as for ONNX models. The last line is the verdict: usable, usable with
warnings, or not usable and why; then the exit code is 65.

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
	paths, err := a.Models(c, c.Args().Slice())
	if err != nil {
		return err
	}
	if len(paths) == 1 && inputs.IsOurs(paths[0]) {
		return a.inspectSafetensors(c, paths[0])
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
	return nil
}

func (a *app) inspectSafetensors(c *cli.Context, path string) error {
	st, err := weights.OpenSafetensors(path)
	if err != nil {
		return flags.BadInput(err)
	}
	defer st.Close()
	if st.HasChecksums() {
		if err := st.Verify(); err != nil {
			return flags.BadInput(err)
		}
	}
	if err := sound(path, st.Metadata["kind"]); err != nil {
		return flags.BadInput(err)
	}
	if c.Bool("json") {
		return flags.WriteJSON(a.Stdout, st.Metadata)
	}
	text.Line(a.Stdout, "%s", path)
	text.Line(a.Stdout, "  kind       %s, format version %s, written by %s", st.Metadata["kind"], st.Metadata["format_version"], st.Metadata["producer"])
	for _, m := range []struct{ key, name string }{{"options", "options"}, {"mean", "mean from"}, {"components", "components"}, {"sampling", "sampling"},
		{"calibration", "calibration"}, {"threshold", "threshold"}} {
		if v := st.Metadata[m.key]; v != "" && v != "null" {
			text.Line(a.Stdout, "  %-10s %s", m.name, v)
		}
	}
	if err := writeCard(a.Stdout, st.Metadata["card"]); err != nil {
		return flags.BadInput(fmt.Errorf("%s: %w", path, err))
	}
	t := report.NewTable(report.Column{Header: "section"}, report.Column{Header: "shape"}, report.Column{Header: "type"})
	for _, s := range st.Sections {
		t.Row(s.Name, strings.Trim(fmt.Sprint(s.Shape), "[]"), s.DType.String())
	}
	fmt.Fprintln(a.Stdout)
	t.WriteText(a.Stdout, report.Screen{})
	if st.Metadata["kind"] != swag.PosteriorKind {
		return nil
	}
	p, err := swag.Open(path)
	if err != nil {
		return flags.BadInput(err)
	}
	defer p.Close()
	health, err := diagnosis.Trajectory(p)
	if err != nil {
		return flags.BadInput(err)
	}
	fmt.Fprintln(a.Stdout)
	diagnosis.WriteTensors(a.Stdout, p.Layout.Tensors, len(p.Checkpoints), c.Bool("verbose"))
	for _, w := range p.Warnings {
		text.Line(a.Stdout, "warning: %s", w)
	}
	fmt.Fprintln(a.Stdout, strings.Join(health, "\n"))
	return nil
}

// sound fails if a posterior or an ensemble holds impossible numbers. The variances of an ensemble can be checked only
// if its posteriors are there.
func sound(path, kind string) error {
	switch kind {
	case swag.PosteriorKind:
		p, err := swag.Open(path)
		if err != nil {
			return err
		}
		defer p.Close()
		if err := p.Verify(); err != nil {
			return err
		}
		_, err = infer.NewNetwork(p, infer.KeepAll, "")
		return err
	case ensemble.Kind:
		e, err := ensemble.Open(path)
		if err != nil {
			return err
		}
		for i := range e.Components {
			p, err := e.OpenPosterior(i, nil)
			if err != nil {
				continue // it has moved: score asks for it
			}
			defer p.Close()
			n, err := infer.NewNetwork(p, infer.KeepAll, "")
			if err == nil {
				err = e.SoundStatistics(i, n)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
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
	scores := ""
	if !task.Numeric(card.Task) {
		scores = cmp.Or(card.Scores, "what the values say, as a run looks at them (--scores)")
	}
	fmt.Fprintln(w, "\nmodel card")
	for _, line := range [][2]string{{"output", cmp.Or(card.Output, "the first")}, {"task", cmp.Or(card.Task, "not told")}, {"scores", scores}, {"classes", cmp.Or(names, "no names")},
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
