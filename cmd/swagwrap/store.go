package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/swag"
)

// sharedRun is the run of a study, or of a part of it.
type sharedRun struct {
	infer.Run
	shard *infer.Shard // of the networks; nil for all
}

// kept says where a study keeps the outputs of networks, and which part of them a job runs.
type kept struct {
	folder string // or ""
	part   part
}

// rows makes the rows of a command that several jobs may share. refusing are the cases that refuse them.
func (k *kept) rows(refusing string) flags.Table {
	return flags.Table{
		flags.Text(flags.Row{
			Name:  "store",
			Usage: "keep the outputs of networks in `FOLDER`, and compute nothing twice",
			Not:   refusing,
		}, &k.folder),
		partRow(flags.Row{
			Usage: "with --store, run part `I/N` of the networks, I from 0, and print no result; auto/N takes I from Slurm, Kubernetes " +
				"or AWS Batch",
			Not: refusing,
		}, &k.part),
	}
}

// check refuses a part without a store, or with results that it does not make, and a result with the name of the store.
func (k kept) check(t flags.Table) error {
	if k.part.Of > 0 {
		if err := t.Refuse("part", "", "--* is not for a part"); err != nil {
			return err
		}
		if k.folder == "" {
			return console.Usagef("name a folder that all parts reach: --store FOLDER", "--part without --store")
		}
	}
	for _, name := range []string{"save", "tune", "report", "plots", "output"} {
		if r := t.Row(name); k.folder != "" && r != nil && r.IsSet() && filepath.Clean(r.String()) == filepath.Clean(k.folder) {
			return console.Usagef("give --store a folder of its own", "--store %s: --%s has the same name", k.folder, name)
		}
	}
	return nil
}

// openStore opens the store and the shard of a study that runs on an engine.
func (a *app) openStore(k kept, e *infer.Engine) (run sharedRun, err error) {
	if run.Engine = e; k.folder == "" {
		return run, nil
	}
	if k.part.Of > 0 {
		run.shard = &infer.Shard{Index: k.part.Index, Of: k.part.Of}
	}
	run.Store, err = store.Open(k.folder, console.Producer(), ort.Processor())
	return run, console.BadOutput(err)
}

// findingsEnv names the folder of findings. The word "none" keeps nothing.
const findingsEnv = "SWAGWRAP_FINDINGS"

// findings opens the store of what was found about posteriors and their data, so that the next command need not find it
// again. It returns nil if there is no folder that can be written: then each command looks for itself.
func findings() *store.Store {
	dir := os.Getenv(findingsEnv)
	if dir == "none" {
		return nil
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		dir = filepath.Join(cache, "swagwrap", "findings")
	}
	s, err := store.Open(dir, console.Producer(), ort.Processor())
	if err != nil {
		return nil
	}
	return s
}

// tellStore prints how many results came from the store.
func (a *app) tellStore(folder string, kept *store.Store) {
	if kept == nil {
		return
	}
	switch found, missing := kept.Counts(); missing {
	case 0:
		a.Logf("%s: nothing was computed, all %s of networks were found", folder, report.Plural(found, "result"))
	default:
		a.Logf("%s: %s of networks computed, %s found", folder, report.Plural(missing, "result"), report.Thousands(found))
	}
	a.warnProcessors(folder+": computed", kept.Machines())
}

// studyOptions has what the commands of studies share.
type studyOptions struct {
	*app
	flags.Table
	open.StudyOptions
	report   console.Report
	spelling flags.Spelling
	kept     kept
	args     []string
}

func (o *studyOptions) storeRows() flags.Table {
	t := o.kept.rows("")
	t.Row("part").Not = "outcomes"
	return t
}

// finish completes the options, and refuses those that contradict each other.
func (o *studyOptions) finish() error {
	o.spelling = flags.SpellingOf(o.Table, o.Data.Labels)
	return o.kept.check(o.Table)
}

func (o *studyOptions) openPages() (*console.Pages, error) {
	o.report.Spell = o.spelling.Line
	return o.OpenPages(o.report, o.kept.part.Of == 0)
}

// startStudy opens ONNX Runtime and the store of a study, prepares the study's inputs, and measures the precision. Members
// are drawn as how says.
func (o *studyOptions) startStudy(ctx context.Context, in *open.Study, how swag.SampleOptions, members int,
	data open.Probe) (run sharedRun, err error) {
	engine, err := o.Engine(o.Runtime)
	if err != nil {
		return run, err
	}
	if run, err = o.openStore(o.kept, engine); err != nil {
		return run, err
	}
	if err := o.Prepare(ctx, in, &run.Run, how, data); err != nil {
		return run, err
	}
	run.Engine, err = o.DrawnPrecision(ctx, o.Runtime, run.Run, in, how, cmp.Or(members, ensemble.DefaultMembers), data.Data)
	return run, err
}

// studyBar starts the progress bar of a study, or of a part of it. images is the number of images that all networks of the
// study see together.
func (a *app) studyBar(ctx context.Context, name string, shard *infer.Shard, images int64) *console.Bar {
	if shard != nil {
		images /= int64(shard.Of)
	}
	return a.Bar(ctx, name, images)
}

// runStudy runs a study. For a part it calls fill, which runs a share of the networks for the store, and returns nil.
func runStudy[R any](ctx context.Context, a *app, o studyOptions, on sharedRun, bar open.Progress,
	fill func(context.Context, infer.Run, *infer.Shard) error, run func(context.Context, infer.Run) (*R, error)) (found *R, err error) {
	on.Progress = bar.Add
	if on.shard != nil {
		err = fill(ctx, on.Run, on.shard)
	} else {
		found, err = run(ctx, on.Run)
	}
	bar.Done()
	if err == nil {
		a.tellStore(o.kept.folder, on.Store)
	}
	return found, console.BadInput(err)
}

// labelledOf returns the examples with a known label. Windows of a text all have one.
func labelledOf(d dataset.Dataset) (dataset.Dataset, error) {
	labels := d.Labels()
	if _, text := dataset.CutOf(d); text || !labels.Dense() {
		return d, nil
	}
	var rows []int
	for i := range d.Len() {
		known, err := labels.Part(i, i+1).AnyKnown()
		if err != nil {
			return nil, console.BadInput(err)
		}
		if known {
			rows = append(rows, i)
		}
	}
	if len(rows) == d.Len() {
		return d, nil
	}
	return dataset.Picked(d, rows), nil
}

// openScored opens labelled data that many networks read: n examples, or all for 0. Pictures and lists without a label are left
// out, because they have no loss.
func (o *studyOptions) openScored(in *open.Study, path string, n int) (dataset.Dataset, error) {
	d, err := o.OpenOf(in, path, o.Data.Labels.Main, true)
	if err == nil {
		d, err = labelledOf(d)
	}
	if err == nil && n > 0 && n < d.Len() {
		d = dataset.Subset(d, dataset.Order{Shuffle: true, Seed: o.BatchNorm.Seed, Limit: n})
	}
	return d, err
}
