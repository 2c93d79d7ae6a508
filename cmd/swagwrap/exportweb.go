package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/webpage"
	"github.com/swagwrap/swagwrap/internal/webpage/inputs"
)

// onPages are the tasks that a page can show.
var onPages = []string{"classes", "binary", "labels", "regression"}

// exportWeb writes the folder of --web.
func (o *exportOptions) exportWeb(ctx context.Context) error {
	if err := o.checkWeb(); err != nil {
		return err
	}
	if err := webpage.Built(); err != nil {
		return console.Usagef("in a clone `make web` builds a program that has it, and releases have it", "--web: %w", err)
	}
	runtime, err := ort.WebFiles() // before the work
	if err != nil {
		return err
	}
	folder, err := console.CreateFolder(o.web, o.output.Force)
	if err != nil {
		return err
	}
	defer folder.Abort()
	out := &modelOutput{Env: o.Env, path: filepath.Join(folder.Work, "model.onnx")}
	defer out.abort()
	var page *webpage.Page
	if err := o.exportEnsemble(ctx, out, func(j *ensemble.Fused) (err error) {
		page, err = o.page(j)
		return err
	}); err != nil {
		return err
	}
	info, err := os.Stat(out.path)
	if err != nil {
		return console.BadOutput(err)
	}
	page.Model, page.Bytes = "model.onnx", info.Size()
	page.Title, page.Producer, page.Runtime = filepath.Base(folder.Path), console.Producer(), "ONNX Runtime "+ort.DeviceVersion
	page.Module, page.Assembly = ort.WebModule, ort.WebAssembly
	files, err := page.Files()
	if err != nil {
		return console.BadInput(err)
	}
	for _, all := range []map[string][]byte{files, runtime} {
		for name, content := range all {
			if err := os.WriteFile(filepath.Join(folder.Work, name), content, 0o666); err != nil {
				return console.BadOutput(err)
			}
		}
	}
	if err := folder.Commit(); err != nil {
		return err
	}
	o.Logf("%s is a page for any web server: python3 -m http.server --directory %s, then open http://localhost:8000", o.web,
		console.Shell(o.web))
	o.Next(console.Shell("swagwrap", "inspect", filepath.Join(o.web, "model.onnx")))
	return nil
}

// checkWeb refuses what no page can be of.
func (o exportOptions) checkWeb() error {
	switch {
	case o.output.Path != "":
		return console.Usagef("--web FOLDER alone", "--web names the output, and so does -o")
	case o.hub != "":
		return console.Usagef("two commands make both", "--web and --hub are different folders")
	case o.of == "":
		return console.Usagef("swagwrap export --help shows an example", "--web is for an ENSEMBLE")
	case kind.Detect(o.of) == kind.Posterior || o.member.Set:
		return console.Usagef("swagwrap sample --method swa -o swa.safetensors POSTERIOR makes an ensemble of one network",
			"--web is for an ENSEMBLE: the model of one network gives bare scores")
	case o.pixels:
		return console.Usagef("leave it out", "--with-preprocessing: the page of --web preprocesses, with the pixels of score")
	case o.storage.external:
		return console.Usagef("--storage int8 makes the model smaller", "--storage %v: a browser takes one file", o.Row("storage"))
	}
	if o.figures != "" {
		return console.Usagef("leave it out", "--figures is for the README.md of --hub")
	}
	if o.Is("dtype") || o.quantize != "" || o.ranges.Set {
		return console.Usagef("--storage int8 makes the model smaller", "the members on a page of --web compute in float32: no --dtype, "+
			"--quantize or --calibration")
	}
	if err := o.Refuse("model", "", "--* is for weights, and --web is for an ENSEMBLE"); err != nil {
		return err
	}
	return o.Refuse("weights", "", "--* is not for --web, whose model is that of the ENSEMBLE")
}

