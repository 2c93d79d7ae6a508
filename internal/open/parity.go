package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/programs"
	"github.com/swagwrap/swagwrap/internal/reference"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// ParityOptions say where the reference outputs of the training framework are.
type ParityOptions struct {
	File string // or "" for the one beside the graph or the checkpoints
	Off  bool
}

// few is the number of examples that every checkpoint is held against. The last one is held against all.
const few = 2

// parity holds the graph with the weights of the checkpoints against reference outputs.
func (s *FitInputs) parity(ctx context.Context, of *Ordered, set *checkpoints.Set) error {
	if before := s.Card.Parity; before != nil && before.Off == "" { // that of the posterior that is extended
		after := *before
		after.Of += len(set.Models) - s.older
		s.Card.Parity = &after
	}
	path := s.referencePath(of)
	o := s.options.Parity
	switch {
	case path == "" && s.previous == nil:
		s.Logf("parity not checked: no reference outputs were found (%s)", setting.Line("help parity"))
		return nil
	case path == "":
		return nil
	case o.Off:
		s.Card.Parity = &swag.Parity{File: filepath.Base(path), Off: setting.Parity.With("off")}
		s.Warnf("%s: not compared with the network: %s", path, setting.Parity.With("off"))
		return nil
	}
	f := s.reference
	if f == nil {
		return nil
	}
	h := &held{FitInputs: s, of: of, set: set, file: f, last: set.Models[len(set.Models)-1]}
	rt, _, err := s.chosenRuntime(s.Computes)
	if none := (*ort.LibraryError)(nil); errors.As(err, &none) {
		s.Warnf("%s: parity not checked, since no ONNX Runtime is here: %v", path, err)
		s.inputsAlone("no ONNX Runtime")
		return nil
	}
	if err != nil {
		return err
	}
	chosen, err := infer.ChooseOutput(h.last, s.Card)
	if err != nil {
		return BadInput(err)
	}
	e, err := f.Examples(h.last, chosen.Output)
	if err != nil && o.File == "" && f.SHA256 == "" { // a folder of the ONNX Model Zoo, of another model
		s.Logf("parity not checked: %v", err)
		return nil
	}
	if errors.Is(err, reference.ErrInputType) {
		s.Warnf("%v: parity not checked", err)
		s.inputsAlone("other types of inputs")
		return nil
	}
	if err != nil {
		return BadInput(err, setting.Parity.With("off")+" goes on without it")
	}
	if h.runner, err = reference.NewRunner(ctx, rt, e, h.last); err != nil {
		return BadInput(err)
	}
	return h.check(ctx)
}

// inputsAlone puts what pictures prove on the model card, where no outputs are compared for this reason.
func (s *FitInputs) inputsAlone(reason string) {
	if s.proof != "" && s.Card.Parity == nil {
		s.Card.Parity = &swag.Parity{File: filepath.Base(s.reference.Path), SHA256: s.reference.SHA256, Off: reason, Loader: s.proof}
	}
}

// referencePath returns the file with reference outputs, or "".
func (s *FitInputs) referencePath(of *Ordered) string {
	if path := s.options.Parity.File; path != "" {
		return path
	}
	graph := Graph(s.options.Source.Template)
	last := cmp.Or(of.last(), s.models[len(s.models)-1].Path)
	folders := around(slices.Concat([]string{graph}, s.options.Checkpoints, []string{last}))
	if path := programs.First(folders, reference.Name); path != "" {
		return path
	}
	zoo := filepath.Join(filepath.Dir(graph), reference.ZooFolder)
	if _, err := os.Stat(filepath.Join(zoo, "output_0.pb")); graph != "" && err == nil {
		return zoo
	}
	return ""
}

// held is one comparison of checkpoints with reference outputs.
type held struct {
	*FitInputs
	of     *Ordered
	set    *checkpoints.Set
	file   *reference.File
	last   *onnxio.Model
	runner *reference.Runner
	note   swag.Parity
	coarse bool
}

