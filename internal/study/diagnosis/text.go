package diagnosis

import (
	"cmp"
	"fmt"
	"io"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

func infos(values []onnxio.Value) []tensorInfo {
	var out []tensorInfo
	for _, v := range values {
		out = append(out, tensorInfo{Name: v.Name, Type: v.ElemType.String(), Shape: v.Shape, dims: v.Dims})
	}
	return out
}

func (t tensorInfo) String() string {
	return fmt.Sprintf("%s  %s %s", t.Name, t.Type, onnxio.FormatShape(t.Shape, t.dims))
}

// WriteText prints the diagnosis for people; the last line is the verdict.
func (d *Diagnosis) WriteText(w io.Writer) error {
	text.Line(w, "%s", d.Files[0].Path)
	if n := len(d.Files); n > 1 {
		text.Line(w, "… %s, %d files", d.Files[n-1].Path, n)
	}
	text.Line(w, "  producer  %s, opset %d, IR %d, %s", cmp.Or(d.Producer, "not named"), d.Opset, d.IRVersion, report.Bytes(d.Bytes))
	for _, in := range d.Inputs {
		text.Line(w, "  input     %v", in)
	}
	for _, out := range d.Outputs {
		text.Line(w, "  output    %v", out)
	}
	for _, line := range [][2]string{{"takes", d.Takes}, {"gives", d.Gives}} {
		if line[1] != "" {
			text.Line(w, "  %s     %s", line[0], line[1])
		}
	}
	count := map[weights.Role]int{}
	for _, x := range d.Tensors {
		count[x.Role]++
	}
	text.Line(w, "  weights   %s, in parameter tensors: %d; batch-norm layers: %d; constant float tensors: %d",
		report.Thousands(int(d.Parameters)), count[weights.Parameter], d.BatchNorms, count[weights.Constant])
	fmt.Fprintln(w)
	if err := WriteTensors(w, d.Tensors, len(d.Files), d.AllTensors); err != nil {
		return err
	}
	if len(d.Files) > 1 && d.Files[0].Norm != nil {
		if err := d.writeFiles(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, warning := range d.Warnings {
		text.Line(w, "warning: %s", warning)
	}
	if d.Usable { // otherwise they belong to an error
		for _, hint := range d.Hints {
			text.Line(w, "hint: %s", hint)
		}
	}
	return text.Line(w, "verdict: %s", d.Verdict)
}

// writeFiles shows the distance of each checkpoint from the previous one.
func (d *Diagnosis) writeFiles(w io.Writer) error {
	t := report.NewTable(report.Column{Header: "checkpoint"}, report.Column{Header: "‖θ‖", Align: report.Decimal},
		report.Column{Header: "moved", Align: report.Decimal}, report.Column{Header: "implausible", Align: report.Right, Empty: " "})
	for _, f := range d.Files {
		moved, broken := "", ""
		if f.Moved != nil {
			moved = report.Percent(*f.Moved, 2)
		}
		if f.Implausible > 0 {
			broken = report.Thousands(int(f.Implausible))
		}
		t.Row(f.Path, report.Fixed(*f.Norm, 4), moved, broken)
	}
	return t.WriteText(w, report.Screen{Verbose: true})
}
