package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/hub"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/statedict"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A hubFolder is a folder for the Hub while it is made.
type hubFolder struct {
	*console.Folder
	options *exportOptions
	figures *hub.Figures // nil without --figures
	card    hub.Card
	base    []byte // config.json of the checkpoints, or nil
	timm    *statefile.TimmModel
	// What is exported: the posteriors, and how members are made of them.
	ids  []string
	made ensemble.Settings
	by   *hub.Calibration // of several numbers, or nil
	// stale says that batch-norm statistics do not belong to the weights.
	stale bool
}

// hintCompare says how figures are made.
const hintCompare = "swagwrap compare --json POSTERIOR TEST > figures.json"

// unmeasured are settings that no method of compare has: of one member, or of some.
var unmeasured = ensemble.Settings{Members: -1}

// exportHub writes the folder of --hub.
func (o *exportOptions) exportHub(ctx context.Context) (err error) {
	switch {
	case o.output.Path != "":
		return console.Usagef("--hub FOLDER alone", "--hub names the output, and so does -o")
	case o.of == "":
		return console.Usagef("swagwrap export --help shows an example", "--hub is for a POSTERIOR or ENSEMBLE")
	}
	if err := o.Refuse("weights", "", "--* is not for --hub, whose model is that of the POSTERIOR or ENSEMBLE"); err != nil {
		return err
	}
	h := &hubFolder{options: o}
	if o.figures != "" {
		if h.figures, err = hub.ReadFigures(o.figures); err != nil {
			return console.BadInput(err, hintCompare)
		}
	}
	if h.Folder, err = console.CreateFolder(o.hub, o.output.Force); err != nil {
		return err
	}
	defer h.Abort()
	if err := h.write(ctx); err != nil {
		return err
	}
	if err := h.Commit(); err != nil {
		return err
	}
	o.Logf("%s is ready for the Hub: read README.md, add a licence, and hf upload takes it", o.hub)
	o.Next(console.Shell("swagwrap", "inspect", filepath.Join(o.hub, "model.onnx")))
	return nil
}

func (h *hubFolder) write(ctx context.Context) error {
	h.card = hub.Card{Name: filepath.Base(h.Path), Library: "onnx", Producer: console.Producer(), Members: 1}
	produce, o := h.network, h.options
	if kind.Detect(o.of) != kind.Posterior {
		e, err := o.openEnsemble()
		if err != nil {
			return err
		}
		h.ofEnsemble(e)
		switch {
		case o.member.Set && e.Members() > 1:
			h.made = unmeasured
		case !o.member.Set && e.Members() == 1 && o.which == (open.Given[string]{}) && !o.pixels && !o.check.Set && o.shares == "":
			h.options.member = open.Given[int]{Set: true}
		case !o.member.Set:
			produce = func(ctx context.Context) error { return h.ensemble(ctx, e) }
		}
	} else if o.member.Set {
		h.made = unmeasured
	} else {
		h.made = *ensemble.FromSampling(swag.SampleOptions{}, 0)
	}
	if err := produce(ctx); err != nil {
		return err
	}
	if err := h.measured(); err != nil {
		return err
	}
	if len(h.card.Limits) == 0 {
		h.card.Limits = []string{"None were found. Few were looked for: no data was given that differs from the training data"}
	}
	return h.put("README.md", h.card.README())
}

// madeOf returns the settings that made an ensemble, and a calibration with several numbers, in the words of compare.
func madeOf(e *ensemble.Ensemble) (made ensemble.Settings, by *hub.Calibration) {
	made = ensemble.Settings{Draw: e.Sampling, Members: e.Members()}
	if e.Sampling.Scale == 0 && e.Sampling.Covariance != ensemble.Iterates && e.Members() == len(e.Components) {
		made = *ensemble.FromSampling(swag.SampleOptions{Seed: e.Sampling.Seed}, 0)
	}
	made.NoiseStd, made.Threshold = nil, e.Threshold
	if c := e.Calibration; c != nil {
		switch number, ok := c.Number(); {
		case c.Shares != nil:
			made.Temperature = -1 // compare has no method with other shares
		case ok:
			made.Temperature = number
		default:
			by = &hub.Calibration{Method: string(c.Method), Norm: c.Norm()}
		}
	}
	return made, by
}