func (h *held) check(ctx context.Context) error {
	f := h.file
	h.note = swag.Parity{
		File:     filepath.Base(f.Path),
		SHA256:   f.SHA256,
		Of:       len(h.set.Models) - h.older,
		Examples: h.runner.Count,
		Made:     made(f),
		Loader:   h.proof,
	}
	final := -1 // the last model with a row
	rows := make([]int, len(h.set.Models))
	for i, m := range h.set.Models {
		row, ok := f.Row(m.Path)
		if rows[i] = row; ok {
			final = i
		} else {
			rows[i] = -1
		}
	}
	row, ofGraph := -1, false
	if g := h.source.graph; g != nil {
		if row, ofGraph = f.Row(g.Path); ofGraph {
			if err := h.hold(ctx, g, row, h.runner.Count); err != nil {
				return err
			}
		}
	}
	if final < 0 && !ofGraph {
		return h.unnamed(ctx)
	}
	for i, m := range h.set.Models {
		n := few
		if i == final {
			n = h.runner.Count
		}
		if rows[i] < 0 {
			continue
		}
		if err := h.hold(ctx, m, rows[i], n); err != nil {
			return err
		}
		if i >= h.older { // the others were counted when their posterior was made
			h.note.Held++
		}
	}
	h.tell()
	return nil
}

// hold compares one network with a row of outputs, and looks for the cause of a difference.
func (h *held) hold(ctx context.Context, m *onnxio.Model, row, examples int) error {
	d, err := h.runner.Compare(ctx, m, row, examples)
	if err != nil {
		return BadInput(err)
	}
	if !d.Equal {
		return h.differs(ctx, m, row, d)
	}
	h.took(d)
	return nil
}

func (h *held) took(d reference.Difference) {
	h.note.Difference, h.coarse = max(h.note.Difference, d.Largest), h.coarse || d.Coarse
}

// unnamed compares reference outputs that belong to none of the checkpoints by their names. They are right if any of the networks
// gives them.
func (h *held) unnamed(ctx context.Context) error {
	networks := slices.Clone(h.set.Models)
	slices.Reverse(networks)
	if g := h.source.graph; g != nil {
		networks = append([]*onnxio.Model{g}, networks...)
	}
	row := h.file.Rows() - 1
	for _, m := range networks {
		d, err := h.runner.Compare(ctx, m, row, few)
		if err == nil && d.Equal {
			d, err = h.runner.Compare(ctx, m, row, h.runner.Count)
		}
		if err != nil {
			return BadInput(err)
		}
		if d.Equal {
			h.took(d)
			if m != h.source.graph {
				h.note.Held = 1
			}
			h.tell()
			return nil
		}
	}
	if h.file.Weights != nil {
		h.Warnf("%s: parity not checked: its outputs are of %s, which is none of these checkpoints", h.file.Path, h.file.Weights[row])
		h.inputsAlone("outputs of other checkpoints")
		return nil
	}
	d, err := h.runner.Compare(ctx, h.last, row, h.runner.Count)
	if err != nil {
		return BadInput(err)
	}
	return h.differs(ctx, h.last, row, d)
}

// tell prints the result, and puts it on the model card.
func (h *held) tell() {
	h.note.Difference, h.note.Tolerance = oneDigit(h.note.Difference), oneDigit(h.runner.Tolerance())
	switch before := h.Card.Parity; {
	case h.previous == nil:
	case before != nil && before.Off == "":
		h.note.Held, h.note.Of = h.note.Held+before.Held, before.Of
		h.note.Difference = max(h.note.Difference, before.Difference)
	default:
		h.note.Of += len(h.previous.Posterior.Models())
	}
	how := ""
	if h.coarse {
		how = ", which the type explains that the framework computed in"
	}
	h.Card.Parity = &h.note
	outputs := h.note
	outputs.Loader = "" // is printed where it is found
	h.Logf("parity: %v: %s of %s%s", &outputs, report.Plural(h.runner.Count, "example"), h.file.Path, how)
}

// oneDigit rounds up to one significant digit: the other digits depend on the processor, and the file must not.
func oneDigit(v float64) float64 {
	if v <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	short, _ := strconv.ParseFloat(strconv.FormatFloat(math.Ceil(v/unit)*unit, 'g', 1, 64), 64)
	return short
}

