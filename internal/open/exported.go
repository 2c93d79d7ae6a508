package open

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/reference"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// OpenForModel opens data as an exported model takes it. asBytes says that the model takes pixels as bytes. Labels are left out. count
// counts pictures whose orientation nobody chose.
func OpenForModel(d DataOptions, model string, paths []string, count *dataset.Sideways) (data dataset.Dataset, asBytes bool, err error) {
	m, err := onnxio.Open(model)
	if err != nil {
		return nil, false, WrongKind(err, model, kind.Model)
	}
	defer m.Close()
	card, err := exportedCard(m)
	if err != nil {
		return nil, false, err
	}
	p, err := Preprocessing(d.Preprocess, card)
	if err != nil {
		return nil, false, err
	}
	meaning := card
	meaning.Task, meaning.Scores, meaning.Targets, meaning.State = task.None, "", nil, nil // the outputs do not matter here
	g, err := infer.ReadGraph(m, "", meaning)
	if err != nil {
		return nil, false, BadInput(err)
	}
	asBytes = g.Input.ElemType == onnxio.Uint8
	if m.Metadata[ensemble.KeyInput] == ensemble.InputPixels {
		p = preprocess.Settings{Image: p.Image, Channels: channelsOfPixels(p.Channels), Layout: "nhwc", Orientation: p.Orientation}
	}
	opts := dataset.Options{
		Arrays:     d.Arrays,
		Unlabelled: true,
		Preprocess: p,
		Shape:      g.Input.Shape[1:],
		Fields:     g.Fields(),
		Uint8:      asBytes,
		Memory:     d.Memory.Decoding(),
		Known:      infer.CardNames(card),
		Named:      d.Named,
		Order:      cmp.Or(d.Order, fileorder.Order(card.FileOrder)),
		Sideways:   count,
	}
	if opts.Columns, opts.Pad, err = columns(d.Columns, card, g); err != nil {
		return nil, false, err
	}
	data, err = dataset.Open(paths, opts)
	return data, asBytes, WrongData(err, paths...)
}

// channelsOfPixels returns the channels of a model that takes pixels: it changes red and blue itself.
func channelsOfPixels(network string) string {
	if network == "bgr" {
		return "rgb"
	}
	return network
}

// exportedCard returns the model card of an exported model.
func exportedCard(m *onnxio.Model) (card swag.Card, err error) {
	js := m.Metadata[ensemble.KeyCard]
	if js == "" {
		return card, BadInput(fmt.Errorf("%s: has no metadata of an export, want a model that %s wrote", m.Path, setting.Export),
			setting.Line(setting.Export.With(setting.Output.With("ensemble.onnx"), "ensemble.safetensors")))
	}
	if err := json.Unmarshal([]byte(js), &card); err != nil {
		return card, BadInput(fmt.Errorf("%s: metadata %q: %w", m.Path, ensemble.KeyCard, err))
	}
	return card, nil
}

// OutputsOf says how the outputs that an exported model carries are made.
type OutputsOf struct {
	Card swag.Card
	Seen *probe.Report // of the training data, or nil
	Seed uint64
	File string // users' examples, or "" for made-up ones
}

// Outputs runs an exported model on a few examples, and returns what its metadata store: its outputs. why says why there are none.
func (o OutputsOf) Outputs(ctx context.Context, rt *ort.Runtime, m *onnxio.Model) (s *reference.Stored, why, err error) {
	if o.File != "" {
		s, err = o.ofFile(m)
		if err == nil {
			err = s.Store(ctx, rt, m)
		}
		return s, nil, BadInput(err)
	}
	for _, side := range infer.Sides {
		s = &reference.Stored{Seed: o.Seed, Examples: reference.StoredExamples}
		sized := false
		for _, v := range m.FeedInputs() {
			in, free := o.input(v, m.Metadata[ensemble.KeyInput] == ensemble.InputPixels, side)
			s.Inputs, sized = append(s.Inputs, in), sized || free
		}
		if why = s.Store(ctx, rt, m); why == nil || !sized || ctx.Err() != nil {
			break
		}
	}
	return s, why, ctx.Err()
}

// ofFile takes the examples of reference outputs.
func (o OutputsOf) ofFile(m *onnxio.Model) (*reference.Stored, error) {
	f, err := reference.Open(o.File)
	if err != nil {
		return nil, err
	}
	s := &reference.Stored{From: filepath.Base(o.File)}
	return s, s.Keep(f, m)
}

