package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/intake"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write an ensemble, a member or SWA as an ONNX model",
		ArgsUsage: "[POSTERIOR|ENSEMBLE]",
		Description: `Writes an ONNX model that any runtime loads: all members of an ensemble in one model, or the checkpoints' own graph with
other weights.

   swagwrap export -o ensemble.onnx ensemble.safetensors
   swagwrap export -o member-007.onnx --member 7 ensemble.safetensors
   swagwrap export -o swa.onnx --bn-data train.npz posterior.safetensors

The model of an ensemble takes the network's inputs, with any number of examples. It gives prob, entropy and
mutual_information, as score does, and calibrated if the ensemble is. --storage int8 makes it about a quarter as large for 30
members. docs/deploy.md shows it in Python, JavaScript and servers.

A posterior gives SWA, with batch-norm statistics recomputed from --bn-data, or with --member a newly drawn member. --bn keep
takes the statistics of the last checkpoint, which do not fit averaged weights. An ensemble gives its member --member, with the
weights and statistics that score uses. --checkpoint FILE writes the checkpoint's own weights. So a checkpoint of PyTorch becomes
a model. It needs no posterior if the exported graph is given:

   swagwrap export -o new.onnx --template model.onnx=old.pt --checkpoint new.pt

The exported model runs at full speed. PyTorch's exporter writes zero biases if it is told not to optimise. They are left
out, because ONNX Runtime does not fuse batch norm into a convolution with such a bias. Results stay the same.

External data goes into a file next to the model, as in the checkpoints.`,
		Flags: flags.Join(flags.OutputFlags, []cli.Flag{
			flags.Whole(0, swag.MaxMembers-1, &cli.IntFlag{Name: "member", Usage: "write member `K` alone, counted from 0", Value: -1, DefaultText: "none"}),
		}, ensembleFlags, []cli.Flag{
			&cli.StringFlag{Name: "checkpoint", Usage: "write the weights of the checkpoint `FILE`"},
			posteriorFlag,
			flags.SeedFlag("`SEED` of a posterior's members and of the order of the training data"),
		}, flags.TemplateFlags, flags.CovarianceFlags, flags.BatchNormFlags, flags.DataFlags, flags.RunFlags),
		Action: a.export,
	}
}

func (a *app) export(c *cli.Context) error {
	path := c.Args().First()
	out := &modelOutput{Env: a.Env.Env, path: c.String("output"), force: c.Bool("force")}
	defer out.abort()
	if err := out.check(); err != nil { // before any work
		return err
	}

	if path == "" {
		return a.exportCheckpoint(c, out)
	}
	posterior := kind.Of(path) == kind.Posterior
	if !c.IsSet("member") && !posterior {
		return a.exportEnsemble(c, out, path)
	}
	if err := flags.Refuse(c, "", "--* is for one model of an ENSEMBLE", ofEnsembles...); err != nil {
		return err
	}
	network := a.fromPosterior
	if !posterior {
		network = a.member
	}
	n, parameters, statistics, err := network(c, path)
	if n != nil {
		defer n.Posterior.Close()
	}
	if err != nil {
		return err
	}
	kind, origin, apply, err := originOf(c, path, n.Posterior)
	if err != nil {
		return flags.BadInput(err)
	}
	t, err := n.Export()
	if err == nil {
		err = t.Write(filepath.Base(out.path), out.create, n.Posterior.Layout, parameters, statistics)
	}
	if err != nil {
		return flags.BadInput(err) // files being written have their own error
	}
	if !c.IsSet("checkpoint") { // a checkpoint carries nothing of swagwrap
		if err := out.describe(kind, n.Posterior.Card, origin, apply); err != nil {
			return flags.BadOutput(err)
		}
	}
	if gives, err := n.Gives(); err == nil { // opening a posterior of an older version has warned already
		a.Logf(c, "%s gives %s", out.path, gives)
	}
	if err := out.commit(nil); err != nil {
		return err
	}
	a.Next(c, study.Shell("swagwrap", "inspect", out.path))
	return nil
}

