package diagnosis

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/weights"
)

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
func WriteTensors(w io.Writer, tensors []weights.Tensor, files int, all bool) error {
	if len(tensors) == 0 {
		return nil
	}
	if all || len(tensors) <= fewTensors {
		t := report.NewTable(report.Column{Header: "tensor"}, report.Column{Header: "shape", Empty: "scalar"}, report.Column{Header: "type"}, report.Column{Header: "role"})
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
		if err := t.WriteText(w, report.Screen{Verbose: true}); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
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
	if !all && len(tensors) > fewTensors {
		text.Line(w, "inspect --tensors lists each of the %s tensors", report.Thousands(len(tensors)))
	}
	_, err := fmt.Fprintln(w)
	return err
}