// compared has the settings in the words of compare: the mean of one checkpoint is the last checkpoint. The IDs are those of posteriors.
func compared(made ensemble.Settings, first *swag.Posterior, ids []string) ensemble.Settings {
	if len(ids) == 1 && first.Single() && made.Method() == ensemble.SWA {
		made.Covariance = ensemble.Last
	}
	return made
}

// ofEnsemble notes what an ensemble stores.
func (h *hubFolder) ofEnsemble(e *ensemble.Ensemble) {
	h.made, h.by = madeOf(e)
	if c := e.Calibration; c != nil {
		h.card.Limits = append(h.card.Limits, "calibrated by "+c.String()+", for data like the validation data")
	}
	for _, c := range e.Components {
		h.ids = append(h.ids, c.Posterior.ID)
		if c.Probe != nil {
			h.card.Limits = append(h.card.Limits, c.Probe.Warnings...)
		}
	}
	if v := e.Validation; v != nil {
		h.card.Limits = append(h.card.Limits, fmt.Sprintf("score compares new data with %s of %s",
			report.Plural(v.Examples, "validation example"), filepath.Base(v.Data)))
	}
	if s := e.Stopping; s != nil {
		h.card.Limits = append(h.card.Limits, "the rule of settle, which stops members early, is not in model.onnx")
	}
}

// ensemble writes a model of all members, or of those of --members.
func (h *hubFolder) ensemble(ctx context.Context, e *ensemble.Ensemble) error {
	n, err := h.options.OpenComponent(ctx, h.options.networks, e, 0)
	if err != nil {
		return err
	}
	defer n.Posterior.Close()
	out := h.model()
	defer out.abort()
	if err := h.options.exportEnsemble(ctx, out, nil); err != nil {
		return err
	}
	if h.options.which.Set {
		h.made = unmeasured
	}
	h.card.Members = e.Members()
	h.card.What = fmt.Sprintf("The average of %s of SWAG (%s).", report.Plural(e.Members(), "network"), h.made)
	if e.Calibration != nil {
		h.card.Calibration = e.Calibration.String() + ", which is in the model."
	}
	if g := e.Guarantee; !g.Empty() && !h.options.which.Set && g.Void(guarantee.Made{}) == nil {
		h.card.Guarantee, h.card.Decides = g.Chosen(), g.Outputs()
		if known := n.Known(); known != nil {
			h.card.Guarantee = g.Guarantees(known) + "; " + h.card.Guarantee
		}
	}
	h.card.Limits = append(h.card.Limits, "no weights for PyTorch are here: they are those of one network. `export --hub` of the "+
		"posterior, or with --member, writes them")
	return h.describe(n, true)
}

// network writes SWA or a member: the model, and its weights if the checkpoints are of PyTorch.
func (h *hubFolder) network(ctx context.Context) error {
	o := h.options
	if err := o.Refuse("single", "", "--* is for one model of an ENSEMBLE"); err != nil {
		return err
	}
	if kind.Detect(o.of) == kind.Posterior {
		if err := statedict.Missing(o.of, o.folder); err != nil {
			return missingCheckpoint(err, o.of)
		}
	}
	n, parameters, statistics, err := o.network(ctx)
	if n != nil {
		defer n.Posterior.Close()
	}
	if err != nil {
		return err
	}
	if h.ids == nil {
		h.ids = []string{n.Posterior.ID}
	}
	out := h.model()
	defer out.abort()
	if err := o.writeNetwork(ctx, n, parameters, statistics, out); err != nil {
		return err
	}
	h.card.What = fmt.Sprintf("The average of the weights of %s (SWA).", report.Plural(len(n.Posterior.Checkpoints), "checkpoint"))
	if n.Posterior.Single() {
		h.card.What = "The network of one checkpoint."
	} else if o.member.Set && h.made.Method() != ensemble.SWA {
		h.card.What = fmt.Sprintf("Member %d of SWAG around the average of %s.", o.member.Value,
			report.Plural(len(n.Posterior.Checkpoints), "checkpoint"))
	}
	if n.Template() != nil {
		if err := h.weights(ctx, n, parameters, statistics); err != nil {
			return err
		}
	}
	return h.describe(n, false)
}

