package diagnosis

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/setting"
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
func (d *Diagnosis) WriteText(w io.Writer, s report.Screen) error {
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
	if d.Features != nil {
		text.Line(w, "  features  for %s, the default last: %s", setting.OOD.With(setting.Features.String()),
			strings.Join(d.Features, ", "))
	}
	count := map[weights.Role]int{}
	for _, x := range d.Tensors {
		count[x.Role]++
	}
	text.Line(w, "  weights   %s, in parameter tensors: %d; batch-norm layers: %d; constant float tensors: %d",
		report.Thousands(int(d.Parameters)), count[weights.Parameter], d.BatchNorms, count[weights.Constant])
	fmt.Fprintln(w)
	if err := WriteTensors(w, s, d.Tensors, len(d.Files), d.AllTensors); err != nil {
		return err
	}
	if len(d.Files) > 1 && d.Files[0].Norm != nil {
		if err := d.writeFiles(w, s); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, warning := range d.Warnings {
		for _, line := range s.Hang("warning: ", warning) {
			text.Line(w, "%s", line)
		}
	}
	if d.Usable { // otherwise they belong to an error
		for _, hint := range d.Hints {
			text.Line(w, "hint: %s", hint)
		}
	}
	return text.Line(w, "verdict: %s", d.Verdict)
}

// writeFiles shows the distance of each checkpoint from the previous one.
func (d *Diagnosis) writeFiles(w io.Writer, s report.Screen) error {
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
	return t.WriteText(w, s)
}

// fewTensors is how many tensors are listed one by one without being asked for.
const fewTensors = 60

// why is the reason of a role that follows from the definition alone.
var why = map[weights.Role]string{
	weights.Parameter: "differ between checkpoints",
	weights.Statistic: "batch norm reads its running statistics from them",
	weights.Constant:  "equal in all checkpoints",
}

// WriteTensors prints the tensors with their roles. It groups tensors with the same role and reason. If there are few
// tensors, or if all is set, each has its own line. The argument files is the number of checkpoints. One checkpoint
// cannot show which tensors differ.
func WriteTensors(w io.Writer, s report.Screen, tensors []weights.Tensor, files int, all bool) error {
	if len(tensors) == 0 {
		return nil
	}
	if all || len(tensors) <= fewTensors {
		t := report.NewTable(report.Column{Header: "tensor"}, report.Column{Header: "shape", Empty: "scalar"},
			report.Column{Header: "type"}, report.Column{Header: "role"})
		for _, x := range tensors {
			role := x.Role.String()
			if x.Tied != "" {
				role += ", tied to " + x.Tied
			}
			if x.Transposed {
				role += ", transposed"
			}
			t.Row(x.Name, strings.Trim(fmt.Sprint(x.Shape), "[]"), x.DType.String(), role)
		}
		if err := t.WriteText(w, s); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return WriteRoles(w, tensors, files, all || len(tensors) <= fewTensors)
}

// WriteRoles writes how many tensors have each role, with the reasons. The argument files is the number of checkpoints.
// If listed is false, a line tells how to list the tensors.
func WriteRoles(w io.Writer, tensors []weights.Tensor, files int, listed bool) error {
	for _, role := range []weights.Role{weights.Parameter, weights.Statistic, weights.Buffer, weights.Constant} {
		var reasons []string
		names := make(map[string][]string)
		for _, x := range tensors {
			if x.Role == role {
				if names[x.Reason] == nil {
					reasons = append(reasons, x.Reason)
				}
				names[x.Reason] = append(names[x.Reason], x.Name)
			}
		}
		slices.Sort(reasons)
		for _, reason := range reasons {
			of := names[reason]
			line := fmt.Sprintf("%-9s  %s: ", role, report.Thousands(len(of)))
			switch {
			case reason != "":
				line += reason + ": " + some(of)
			case files == 1 && role == weights.Parameter:
				line += "what more checkpoints would show to differ"
			default:
				line += why[role]
			}
			if err := text.Line(w, "%s", line); err != nil {
				return err
			}
		}
	}
	if !listed {
		text.Line(w, "%s lists each of the %s tensors", setting.Inspect.With(setting.Verbose.String()), report.Thousands(len(tensors)))
	}
	_, err := fmt.Fprintln(w)
	return err
}