// page says what the page shows of an ensemble.
func (o *exportOptions) page(j *ensemble.Fused) (*webpage.Page, error) {
	e, n, t := j.Ensemble, j.Networks[0], j.Task()
	about := task.OnePosition(t).About()
	p := &webpage.Page{Task: about.Name, Names: names(e, t), Threshold: e.Threshold, Members: len(j.Members), Guarantee: j.Guarantees()}
	if e.Calibration != nil {
		p.Calibration = e.Calibration.String()
	}
	refuse := func(format string, args ...any) error {
		return console.BadInput(fmt.Errorf("%s: --web shows pictures and tables with one answer for each, and "+format,
			append([]any{o.of}, args...)...))
	}
	switch {
	case n.Large() || !slices.Contains(onPages, about.Name):
		return nil, refuse("the task is %s with an answer for each position", about.Name)
	case n.States() != nil:
		return nil, refuse("the network carries states from one example to the next")
	}
	opts, err := open.ReadAs(o.data, "", n)
	if err != nil {
		return nil, err
	}
	if dataset.Pictures(opts.Fields, opts.Preprocess)[0] && len(opts.Fields) == 1 {
		return p, ofPictures(p, n, opts)
	}
	return p, ofTables(p, o.of, n, opts)
}

// names returns the names of the classes, labels or targets.
func names(e *ensemble.Ensemble, t task.Task) (all []string) {
	count, word := task.OnePosition(t).About().Classes, "class"
	if targets := task.Targets(task.OnePosition(t)); targets > 0 {
		count, word = targets, "target"
	}
	if len(e.Card.ClassNames) == count {
		return e.Card.ClassNames
	}
	for k := range count {
		all = append(all, fmt.Sprintf("%s %d", word, k))
	}
	return all
}

func ofPictures(p *webpage.Page, n *infer.Network, opts dataset.Options) error {
	s := opts.Preprocess
	if opts.Uint8 {
		s.Scale = 1
	}
	s, err := s.Resolve(opts.Shape)
	if errors.Is(err, preprocess.ErrNoSize) {
		return console.BadInput(fmt.Errorf("%s: %w", n.Posterior.Path, err), "--preprocess input-size=N says the size")
	}
	if err != nil {
		return console.BadInput(fmt.Errorf("%s: %w", n.Posterior.Path, err))
	}
	f := opts.Fields[0]
	p.Network = inputs.Network{Picture: &s, Inputs: []inputs.Input{{Name: f.Name, Type: f.Type, Shape: s.Shape()}}}
	p.Preprocessing = webpage.Steps(s, opts.Uint8)
	return p.Network.Check()
}

func ofTables(p *webpage.Page, path string, n *infer.Network, opts dataset.Options) error {
	for _, f := range opts.Fields {
		columns := opts.Columns[f.Name]
		if known := opts.Known.Columns[f.Name]; columns == nil {
			columns = known
		}
		if columns == nil && f.Elements() == 1 {
			columns = []string{f.Name}
		}
		if len(f.Shape) > 1 {
			return console.BadInput(fmt.Errorf("%s: input %q of %d takes examples of shape %d: --web shows networks of one picture, or "+
				"of the numbers of a table", path, f.Name, len(opts.Fields), f.Shape))
		}
		if columns == nil || slices.ContainsFunc(columns, func(c string) bool { return strings.Contains(c, "*") }) {
			return console.BadInput(fmt.Errorf("%s: input %q: a page finds columns by name, and nothing names them", path, f.Name),
				"--columns A,B,C names the columns of the table in the order of training; for several inputs --columns INPUT=A,B")
		}
		in := inputs.Input{Name: f.Name, Type: f.Type, Shape: f.Shape, Columns: columns, Rows: f.Rows}
		if len(f.Shape) == 1 && f.Shape[0] < 1 { // any number of columns
			in.Shape = []int64{int64(len(columns))}
		}
		p.Network.Inputs = append(p.Network.Inputs, in)
		p.Preprocessing = append(p.Preprocessing, fmt.Sprintf("Input %s takes the columns %s, found by name. Their numbers are not "+
			"changed.", f.Name, strings.Join(columns, ", ")))
	}
	return console.BadInput(p.Network.Check())
}
