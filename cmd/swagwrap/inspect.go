package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

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
	if err := positionals(c); err != nil {
		return err
	}
	paths := c.Args().Slice()
	if len(paths) == 1 && isSafetensors(paths[0]) {
		return a.inspectSafetensors(c, paths[0])
	}
	models, err := openModels(paths)
	if err != nil {
		return err
	}
	defer closeModels(models)
	d, err := diagnose(c.Context, models)
	if err != nil {
		return badInput(err)
	}
	if c.Bool("json") {
		err = indentJSON(a.stdout, d)
	} else {
		err = d.write(a.stdout)
	}
	if err != nil {
		return badOutput(err)
	}
	if !d.Usable {
		return badInput(errors.New(d.Verdict), d.Hints...)
	}
	return nil
}

// diagnosis is what inspect prints.
type diagnosis struct {
	Producer   string           `json:"producer"`
	Opset      int64            `json:"opset"`
	IRVersion  int64            `json:"ir_version"`
	Bytes      int64            `json:"bytes"` // of the first file, its data files included
	Inputs     []tensorInfo     `json:"inputs"`
	Outputs    []tensorInfo     `json:"outputs"`
	Parameters int64            `json:"parameters"`
	BatchNorms int              `json:"batch_norm_layers"`
	Tensors    []weights.Tensor `json:"tensors"`
	Files      []fileInfo       `json:"files"`
	Duplicates [][2]string      `json:"duplicates"`
	Warnings   []string         `json:"warnings"`
	Usable     bool             `json:"usable"`
	Verdict    string           `json:"verdict"`
	Hints      []string         `json:"hints"`
}

// fileInfo is one checkpoint of a set.
type fileInfo struct {
	Path      string   `json:"path"`
	SHA256    string   `json:"sha256"`
	Norm      *float64 `json:"norm"`  // of its parameters
	Moved     *float64 `json:"moved"` // distance from the checkpoint before, relative to the norm
	NonFinite int64    `json:"non_finite"`
}

type tensorInfo struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"` // -1 for a free dimension
	dims  []string
}

func diagnose(ctx context.Context, models []*onnxio.Model) (*diagnosis, error) {
	first := models[0]
	d := &diagnosis{Producer: strings.TrimSpace(first.ProducerName + " " + first.ProducerVersion), Opset: first.Opset,
		IRVersion: first.IRVersion, Bytes: first.Size(), Inputs: infos(first.FeedInputs()), Outputs: infos(first.Graph.Outputs),
		Tensors: []weights.Tensor{}, Duplicates: [][2]string{}, Warnings: []string{}, Hints: []string{}}
	twins := make(map[string]string)
	for _, m := range models {
		sum := contentSum(m)
		d.Files = append(d.Files, fileInfo{Path: m.Path, SHA256: sum})
		if twin, ok := twins[sum]; ok {
			d.Duplicates = append(d.Duplicates, [2]string{twin, m.Path})
		}
		twins[sum] = m.Path
	}
	bns, err := first.BatchNorms()
	d.BatchNorms = len(bns)
	var set *onnxio.Set
	if err == nil {
		if set, err = onnxio.NewSet(models); err == nil {
			d.Tensors, d.Parameters = set.Layout.Tensors, set.Layout.Len(weights.Parameter)
			if err := d.readIterates(ctx, set); err != nil {
				return nil, err
			}
		}
	}
	d.warn(first, bns, set)
	d.judge(first, err)
	return d, nil
}

// readIterates measures how far the checkpoints are from each other.
func (d *diagnosis) readIterates(ctx context.Context, set *onnxio.Set) error {
	var thetas []weights.Vector
	for _, m := range set.Models {
		theta, err := m.Vector(set.Layout, weights.Parameter)
		if err != nil {
			return err
		}
		thetas = append(thetas, theta)
	}
	steps, err := swag.Steps(ctx, thetas)
	if err != nil {
		return err
	}
	for i, s := range steps {
		f := &d.Files[i]
		f.Norm, f.NonFinite = finite(s.Norm), s.NonFinite
		if i > 0 {
			f.Moved = finite(s.Moved / s.Norm)
		}
		if s.NonFinite > 0 && d.Verdict == "" {
			t, at := set.Layout.At(weights.Parameter, s.First)
			d.Verdict = fmt.Sprintf("not usable: %s: tensor %q: value at index %d is not finite, %d such values in all", f.Path, t.Name, at, s.NonFinite)
			d.Hints = append(d.Hints, "training diverged: leave this checkpoint out, or lower the learning rate")
		}
	}
	return nil
}