// made says how the outputs were computed, as far as the file tells it.
func made(f *reference.File) string {
	var parts []string
	for _, p := range []string{f.About.Device, f.About.DType, f.About.Mode} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	for _, name := range []string{"torch", "keras", "jax", "tensorflow", "swagwrap"} {
		if v := f.About.Versions[name]; v != "" {
			parts = append(parts, name+" "+v)
		}
	}
	return strings.Join(parts, ", ")
}

// differs is the error for a network that does not give the reference outputs. Its hints name the cause, if one is found.
func (h *held) differs(ctx context.Context, m *onnxio.Model, row int, d reference.Difference) error {
	search := &reference.Search{Runner: h.runner, Model: m, Row: row, Others: h.others(m), Exported: h.source.graph}
	if m == h.source.graph {
		search.Exported = nil
	}
	var hints []string
	if found := search.Cause(ctx); found != nil {
		hints = append([]string{"cause found: " + found.Words}, found.Hints...)
	} else if err := ctx.Err(); err != nil {
		return err
	} else {
		hints = append(hints, "no cause found among the usual ones ("+setting.Line("help parity")+"): compare the exporting program's "+
			"own run of the graph with the network")
	}
	return BadInput(fmt.Errorf("%s: not the network that was trained: example %d gives %s = %s, and %s has %s there (the difference is "+
		"%.2g of %s, want at most %.1g)", m.Path, d.Example, d.Output, numbersOf(d.Got), h.file.Path, numbersOf(d.Want),
		d.Largest, d.Unit, h.runner.Tolerance()), append(hints, setting.Parity.With("off")+" goes on, and the model card says so")...)
}

// numbersOf lists the first numbers of a row.
func numbersOf(row []float64) string {
	const most = 5
	var all []string
	for _, v := range row[:min(len(row), most)] {
		all = append(all, fmt.Sprintf("%.5g", v))
	}
	if len(row) > most {
		all = append(all, "…")
	}
	return "[" + strings.Join(all, " ") + "]"
}

// others are weights that the outputs may be of, beside those of m: other keys of its file, other checkpoints, other files.
func (h *held) others(m *onnxio.Model) (all []reference.Other) {
	for _, key := range h.keys(m.Path) {
		all = append(all, h.under(m.Path, key, key))
	}
	for _, o := range h.set.Models {
		if o != m {
			all = append(all, reference.Other{
				Words: o.Path,
				Hint:  "the names in the reference outputs must be those of the files with the weights",
				Open:  func() (*onnxio.Model, func(), error) { return o, func() {}, nil },
			})
		}
	}
	for _, path := range append(slices.Clone(h.of.Paths), h.of.Others...) {
		if slices.ContainsFunc(h.set.Models, func(o *onnxio.Model) bool { return o.Path == path }) {
			continue
		}
		all = append(all, h.under(path, h.stateDict(), ""))
		for _, key := range h.keys(path) {
			all = append(all, h.under(path, key, key))
		}
	}
	return all
}

// stateDict is the key of the weights that are fitted, or "".
func (h *held) stateDict() string {
	if h.source.Template == nil {
		return ""
	}
	return h.source.Template.StateDict
}

// keys are the other keys of weights in a file.
func (h *held) keys(path string) []string {
	if !statefile.Is(path) || h.source.Template == nil {
		return nil
	}
	keys, _ := stateDicts(path)
	return slices.DeleteFunc(keys, func(key string) bool { return key == h.stateDict() || key == "" })
}

// under is the weights in a file, under a key.
func (h *held) under(path, key, word string) reference.Other {
	o := reference.Other{Words: path, Hint: "fit the files that the outputs are of, or write the outputs of these checkpoints"}
	if word != "" {
		o.Words = fmt.Sprintf("%s in %s", word, path)
		o.Hint = setting.StateDict.With(word) + " fits these. SWAG is about the weights that SGD moved: otherwise write their outputs"
	}
	o.Open = func() (*onnxio.Model, func(), error) {
		source := *h.source
		if source.Template != nil {
			source.Template = source.Template.Under(key)
			source.Template.Trial = true
		}
		models, err := source.Open([]string{path})
		if err != nil {
			return nil, nil, err
		}
		return models[0], func() { CloseModels(models) }, nil
	}
	return o
}
