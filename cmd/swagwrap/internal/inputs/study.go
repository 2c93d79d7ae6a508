package inputs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// Study holds the common inputs of the studies, with their files open.
type Study struct {
	baseline.Inputs
	Validation dataset.Dataset // nil without --val
	BatchNorm  *BatchNorm

	source *Source // of External
}

// OpenStudy opens the posteriors and everything else except the data to predict. withMethods says that the methods of
// baselines run, not SWAG alone. The caller closes the inputs.
func (a *Env) OpenStudy(c *cli.Context, posteriors []string, withMethods bool) (*Study, error) {
	l := &Study{Inputs: baseline.Inputs{Seed: c.Uint64("seed"), Scale: c.Float64("scale"), Members: c.Int("members")}, BatchNorm: &BatchNorm{}}
	if err := a.open(c, l, posteriors, withMethods); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (a *Env) open(c *cli.Context, l *Study, posteriors []string, withMethods bool) (err error) {
	for _, path := range posteriors {
		n, err := a.OpenNetwork(c, path)
		if err != nil {
			return err
		}
		l.Runs = append(l.Runs, baseline.Run{Network: n})
	}
	networks := l.Networks()
	if err := infer.Align(networks); err != nil {
		return flags.BadInput(err)
	}
	recompute := true
	if !withMethods || c.String("tune") != "" {
		if err := RefuseSingle(networks[0].Posterior); err != nil {
			return err
		}
	}
	if withMethods {
		if recompute, err = a.openMethods(c, l); err != nil {
			return err
		}
	}
	if l.BatchNorm, err = a.OpenBatchNorm(c, networks, recompute); err != nil {
		return err
	}
	l.Inputs.BatchNorm = l.BatchNorm.Training
	if val := c.String("val"); val != "" {
		if l.Validation, err = l.Open(c, val, flags.Labels(c, "val"), true); err != nil {
			return err
		}
	}
	for _, m := range l.Asked {
		later := m == baseline.SWAGTuned && c.String("tune") != "" // it is chosen after all inputs are open
		if what := l.Missing(m); what != "" && !later && c.String("methods") != "all" {
			a.Warnf(c, "--methods %s: left out, it needs %s", m, what)
		}
	}
	return nil
}

// openMethods opens the checkpoints of the posteriors, if they can be found, and those of --iterates. It reports
// whether a chosen method recomputes batch-norm statistics.
func (a *Env) openMethods(c *cli.Context, l *Study) (recompute bool, err error) {
	if list := c.String("methods"); list != "" {
		l.Asked, _ = baseline.Parse(list) // the flag was checked
		if c.IsSet("iterates") && !slices.Contains(l.Asked, baseline.Iterates) {
			l.Asked = append(l.Asked, baseline.Iterates)
		}
	}
	folders := c.StringSlice("checkpoints")
	if len(folders) > 0 && len(folders) != len(l.Runs) {
		return false, flags.Usagef("give --checkpoints once for each posterior, in their order", "%d folders of checkpoints for %s", len(folders), report.Plural(len(l.Runs), "posterior"))
	}
	for i := range l.Runs {
		n, folder := l.Runs[i].Network, ""
		if len(folders) > 0 {
			folder = folders[i]
		}
		if l.Runs[i].Checkpoints, err = a.findCheckpoints(c, n, folder); err != nil {
			return false, err
		}
	}
	if l.External, err = l.openExternal(c); err != nil {
		return false, err
	}
	methods, others := l.Recomputing()
	if l.Asked == nil || c.String("bn-data") != "" || c.String("tune") != "" || !slices.ContainsFunc(l.Networks(), (*infer.Network).Recomputes) {
		return true, nil
	}
	if len(methods) > 0 && others {
		return false, flags.Usagef("give what the network saw in training: --bn-data PATH, or leave these methods out", "%s: the network has batch norm, and there is no --bn-data. Of --methods these recompute its statistics: %s",
			l.Runs[0].Network.Posterior.Path, strings.Join(methods, ", "))
	}
	return !others, nil
}

// Close closes posteriors and checkpoints.
func (l *Study) Close() {
	for _, r := range l.Runs {
		r.Network.Posterior.Close()
	}
	for _, s := range l.External {
		CloseModels(s.Models)
	}
	l.source.Close()
}

// findCheckpoints opens the files that the posterior was fitted to. They are in the given folder, or where they were.
// If some are missing, it prints a warning and returns none.
func (a *Env) findCheckpoints(c *cli.Context, n *infer.Network, folder string) ([]*onnxio.Model, error) {
	p := n.Posterior
	if p.Single() {
		return nil, nil // it holds all of the checkpoint
	}
	path := func(ck swag.Checkpoint) string { return infer.CheckpointPath(p, ck, folder) }
	for _, ck := range p.Checkpoints {
		if _, err := os.Stat(path(ck)); err != nil {
			a.Warnf(c, "%s: not found, so the SGD rows are left out (--checkpoints FOLDER)", path(ck))
			return nil, nil
		}
	}
	models, err := n.OpenAll(c.Context, p.Checkpoints, path)
	return models, flags.BadInput(err, CheckpointHint(err)...)
}

// CheckpointHint returns hints for a checkpoint that is missing or has changed.
func CheckpointHint(err error) []string {
	if errors.As(err, new(*infer.ChangedError)) || errors.Is(err, fs.ErrNotExist) {
		return []string{"fit again, or name the folder with the right checkpoints: --checkpoints FOLDER"}
	}
	return nil
}

// openExternal opens the checkpoints that --iterates names.
func (l *Study) openExternal(c *cli.Context) (external []baseline.External, err error) {
	if l.source, err = OpenSource(c, l.Runs[0].Network.Template()); err != nil {
		return nil, err
	}
	for _, spec := range c.StringSlice("iterates") {
		name, pattern, ok := strings.Cut(spec, "=")
		if !ok || name == "" || pattern == "" {
			return external, flags.Usagef("give a name and the files: --iterates 'SGLD=sgld/*.onnx'", "--iterates %q: want NAME=FILES", spec)
		}
		if slices.ContainsFunc(external, func(s baseline.External) bool { return s.Name == name }) {
			return external, flags.Usagef("", "--iterates: two are called %q", name)
		}
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return external, flags.Usagef("", "--iterates %q: %w", spec, err)
		}
		if len(paths) == 0 {
			return external, flags.BadInput(fmt.Errorf("%s: no such file", pattern))
		}
		slices.Sort(paths)
		models, err := l.source.Open(paths)
		if err != nil {
			return external, err
		}
		external = append(external, baseline.External{Name: fmt.Sprintf("%s, %s", name, report.Plural(len(models), "iterate")), Models: models, Recompute: c.String("methods") == "all"})
	}
	return external, nil
}

