package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/hub"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/statedict"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func exportCommand(a *app) *command {
	o := &exportOptions{app: a}
	return &command{
		name:  "export",
		usage: "write an ensemble as an ONNX model, or SWA or a member as ONNX or as weights",
		args:  "[POSTERIOR|ENSEMBLE]",
		description: `Writes an ONNX model that any runtime loads: all members of an ensemble in one model, or the checkpoints' own graph with
other weights.

   swagwrap export -o ensemble.onnx ensemble.safetensors
   swagwrap export -o member-007.onnx --member 7 ensemble.safetensors
   swagwrap export -o swa.onnx --bn-data train.npz posterior.safetensors

The model of an ensemble takes the network's inputs, with any number of examples. It gives prob, entropy and
mutual_information, as score does, and calibrated if the ensemble is. With calibrate --coverage it also gives the sets, or the
ends of intervals, and whether to abstain. --storage int8 makes it about a quarter as large for 30
members. docs/deploy.md shows it in Python, JavaScript and servers.

A posterior gives SWA, with batch-norm statistics recomputed from --bn-data, or with --member a newly drawn member. --bn keep
takes the statistics of the last checkpoint, which do not fit averaged weights. An ensemble gives its member --member, with the
weights and statistics that score uses. --checkpoint FILE writes the checkpoint's own weights. So a checkpoint of PyTorch becomes
a model. It needs no posterior if the exported graph is given:

   swagwrap export -o new.onnx --template model.onnx=old.pt --checkpoint new.pt

The exported model runs at full speed. PyTorch's exporter writes zero biases if it is told not to optimise. They are left
out, because ONNX Runtime does not fuse batch norm into a convolution with such a bias. Results stay the same.

External data goes into a file next to the model, as in the checkpoints.

SWA and members also become weights for the framework that trained them. The name of the output chooses the format:

   swagwrap export -o swa.pt --bn-data train.npz posterior.safetensors
   swagwrap export -o member-007.safetensors --member 7 ensemble.safetensors

.safetensors, .pt, .pth and .bin are state_dicts with the names, shapes and types of the checkpoints, .npz has an array for each
tensor, and FOLDER/ is a folder like those of Hugging Face that the posterior was fitted to. For names and counters, export reads the
last checkpoint again. model.load_state_dict(torch.load("swa.pt")) loads it.

--hub FOLDER makes a folder that "hf upload" takes. Its README.md has the figures of --figures with their intervals, and limits:

   swagwrap compare --json --bn-data train.npz --val val.npz posterior.safetensors test.npz > figures.json
   swagwrap export --hub FOLDER --figures figures.json --bn-data train.npz posterior.safetensors

--web FOLDER makes a page that runs an ensemble in a browser, with the pixels of score. swagwrap setup --provider web comes first.`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.of = strings.Join(args, "")
			return o.export(ctx)
		},
	}
}

// exportOptions are the values of export's command line.
type exportOptions struct {
	*app
	flags.Table
	of         string // the posterior or the ensemble, or ""
	output     flags.OutputOptions
	member     open.Given[int]
	checkpoint string // the file, or ""
	draws      flags.DrawOptions
	source     open.SourceOptions
	networks   open.EnsembleOptions
	data       open.DataOptions
	batchNorm  open.BatchNormOptions
	runtime    open.RuntimeOptions
	which      open.Given[string] // members of the joint model
	pixels     bool               // the joint model preprocesses
	portable   bool               // the model of one network is for other compilers, too
	storage    storage
	check      open.Given[string]
	val        open.Given[string]
	quantize   string // int8, or ""
	ranges     open.Given[string]
	dtype      weights.DType // of weights. Invalid: as in the checkpoints
	folder     string        // where the checkpoints are now, or ""
	hub        string        // the folder for the Hub, or ""
	figures    string        // what compare --json printed, or ""
	web        string        // the folder with a page, or ""
	reference  string        // users' examples for the model, or ""
	shares     string        // a file with class shares, or ""
}

