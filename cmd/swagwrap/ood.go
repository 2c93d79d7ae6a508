package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/ood"
	"github.com/swagwrap/swagwrap/internal/task"
)

func oodCommand(a *app) *command {
	o := &oodOptions{studyOptions: studyOptions{app: a}}
	return &command{
		name:  "ood",
		usage: "show how well uncertainty finds data of another kind than the training data",
		args:  "[POSTERIOR...] IN OUT",
		description: `Runs the methods of compare on data of the training domain, IN, and on data of another one, OUT. Neither needs labels. Prints how
well the uncertainty of each method separates the two.

   swagwrap ood --bn-data train.npz --val val.npz posterior.safetensors test.npz letters.npz

Uncertainty is the entropy of the averaged probabilities, the mutual information, and the largest probability; the energy and
the largest of the logits; and, of one network, the distance of its features from those of training or validation data
(Mahalanobis, and to the 50th nearest neighbour). For a regression it is the standard deviation, and its epistemic part.
Each is shown as AUROC, AUPR, and the share of IN that is taken for OUT where 95 % of OUT are found. Differences of the AUROC
have the interval of DeLong et al. For the entropy, the symmetrised KL divergence between both histograms is shown too, in the
bins of the paper, with 1e-7 added to each count.

IN and OUT may also be predictions that score or another program saved. Independent labels need entropy and mutual information,
regressions need standard deviations. Of several targets their geometric mean counts, because units do not change its order.

   swagwrap ood in.npz out.npz`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.args, o.NeedsOutcomes = args, o.First("outcomes")
			return o.ood(ctx)
		},
	}
}

// oodOptions are the values of ood's command line.
type oodOptions struct {
	studyOptions
	features, key string
}

func (o *oodOptions) rows() flags.Table {
	o.Table = flags.Join(flags.Table{
		flags.JSON(&o.report, "print JSON instead of a table: everything, unrounded, with the histograms"),
		flags.Text(flags.Row{
			Name: "features",
			Usage: "also measure the distance of features from those of training or validation data. Features are the values " +
				"of the tensor `NAME` of the network; none turns this off",
			Preset: "the input of the last linear layer",
			Not:    "saved",
			Then:   o.finish,
		}, &o.features),
		flags.Text(flags.Row{
			Name:   "key",
			Usage:  "of saved predictions, use the array `NAME`",
			Preset: "the one whose name says so",
		}, &o.key),
	}, flags.Report(&o.report), ofNetworks(flags.Join(o.storeRows(), flags.Methods(&o.StudyOptions, flags.Usual))))
	return o.Table
}

// ofNetworks makes rows mean nothing for saved predictions. Those that say how to compute are not among them.
func ofNetworks(t flags.Table) flags.Table {
	computing := computing()
	for _, r := range t {
		if computing.Row(r.Name) == nil {
			r.Not += " saved"
		}
	}
	return t
}

func (o *oodOptions) ood(ctx context.Context) error {
	pages, err := o.openPages()
	if err != nil {
		return err
	}
	defer pages.Abort()
	detect := o.detection
	if len(o.args) == 2 {
		detect = o.savedDetection
	}
	found, err := detect(ctx)
	if err != nil || found == nil { // a part has no result
		return err
	}
	return o.Show(pages, &found.BatchNorm, found.Show())
}

func (o *oodOptions) detection(ctx context.Context) (*ood.Result, error) {
	if o.key != "" {
		return nil, console.Usagef("leave it out", "--key is for saved predictions, and networks give theirs")
	}
	args, n := o.args, len(o.args)-2
	in, err := o.OpenStudy(ctx, o.StudyOptions, args[:n], true)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	d := &ood.Detection{Validation: in.Validation, Tensor: o.features}
	for i, to := range []*dataset.Dataset{&d.In, &d.Out} {
		if *to, err = o.OpenOf(in, args[n+i], "", false); err != nil {
			return nil, err
		}
	}
	run, err := o.startStudy(ctx, in, in.Draws(), in.Members, open.Probe{Data: d.In, Path: args[n]})
	if err != nil {
		return nil, err
	}
	if err := o.CheckForeign(ctx, run.Engine, in.BatchNorm, d.Out, args[n+1]); err != nil {
		return nil, err
	}
	d.Inputs = in.Inputs
	found, err := runStudy(ctx, o.app, o.studyOptions, run, o.studyBar(ctx, "ood", run.shard, d.Images()), d.Fill, d.Run)
	if err != nil || found == nil {
		return nil, err
	}
	for _, note := range found.Notes {
		o.Warnf("%s", note)
	}
	found.BatchNorm = in.BatchNorm.Findings
	found.Settings = []report.Fact{
		study.Fact("in the domain", "%s of %s", report.Plural(d.In.Len(), dataset.Unit(d.In)), args[n]),
		study.Fact("out of it", "%s of %s", report.Thousands(d.Out.Len()), args[n+1]),
	}
	if d.Single() {
		found.Settings = append(found.Settings, study.Fact("checkpoints", "one checkpoint"))
	} else {
		found.Settings = append(found.Settings, study.Fact("drawn", "%s", report.Plural(d.Members, "member")),
			study.Fact("covariance", "scale %g", d.Scale))
	}
	found.Settings = append(found.Settings, study.Fact("random numbers", "seed %d", d.Seed))
	found.Provenance = in.Provenance(run.About(), study.Used{As: "in", Data: d.In}, study.Used{As: "out", Data: d.Out})
	return found, nil
}

