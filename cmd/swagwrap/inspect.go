package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "say what a model holds and whether a posterior can be built from it",
		ArgsUsage: "FILE...",
		Description: `For one ONNX model: its inputs and outputs, producer, tensors with their roles, batch-norm layers. For several: which
tensors differ between them. For a posterior or ensemble: what it was made of. The last line is the verdict.

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
	d := diagnose(models)
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
	Files      []string         `json:"files"`
	Producer   string           `json:"producer"`
	Opset      int64            `json:"opset"`
	IRVersion  int64            `json:"ir_version"`
	Bytes      int64            `json:"bytes"` // of the first file
	Inputs     []tensorInfo     `json:"inputs"`
	Outputs    []tensorInfo     `json:"outputs"`
	Parameters int64            `json:"parameters"`
	BatchNorms int              `json:"batch_norm_layers"`
	Tensors    []weights.Tensor `json:"tensors"`
	Duplicates [][2]string      `json:"duplicates"`
	Usable     bool             `json:"usable"`
	Verdict    string           `json:"verdict"`
	Hints      []string         `json:"hints"`
}

type tensorInfo struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"` // -1 for a free dimension
	dims  []string
}

func diagnose(models []*onnxio.Model) *diagnosis {
	first := models[0]
	d := &diagnosis{Producer: strings.TrimSpace(first.ProducerName + " " + first.ProducerVersion), Opset: first.Opset,
		IRVersion: first.IRVersion, Bytes: int64(len(first.Bytes())), Inputs: infos(first.FeedInputs()), Outputs: infos(first.Graph.Outputs),
		Tensors: []weights.Tensor{}, Duplicates: [][2]string{}, Hints: []string{}}
	sums := make(map[string]string)
	for _, m := range models {
		d.Files = append(d.Files, m.Path)
		sum := contentSum(m)
		if twin, ok := sums[sum]; ok {
			d.Duplicates = append(d.Duplicates, [2]string{twin, m.Path})
		}
		sums[sum] = m.Path
	}
	bns, err := first.BatchNorms()
	d.BatchNorms = len(bns)
	if err == nil {
		var layout *weights.Layout
		if layout, err = onnxio.NewLayout(models); err == nil {
			d.Tensors, d.Parameters = layout.Tensors, layout.Len(weights.Parameter)
		}
	}
	d.judge(models, err)
	return d
}

// judge sets the verdict; err is what keeps the models from being laid out.
func (d *diagnosis) judge(models []*onnxio.Model, err error) {
	sign := models[0].FoldedBatchNorm()
	var model *onnxio.Error
	switch {
	case sign != "":
		d.Verdict = "not usable: batch norm is folded into the weights: " + sign
		d.Hints = append(d.Hints, "export with batch norm kept: "+onnxio.KeepBatchNorm)
	case errors.As(err, &model):
		d.Verdict, d.Hints = "not usable: "+model.Error(), lines(model.Hint)
	case err != nil:
		d.Verdict = "not usable: " + err.Error()
	case len(d.Duplicates) > 0:
		d.Verdict = fmt.Sprintf("not usable: %s and %s are the same", d.Duplicates[0][0], d.Duplicates[0][1])
		d.Hints = append(d.Hints, "give every checkpoint once")
	case d.Parameters == 0 && len(models) > 1:
		d.Verdict = "not usable: no tensor differs between the files"
	case d.Parameters == 0:
		d.Verdict = "not usable: no floating-point weights among its initializers"
	case len(models) == 1:
		d.Usable, d.Verdict = true, "usable, with more checkpoints of the same network"
	default:
		d.Usable, d.Verdict = true, fmt.Sprintf("usable: %d checkpoints of one network", len(models))
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
	fmt.Fprintf(w, "%s\n", d.Files[0])
	if n := len(d.Files); n > 1 {
		fmt.Fprintf(w, "… %s, %d files\n", d.Files[n-1], n)
	}
	fmt.Fprintf(w, "  producer  %s, opset %d, IR %d, %s\n", d.Producer, d.Opset, d.IRVersion, report.Bytes(d.Bytes))
	for _, in := range d.Inputs {
		fmt.Fprintf(w, "  input     %v\n", in)
	}
	for _, out := range d.Outputs {
		fmt.Fprintf(w, "  output    %v\n", out)
	}
	count := map[weights.Role]int{}
	for _, t := range d.Tensors {
		count[t.Role]++
	}
	fmt.Fprintf(w, "  weights   %s, in parameter tensors: %d; batch-norm layers: %d; constant float tensors: %d\n\n",
		report.Thousands(int(d.Parameters)), count[weights.Parameter], d.BatchNorms, count[weights.Constant])
	t := report.NewTable(report.Column{Header: "tensor"}, report.Column{Header: "shape"}, report.Column{Header: "type"}, report.Column{Header: "role"})
	for _, x := range d.Tensors {
		t.Row(x.Name, strings.Trim(fmt.Sprint(x.Shape), "[]"), x.DType.String(), x.Role.String())
	}
	if err := t.WriteText(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nverdict: %s\n", d.Verdict)
	return err
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