func (o *exportOptions) rows() flags.Table {
	o.Table = flags.Join(flags.Output(&o.output), flags.Table{
		flags.Integer(flags.Row{
			Name:   "member",
			Usage:  "write member `K` alone, counted from 0",
			Preset: "none",
			Given:  &o.member.Set,
			Not:    "alone",
		}, &o.member.Value, 0, swag.MaxMembers-1),
		flags.Text(flags.Row{
			Name:   "members",
			Usage:  "take the members `LIST` of the ensemble, such as 0-9",
			Preset: "all",
			Given:  &o.which.Set,
			Not:    "single",
		}, &o.which.Value),
		flags.Parsed(flags.Row{
			Name: "storage",
			Usage: "store weights as `S`: f32, or int8 with each member's deviations in 8 bits; external, or int8,external, puts them " +
				"into a file next to the model",
			Default: "f32",
			Not:     "single",
		}, &o.storage, parseStorage),
		sharesRow(flags.Row{
			Usage: "correct the model's probabilities for the class shares in `FILE`: a table, or the .meta.json of " +
				"score --shares estimate",
			Not: "single",
		}, &o.shares),
		flags.Bool(flags.Row{
			Name:  "with-preprocessing",
			Usage: "take 8-bit pixels of the network's size, [batch, height, width, channels], and normalise them in the model",
			Not:   "single",
		}, &o.pixels),
		flags.Bool(flags.Row{
			Name: "portable",
			Usage: "write the model of one network so that more compilers read it, as that of an ENSEMBLE always is: constants are " +
				"tensors, values have shapes",
			Not: "files of weights",
		}, &o.portable),
		flags.Text(flags.Row{
			Name:  "check",
			Usage: "run `DATA` through the model and through the members, and say how much they differ",
			Given: &o.check.Set,
			Not:   "single",
		}, &o.check.Value),
		flags.Parsed(flags.Row{
			Name: "dtype",
			Usage: "store weights as `TYPE`, f32|bf16|f16, and say what rounding did to the member. One model of an ENSEMBLE computes " +
				"in f16, too",
			Preset: "as in the checkpoints",
			Not:    "network",
		}, &o.dtype, func(s string) (weights.DType, error) {
			return map[string]weights.DType{"f32": weights.F32, "bf16": weights.BF16, "f16": weights.F16}[s],
				word.Check(s, "f32", "bf16", "f16")
		}),
		flags.OneOf(flags.Row{
			Name:   "quantize",
			Usage:  "let the members of one model compute in `TYPE`, int8; the average stays in float32",
			Preset: "none",
			Not:    "single",
		}, &o.quantize, "int8"),
		flags.Text(flags.Row{
			Name:  "calibration",
			Usage: "of --quantize: find the ranges of numbers inside the members on `DATA`, such as some hundred training examples",
			Given: &o.ranges.Set,
			Not:   "single",
		}, &o.ranges.Value),
		flags.Text(flags.Row{
			Name: "val",
			Usage: "of a model in fewer bits: run `DATA`, with labels, through it and through the model in float32, fit calibration and " +
				"guarantees anew, and print the figures",
			Given: &o.val.Set,
			Not:   "single",
		}, &o.val.Value),
		flags.Text(flags.Row{
			Name:  "checkpoints",
			Usage: "of weights: the posterior's checkpoints are now in `FOLDER`",
			Not:   "model",
		}, &o.folder),
		flags.Text(flags.Row{
			Name: "hub",
			Usage: "write a `FOLDER` for the Hugging Face Hub: model, weights, config.json, preprocessor_config.json and README.md. " +
				"Nothing is sent",
		}, &o.hub),
		flags.Text(flags.Row{
			Name: "web",
			Usage: "write a `FOLDER` with a page that runs the ENSEMBLE in a browser, on pictures or tables: for any web server. " +
				"Nothing is sent",
		}, &o.web),
		flags.Text(flags.Row{
			Name: "figures",
			Usage: "put the figures of `FILE`, which compare --json printed for this model, into the README.md of --hub, or into " +
				"the model of an ENSEMBLE",
		}, &o.figures),
		flags.Text(flags.Row{
			Name:  "checkpoint",
			Usage: "write the weights of the checkpoint `FILE`",
			Not:   "drawn weights",
		}, &o.checkpoint),
		flags.Text(flags.Row{
			Name: "reference",
			Usage: "put the examples of `FILE`, such as swagwrap-reference.npz, into the model, to verify it with, in place of made-up " +
				"ones. Whoever gets the model gets them",
			Not: "alone",
		}, &o.reference),
		flags.Posterior(&o.networks),
		flags.Seed(flags.Row{
			Usage: "`SEED` of a posterior's members and of the order of the training data",
			Not:   "drawn alone",
		}, &o.batchNorm.Seed),
	}, flags.Template(&o.source), flags.Covariance(&o.draws), flags.BatchNorm(&o.batchNorm, &o.networks.Network),
		flags.Data(&o.data, &o.networks.Network), flags.Run(&o.runtime, &o.data))
	return o.Table
}