// enough is the number of checkpoints the paper's rank asks for.
const enough = swag.DefaultRank

// warn collects what a user should know and can live with.
func (d *diagnosis) warn(first *onnxio.Model, bns []onnxio.BatchNorm, set *onnxio.Set) {
	add := func(format string, args ...any) { d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...)) }
	if n := len(d.Files); n > 1 && n < enough {
		add("%d checkpoints: the covariance has rank %d, and %d or more are better", n, n, enough)
	}
	if set != nil && set.ByPlace {
		add("tensors have other names in other files, and were matched by their place in the graph")
	}
	for _, in := range first.FeedInputs() {
		if len(bns) > 0 && len(in.Shape) > 0 && in.Shape[0] >= 0 && in.Shape[0] < 16 {
			add("input %q takes batches of %d only: batch-norm statistics of so few examples are poor; export with a dynamic batch dimension", in.Name, in.Shape[0])
		}
	}
	for _, bn := range bns {
		if bn.IsTraining {
			add("exported in training mode: everything swagwrap writes is brought back to inference")
			break
		}
	}
}

// judge sets the verdict; err is what keeps the models from being laid out.
func (d *diagnosis) judge(first *onnxio.Model, err error) {
	folding := first.FoldedBatchNorm()
	var model *onnxio.Error
	switch {
	case folding != nil:
		d.Verdict, d.Hints = "not usable: "+folding.String(), foldingHints(folding)
	case errors.As(err, &model):
		d.Verdict, d.Hints = "not usable: "+model.Error(), lines(model.Hint)
	case err != nil:
		d.Verdict = "not usable: " + err.Error()
	case len(d.Duplicates) > 0:
		d.Verdict = fmt.Sprintf("not usable: %s and %s are the same", d.Duplicates[0][0], d.Duplicates[0][1])
		d.Hints = append(d.Hints, "give every checkpoint once")
	case d.Verdict != "": // set by readIterates
	case d.Parameters == 0 && len(d.Files) > 1:
		d.Verdict = "not usable: no tensor differs between the files"
	case d.Parameters == 0:
		d.Verdict = "not usable: no floating-point weights in it"
	default:
		d.Usable = true
		d.Verdict = "usable"
		if len(d.Warnings) > 0 {
			d.Verdict = "usable with warnings"
		}
		if n := len(d.Files); n > 1 {
			d.Verdict += fmt.Sprintf(": %d checkpoints of one network", n)
		} else {
			d.Verdict += ", with more checkpoints of the same network"
		}
	}
}

// foldingHints says why folded batch norm is in the way, and how to avoid it.
func foldingHints(f *onnxio.Folding) []string {
	return []string{
		"every sampled network needs batch-norm statistics of its own. In these files they are multiplied into the weights and cannot be recomputed: averaged weights would predict worse than any checkpoint, and sampled ones worse still",
		"export the checkpoints again with batch norm kept: " + f.Keep,
	}
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
		return badInput(err)
	}
	defer st.Close()
	if st.HasChecksums() {
		if err := st.Verify(); err != nil {
			return badInput(err)
		}
	}
	if c.Bool("json") {
		return badOutput(indentJSON(a.stdout, st.Metadata))
	}
	fmt.Fprintf(a.stdout, "%s\n  kind      %s, format version %s, written by %s\n", path, st.Metadata["kind"], st.Metadata["format_version"], st.Metadata["producer"])
	for _, key := range []string{"options", "posterior", "sampling", "batch_norm", "preprocess"} {
		if v := st.Metadata[key]; v != "" {
			fmt.Fprintf(a.stdout, "  %-9s %s\n", key, v)
		}
	}
	t := report.NewTable(report.Column{Header: "section"}, report.Column{Header: "shape"}, report.Column{Header: "type"})
	for _, s := range st.Sections {
		t.Row(s.Name, strings.Trim(fmt.Sprint(s.Shape), "[]"), s.DType.String())
	}
	fmt.Fprintln(a.stdout)
	return badOutput(t.WriteText(a.stdout))
}

func indentJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
