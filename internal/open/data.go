package open

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// OpenData opens examples with a cache, because several members read them.
func (a *Opener) OpenData(d DataOptions, path, labels string, n *infer.Network) (dataset.Dataset, error) {
	opts, err := ReadAs(d, labels, n)
	if err != nil {
		return nil, err
	}
	return a.openCached(path, d, opts, []*infer.Network{n})
}

// OpenUnlabelled is like [Opener.OpenData] for several networks, and leaves out the labels.
func OpenUnlabelled(a *Opener, d DataOptions, path string, networks []*infer.Network) (dataset.Dataset, error) {
	opts, err := ReadAs(d, "", networks[0])
	if err != nil {
		return nil, err
	}
	return a.openCached(path, d, unlabelled(opts), networks)
}

// openCached opens examples. The networks learn the names in them, so those in later data are compared.
func (a *Opener) openCached(path string, d DataOptions, opts dataset.Options, networks []*infer.Network) (dataset.Dataset, error) {
	opts.Cache, opts.Sideways = d.Memory.Pictures(), &a.Sideways
	data, err := dataset.Open([]string{path}, opts)
	if err == nil {
		infer.Learn(networks, data)
		checkPadding(a, path, data, networks[0].Graph)
	}
	return data, WrongData(err, path)
}

// ReadAs returns the options for the examples of a network. It fails if these do not fit into the budget.
func ReadAs(d DataOptions, labels string, n *infer.Network) (dataset.Options, error) {
	if err := n.Fits(d.Memory); err != nil {
		return dataset.Options{}, BadInput(err)
	}
	card := n.Posterior.Card
	p, err := Preprocessing(d.Preprocess, card)
	if err != nil {
		return dataset.Options{}, err
	}
	opts := dataset.Options{
		Arrays:     d.Arrays,
		Labels:     labels,
		Target:     n.Traits().Labels,
		Preprocess: p,
		Shape:      n.Input.Shape[1:],
		Fields:     n.Fields(),
		Uint8:      n.TakesBytes(),
		Memory:     d.Memory.Decoding(),
	}
	if opts.Positions = n.Positions(); opts.Positions != nil {
		opts.Positions.Reduce = p.ReduceLabels
	}
	opts.Known, opts.LabelsAs, opts.Named = n.Names.Clone(), d.LabelsAs, d.Named
	opts.Classes, opts.Binary = n.Classes()
	opts.Order = cmp.Or(d.Order, fileorder.Order(card.FileOrder))
	cutting := d.Text
	switch {
	case n.Traits().Text:
		cutting.Classes, cutting.Grows = n.Layout().Count, n.Grows()
		opts.Text = &cutting
	case cutting.Given:
		return opts, Usagef(setting.Fit.With(setting.Task.With(task.NextToken))+" says that it is a language model",
			"%s: the model card says that the network has the task %q", setting.Text, card.Task)
	}
	opts.Columns, opts.Pad, err = columns(d.Columns, card, n.Graph)
	return opts, err
}

// OpenLabelled is like [Opener.OpenData], for examples that must have labels.
func (a *Opener) OpenLabelled(o DataOptions, path, labels string, n *infer.Network) (dataset.Dataset, error) {
	if opts, err := ReadAs(o, labels, n); err == nil {
		if u := dataset.Unclear(path, opts); u != nil && u.Inputs && u.Labels {
			return nil, BadInput(u)
		}
	}
	d, err := a.OpenData(o, path, labels, n)
	if err == nil && d.Labels().None() {
		err = noLabels(path)
	}
	if err == nil {
		err = anyKnown(path, d)
	}
	if err == nil && (d.Labels().Classes != nil || d.Labels().Gaps()) {
		err = allKnown(path, d)
	}
	if err == nil {
		err = labelsFit(path, d, n)
	}
	return d, err
}

// anyKnown fails if no label of the examples is known.
func anyKnown(path string, d dataset.Dataset) error {
	known, err := d.Labels().AnyKnown()
	if err != nil || known {
		return BadInput(err)
	}
	return BadInput(fmt.Errorf("%s: no label is known", path),
		"labels below 0 count nowhere, and neither does that of "+setting.Fit.With(setting.IgnoreIndex.String()))
}

// allKnown fails if an example has no class or number. Its loss is not known, and studies compare the losses of all examples.
func allKnown(path string, d dataset.Dataset) error {
	i, n := dataset.Bare(d)
	if n == 0 {
		return nil
	}
	return BadInput(fmt.Errorf("%s: no label: %d of %d examples of %s, want a label for each", d.Name(i), n, d.Len(), path),
		"remove the rows without a label; only "+setting.Score.String()+" takes them")
}

// labelsFit fails if an example has a label that the network cannot have, or if those of a regression have the wrong number of
// targets. Where the graph does not give the number of scores, the check after the first run does it.
func labelsFit(path string, d dataset.Dataset, n *infer.Network) error {
	if n.Layout().Count == 0 {
		return nil
	}
	t, err := n.Task(n.Layout())
	if err != nil {
		return nil // running the network reports the error
	}
	if labels := d.Labels(); labels.Width > 0 {
		if wrong := (*task.TargetsError)(nil); errors.As(t.CheckLabel(labels.At(0)), &wrong) {
			return BadInput(fmt.Errorf("%s: %w", path, wrong), wrong.Hints()...)
		}
	}
	err = task.CheckLabels(t, d.Labels(), d.Name)
	if err != nil && t.About().Classes > 1 && task.FromOne(d.Labels(), t.About().Classes) {
		return fromOne(path, t.About().Classes)
	}
	return BadInput(err)
}

// noLabels returns the error for data that must have labels.
func noLabels(path string) error {
	hint := "an .npz file has them as an array named labels, a table or a list in a column label, or in the one of " +
		setting.LabelColumn.String() + "; for other files: " + setting.Labels.With("FILE")
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		hint = fmt.Sprintf("put the pictures of each class into a folder of its own, as in %s, or write a table with the columns path "+
			"and label: %s", filepath.Join(path, "CLASS", "1.png"), setting.Labels.With("FILE.csv"))
	}
	return BadInput(fmt.Errorf("%s: has no labels", path), hint)
}

// fromOne returns the error for classes that are numbered from 1.
func fromOne(path string, count int) error {
	return BadInput(fmt.Errorf("%s: the labels are 1 to %d, want 0 to %d: classes are numbered from 0", path, count, count-1),
		"subtract 1 from each label: data[\"labels\"] - 1 in NumPy")
}

// Shortened returns the first of several inputs, and the number of the others.
func Shortened(inputs []string) string {
	if len(inputs) == 1 {
		return inputs[0]
	}
	return fmt.Sprintf("%s and %d more", inputs[0], len(inputs)-1)
}
