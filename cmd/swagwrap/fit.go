package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
)

func fitCommand(a *app) *command {
	o := &fitOptions{app: a}
	return &command{
		name:  "fit",
		usage: "build the posterior from checkpoints",
		args:  "CKPT...",
		description: `Reads SGD checkpoints of one network, saved at a constant learning rate, and writes the SWAG posterior: the mean of
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

If validation data prefer an average of fewer checkpoints, or one in which the last ones weigh more, compare prints the command. It
takes the older posterior in the place of its checkpoints:

   swagwrap fit --last 5 -o new.safetensors posterior.safetensors
   swagwrap fit --mean t^4 -o new.safetensors posterior.safetensors

--mean also takes an average that training made, over all batches or as an EMA. The checkpoints then show the spread about it.
Its batch-norm statistics are not used.

   swagwrap fit --task classes -o posterior.safetensors --template model.onnx --mean average.pt checkpoints

The file also holds the network's graph, so that nothing else is needed to draw members. With --reference-checkpoints it is a
tenth as large, and reads the checkpoints, which must then stay where they are.`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.files.Checkpoints = args
			if err := o.refit(); err != nil {
				return err
			}
			return o.fit(ctx)
		},
	}
}

// fitOptions are the values of fit's command line.
type fitOptions struct {
	*app
	flags.Table
	output flags.OutputOptions
	files  open.FitOptions
	how    swag.FitOptions
}

// refit takes the checkpoints, the settings and the model card of a posterior, if one is given in the place of checkpoints and
// another average of them is wanted.
func (o *fitOptions) refit() error {
	if args := o.files.Checkpoints; len(args) == 1 && (o.Is("last") || o.files.GivenPower) && kind.Detect(args[0]) == kind.Posterior {
		o.files.Checkpoints, o.files.Extend, o.files.Refit = nil, args[0], true
		if o.files.Mean != "" {
			return console.Usagef("give the checkpoints", "--mean %s: its place is in a new posterior", o.files.Mean)
		}
		return o.Refuse("refit", "fit a new posterior of the checkpoints to choose anew", "--*: "+args[0]+" has chosen")
	}
	return nil
}