// input says how made-up examples of an input are drawn. free says that the graph does not give all sides.
func (o OutputsOf) input(v onnxio.Value, pixels bool, side int64) (in reference.StoredInput, free bool) {
	in = reference.StoredInput{Name: v.Name, Type: ort.DType(v.ElemType), Low: -1, High: 1}
	shape := slices.Clone(v.Shape[min(1, len(v.Shape)):])
	s, err := preprocess.Decode(o.Card.Preprocess)
	if err != nil {
		s = preprocess.Settings{}
	}
	picture := len(shape) == 3
	if whole, err := s.Resolve(shape); picture && err == nil && !pixels {
		shape = whole.Shape()
	}
	for _, d := range shape {
		if d < 1 {
			d, free = side, true
		}
		in.Shape = append(in.Shape, int(d))
	}
	switch {
	case in.Type == "uint8":
		in.Low, in.High = 0, 255
	case !v.ElemType.DType().IsFloat(): // so small that any vocabulary has them
		in.Low, in.High = 0, 1
		if in.Type == "bool" || strings.Contains(strings.ToLower(v.Name), "mask") {
			in.Low = 1
		}
	case o.seen(&in):
	case picture:
		in.Low, in.High = 0, 1
		for c, mean := range s.Mean {
			std := 1.0
			if len(s.Std) > 0 {
				std = s.Std[min(c, len(s.Std)-1)]
			}
			in.Low, in.High = min(in.Low, -mean/std), max(in.High, (1-mean)/std)
		}
	}
	return in, free
}

// seen takes the range of an input in the training data, if it is known.
func (o OutputsOf) seen(in *reference.StoredInput) bool {
	if o.Seen == nil {
		return false
	}
	for _, of := range o.Seen.Inputs {
		if (of.Input == in.Name || of.Input == "") && len(of.Groups) > 0 {
			in.Low, in.High = of.Groups[0].Min, of.Groups[0].Max
			for _, g := range of.Groups {
				in.Low, in.High = min(in.Low, g.Min), max(in.High, g.Max)
			}
			return in.Low < in.High
		}
	}
	return false
}

// VerifyModel runs an exported model on the examples that its metadata have, and compares its outputs.
func VerifyModel(ctx context.Context, a *Opener, o RuntimeOptions, path string) error {
	m, s, err := openStored(path)
	if err != nil {
		return err
	}
	defer m.Close()
	rt, _, err := a.chosenRuntime(o)
	if err != nil {
		return err
	}
	d, err := s.Verify(ctx, rt, m)
	if err != nil {
		return BadInput(err)
	}
	if d.Equal {
		a.Logf("%s gives what it gave when it was exported: %s, largest difference %.1g of the largest number (want at most %.1g)", path,
			examplesOf(s), d.Largest, s.Tolerance)
		return nil
	}
	wrong := fmt.Errorf("%s: %w", path, unlike(s, d))
	if ops := reference.Quantised(m); ops != "" {
		return BadInput(wrong, "the model was quantised: its graph has "+ops,
			setting.Export.With(setting.Quantize.With("int8"), setting.Calibration.With("DATA"), "ensemble.safetensors")+
				" writes a quantised model that can be verified",
			setting.Export.With(setting.Storage.With("int8"), "ensemble.safetensors")+" stores weights in 8 bits, and computes in float32")
	}
	return BadInput(wrong, "the graph, its weights or its data file were changed after the export")
}

// allRuntimes stands for each runtime that is installed.
const allRuntimes = "all"

// RuntimeNames are the names that [VerifyModelIn] takes.
func RuntimeNames() []string {
	names := []string{allRuntimes}
	for _, r := range reference.Runtimes {
		names = append(names, r.Name)
	}
	return names
}

// A runtime outside this process is given up after leastPatience, or after timesHere times the time that ONNX Runtime here takes.
const (
	leastPatience = 10 * time.Minute
	timesHere     = 100
)

