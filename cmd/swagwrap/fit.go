package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/internal/truth"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) fitCommand() *cli.Command {
	return &cli.Command{
		Name:      "fit",
		Usage:     "build the posterior from checkpoints",
		ArgsUsage: "CKPT...",
		Description: `Reads SGD checkpoints of one network, saved at a constant learning rate, and writes the SWAG posterior: the mean of
the weights, their variance, and the deviations of the last K checkpoints.

One checkpoint is enough to begin. It has no spread, so there is no SWA and no SWAG, but compare, calibrate, ood and export
take it like any other posterior.

   swagwrap fit --task classes -o posterior.safetensors --template model.onnx checkpoints/*.pt
   swagwrap fit --task classes -o posterior.safetensors checkpoints/*.onnx

PyTorch's files (.pt, .pth, .ckpt, .safetensors, folders of Hugging Face) need --template: the network, exported once with the
weights of one of them. It shows which tensor is which. ONNX files need nothing else.
A folder stands for the checkpoints in it. Their order is that of the steps or epochs stored in them, or else of the
numbers in their names.

If training went on, --extend takes the older posterior and the new checkpoints:

   swagwrap fit -o new.safetensors --extend posterior.safetensors checkpoints/epoch-3?.onnx

--mean takes an average that training made, over all batches or as an EMA. The checkpoints then show the spread about it.
Its batch-norm statistics are not used.

   swagwrap fit --task classes -o posterior.safetensors --template model.onnx --mean average.pt checkpoints

The file also holds the network's graph, so that nothing else is needed to draw members. With --reference-checkpoints it is a
tenth as large, and reads the checkpoints, which must then stay where they are.`,
		Flags: flags.Join(flags.OutputFlags, []cli.Flag{
			flags.RankFlag(&cli.IntFlag{
				Name:  "rank",
				Usage: "keep the deviations of the last `K` checkpoints; 0 keeps none (SWAG-Diagonal)",
				Value: swag.DefaultRank,
			}),
			flags.OneOf(&cli.StringFlag{
				Name: "deviations",
				Usage: "take them from the `running` mean, as the paper does; from the final mean, the best K of all; or as the " +
					"authors' code does, in float32: running|final|reference",
				Value: string(swag.Running),
			},
				string(swag.Running), string(swag.Final), reference),
			&cli.StringFlag{
				Name: "mean",
				Usage: "take the mean of SWA from `FILE`, an average that training made, such as an AveragedModel or an EMA. KEY=FILE " +
					"says under which key it is",
			},
			&cli.StringFlag{Name: "theta0", Usage: "count the pre-trained network in `FILE` as one model, as the paper's Algorithm 1 does"},
		}, flags.TemplateFlags, flags.CardFlags, flags.OrderFlags, []cli.Flag{
			&cli.StringFlag{Name: "extend", Usage: "go on from the posterior in `FILE`, with its settings"},
			&cli.BoolFlag{Name: "reference-checkpoints", Usage: "leave the deviations in the checkpoints instead of storing them"},
			&cli.StringSliceFlag{
				Name: "role",
				Usage: "`NAME=parameter` averages and samples a tensor. NAME=buffer does not, and members have the last " +
					"checkpoint's. * stands for any text. May be given several times",
				DefaultText: "chosen automatically; inspect lists the roles",
			},
			&cli.StringFlag{
				Name: "reference",
				Usage: "compare with what the training framework computed, from `FILE`. By itself swagwrap-reference.npz is found beside " +
					"the checkpoints",
			},
			flags.OneOf(&cli.StringFlag{
				Name:  "parity",
				Usage: "compare with reference outputs if they are there: `on`|off. off goes on without, and the model card says so",
				Value: "on",
			}, "on", "off"),
			flags.AllowFlag("folded", "go on although batch norm was folded into the weights"),
			flags.ThreadsFlag,
		}),
		Action: with(readFit, a.fit),
	}
}

// fitOptions are the values of fit's command line.
type fitOptions struct {
	output flags.Output
	files  open.FitOptions
	how    swag.FitOptions
}