// Prepare checks the data of a study, and chooses the batch-norm data of its networks. Members are drawn as how says.
// Messages call the data path.
func (a *Env) Prepare(c *cli.Context, l *Study, run infer.Run, how swag.SampleOptions, data dataset.Dataset, path string) error {
	if err := a.CheckStudy(c, run.Engine, l.BatchNorm, l.Validation, data, path); err != nil {
		return err
	}
	err := a.ChooseSampleSize(c, run, l.BatchNorm, how)
	l.Inputs.BatchNorm = l.BatchNorm.Training
	return err
}

// Open opens examples with a cache, so each is decoded once. If labelled is true, they must have labels.
func (l *Study) Open(c *cli.Context, path, labels string, labelled bool) (dataset.Dataset, error) {
	if labelled {
		return OpenLabelled(c, path, labels, l.Runs[0].Network)
	}
	n := l.Runs[0].Network
	opts, err := DataOptions(c, labels, n)
	if err != nil {
		return nil, err
	}
	// Other images may have labels of another kind.
	opts.Unlabelled = task.Truth(n.Posterior.Card.Task) != truth.Classes
	return openCached(c, path, opts)
}

// Provenance lists the posteriors and the data that the numbers depend on.
func (l *Study) Provenance(runtime string, predicted ...study.Used) []report.Fact {
	used := []study.Used{{As: "validation", Data: l.Validation}, {As: "training", Data: l.BatchNorm.Data}}
	return study.Provenance(runtime, l.Networks(), append(used, predicted...)...)
}

// Draws says how the members of SWAG are drawn.
func (l *Study) Draws() swag.SampleOptions {
	return swag.SampleOptions{Seed: l.Seed, Scale: l.Scale, Covariance: swag.LowRankPlusDiagonal}
}