// VerifyModelIn is VerifyModel in runtimes outside this process, with files in a folder. The name "all" stands for those that are
// installed.
func VerifyModelIn(ctx context.Context, a *Opener, o RuntimeOptions, path, name, folder string) error {
	m, s, err := openStored(path)
	if err != nil {
		return err
	}
	defer m.Close()
	rt, _, err := a.chosenRuntime(o)
	if none := (*ort.LibraryError)(nil); errors.As(err, &none) {
		rt, err = nil, nil // sets are not compared
	}
	if err != nil {
		return err
	}
	start := time.Now()
	here, err := s.Here(ctx, rt, m)
	if err != nil {
		return BadInput(err)
	}
	at := reference.Place{Folder: folder, Patience: max(leastPatience, timesHere*time.Since(start))}
	var wrong []error
	var late *reference.Late
	var absent []*reference.Absent
	ran := 0
	for i := range reference.Runtimes {
		other := &reference.Runtimes[i]
		if name != allRuntimes && name != other.Name {
			continue
		}
		found, err := s.VerifyIn(ctx, other, at, here, m, m.Metadata[ensemble.KeyKind] == ensemble.ModelEnsemble)
		missing := (*reference.Absent)(nil)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &missing):
			absent = append(absent, missing)
			if name == allRuntimes {
				a.Logf("%v. To install it: %s", missing, other.Install)
			}
			continue
		case err != nil:
			if !errors.As(err, &late) {
				wrong = append(wrong, err)
			}
			if name == allRuntimes {
				a.Logf("%v", err)
			}
		default:
			for _, err := range tellElsewhere(a, s, other, found) {
				wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
			}
		}
		ran++
	}
	switch {
	case ran == 0:
		return &Error{Err: absent[0], Hints: []string{"to install it: " + absent[0].Install}}
	case len(wrong) > 0 && m.Metadata[ensemble.KeyKind] != ensemble.ModelEnsemble:
		return BadInput(wrong[0],
			setting.Export.With(setting.Portable.String())+" writes the model of one network so that more runtimes read it")
	case len(wrong) > 0:
		return BadInput(wrong[0])
	case late != nil:
		return late
	}
	return nil
}

// tellElsewhere prints what a model gave in another runtime, and returns what is wrong.
func tellElsewhere(a *Opener, s *reference.Stored, other *reference.Runtime, found reference.Elsewhere) (wrong []error) {
	line := fmt.Sprintf("%s %s: %s, largest difference %.1g of the largest number (want at most %.1g)", other.Name, found.Version,
		examplesOf(s), found.Largest, s.Tolerance)
	if found.Here >= 0 {
		line += fmt.Sprintf(", %.1g from ONNX Runtime here", found.Here)
	}
	if !found.Equal {
		wrong = append(wrong, fmt.Errorf("%s: %w", other.Name, unlike(s, found.Difference)))
	}
	if found.Flags > 0 {
		line += fmt.Sprintf("; %d of %d members of sets and abstentions differ", found.Others, found.Flags)
	}
	if found.Others > 0 {
		wrong = append(wrong, fmt.Errorf("%s: %d of %d members of sets and abstentions differ from those in ONNX Runtime", other.Name,
			found.Others, found.Flags))
	}
	switch {
	case found.Guarded && found.NaN:
		line += "; NaN stays visible"
	case found.Guarded:
		line += "; NaN in an input does not show"
		wrong = append(wrong, fmt.Errorf("%s: the outputs of an example with NaN do not show it", other.Name))
	}
	a.Logf("%s", line)
	return wrong
}

// examplesOf names the examples that a model has inside.
func examplesOf(s *reference.Stored) string {
	if s.From != "" {
		return report.Plural(s.Examples, "example") + " of " + s.From
	}
	return report.Plural(s.Examples, "made-up example")
}

// unlike says how outputs differ from those of the export.
func unlike(s *reference.Stored, d reference.Difference) error {
	return fmt.Errorf("does not give what it gave when it was exported: %s, example %d gives %s = %s, and it was %s (the difference "+
		"is %.2g of the largest number, want at most %.1g)", examplesOf(s), d.Example, d.Output, numbersOf(d.Got), numbersOf(d.Want),
		d.Largest, s.Tolerance)
}

// openStored opens an exported model, and returns what it stores to verify it with. The caller closes the model.
func openStored(path string) (m *onnxio.Model, s *reference.Stored, err error) {
	if m, err = onnxio.Open(path); err != nil {
		return nil, nil, WrongKind(err, path, kind.Model)
	}
	if s, err = storedIn(m, path); err != nil {
		m.Close()
		return nil, nil, err
	}
	return m, s, nil
}

// storedIn returns what a model stores to verify it with.
func storedIn(m *onnxio.Model, path string) (*reference.Stored, error) {
	js := m.Metadata[ensemble.KeyReference]
	if js == "" {
		output := setting.Output.With("ensemble.onnx")
		if m.Metadata[ensemble.KeyKind] == "" {
			return nil, BadInput(fmt.Errorf("%s: has no outputs to compare with: swagwrap did not export it", path),
				"a model that "+setting.Quoted(setting.Export.With(output, "ensemble.safetensors"))+" writes has some")
		}
		return nil, BadInput(fmt.Errorf("%s: has no outputs to compare with: the export made none, and said why", path),
			setting.Quoted(setting.Export.With(output, setting.Reference.With("FILE"), "ensemble.safetensors"))+
				" takes them from examples of yours")
	}
	s, err := reference.ParseStored(js)
	if err != nil {
		return nil, BadInput(fmt.Errorf("%s: metadata %q: %w", path, ensemble.KeyReference, err))
	}
	return s, nil
}
