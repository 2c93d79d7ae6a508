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
	"github.com/swagwrap/swagwrap/internal/study"
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
	facts := []report.Fact{
		study.Fact("producer", "%s, opset %d, IR %d, %s", cmp.Or(d.Producer, "not named"), d.Opset, d.IRVersion, report.Bytes(d.Bytes)),
	}
	for _, in := range d.Inputs {
		facts = append(facts, study.Fact("input", "%v", in))
	}
	for _, out := range d.Outputs {
		facts = append(facts, study.Fact("output", "%v", out))
	}
	facts = append(facts, report.Fact{Name: "takes", Value: d.Takes}, report.Fact{Name: "gives", Value: d.Gives})
	if d.Features != nil {
		facts = append(facts, study.Fact("features", "for %s, the default last: %s", setting.OOD.With(setting.Features.String()),
			strings.Join(d.Features, ", ")))
	}
	count := map[weights.Role]int{}
	for _, x := range d.Tensors {
		count[x.Role]++
	}
	facts = append(facts, study.Fact("weights", "%s, in parameter tensors: %d; batch-norm layers: %d; constant float tensors: %d",
		report.Thousands(int(d.Parameters)), count[weights.Parameter], d.BatchNorms, count[weights.Constant]))
	report.WriteFacts(w, "  ", 9, facts...)
	fmt.Fprintln(w)
	if err := WriteTensors(w, s, d.Tensors, len(d.Files), d.AllTensors); err != nil {
		return err
	}
	if len(d.Files) > 1 && d.Files[0].Norm != nil {
		files := study.Section{Rows: study.Rows(d.Files, fileInfo.row)}
		if err := files.Table().WriteText(w, s); err != nil {
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

// row returns a checkpoint with its distance from the one before.
func (f fileInfo) row() study.Row {
	figure := func(key, header string, v *float64, format func(float64, int) string, digits int) study.Cell {
		if v == nil {
			return study.Number(key, header, nil, "")
		}
		return study.Number(key, header, *v, format(*v, digits))
	}
	broken := study.Count("implausible", "implausible", int(f.Implausible)).Aligned(report.Right).Blank()
	if f.Implausible == 0 {
		broken.Text = ""
	}
	return study.Row{study.Name("path", "checkpoint", f.Path), {Key: "sha256", Value: f.SHA256},
		figure("norm", "‖θ‖", f.Norm, report.Fixed, 4), figure("moved", "moved", f.Moved, report.Percent, 2), broken}
}

func (f fileInfo) MarshalJSON() ([]byte, error) { return f.row().MarshalJSON() }

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
		list := study.Section{Rows: study.Rows(tensors, func(x weights.Tensor) study.Row {
			role := x.Role.String()
			if x.Tied != "" {
				role += ", tied to " + x.Tied
			}
			if x.Transposed {
				role += ", transposed"
			}
			return TensorRow(x.Name, x.Shape, x.DType.String(), study.Name("role", "role", role))
		})}
		if err := list.Table().WriteText(w, s); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return WriteRoles(w, tensors, files, all || len(tensors) <= fewTensors)
}

// TensorRow returns what is known of a tensor.
func TensorRow(name string, shape []int64, typ string, more ...study.Cell) study.Row {
	size := study.Name("shape", "shape", strings.Trim(fmt.Sprint(shape), "[]"))
	size.Value, size.Empty = shape, "scalar"
	return append(study.Row{study.Name("name", "tensor", name), size, study.Name("type", "type", typ)}, more...)
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