func (o *oodOptions) savedDetection(_ context.Context) (*ood.Result, error) {
	in, out := o.args[0], o.args[1]
	for _, path := range o.args {
		if strings.HasSuffix(path, ".safetensors") {
			return nil, console.Usagef("swagwrap ood POSTERIOR IN OUT, or two files of predictions",
				"%s: is no file of predictions, and a posterior needs both IN and OUT behind it", path)
		}
	}
	if err := o.Refuse("saved", "leave it out, or name a POSTERIOR before IN and OUT",
		"--* is for networks, and IN and OUT are saved predictions"); err != nil {
		return nil, err
	}
	var probs, logits [2][]float64
	var settings, provenance []report.Fact
	classes := 0
	for i, path := range []string{in, out} {
		p, err := predictions.Read(path, predictions.ReadOptions{Key: o.key})
		if of := new(predictions.TaskError); i == 0 && errors.As(err, &of) {
			return o.measuredDetection(of.Task, in, out)
		}
		if err != nil {
			return nil, open.WrongKind(err, path, kind.Predictions)
		}
		if i > 0 && p.Classes != classes {
			return nil, console.BadInput(fmt.Errorf("%s: %d classes, want %d as in %s", path, p.Classes, classes, in))
		}
		classes, probs[i] = p.Classes, p.Values
		if !p.Probabilities {
			probs[i], logits[i] = calibrate.Softmax(nil, p.Values, p.Classes, 1), p.Values
		}
		if p.Len() == 0 {
			return nil, console.BadInput(fmt.Errorf("%s: has no predictions", path))
		}
		o.leftOut(path, p.Unused)
		settings = append(settings, study.Fact([]string{"in the domain", "out of it"}[i], "%s predictions of %s (%s)",
			report.Thousands(p.Len()), path, p.From))
		provenance = append(provenance, report.Fact{Name: path, Value: p.SHA256})
	}
	t, err := task.New("classes", task.OutputSpec{Count: classes})
	if err != nil {
		return nil, err
	}
	found := ood.Detect(t, probs[0], probs[1], logits)
	found.Settings, found.Provenance = settings, provenance
	return found, nil
}

// leftOut says which arrays or columns of saved predictions nothing uses.
func (a *app) leftOut(path string, unused []string) {
	if text := predictions.LeftOut(path, unused); text != "" {
		a.Logf("%s", text)
	}
}

// measures lists the columns of a task that measure uncertainty, the main one first.
var measures = map[string][]struct {
	column, key, name string
	entropy           bool
}{
	"labels": {
		{"predictive_entropy", "entropy", "entropy", true},
		{"mutual_information", "mutual_information", "mutual information", true},
	},
	"regression": {
		{"std", "std", "standard deviation", false},
		{"epistemic_std", "epistemic_std", "epistemic standard deviation", false},
	},
}

// measuredDetection scores saved rows by the columns of the task that both files have.
func (o *oodOptions) measuredDetection(name, in, out string) (*ood.Result, error) {
	var wanted []predictions.Wanted
	for _, m := range measures[name] {
		wanted = append(wanted, predictions.Wanted{Names: []string{m.column}, Cells: []string{m.column + "_%d"}})
	}
	if task.TraitsOf(name).Targets {
		wanted = predictions.Regression()
	}
	var rows [2]*predictions.Rows
	var settings, provenance []report.Fact
	for i, path := range []string{in, out} {
		var err error
		if rows[i], err = predictions.ReadRows(path, wanted); err == nil {
			if err = rows[i].Spread(); err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
		}
		if err != nil {
			return nil, console.BadInput(err)
		}
		o.leftOut(path, rows[i].Unused)
		settings = append(settings, study.Fact([]string{"in the domain", "out of it"}[i], "%s predictions of %s",
			report.Thousands(rows[i].Len), path))
		provenance = append(provenance, report.Fact{Name: path, Value: rows[i].SHA256})
	}
	var found []ood.Measure
	for _, m := range measures[name] {
		a, b := rows[0].Width(m.column), rows[1].Width(m.column)
		if a != b {
			return nil, console.BadInput(fmt.Errorf("%s: %d numbers %q for a row, want %d as in %s", out, b, m.column, a, in))
		}
		if a == 0 {
			continue
		}
		x := ood.Measure{
			Key:     m.key,
			Name:    m.name,
			Entropy: m.entropy,
			In:      geometricMeans(rows[0].Values[m.column], a),
			Out:     geometricMeans(rows[1].Values[m.column], a),
		}
		for i, values := range [2][]float64{x.In, x.Out} {
			if len(values) == 0 {
				return nil, console.BadInput(fmt.Errorf("%s: no row has %q", []string{in, out}[i], m.column))
			}
		}
		found = append(found, x)
	}
	if found == nil {
		return nil, console.BadInput(fmt.Errorf("%s: predictions of the task %s without what says how uncertain they are", in, name),
			"want what score writes: "+measures[name][0].column)
	}
	r := ood.Measured(found)
	r.Settings, r.Provenance = settings, provenance
	return r, nil
}

// geometricMeans returns the geometric mean of each row of width numbers. Rows with missing numbers, such as those of
// unreadable examples, are left out.
func geometricMeans(values []float64, width int) (means []float64) {
	for at := 0; at < len(values); at += width {
		mean := values[at]
		if width > 1 {
			sum := 0.0
			for _, v := range values[at : at+width] {
				sum += math.Log(v)
			}
			mean = math.Exp(sum / float64(width))
		}
		if mean == mean {
			means = append(means, mean)
		}
	}
	return means
}