// originOf says what the exported model of one network is and what it was made from. It also returns the calibration of
// an ensemble with one member, which goes with that member's scores.
func originOf(c *cli.Context, path string, p *swag.Posterior) (kind string, o *ensemble.Origin, apply *task.Calibration, err error) {
	kind, o = ensemble.ModelSWA, &ensemble.Origin{Producer: flags.Producer()}
	if c.IsSet("member") {
		k := c.Int("member")
		kind, o.Member = ensemble.ModelMember, &k
	}
	switch {
	case path != p.Path:
		e, err := ensemble.Open(path)
		if err != nil {
			return "", nil, nil, err
		}
		o.Of(e)
		i, _ := e.Find(*o.Member)
		o.From(e.Components[i].Posterior.Path, p)
		if e.Members() == 1 {
			apply = e.Calibration
		}
	default:
		o.From(path, p)
		if o.Member != nil {
			sampling := ensemble.FromSampling(flags.Sampling(c), 0).Sampling()
			o.Sampling = &sampling
		}
	}
	if o.Sampling != nil && o.Sampling.Scale == 0 && o.Sampling.Covariance != ensemble.Iterates {
		kind = ensemble.ModelSWA
	}
	return kind, o, apply, nil
}

// exportCheckpoint writes --checkpoint as a model, without a posterior. The model is the template with the checkpoint's
// weights.
func (a *app) exportCheckpoint(c *cli.Context, out *modelOutput) error {
	for _, flag := range []string{"template", "checkpoint"} {
		if c.String(flag) == "" {
			return flags.Usagef("swagwrap export --help shows an example", "no POSTERIOR or ENSEMBLE: want --template and --checkpoint in its place")
		}
	}
	if err := flags.Refuse(c, "", "--* needs a POSTERIOR or ENSEMBLE", append(ofPosteriors, "member", "posterior")...); err != nil {
		return err
	}
	if err := flags.Refuse(c, "", "--* is for an ENSEMBLE", ofEnsembles...); err != nil {
		return err
	}
	source, err := inputs.OpenSource(c, nil)
	if err != nil {
		return err
	}
	defer source.Close()
	models, err := source.Open([]string{c.String("checkpoint")})
	if err != nil {
		return err
	}
	defer inputs.CloseModels(models)
	if err := checkpoints.Sound(models[0]); err != nil {
		return flags.BadInput(err)
	}
	none := &weights.Layout{}
	t, err := onnxio.NewExportTemplate(models[0], none)
	if err == nil {
		err = t.Write(filepath.Base(out.path), out.create, none, weights.Slice{}, weights.Slice{})
	}
	if err != nil {
		return flags.BadInput(err) // files being written have their own error
	}
	notes, warnings := source.Remarks()
	for _, note := range notes {
		a.Logf(c, "%s", note)
	}
	for _, w := range warnings {
		a.Warnf(c, "%s", w)
	}
	return out.commit(nil)
}