// sampling says how a posterior's member is drawn.
func (o exportOptions) sampling() swag.SampleOptions { return o.draws.Draws(o.batchNorm.Seed, false) }

func (o *exportOptions) export(ctx context.Context) error {
	path := o.of
	switch {
	case o.web != "":
		return o.exportWeb(ctx)
	case o.hub != "":
		return o.exportHub(ctx)
	}
	if format := statedict.FormatOf(o.output.Path); format != statedict.None {
		return o.exportWeights(ctx, format)
	}
	if statedict.Foreign(o.output.Path) {
		return console.Usagef("NAME.onnx is a model. NAME.pt, NAME.safetensors, NAME.npz and FOLDER/ are weights",
			"%s: export does not write %s files", o.output.Path, filepath.Ext(o.output.Path))
	}
	if err := o.Refuse("model", "", "--* is for weights: -o NAME.safetensors, NAME.pt, NAME.npz or FOLDER/"); err != nil {
		return err
	}
	out := &modelOutput{Env: o.Env, path: o.output.Path, force: o.output.Force}
	defer out.abort()
	if err := out.check(); err != nil { // before any work
		return err
	}

	posterior := path != "" && kind.Detect(path) == kind.Posterior
	if o.figures != "" && (path == "" || posterior || o.member.Set) {
		return console.Usagef("--hub FOLDER writes them of one network, too",
			"--figures is for the model of an ENSEMBLE, or for the README.md of --hub")
	}
	if path == "" || o.member.Set || posterior {
		err := o.Refuse("network", "", "--* is for weights: -o NAME.safetensors, NAME.pt, NAME.npz, FOLDER/, or for a model of an ENSEMBLE")
		if err != nil {
			return err
		}
	}
	if path == "" {
		return o.exportCheckpoint(out)
	}
	if !o.member.Set && !posterior {
		if err := o.exportEnsemble(ctx, out, nil); err != nil {
			return err
		}
		o.Next(console.Shell("swagwrap", "inspect", out.path))
		return nil
	}
	if err := o.Refuse("single", "", "--* is for one model of an ENSEMBLE"); err != nil {
		return err
	}
	n, parameters, statistics, err := o.network(ctx)
	if n != nil {
		defer n.Posterior.Close()
	}
	if err != nil {
		return err
	}
	if err := o.writeNetwork(ctx, n, parameters, statistics, out); err != nil {
		return err
	}
	o.Next(console.Shell("swagwrap", "inspect", out.path))
	return nil
}

// writeNetwork writes the model of one network with these weights.
func (o *exportOptions) writeNetwork(ctx context.Context, n *infer.Network, parameters, statistics weights.Vector,
	out *modelOutput) error {
	kind, origin, apply, err := o.origin(n.Posterior)
	if err != nil {
		return console.BadInput(err)
	}
	t, err := o.template(n.Passes.Model, n.Posterior.Layout, out.path)
	if err == nil {
		err = t.Write(filepath.Base(out.path), out.create, n.Posterior.Layout, parameters, statistics)
	}
	if err != nil {
		return console.BadInput(err) // files being written have their own error
	}
	if o.checkpoint == "" { // a checkpoint has no metadata of swagwrap
		if err := out.describe(kind, n.Posterior.Card, origin, apply); err != nil {
			return console.BadOutput(err)
		}
	}
	o.describeScores(ctx, n, out.path)
	if o.checkpoint != "" {
		return out.commit(nil, nil)
	}
	return out.commit(func(path string) error {
		return o.addOutputs(ctx, out, path, open.OutputsOf{Card: n.Posterior.Card, Seed: o.batchNorm.Seed, File: o.reference})
	}, nil)
}