func (a *app) fit(ctx context.Context, o fitOptions) error {
	opts := o.how
	of, err := a.CheckpointOrder(o.files)
	if err != nil {
		return err
	}
	defer of.Close()
	out, err := a.CreateResult(o.output.Path, o.output.Force, false)
	if err != nil {
		return err
	}
	defer out.Abort()

	in, err := a.OpenFit(ctx, o.files, of, &opts)
	if err != nil {
		return err
	}
	defer in.Close()
	bar, last := open.Progress(&console.Bar{}), int64(0)
	opts.Progress = func(done, total int64) {
		if last == 0 {
			bar = a.ProgressBytes(ctx, "fit", total)
		}
		bar.Add(int(done - last))
		last = done
	}
	err = swag.Fit(ctx, out, in.Input, opts)
	bar.Done()
	if errors.As(err, new(*weights.ImplausibleError)) {
		return console.BadInput(err, checkpoints.Diverged)
	}
	if err != nil {
		return console.BadInput(err)
	}
	next, err := a.describeFit(o.files.Card, out)
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	a.Next(next)
	return nil
}

// reference is the word of --deviations for the authors' code.
const reference = "reference"

func readFit(c *cli.Context) (o fitOptions, err error) {
	o.output = flags.ReadOutput(c)
	o.files = open.FitOptions{
		Checkpoints: c.Args().Slice(),
		AsGiven:     c.String("order") == "given",
		Output:      o.output.Path,
		Extend:      c.String("extend"),
		Theta0:      c.String("theta0"),
		Mean:        c.String("mean"),
		Averages:    open.Averages(c.String("averages")),
		Folded:      flags.Allows(c, "folded"),
		Spread:      flags.FirstOf(c, "deviations", "reference-checkpoints"),
		Source:      flags.ReadSource(c),
		Parity: open.ParityOptions{File: c.String("reference"), Off: c.String("parity") == "off",
			Runtime: open.RuntimeOptions{Provider: ort.Provider{Name: ort.CPU, Precision: ort.F32}}},
	}
	if o.files.Card, err = flags.ReadCard(c); err != nil {
		return o, err
	}
	if o.files.Network, err = flags.ReadNetwork(c); err != nil {
		return o, err
	}
	o.how, o.files.Roles, err = readHow(c)
	return o, err
}

// readHow reads how deviations are taken, and the roles of tensors.
func readHow(c *cli.Context) (opts swag.FitOptions, roles []checkpoints.RoleRule, err error) {
	deviations := swag.Deviations(c.String("deviations"))
	if deviations == reference {
		deviations = swag.Running
	}
	opts = swag.FitOptions{Rank: c.Int("rank"), DiagOnly: c.Int("rank") == 0, Deviations: deviations,
		Reference: c.String("deviations") == reference, ReferToCheckpoints: c.Bool("reference-checkpoints"),
		Roles: c.StringSlice("role"), Workers: c.Int("threads"), Producer: console.Producer(), Health: trajectory.Describe}
	switch {
	case c.IsSet("extend"):
		return opts, nil, flags.Refuse(c, "fit a new posterior to choose anew", "--*: --extend takes it from the older posterior", "rank",
			"mean", "deviations", "theta0", "reference-checkpoints", "role")
	case c.IsSet("mean"):
		if err := flags.Refuse(c, "leave it out, or leave out --mean", "--mean and --*: deviations are from the mean that is given",
			"deviations", "theta0", "reference-checkpoints"); err != nil {
			return opts, nil, err
		}
	}
	if opts.Reference && opts.ReferToCheckpoints {
		return opts, nil, console.Usagef("", "--deviations reference: the authors' code has no --reference-checkpoints")
	}
	for _, text := range opts.Roles {
		rule, err := checkpoints.ParseRoleRule(text)
		if err != nil {
			return opts, nil, console.Usagef("NAME is a tensor's, as inspect lists them; quote a * for the shell", "--role %w", err)
		}
		roles = append(roles, rule)
	}
	return opts, roles, nil
}

// describeTargets prints the targets that --targets found. It fails if their number differs from that of the
// network's targets.
func (a *app) describeTargets(path string, t *swag.Targets, n *infer.Network) error {
	if path == "" {
		return nil
	}
	if known := n.Known(); known != nil {
		if err := known.CheckLabel(truth.Truth{Values: t.Mean, Width: len(t.Mean)}); err != nil {
			return console.BadInput(fmt.Errorf("%s: %w", path, err))
		}
	}
	for k, mean := range t.Mean {
		a.Logf("%s: target %d has mean %.6g and standard deviation %.6g", path, k, mean, t.Std[k])
	}
	return nil
}