// weights writes the weights in the form of the checkpoints: a folder of Hugging Face, or one safetensors file.
func (h *hubFolder) weights(ctx context.Context, n *infer.Network, parameters, statistics weights.Vector) error {
	form, err := statedict.Open(ctx, n, h.options.folder)
	if err != nil {
		return missingCheckpoint(err, n.Posterior.Path)
	}
	out := &weightsOutput{Env: h.options.Env, path: h.at("model.safetensors"), format: statedict.Safetensors, folder: h.Folder}
	h.card.Weights = "model.safetensors"
	if form.Folder != "" {
		out.format = statedict.Folder
		if h.base, err = form.Config(); err != nil {
			return console.BadInput(err)
		}
		h.card.Library = hub.Library(h.base)
	} else if h.timm = form.Timm; h.timm != nil {
		h.card.Library = "timm"
	}
	if form.Folder == "" {
		if out.file, err = h.options.CreateResult(out.path, false, false); err != nil {
			return err
		}
	}
	if _, err := h.options.writeWeights(ctx, n, parameters, statistics, out); err != nil {
		out.file.Abort()
		return err
	}
	if out.format == statedict.Folder {
		h.card.Weights, err = h.written()
		return err
	}
	return console.Commit(out.file)
}

// written lists the files with weights.
func (h *hubFolder) written() (names string, err error) {
	for _, pattern := range []string{"*.safetensors", "*.bin"} {
		found, err := filepath.Glob(filepath.Join(h.Work, pattern))
		if err != nil || len(found) == 0 {
			continue
		}
		if names = filepath.Base(found[0]); len(found) > 1 {
			names += "` … `" + filepath.Base(found[len(found)-1])
		}
		return names, nil
	}
	return "", nil
}

// describe writes config.json and preprocessor_config.json, and notes what README.md says of the network.
func (h *hubFolder) describe(n *infer.Network, average bool) error {
	card := n.Posterior.Card
	h.made = compared(h.made, n.Posterior, h.ids)
	h.card.Task, h.card.Takes = card.Task, n.Takes()
	h.card.Inputs, h.card.Positions = inputsOf(n), n.Large()
	classes := 0
	if known := n.Known(); known != nil {
		classes = known.About().Classes
	}
	names := hub.Labels(card.Task, card.ClassNames, classes, n.Traits().Labels)
	if err := h.ofTimm(n); err != nil {
		return err
	}
	config, err := hub.Config(h.base, card.Task, names, card.ClassNames != nil)
	if err != nil {
		return console.BadInput(err)
	}
	if err := h.put("config.json", config); err != nil {
		return err
	}
	if h.card.Gives = "outputs without a meaning here"; !n.Scoreless() {
		if h.card.Gives, err = n.Gives(); err != nil {
			h.card.Gives = "scores"
		}
	}
	if average {
		h.card.Gives = "prob (or mean and std), entropy and mutual_information, as `swagwrap score` does"
	}
	h.card.Limits = append(h.card.Limits, n.Posterior.Warnings...)
	if h.stale = n.Passes.Stale && (h.options.of == n.Posterior.Path); h.stale {
		h.card.Limits = append(h.card.Limits, "batch-norm statistics are those of the last checkpoint, which do not fit averaged "+
			"weights (--bn keep)")
	}
	if h.card.Inputs != hub.Pictures {
		return nil
	}
	return h.preprocessor(n)
}

