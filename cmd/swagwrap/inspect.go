package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "say what models hold, whether a posterior can be built from them, and if not, why",
		ArgsUsage: "FILE...",
		Description: `For one ONNX model: its inputs and outputs, producer, tensors with their roles, batch-norm layers. For several: which
tensors differ between them, how far each checkpoint moved from the one before, duplicates and values that are not
finite. For a posterior or ensemble: what it was made of. The last line is the verdict: usable, usable with
warnings, or not usable and why; then the exit code is 65.

   swagwrap inspect checkpoints/epoch-01.onnx
   swagwrap inspect checkpoints/*.onnx`,
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON instead of text"}},
		Action: a.inspect,
	}
}

func (a *app) inspect(c *cli.Context) error {
	if err := flags.Positionals(c); err != nil {
		return err
	}
	paths := c.Args().Slice()
	if len(paths) == 1 && isSafetensors(paths[0]) {
		return a.inspectSafetensors(c, paths[0])
	}
	models, err := flags.OpenModels(paths)
	if err != nil {
		return err
	}
	defer flags.CloseModels(models)
	d, err := diagnose(c.Context, models)
	if err != nil {
		return flags.BadInput(err)
	}
	if c.Bool("json") {
		err = flags.WriteJSON(a.Stdout, d)
	} else {
		err = d.write(a.Stdout)
	}
	if err != nil {
		return flags.BadOutput(err)
	}
	if !d.Usable {
		return flags.BadInput(errors.New(d.Verdict), d.Hints...)
	}
	return nil
}

func infos(values []onnxio.Value) []tensorInfo {
	var out []tensorInfo
	for _, v := range values {
		out = append(out, tensorInfo{Name: v.Name, Type: v.ElemType.String(), Shape: v.Shape, dims: v.Dims})
	}
	return out
}

func (t tensorInfo) String() string {
	dims := make([]string, len(t.Shape))
	for i, d := range t.Shape {
		switch {
		case d >= 0:
			dims[i] = fmt.Sprint(d)
		case t.dims[i] != "":
			dims[i] = t.dims[i]
		default:
			dims[i] = "?"
		}
	}
	return fmt.Sprintf("%s  %s [%s]", t.Name, t.Type, strings.Join(dims, " "))
}

func (d *diagnosis) write(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", d.Files[0].Path)
	if n := len(d.Files); n > 1 {
		fmt.Fprintf(w, "… %s, %d files\n", d.Files[n-1].Path, n)
	}
	fmt.Fprintf(w, "  producer  %s, opset %d, IR %d, %s\n", d.Producer, d.Opset, d.IRVersion, report.Bytes(d.Bytes))
	for _, in := range d.Inputs {
		fmt.Fprintf(w, "  input     %v\n", in)
	}
	for _, out := range d.Outputs {
		fmt.Fprintf(w, "  output    %v\n", out)
	}
	count := map[weights.Role]int{}
	t := report.NewTable(report.Column{Header: "tensor"}, report.Column{Header: "shape", Empty: "scalar"}, report.Column{Header: "type"}, report.Column{Header: "role"})
	for _, x := range d.Tensors {
		count[x.Role]++
		role := x.Role.String()
		if x.Tied != "" {
			role += ", tied to " + x.Tied
		}
		if x.Transposed {
			role += ", transposed"
		}
		t.Row(x.Name, strings.Trim(fmt.Sprint(x.Shape), "[]"), x.DType.String(), role)
	}
	fmt.Fprintf(w, "  weights   %s, in parameter tensors: %d; batch-norm layers: %d; constant float tensors: %d\n\n",
		report.Thousands(int(d.Parameters)), count[weights.Parameter], d.BatchNorms, count[weights.Constant])
	if len(d.Tensors) > 0 {
		if err := t.WriteText(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if len(d.Files) > 1 && d.Files[0].Norm != nil {
		if err := d.writeFiles(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
	_, err := fmt.Fprintf(w, "verdict: %s\n", d.Verdict)
	return err
}

// writeFiles shows how far each checkpoint is from the one before.
func (d *diagnosis) writeFiles(w io.Writer) error {
	t := report.NewTable(report.Column{Header: "checkpoint"}, report.Column{Header: "‖θ‖", Align: report.Decimal},
		report.Column{Header: "moved", Align: report.Decimal}, report.Column{Header: "not finite", Align: report.Right, Empty: " "})
	for _, f := range d.Files {
		moved, broken := "", ""
		if f.Moved != nil {
			moved = report.Percent(*f.Moved, 2)
		}
		if f.NonFinite > 0 {
			broken = report.Thousands(int(f.NonFinite))
		}
		t.Row(f.Path, report.Fixed(*f.Norm, 4), moved, broken)
	}
	return t.WriteText(w)
}

// isSafetensors tells a posterior or ensemble from an ONNX model by content:
// eight bytes of length, then JSON.
func isSafetensors(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, 9)
	_, err = io.ReadFull(f, b)
	return err == nil && b[8] == '{'
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
	if c.Bool("json") {
		return flags.BadOutput(flags.WriteJSON(a.Stdout, st.Metadata))
	}
	fmt.Fprintf(a.Stdout, "%s\n  kind       %s, format version %s, written by %s\n", path, st.Metadata["kind"], st.Metadata["format_version"], st.Metadata["producer"])
	for _, key := range []string{"options", "components", "sampling"} {
		if v := st.Metadata[key]; v != "" {
			fmt.Fprintf(a.Stdout, "  %-10s %s\n", key, v)
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
	if err := t.WriteText(a.Stdout); err != nil || st.Metadata["kind"] != swag.PosteriorKind {
		return flags.BadOutput(err)
	}
	p, err := swag.Open(path)
	if err != nil {
		return flags.BadInput(err)
	}
	defer p.Close()
	health, err := healthReport(p)
	if err != nil {
		return flags.BadInput(err)
	}
	_, err = fmt.Fprintf(a.Stdout, "\n%s\n", strings.Join(health, "\n"))
	return flags.BadOutput(err)
}

// writeCard prints a model card. Its preprocessing is what --preprocess reads.
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
	fmt.Fprintln(w, "\nmodel card")
	for _, line := range [][2]string{{"task", cmp.Or(card.Task, "as the scores tell")}, {"classes", cmp.Or(names, "no names")},
		{"preprocess", preprocess}, {"augment", cmp.Or(card.Augment, "not told")}} {
		fmt.Fprintf(w, "  %-10s %s\n", line[0], line[1])
	}
	return nil
}