// describeFit prints the properties of the new posterior, before the file gets its name. It fails if no command can use
// the posterior. It returns the command to run next.
func (a *app) describeFit(card open.CardOptions, out *console.Output) (next string, err error) {
	p, err := swag.Open(out.Name())
	if err != nil {
		return "", err
	}
	defer p.Close()
	p.Path = out.Path
	network, err := infer.NewNetwork(p, infer.RecomputeTrained, "")
	if err != nil {
		return "", console.BadInput(err)
	}
	gives, err := network.Gives()
	if err != nil {
		return "", console.BadInput(err)
	}
	if network.Scoreless() {
		names, _ := network.Outputs()
		gives = "outputs without a meaning here: " + first(names)
	}
	if err := a.describeTargets(card.Targets.File, p.Card.Targets, network); err != nil {
		return "", err
	}
	size, _ := out.Seek(0, io.SeekEnd)
	a.Logf("%s: %s, %s", p.Path, describePosterior(p), report.Bytes(size))
	a.Logf("takes %s", network.Takes())
	a.Logf("gives %s", gives)
	if !p.Single() {
		var paths []string
		for _, ck := range p.Checkpoints {
			paths = append(paths, ck.Path)
		}
		a.logOrder(paths)
	}
	for _, w := range append(diagnosis.Unread(network.Skeleton()), p.Warnings...) {
		a.Warnf("%s", w)
	}
	health, err := diagnosis.Trajectory(p, a.Messages())
	if err != nil {
		return "", console.BadInput(err)
	}
	for _, line := range health {
		a.Logf("%s", line)
	}
	switch kept := len(network.Kept()); {
	case kept > 0 && p.Single():
		a.Logf("batch-norm layers: %d. The statistics in the checkpoint belong to its weights, and are kept", kept)
	case kept > 0:
		a.Logf("batch-norm layers with the same statistics in all checkpoints: %d. They were frozen in training, and are kept", kept)
	}
	command := []string{"swagwrap", "compare", "--val", "VAL", out.Path, "TEST"}
	if network.Scoreless() {
		command = []string{"swagwrap", "export", "-o", "swa.onnx", out.Path}
	}
	if layers := network.Layers(); layers > 0 {
		command = slices.Insert(command, 2, "--bn-data", "TRAIN")
		a.Logf("batch-norm layers: %d. Every member needs statistics of its own: --bn-data of sample, compare and export", layers)
		if p.Card.Augment == "" && network.TakesPictures() && a.Shown == nil { // try goes on with the data, and compare tells
			a.Logf("if training augmented its images, say how: fit --augment. Or --bn-data of the next command takes what the training " +
				"loader yields")
		}
	} else if p.Single() && !network.Scoreless() {
		a.Logf("compare --bn-data TRAIN adds the Laplace approximation of the last layer of a classifier")
	}
	return console.Shell(command...), nil
}

// describePosterior says what a posterior is made from.
func describePosterior(p *swag.Posterior) string {
	weights, o := report.Thousands(int(p.Len())), p.Options
	if p.Single() {
		return fmt.Sprintf("one network of %s weights, %s", weights, p.Checkpoints[0].Path)
	}
	what := fmt.Sprintf("rank %d", o.Columns)
	switch {
	case o.Rank == 0:
		what = "diagonal only"
	case o.Deviations == swag.Final:
		what += " of all deviations from the final mean"
	case o.Compat != "":
		what += ", as the authors' code"
	}
	if o.Theta0 {
		what += ", θ0 counted"
	}
	if m := p.GivenMean; m != nil {
		what += ", mean from " + m.Path
		if m.StateDict != "" {
			what += ", " + m.StateDict
		}
	}
	if o.Referenced {
		what += ", deviations left in the checkpoints"
	}
	return fmt.Sprintf("posterior over %s weights from %d checkpoints (%s)", weights, len(p.Checkpoints), what)
}

// listed is the largest number of checkpoints that are named one by one.
const listed = 40

// logOrder prints the order of the checkpoints. It prints the common part of their names once, and then the parts that
// differ.
func (a *app) logOrder(paths []string) {
	prefix, parts, suffix := open.TellApart(paths)
	if len(parts) > listed && !a.Verbose {
		parts = slices.Concat(parts[:listed/2], []string{"…"}, parts[len(parts)-listed/2:])
	}
	for _, line := range a.Messages().Hang("order: ", prefix+"{"+strings.Join(parts, " ")+"}"+suffix) {
		a.Logf("%s", line)
	}
}