func (o *fitOptions) fit(ctx context.Context) error {
	opts := o.how
	of, err := o.CheckpointOrder(o.files)
	if err != nil {
		return err
	}
	defer of.Close()
	out, err := o.CreateResult(o.output.Path, o.output.Force, false)
	if err != nil {
		return err
	}
	defer out.Abort()
	if o.files.NoGraph {
		return o.average(of, out)
	}
	in, err := o.OpenFit(ctx, o.files, of, &opts)
	if err != nil {
		return err
	}
	defer in.Close()
	bar, last := open.Progress(&console.Bar{}), int64(0)
	opts.Progress = func(done, total int64) {
		if last == 0 {
			bar = o.ProgressBytes(ctx, "fit", total)
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
	next, err := o.describeFit(o.files.Card, out)
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	o.Next(next)
	return nil
}

// average writes the average of the weights alone.
func (o *fitOptions) average(of *open.Ordered, out *console.Output) error {
	w, err := open.OpenWeightsMean(o.Opener, o.files, of)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Write(newBuffered(out), console.Producer()); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	o.Logf("%s: SWA, the average of %d checkpoints, under the names of %s. It has no graph, so it is no posterior", out.Path, len(w.Paths),
		w.Paths[len(w.Paths)-1])
	o.logOrder(w.Paths)
	if n := len(w.Moved); n > 0 {
		o.Logf("batch norm: the %d statistics that training moved are the last checkpoint's, and do not go with the average. "+
			"swagwrap.average(model, checkpoints, loader, graph=False) in Python computes new ones", n)
	}
	return nil
}

// withoutGraph are the flags that --no-graph goes with.
var withoutGraph = []string{"output", "force", "no-graph", "state-dict", "order", "averages", "quiet", "verbose"}

// refuseGraph refuses the flags that need the network's graph.
func (o *fitOptions) refuseGraph() error {
	for _, r := range o.Table {
		if o.files.NoGraph && r.IsSet() && !slices.Contains(withoutGraph, r.Name) {
			return console.Usagef("leave it out, or leave out --no-graph", "--no-graph and --%s: an average of weights has no graph",
				r.Name)
		}
	}
	if ext := filepath.Ext(o.output.Path); o.files.NoGraph && ext != ".safetensors" {
		return console.Usagef("-o NAME.safetensors", "%s: --no-graph writes weights as safetensors", o.output.Path)
	}
	return nil
}

// authors is the word of --deviations for the authors' code.
const authors = "reference"

func (o *fitOptions) rows() flags.Table {
	o.how = swag.FitOptions{Producer: console.Producer(), Health: trajectory.Describe}
	o.Table = flags.Join(flags.Output(&o.output), flags.Table{
		flags.Rank(flags.Row{
			Usage:   "keep the deviations of the last `K` checkpoints; 0 keeps none (SWAG-Diagonal)",
			Default: strconv.Itoa(swag.DefaultRank),
			Not:     "extend refit",
		}, &o.how.Rank),
		flags.Parsed(flags.Row{
			Name: "deviations",
			Usage: "take them from the running mean, as the paper does; from the final mean, the best K of all; or as the " +
				"authors' code does, in float32: running|final|reference",
			Default: string(swag.Running),
			Not:     "extend refit mean spread",
		}, &o.how.Deviations, func(s string) (swag.Deviations, error) {
			if o.how.Reference = s == authors; o.how.Reference {
				return swag.Running, nil
			}
			return swag.Deviations(s), word.Check(s, string(swag.Running), string(swag.Final), authors)
		}),
		flags.Text(flags.Row{
			Name: "mean",
			Usage: "take the mean of SWA from `FILE`, an average that training made, such as an AveragedModel or an EMA. KEY=FILE " +
				"says under which key it is. t^4 weighs the checkpoints by the fourth power of time, as post-hoc EMA does",
			Not: "extend",
		}, &o.files.Mean),
		flags.Text(flags.Row{
			Name:  "theta0",
			Usage: "count the pre-trained network in `FILE` as one model, as the paper's Algorithm 1 does",
			Not:   "extend refit mean",
		}, &o.files.Theta0),
	}, flags.Template(&o.files.Source), flags.Card(&o.files.Card), flags.Order(&o.files), flags.Table{
		flags.Text(flags.Row{
			Name:  "extend",
			Usage: "go on from the posterior in `FILE`, with its settings",
			Then:  o.complete,
		}, &o.files.Extend),
		flags.Bool(flags.Row{
			Name:  "reference-checkpoints",
			Usage: "leave the deviations in the checkpoints instead of storing them",
			Not:   "extend refit mean spread",
		}, &o.how.ReferToCheckpoints),
		flags.Repeated(flags.Row{
			Name: "role",
			Usage: "`NAME=ROLE`: parameter averages and samples the tensor NAME. buffer does not, and members have the last " +
				"checkpoint's. * stands for any text. May be given several times",
			Preset: "chosen automatically; inspect lists the roles",
			Hint:   "NAME is a tensor's, as inspect lists them; quote a * for the shell",
			Not:    "extend refit",
		}, func(s string) error {
			rule, err := checkpoints.ParseRoleRule(s)
			o.how.Roles, o.files.Roles = append(o.how.Roles, s), append(o.files.Roles, rule)
			return err
		}),
		flags.Text(flags.Row{
			Name: "reference",
			Usage: "compare with what the training framework computed, from `FILE`. By itself swagwrap-reference.npz is found beside " +
				"the checkpoints",
		}, &o.files.Parity.File),
		flags.Parsed(flags.Row{
			Name:    "parity",
			Usage:   "compare with reference outputs if they are there: on|off. off goes on without, and the model card says so",
			Default: "on",
		}, &o.files.Parity.Off, func(s string) (off bool, err error) { return s == "off", word.Check(s, "on", "off") }),
		flags.Bool(flags.Row{
			Name: "no-graph",
			Usage: "write only the average of the weights, as safetensors with the checkpoints' own names: for networks that no exporter " +
				"takes. It is no posterior",
		}, &o.files.NoGraph),
		flags.Allow(&o.files.Folded, "folded", "go on although batch norm was folded into the weights"),
		flags.Threads(&o.how.Workers),
	})
	return o.Table
}

// almostPower matches what somebody may type for t^4.
var almostPower = regexp.MustCompile(`^[tT][*^]*[0-9]+$`)

// rises reads --mean t^P.
func (o *fitOptions) rises() error {
	text, ok := strings.CutPrefix(o.files.Mean, "t^")
	if !ok {
		if _, err := os.Stat(o.files.Mean); err != nil && almostPower.MatchString(o.files.Mean) {
			return console.Usagef("--mean t^4", "--mean %s: no such file, and weights that rise are t^0 to t^%d", o.files.Mean,
				swag.MaxPower)
		}
		return nil
	}
	power, err := strconv.Atoi(text)
	if err != nil || power < 0 || power > swag.MaxPower {
		return console.Usagef("t^4, or the name of a file", "--mean %s: want t^0 to t^%d", o.files.Mean, swag.MaxPower)
	}
	o.how.Power, o.files.GivenPower, o.files.Mean = power, true, ""
	o.files.Spread = "--mean"
	return nil
}

// complete completes the options, and refuses those that contradict each other.
func (o *fitOptions) complete() error {
	if err := o.refuseGraph(); err != nil {
		return err
	}
	if err := o.rises(); err != nil {
		return err
	}
	o.how.DiagOnly = o.how.Rank == 0
	o.files.Output, o.files.Spread = o.output.Path, cmp.Or(o.First("spread"), o.files.Spread)
	o.files.Network = open.NetworkOptions{
		Scores:     o.files.Card.Scores,
		Output:     o.files.Card.Output,
		Statistics: infer.RecomputeTrained,
	}
	switch {
	case o.Is("extend"):
		return o.Refuse("extend", "fit a new posterior to choose anew", "--*: --extend takes it from the older posterior")
	case o.how.Reference && o.how.ReferToCheckpoints:
		return console.Usagef("", "--deviations reference: the authors' code has no --reference-checkpoints")
	case o.how.Power > 0 && (o.how.Reference || o.how.Deviations == swag.Final):
		return console.Usagef("leave out one of both", "--mean t^%d goes with deviations from the running mean, not with --deviations %s",
			o.how.Power, o.Words("deviations")[1])
	case o.files.Mean != "":
		return o.Refuse("mean", "leave it out, or leave out --mean", "--mean and --*: deviations are from the mean that is given")
	}
	return nil
}

// describeTargets prints the targets that --targets found. It fails if their number differs from that of the
// network's targets.
func (o *fitOptions) describeTargets(path string, t *swag.Targets, n *infer.Network) error {
	if path == "" {
		return nil
	}
	if known := n.Known(); known != nil {
		if err := known.CheckLabel(target.Target{Values: t.Mean, Width: len(t.Mean)}); err != nil {
			return console.BadInput(fmt.Errorf("%s: %w", path, err))
		}
	}
	for k, mean := range t.Mean {
		o.Logf("%s: target %d has mean %.6g and standard deviation %.6g", path, k, mean, t.Std[k])
	}
	return nil
}

// describeFit prints the properties of the new posterior, before the file gets its name. It fails if no command can use
// the posterior. It returns the command to run next.
func (o *fitOptions) describeFit(card open.CardOptions, out *console.Output) (next string, err error) {
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
	if err := o.describeTargets(card.Targets.File, p.Card.Targets, network); err != nil {
		return "", err
	}
	size, _ := out.Seek(0, io.SeekEnd)
	name, trial := p.Path+": ", o.Shown != nil
	if trial { // whose results are in one folder
		name = ""
	}
	o.Logf("%s%s, %s", name, describePosterior(p), report.Bytes(size))
	o.Logf("takes %s", network.Takes())
	o.Logf("gives %s", gives)
	if !p.Single() {
		var paths []string
		for _, ck := range p.Checkpoints {
			paths = append(paths, ck.Path)
		}
		o.logOrder(paths)
	}
	for _, w := range append(diagnosis.Unread(network.Skeleton()), p.Warnings...) {
		o.Warnf("%s", w)
	}
	describe := diagnosis.Summary
	if o.Verbose {
		describe = diagnosis.Trajectory
	}
	health, err := describe(p, o.Messages())
	if err != nil {
		return "", console.BadInput(err)
	}
	for _, line := range health {
		o.Logf("%s", line)
	}
	switch kept := len(network.Kept()); {
	case kept > 0 && p.Single():
		o.Logf("batch-norm layers: %d. The statistics in the checkpoint belong to its weights, and are kept", kept)
	case kept > 0:
		o.Logf("batch-norm layers with the same statistics in all checkpoints: %d. They were frozen in training, and are kept", kept)
	}
	command := []string{"swagwrap", "compare", "--val", "VAL", out.Path, "TEST"}
	if network.Scoreless() {
		command = []string{"swagwrap", "export", "-o", "swa.onnx", out.Path}
	}
	if layers := network.Layers(); layers > 0 {
		command = slices.Insert(command, 2, "--bn-data", "TRAIN")
		if !trial { // which goes on with the data, and compare tells
			o.Logf("batch-norm layers: %d. Every member needs statistics of its own: --bn-data of sample, compare and export", layers)
		}
		if p.Card.Augment == "" && network.TakesPictures() && !trial {
			o.Logf("if training augmented its images, say how: fit --augment. Or --bn-data of the next command takes what the training " +
				"loader yields")
		}
	} else if p.Single() && !network.Scoreless() {
		o.Logf("compare --bn-data TRAIN adds the Laplace approximation of the last layer of a classifier")
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
	if o.Power > 0 {
		what += fmt.Sprintf(", weights rise as t^%d", o.Power)
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
func (o *fitOptions) logOrder(paths []string) {
	prefix, parts, suffix := open.CommonAffixes(paths)
	switch {
	case o.Verbose:
	case len(parts) > 8 && stepwise(parts):
		parts = []string{parts[0], parts[1], "…", parts[len(parts)-1]}
	case len(parts) > listed:
		parts = slices.Concat(parts[:listed/2], []string{"…"}, parts[len(parts)-listed/2:])
	}
	for _, line := range o.Messages().Hang("order: ", prefix+"{"+strings.Join(parts, " ")+"}"+suffix) {
		o.Logf("%s", line)
	}
}

// stepwise reports whether numbers rise by equal steps.
func stepwise(numbers []string) bool {
	var all []int
	for i, text := range numbers {
		n, err := strconv.Atoi(text)
		if all = append(all, n); err != nil || i > 1 && n-all[i-1] != all[1]-all[0] {
			return false
		}
	}
	return all[1] > all[0]
}