// template returns a network as a model for users.
func (o *exportOptions) template(m *onnxio.Model, l *weights.Layout, path string) (*onnxio.Template, error) {
	if !o.portable {
		return onnxio.NewExportTemplate(m, l)
	}
	t, unknown, err := onnxio.NewPortableTemplate(m, l)
	o.noteUnshaped(path, unknown)
	return t, err
}

// noteUnshaped names values of the exported model at path without a shape.
func (o *exportOptions) noteUnshaped(path string, names []string) {
	if o.portable && len(names) > 0 {
		o.Logf("%s: %s without a shape, such as %q: its graph does not show their rank", path, report.Plural(len(names), "value"), names[0])
	}
}

// addOutputs runs the complete model at a path, and appends what it gives to its metadata.
func (o *exportOptions) addOutputs(ctx context.Context, out *modelOutput, path string, of open.OutputsOf) error {
	s, why, err := o.outputs(ctx, path, outputsRequest{Name: out.path, Of: of})
	if none := (*ort.LibraryError)(nil); errors.As(err, &none) && of.File == "" {
		o.Logf("%s: has no outputs to verify it with, since no ONNX Runtime is here", out.path)
		return nil
	}
	if err != nil {
		return err
	}
	if why != nil {
		o.Logf("%s: has no outputs to verify it with: %v", out.path, why)
		return nil
	}
	if s.From != "" {
		o.Logf("%s: has %s of %s inside. Whoever gets the model gets them, too", out.path, report.Plural(s.Examples, "example"), s.From)
	}
	_, err = out.files[len(out.files)-1].Write(onnxio.AppendMetadata(nil, map[string]string{ensemble.KeyReference: s.Text()}))
	return console.BadOutput(err)
}

// describeScores prints what the exported model at path gives: the form of its scores is that which score finds.
func (o *exportOptions) describeScores(ctx context.Context, n *infer.Network, path string) {
	if n.Undecided() {
		engine, err := o.Engine(o.runtime)
		if err == nil {
			err = o.DecideScores(ctx, engine, []*infer.Network{n})
		}
		if err != nil {
			o.Warnf("%s: nothing says what its scores are: %v", path, err)
			return
		}
	}
	if gives, err := n.Gives(); err == nil { // opening a posterior of an older version has warned already
		o.Logf("%s gives %s", path, gives)
	}
	o.noteHalf(path, n)
}

// noteHalf says what the processor does not show of an exported model with weights in float16.
func (o *exportOptions) noteHalf(path string, networks ...*infer.Network) {
	for _, n := range networks {
		if slices.ContainsFunc(n.Posterior.Layout.Tensors, func(t weights.Tensor) bool { return t.DType == weights.F16 }) {
			o.Logf("%s: has weights in float16. On the processor ONNX Runtime keeps float32 between its nodes, so a value above 65504 "+
				"overflows only on a GPU: compare the scores of a few examples where it will run", path)
			return
		}
	}
}

// origin says what the exported model of one network is and what it was made from. It also returns the calibration of
// an ensemble with one member, which goes with that member's scores.
func (o exportOptions) origin(p *swag.Posterior) (kind string, from *ensemble.Origin, apply *task.Calibration, err error) {
	kind, from = ensemble.ModelSWA, &ensemble.Origin{Producer: console.Producer()}
	if o.member.Set {
		kind, from.Member = ensemble.ModelMember, &o.member.Value
	}
	switch {
	case o.of != p.Path:
		e, err := ensemble.Open(o.of)
		if err != nil {
			return "", nil, nil, err
		}
		from.SetEnsemble(e)
		i, _ := e.Find(*from.Member)
		from.From(e.Components[i].Posterior.Path, p)
		if e.Members() == 1 {
			apply = e.Calibration
		}
	default:
		from.From(o.of, p)
		if from.Member != nil {
			from.Sampling = &ensemble.FromSampling(o.sampling(), 0).Draw
		}
	}
	if from.Sampling != nil && from.Sampling.Scale == 0 && from.Sampling.Covariance != ensemble.Iterates {
		kind = ensemble.ModelSWA
	}
	return kind, from, apply, nil
}