// ofTimm makes the config.json from which timm makes the network that its checkpoints name.
func (h *hubFolder) ofTimm(n *infer.Network) (err error) {
	if h.timm == nil {
		return nil
	}
	m := hub.TimmModel{
		Architecture: h.timm.Architecture,
		Args:         h.timm.Args,
		Scores:       n.Layout().Count,
		ClassNames:   n.Posterior.Card.ClassNames,
	}
	if h.card.Inputs == hub.Pictures {
		if s, err := settings(n); err == nil {
			m.Preprocess = s.Timm()
		}
	}
	h.base, err = m.Config()
	return err
}

// settings returns the preprocessing of a network, complete.
func settings(n *infer.Network) (preprocess.Settings, error) {
	s, err := preprocess.Decode(n.Posterior.Card.Preprocess)
	if err != nil {
		return s, err
	}
	return s.Resolve(example(n))
}

// preprocessor writes preprocessor_config.json, unless the checkpoints' own says the same.
func (h *hubFolder) preprocessor(n *infer.Network) error {
	s, err := settings(n)
	if errors.Is(err, preprocess.ErrNoSize) {
		h.card.Limits = append(h.card.Limits, "the network takes pictures of any size, so preprocessor_config.json is missing")
		return nil
	}
	if err != nil {
		return console.BadInput(err)
	}
	h.card.Turned = s.Orientation == picture.Apply
	name := "preprocessor_config.json"
	if own, err := preprocess.ReadFile(h.at(name)); err == nil && own.Equal(s, example(n)) {
		h.card.Preprocess = string(preprocess.HuggingFace)
		return nil
	}
	js, style, err := s.Config()
	if err != nil {
		return err
	}
	h.card.Preprocess = string(style)
	return h.put(name, js)
}

// example returns the shape of an example: of several inputs that of the picture, if there is one.
func example(n *infer.Network) []int64 {
	shape := n.Input.Shape
	if i := slices.IndexFunc(n.Inputs, func(v onnxio.Value) bool { return len(v.Shape) == 4 }); i >= 0 && len(n.Inputs) > 1 {
		shape = n.Inputs[i].Shape
	}
	return shape[min(1, len(shape)):]
}

// inputsOf returns what an example of the network is.
func inputsOf(n *infer.Network) hub.Inputs {
	tokens := slices.ContainsFunc(n.Inputs, func(v onnxio.Value) bool { return v.Name == "input_ids" })
	switch {
	case n.TakesPictures():
		return hub.Pictures
	case tokens || n.Traits().Text:
		return hub.Texts
	case len(n.Posterior.Card.Columns) > 0 || len(n.Inputs) == 1 && len(example(n)) == 1:
		return hub.Tables
	}
	return hub.Other
}

// hintFigures says which figures there are.
const hintFigures = "compare measures SWA with and without a temperature, and SWAG with --members and --seed of the ensemble"

// measured adds the figures of --figures.
func (h *hubFolder) measured() (err error) {
	if h.figures == nil {
		return nil
	}
	if h.card.Figures, err = h.figures.Find(h.ids, &h.made, h.by, h.stale); err != nil {
		return console.BadInput(err, hintFigures)
	}
	m := h.card.Figures
	h.card.Limits = append(h.card.Limits, m.Limits...)
	if m.Validation == 0 {
		h.card.Limits = append(h.card.Limits, "there were no validation data of their own")
	}
	return nil
}

func (h *hubFolder) at(name string) string { return filepath.Join(h.Work, name) }

func (h *hubFolder) model() *modelOutput {
	return &modelOutput{Env: h.options.Env, path: h.at("model.onnx")}
}

// put writes a small file.
func (h *hubFolder) put(name string, content []byte) error {
	return console.BadOutput(os.WriteFile(h.at(name), content, 0o666))
}