// modelOutput is a model with its data files, written to one folder.
type modelOutput struct {
	*flags.Env
	path   string
	force  bool
	files  []*flags.Output
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
		if flags.IsStdout(m.path) {
			return nil, flags.Usagef("name a file: -o model.onnx", "%s: the model's data is in a file next to it, %s, and standard output is one file", m.path, name)
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
func (m *modelOutput) createData(path string, force, _ bool) (*flags.Output, error) {
	return flags.CreateCompanion(path, force, kind.DataOf(m.path))
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

// commit puts the files in their places, the model last, and then calls check, which may be nil. If check fails, the
// files are removed.
func (m *modelOutput) commit(check func() error) error {
	for _, w := range m.buffer {
		if err := w.Flush(); err != nil {
			return flags.BadOutput(err)
		}
	}
	return flags.Together{Check: check}.Commit(m.files...)
}

func (m *modelOutput) abort() {
	for _, out := range m.files {
		out.Abort()
	}
}

// member returns member --member of the ensemble at path. It opens only the member's own posterior.
func (a *app) member(c *cli.Context, path string) (*infer.Network, weights.Vector, weights.Vector, error) {
	e, err := a.openEnsemble(c, path)
	if err != nil {
		return nil, nil, nil, err
	}
	k := c.Int("member")
	if k >= e.Members() {
		return nil, nil, nil, flags.Usagef("members are counted from 0", "--member %d: %s has %s", k, path, report.Plural(e.Members(), "member"))
	}
	switch {
	case e.Calibration != nil && e.Members() > 1:
		a.Warnf(c, "%s: its calibration is for the members' average, and is not in the exported member", path)
	case e.Calibration != nil:
		a.Warnf(c, "%s: its calibration, %s, is not in the graph of the exported member. Apply it to the scores: it is in the metadata", path, e.Calibration)
	}
	component, _ := e.Find(k)
	n, err := a.openComponent(c, e, component)
	if err != nil {
		return nil, nil, nil, err
	}
	parameters, statistics, err := e.Member(c.Context, k, n)
	return n, parameters, statistics, flags.BadInput(err)
}

// fromPosterior returns SWA, a member, or the weights of --checkpoint.
func (a *app) fromPosterior(c *cli.Context, path string) (*infer.Network, weights.Vector, weights.Vector, error) {
	n, err := a.OpenNetwork(c, path)
	if err != nil {
		return nil, nil, nil, err
	}
	if checkpoint := c.String("checkpoint"); checkpoint != "" {
		source, err := inputs.OpenSource(c, n.Template())
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
		return n, parameters, statistics, flags.BadInput(err)
	}
	opts, k := swag.SampleOptions{}, 0 // scale 0 is SWA
	if c.IsSet("member") {
		opts = flags.Sampling(c)
		k = c.Int("member")
	}
	if opts.Scale > 0 {
		if err := inputs.RefuseSingle(n.Posterior); err != nil {
			return n, nil, nil, err
		}
	}
	s, err := swag.NewSampler(n.Posterior, opts)
	if err != nil {
		return n, nil, nil, flags.Usagef("", "%w", err)
	}
	parameters := s.Vector(c.Context, k) // drawn while they are written
	bn, err := a.OpenBatchNorm(c, []*infer.Network{n}, true)
	if err != nil {
		return n, nil, nil, err
	}
	engine := &infer.Engine{}
	if n.Recomputes() || bn.Data != nil {
		if engine, err = a.Engine(c); err != nil {
			return n, nil, nil, err
		}
	}
	if err := a.CheckStudy(c, engine, bn, nil, nil, ""); err != nil {
		return n, nil, nil, err
	}
	if err := a.ChooseSampleSize(c, engine, bn, opts); err != nil {
		return n, nil, nil, err
	}
	draws := batchnorm.Draws{Engine: engine, Network: n, BatchNorm: bn.Training, How: opts, Count: 1}
	if opts.Scale > 0 {
		draws.Count = 2
	}
	if _, err := a.checkPasses(c, draws); err != nil {
		return n, nil, nil, err
	}
	result, err := batchnorm.Recompute(c.Context, engine, n, parameters, bn.Training)
	if err != nil {
		return n, nil, nil, flags.BadInput(err)
	}
	return n, parameters, weights.Slice(result.Statistics), nil
}

// ensembleFlags control the export of an ensemble as one model.
var ensembleFlags = []cli.Flag{
	&cli.StringFlag{Name: "members", Usage: "take the members `LIST` of the ensemble, such as 0-9", DefaultText: "all"},
	flags.Parsed(&cli.StringFlag{Name: "storage", Usage: "store weights as `S`: f32, or int8 with each member's deviations in 8 bits; external, or int8,external, puts them into a file next to the model", Value: "f32"}, func(s string) (fused.Storage, error) {
		storage, _, err := parseStorage(s)
		return storage, err
	}),
	&cli.BoolFlag{Name: "with-preprocessing", Usage: "take 8-bit pixels of the network's size, [batch, height, width, channels], and normalise them in the model"},
	&cli.StringFlag{Name: "check", Usage: "run `DATA` through the model and through the members, and say how much they differ"},
}

// ofEnsembles and ofPosteriors are flags that apply only to an ensemble or a posterior.
var (
	ofEnsembles  = []string{"members", "storage", "with-preprocessing", "check"}
	ofPosteriors = []string{"seed", "scale", "rank", "antithetic", "bn", "bn-data"}
)

// storages are the words of --storage.
var storages = []string{fused.Float32: "f32", fused.Int8: "int8"}

func parseStorage(s string) (storage fused.Storage, external bool, err error) {
	for w := range strings.SplitSeq(s, ",") {
		if w == "external" {
			external = true
			continue
		}
		i := slices.Index(storages, w)
		if i < 0 {
			return storage, external, word.Check(w, append(slices.Clone(storages), "external")...)
		}
		storage = fused.Storage(i)
	}
	return storage, external, nil
}

func (a *app) exportEnsemble(c *cli.Context, out *modelOutput, path string) error {
	e, err := a.openEnsemble(c, path) // open it first: a damaged posterior must be reported as damaged
	if err != nil {
		return err
	}
	err = flags.Refuse(c, "", "--* is for a POSTERIOR: the members of "+path+" are drawn", append(ofPosteriors, "checkpoint", "template")...)
	if err != nil {
		return err
	}
	if c.IsSet("check") && flags.IsStdout(out.path) {
		return flags.Usagef("name a file: -o model.onnx", "--check reads the model again, and it goes to standard output")
	}
	storage, external, _ := parseStorage(c.String("storage")) // the flag was checked
	j := &ensemble.Fused{Ensemble: e, Members: e.All(), Pixels: c.Bool("with-preprocessing"), Storage: storage, External: external,
		Producer: "swagwrap", Version: flags.Version()}
	if c.IsSet("members") {
		if j.Members, err = ensemble.ParseRanges(c.String("members"), e.Members()); err != nil {
			return flags.Usagef("members are counted from 0", "--members %w", err)
		}
		if len(j.Members) < e.Members() && e.Calibration != nil {
			a.Warnf(c, "%s: its calibration was fitted to all %d members", path, e.Members())
		}
	}
	j.Networks, err = a.components(c, e)
	defer closeNetworks(j.Networks)
	if err != nil {
		return err
	}
	var engine *infer.Engine
	unknown := slices.ContainsFunc(j.Networks, (*infer.Network).Undecided)
	if j.Needs() || unknown || c.IsSet("check") {
		if engine, err = a.Engine(c); err != nil {
			return err
		}
	}
	data, err := a.openCheck(c, engine, j)
	if err != nil {
		return err
	}
	return a.writeFused(c, j, engine, out, data)
}

// openCheck opens the data of --check. It decides the form of the scores, on noise if there is no data.
func (a *app) openCheck(c *cli.Context, engine *infer.Engine, j *ensemble.Fused) (dataset.Dataset, error) {
	path, e := c.String("check"), j.Ensemble
	if path == "" {
		return nil, a.checkOnNoise(c, engine, j.Networks)
	}
	data, err := inputs.OpenData(c, path, "", j.Networks[0])
	if err != nil {
		return nil, err
	}
	if err := batchOf(engine, e); err != nil {
		return nil, err
	}
	_, err = a.CheckIntake(c, engine, inputs.Intake{Networks: j.Networks, Data: data, Path: path, Trained: e.Components[0].Intake})
	return data, err
}

// checkOnNoise decides the form of scores if nothing is recorded about it. Rows of probabilities add up to 1 for any
// input.
func (a *app) checkOnNoise(c *cli.Context, e *infer.Engine, networks []*infer.Network) error {
	for _, n := range networks {
		if !n.Undecided() {
			continue
		}
		noise, err := infer.NewNoise(n, intake.Examples)
		if err != nil {
			return flags.BadInput(fmt.Errorf("%s: %w", n.Posterior.Path, err), "give examples: --check DATA, or say what the scores are: --scores logits|probabilities|log-probabilities")
		}
		if _, err := a.CheckIntake(c, e, inputs.Intake{Networks: []*infer.Network{n}, Data: noise, Path: "noise", Noise: true}); err != nil {
			return err
		}
	}
	return nil
}

// writeFused writes the model, and prints its size. It runs data through it, if that is not nil.
func (a *app) writeFused(c *cli.Context, j *ensemble.Fused, engine *infer.Engine, out *modelOutput, data dataset.Dataset) error {
	m, err := j.Model(c.Context, engine)
	if err != nil {
		return flags.BadInput(err)
	}
	name := filepath.Base(out.path)
	model, size, err := m.Size(name)
	if err == nil && model > fused.Largest {
		m.External()
		model, size, err = m.Size(name)
	}
	if err != nil {
		return flags.BadInput(err)
	}
	if err := j.Write(c.Context, m, name, out.create, c.Int("threads")); err != nil {
		return flags.BadInput(err) // files being written have their own error
	}
	var d ensemble.Difference
	var check func() error
	if data != nil {
		check = func() (err error) {
			d, err = j.Check(c.Context, engine, out.path, data)
			return flags.BadInput(err)
		}
	}
	if err := out.commit(check); err != nil {
		return err
	}
	a.Logf(c, "%s: %s, %.1f MB", out.path, report.Plural(len(j.Members), "member"), float64(model+size)/1e6)
	switch {
	case data == nil:
	case task.Numeric(j.Ensemble.Card.Task):
		a.Logf(c, "%s: on %s no mean or standard deviation is further than %.2g from that of the members themselves, in the targets' units",
			out.path, report.Plural(d.Examples, "example"), d.Largest)
	default:
		a.Logf(c, "%s: on %s no probability is further than %.2g from that of the members themselves, and %d of the predictions are others",
			out.path, report.Plural(d.Examples, "example"), d.Largest, d.Changed)
	}
	a.Next(c, study.Shell("swagwrap", "inspect", out.path))
	return nil
}