// exportCheckpoint writes --checkpoint as a model, without a posterior. The model is the template with the checkpoint's
// weights.
func (o *exportOptions) exportCheckpoint(out *modelOutput) error {
	if o.source.Template == "" || o.checkpoint == "" {
		return console.Usagef("swagwrap export --help shows an example",
			"no POSTERIOR or ENSEMBLE: want --template and --checkpoint in its place")
	}
	if err := o.Refuse("alone", "", "--* needs a POSTERIOR or ENSEMBLE"); err != nil {
		return err
	}
	if err := o.Refuse("single", "", "--* is for an ENSEMBLE"); err != nil {
		return err
	}
	source, err := o.OpenSource(o.source, nil)
	if err != nil {
		return err
	}
	defer source.Close()
	models, err := source.Open([]string{o.checkpoint})
	if err != nil {
		return err
	}
	defer open.CloseModels(models)
	if err := checkpoints.Sound(models[0]); err != nil {
		return console.BadInput(err)
	}
	none := &weights.Layout{}
	t, err := o.template(models[0], none, out.path)
	if err == nil {
		err = t.Write(filepath.Base(out.path), out.create, none, weights.Slice{}, weights.Slice{})
	}
	if err != nil {
		return console.BadInput(err) // files being written have their own error
	}
	notes, warnings := source.Remarks(false)
	for _, note := range notes {
		o.Logf("%s", note)
	}
	for _, w := range warnings {
		o.Warnf("%s", w)
	}
	return out.commit(nil, nil)
}

// modelOutput is a model with its data files, written to one folder.
type modelOutput struct {
	*console.Env
	path   string
	force  bool
	files  []*console.Output
	buffer []*bufio.Writer
}

// check fails if the model itself cannot be written.
func (m *modelOutput) check() error {
	out, err := m.CreateResult(m.path, m.force, false)
	if err == nil {
		out.Abort()
	}
	return err
}

// create opens one of the files.
func (m *modelOutput) create(name string) (io.Writer, error) {
	path, open := m.path, m.CreateResult
	if name != filepath.Base(m.path) {
		if file.IsStdout(m.path) {
			return nil, console.Usagef("name a file: -o model.onnx",
				"%s: the model's data is in a file next to it, %s, and standard output is one file", m.path, name)
		}
		path, open = filepath.Join(filepath.Dir(m.path), filepath.FromSlash(name)), m.createData
	}
	out, err := open(path, m.force, false)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(out, 1<<20)
	m.files, m.buffer = append(m.files, out), append(m.buffer, w)
	return w, nil
}

// createData opens a data file of the model.
func (m *modelOutput) createData(path string, force, _ bool) (*console.Output, error) {
	return console.CreateCompanion(path, force, kind.DataOf(m.path))
}

// describe appends the metadata of an exported model to the model, which is the last file.
func (m *modelOutput) describe(kind string, card swag.Card, origin *ensemble.Origin, apply *task.Calibration) error {
	metadata, err := ensemble.ModelMetadata(kind, card, origin, apply)
	if err != nil {
		return err
	}
	_, err = m.buffer[len(m.buffer)-1].Write(onnxio.AppendMetadata(nil, metadata))
	return err
}

// commit calls more with the path of the complete model, which may append to it. It puts the files in their places, the model last,
// and then calls check. Both may be nil. If one fails, no files are left. A model with data files is complete in its place only.
func (m *modelOutput) commit(more func(path string) error, check func() error) error {
	for _, w := range m.buffer {
		if err := w.Flush(); err != nil {
			return console.BadOutput(err)
		}
	}
	if more != nil && len(m.files) == 1 {
		if err := more(m.files[0].Name()); err != nil {
			return err
		}
	} else if later := check; more != nil {
		check = func() error {
			if err := more(m.path); err != nil || later == nil {
				return err
			}
			return later()
		}
	}
	var before []string
	if m.force {
		before = kind.DataFiles(m.path)
	}
	if err := (console.Together{Check: check}).Commit(m.files...); err != nil {
		return err
	}
	for _, path := range before { // nothing names the data of the model that was replaced any more
		isNew := slices.ContainsFunc(m.files, func(f *console.Output) bool { return filepath.Clean(f.Path) == path })
		if info, err := os.Lstat(path); err != nil || isNew || !info.Mode().IsRegular() || file.Output(path) != nil {
			continue
		}
		if err := os.Remove(path); err != nil {
			m.Warnf("%s: of the model that was replaced, could not be removed: %v", path, file.Cause(err))
		}
	}
	return nil
}

