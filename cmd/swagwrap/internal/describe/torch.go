package describe

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// TorchFile is what a PyTorch checkpoint holds. JSON has the same fields.
type TorchFile struct {
	Path       string              `json:"path"`
	Epoch      *int64              `json:"epoch"` // stored in it, or null
	Step       *int64              `json:"step"`
	Legacy     bool                `json:"legacy"` // format from before PyTorch 1.6, which has no checksums
	StateDicts []stateDict         `json:"state_dicts"`
	PassedOver []statefile.Ignored `json:"passed_over"`
}

type stateDict struct {
	Key        string              `json:"key"` // "" for the file itself
	Elements   int64               `json:"elements"`
	Tensors    []study.Row         `json:"tensors"`
	PassedOver []statefile.Ignored `json:"passed_over"`
	Error      string              `json:"error,omitempty"` // why it cannot be used
}

// Torch reads PyTorch checkpoints.
func Torch(paths []string) (files []TorchFile, err error) {
	for _, path := range paths {
		f, err := statefile.Open(path)
		if err != nil {
			return nil, open.WrongKind(err, path, kind.Checkpoint)
		}
		defer f.Close()
		d := TorchFile{
			Path:       path,
			Epoch:      known(f.Epoch),
			Step:       known(f.Step),
			Legacy:     f.Legacy,
			PassedOver: append([]statefile.Ignored{}, f.Ignored...),
		}
		for _, sd := range f.StateDicts() {
			s := stateDict{
				Key:        sd.Key,
				Elements:   sd.Len(),
				Tensors:    []study.Row{},
				PassedOver: append([]statefile.Ignored{}, sd.Ignored...),
			}
			if err := sd.Err(); err != nil {
				s.Error = err.Error()
			}
			for _, t := range sd.Tensors {
				s.Tensors = append(s.Tensors, diagnosis.TensorRow(t.Name, t.Shape, t.DType.String()))
			}
			d.StateDicts = append(d.StateDicts, s)
		}
		files = append(files, d)
	}
	return files, nil
}

// known returns a pointer to a number from a file, or nil if the file does not have it.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// WriteTorch writes a line for each state_dict, every tensor if tensors is true, and the entries of the first file that
// are not weights.
func WriteTorch(w io.Writer, s report.Screen, files []TorchFile, tensors bool) {
	right := func(header, text string) study.Cell { return study.Shown(header, text).Aligned(report.Right) }
	count := func(header string, n *int64) study.Cell {
		if n == nil {
			return right(header, "")
		}
		return right(header, report.Thousands(int(*n)))
	}
	var t study.Section
	for _, f := range files {
		for _, sd := range f.StateDicts {
			t.Rows = append(t.Rows, study.Row{
				study.Name("path", "checkpoint", f.Path), count("epoch", f.Epoch), count("step", f.Step),
				study.Name("key", "state_dict", sd.key()), right("tensors", report.Thousands(len(sd.Tensors))),
				right("elements", report.Thousands(int(sd.Elements))), study.Name("type", "type", sd.types()),
			})
		}
	}
	t.Table().WriteText(w, s)
	var over []string
	for _, o := range files[0].PassedOver {
		over = append(over, fmt.Sprintf("%s (%s)", o.Name, o.Why))
	}
	for _, sd := range files[0].StateDicts {
		for _, o := range sd.PassedOver {
			over = append(over, fmt.Sprintf("%s (%s)", o.Name, o.Why))
		}
		if tensors {
			sd.writeTensors(w, s)
		}
	}
	if n := len(over); n > 10 {
		over = append(over[:10], fmt.Sprintf("and %d more (--json lists them)", n-10))
	}
	if len(over) == 0 {
		return
	}
	for _, line := range s.Hang("passed over: ", strings.Join(over, ", ")) {
		text.Line(w, "%s", line)
	}
}

// writeTensors prints every tensor of a state_dict.
func (sd stateDict) writeTensors(w io.Writer, s report.Screen) {
	text.Line(w, "")
	if sd.Error != "" {
		text.Line(w, "%s", sd.Error)
	}
	t := study.Section{Rows: sd.Tensors}
	t.Table().WriteText(w, s)
}

// key returns the key of a state_dict in the form that --state-dict takes.
func (sd stateDict) key() string {
	switch {
	case sd.Error != "":
		return sd.Key + " (not usable)"
	case sd.Key == "":
		return "the file itself"
	}
	return sd.Key
}

func (sd stateDict) types() string {
	var all []string
	for _, t := range sd.Tensors {
		all = append(all, t.Cell("type").Text)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}