func (m *modelOutput) abort() {
	for _, out := range m.files {
		out.Abort()
	}
}

// network returns the network that the posterior or the ensemble stands for, with its weights and statistics.
func (o *exportOptions) network(ctx context.Context) (*infer.Network, weights.Vector, weights.Vector, error) {
	if kind.Detect(o.of) == kind.Posterior {
		return o.fromPosterior(ctx)
	}
	return o.fromEnsemble(ctx)
}

// fromEnsemble returns member --member of the ensemble at path. It opens only the member's own posterior.
func (o *exportOptions) fromEnsemble(ctx context.Context) (*infer.Network, weights.Vector, weights.Vector, error) {
	path, k := o.of, o.member.Value
	e, err := o.OpenEnsemble(path)
	if err != nil {
		return nil, nil, nil, err
	}
	if k >= e.Members() {
		return nil, nil, nil, console.Usagef("members are counted from 0", "--member %d: %s has %s", k, path,
			report.Plural(e.Members(), "member"))
	}
	switch {
	case e.Calibration != nil && e.Members() > 1:
		o.Warnf("%s: its calibration is for the members' average, and is not in the exported member", path)
	case e.Calibration != nil:
		o.Warnf("%s: its calibration, %s, is not in the graph of the exported member. Apply it to the scores: it is in the metadata",
			path, e.Calibration)
	}
	if !e.Guarantee.Empty() {
		o.Warnf("%s: what it guarantees is of the members' average, and is not in the exported member", path)
	}
	component, _ := e.Find(k)
	n, err := o.OpenComponent(ctx, o.networks, e, component)
	if err != nil {
		return nil, nil, nil, err
	}
	parameters, statistics, err := e.Member(ctx, k, n)
	return n, parameters, statistics, console.BadInput(err)
}

// fromPosterior returns SWA, a member, or the weights of --checkpoint.
func (o *exportOptions) fromPosterior(ctx context.Context) (*infer.Network, weights.Vector, weights.Vector, error) {
	n, err := o.OpenNetwork(ctx, o.networks.Network, o.of)
	if err != nil {
		return nil, nil, nil, err
	}
	if checkpoint := o.checkpoint; checkpoint != "" {
		source, err := o.OpenSource(o.source, n.Template())
		if err != nil {
			return n, nil, nil, err
		}
		n.Posterior.OnClose(source.Close)
		models, err := source.Open([]string{checkpoint})
		if err != nil {
			return n, nil, nil, err
		}
		n.Posterior.OnClose(models[0].Close)
		parameters, statistics, err := n.Vectors(models[0]) // the vectors read from the model
		return n, parameters, statistics, console.BadInput(err)
	}
	opts, k := swag.SampleOptions{}, 0 // scale 0 is SWA
	if o.member.Set {
		opts, k = o.sampling(), o.member.Value
	}
	s, err := open.Sampler(n.Posterior, opts)
	if err != nil {
		return n, nil, nil, err
	}
	parameters := s.Vector(ctx, k) // drawn while they are written
	bn, err := o.OpenBatchNorm(o.batchNorm, o.data, []*infer.Network{n}, true)
	if err != nil {
		return n, nil, nil, err
	}
	engine := infer.NewEngine(nil, infer.EngineOptions{Memory: o.runtime.Memory})
	if n.Recomputes() || bn.Data != nil {
		if engine, err = o.Engine(o.runtime); err != nil {
			return n, nil, nil, err
		}
	}
	if err := o.CheckStudy(ctx, engine, bn, open.Probe{}, open.Probe{}); err != nil {
		return n, nil, nil, err
	}
	run := infer.Run{Engine: engine}
	how := opts
	how.Seed = o.batchNorm.Seed // also of SWA, which has no draws
	if err := o.ChooseSampleSize(ctx, o.runtime, &run, bn, batchnorm.SampleSizing{
		Members: open.Deciding(*ensemble.FromSampling(how, k)),
		Drawn:   &opts,
	}); err != nil {
		return n, nil, nil, err
	}
	draws := batchnorm.Draws{Run: run, Network: n, BatchNorm: bn.Training, How: opts, Count: 1}
	if opts.Scale > 0 {
		draws.Count = 2
	}
	if run.Engine, _, err = o.checkPasses(ctx, o.runtime, draws); err != nil {
		return n, nil, nil, err
	}
	result, err := batchnorm.Recompute(ctx, run, n, parameters, bn.Training.ForMember(n, opts, k))
	if err != nil {
		return n, nil, nil, console.BadInput(err)
	}
	return n, parameters, weights.Slice(result.Statistics), nil
}

// storage says how the model of an ensemble stores weights.
type storage struct {
	fused.Storage
	external bool // in a file next to the model
}

// storages are the words of --storage.
var storages = []string{fused.Float32: "f32", fused.Int8: "int8"}

func parseStorage(s string) (as storage, err error) {
	for w := range strings.SplitSeq(s, ",") {
		if w == "external" {
			as.external = true
			continue
		}
		i := slices.Index(storages, w)
		if i < 0 {
			return as, word.Check(w, append(slices.Clone(storages), "external")...)
		}
		as.Storage = fused.Storage(i)
	}
	return as, nil
}

// exportEnsemble writes one model of all members. before, if not nil, is called before it is written.
func (o *exportOptions) exportEnsemble(ctx context.Context, out *modelOutput, before func(*ensemble.Fused) error) error {
	path := o.of
	e, err := o.openEnsemble() // open it first: a damaged posterior must be reported as damaged
	if err != nil {
		return err
	}
	err = o.Refuse("drawn", "", "--* is for a POSTERIOR: the members of "+path+" are drawn")
	if err != nil {
		return err
	}
	if o.check.Set && file.IsStdout(out.path) {
		return console.Usagef("name a file: -o model.onnx", "--check reads the model again, and it goes to standard output")
	}
	j := &ensemble.Fused{
		Ensemble: e,
		Members:  e.All(),
		Pixels:   o.pixels,
		Storage:  o.storage.Storage,
		External: o.storage.external,
		Producer: "swagwrap",
		Version:  console.Version(),
	}
	if o.which.Set {
		if j.Members, err = ensemble.ParseRanges(o.which.Value, e.Members()); err != nil {
			return console.Usagef("members are counted from 0", "--members %w", err)
		}
		if len(j.Members) < e.Members() && e.Calibration != nil {
			o.Warnf("%s: its calibration was fitted to all %d members", path, e.Members())
		}
	}
	if why := j.NotGuaranteed(); why != "" {
		o.Warnf("%s: %s, and is not in the model", path, why)
	}
	if err := o.checkConversion(j); err != nil {
		return err
	}
	if j.Storage == fused.Int8 && !e.Guarantee.Empty() {
		o.Warnf("%s: its thresholds were chosen with weights in full precision. Check with labelled examples that 8 bits keep the "+
			"guarantee",
			path)
	}
	if err := e.Guarantee.Exportable(); err != nil {
		return console.BadInput(fmt.Errorf("%s: %w", path, err))
	}
	j.Networks, err = o.OpenComponents(ctx, o.networks, e)
	defer open.CloseNetworks(j.Networks)
	if err != nil {
		return err
	}
	if err := measuredModel(o, j); err != nil {
		return err
	}
	if o.check.Set || o.val.Set {
		if o.runtime.BatchSize, err = open.BatchOf(o.runtime.BatchSize, e); err != nil {
			return err
		}
	}
	if j.Networks[0].Scoreless() {
		return console.Usagef("--member 0 writes one member, and a POSTERIOR gives SWA",
			"%s: outputs of its task, none, have no average as one model", path)
	}
	var engine *infer.Engine
	unknown := slices.ContainsFunc(j.Networks, (*infer.Network).Undecided)
	if j.Needs() || unknown || o.check.Set || o.converts() {
		if engine, err = o.Engine(o.runtime); err != nil {
			return err
		}
	}
	if j.Examples, err = o.openCheck(ctx, engine, j); err != nil {
		return err
	}
	var tables []*report.Table
	if o.converts() {
		if tables, err = o.convert(ctx, j, engine); err != nil {
			return err
		}
	}
	m, err := j.Model(ctx, engine)
	if err == nil && before != nil {
		err = before(j)
	}
	if err != nil {
		return console.BadInput(err)
	}
	if err := o.writeFused(ctx, j, m, engine, out, o.runtime); err != nil || tables == nil {
		return err
	}
	return o.showTables(tables...)
}

// measuredModel puts the figures of --figures into the metadata of the model. The README.md of --hub has them otherwise.
func measuredModel(o *exportOptions, j *ensemble.Fused) error {
	if o.figures == "" || o.hub != "" {
		return nil
	}
	if len(j.Members) < j.Ensemble.Members() {
		return console.Usagef("leave out --members or --figures", "--figures: compare measured all %d members", j.Ensemble.Members())
	}
	f, err := hub.ReadFigures(o.figures)
	if err != nil {
		return console.BadInput(err, hintCompare)
	}
	var ids []string
	for _, c := range j.Ensemble.Components {
		ids = append(ids, c.Posterior.ID)
	}
	made, by := madeOf(j.Ensemble)
	made = compared(made, j.Networks[0].Posterior, ids)
	m, err := f.Find(ids, &made, by, false)
	if err != nil {
		return console.BadInput(err, hintFigures)
	}
	j.Figures, err = m.Metadata()
	return err
}

// openCheck opens the data of --check. It decides the form of the scores, on noise if there is no data.
func (o *exportOptions) openCheck(ctx context.Context, engine *infer.Engine, j *ensemble.Fused) (dataset.Dataset, error) {
	path, e := o.check.Value, j.Ensemble
	if path == "" {
		return nil, o.DecideScores(ctx, engine, j.Networks)
	}
	data, err := o.OpenData(o.data, path, "", j.Networks[0])
	if err != nil {
		return nil, err
	}
	_, err = o.CheckInputs(ctx, engine, open.Probe{
		Networks:   j.Networks,
		Data:       data,
		Path:       path,
		Trained:    e.Components[0].Probe,
		Earlier:    e.Checked(),
		Preprocess: o.data.Preprocess,
	})
	return data, err
}

// writeFused writes the model, and prints its size. It runs data through it, if that is not nil.
func (o *exportOptions) writeFused(ctx context.Context, j *ensemble.Fused, m *fused.Model, engine *infer.Engine, out *modelOutput,
	how open.RuntimeOptions) error {
	name, data := filepath.Base(out.path), j.Examples
	model, size, err := m.Size(name)
	if err == nil && model > fused.Largest {
		m.External()
		model, size, err = m.Size(name)
	}
	if err != nil {
		return console.BadInput(err)
	}
	if err := j.Write(ctx, m, name, out.create, how.Threads, how.Memory); err != nil {
		return console.BadInput(err) // files being written have their own error
	}
	o.noteUnshaped(out.path, fused.Unshaped(m))
	var d ensemble.Difference
	var check func() error
	if data != nil {
		check = func() (err error) {
			d, err = j.Check(ctx, engine, out.path, data)
			return console.BadInput(err)
		}
	}
	e := j.Ensemble
	if err := out.commit(func(path string) error {
		return o.addOutputs(ctx, out, path, open.OutputsOf{
			Card: e.Card,
			Seen: e.Components[0].Probe,
			Seed: e.Sampling.Seed,
			File: o.reference,
		})
	}, check); err != nil {
		return err
	}
	o.Logf("%s: %s, %.1f MB", out.path, report.Plural(len(j.Members), "member"), float64(model+size)/1e6)
	o.noteHalf(out.path, j.Networks...)
	switch {
	case data == nil:
	case !task.TraitsOf(j.Ensemble.Card.Task).Form:
		o.Logf("%s: on %s no mean or standard deviation is further than %.2g from that of the members themselves, in the targets' units",
			out.path, report.Plural(d.Examples, "example"), d.Largest)
	default:
		o.Logf("%s: on %s no probability is further than %.2g from that of the members themselves, and %d of the predictions are others",
			out.path, report.Plural(d.Examples, "example"), d.Largest, d.Changed)
	}
	return nil
}
