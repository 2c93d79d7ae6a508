package flags

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/tokenizer"
	"github.com/swagwrap/swagwrap/swag"
)

// The structs of this file are groups of flags as values. A command reads them once, before its work. Nothing below a command
// sees the command line.

// Output is the place of a result.
type Output struct {
	Path  string // - is standard output
	Force bool
}

// ReadOutput reads [OutputFlags].
func ReadOutput(c *cli.Context) Output { return Output{c.String("output"), c.Bool("force")} }

// ReadNetwork reads --scores, --bn and --output-name, as far as the command has them.
func ReadNetwork(c *cli.Context) (n open.NetworkOptions, err error) {
	n = open.NetworkOptions{Scores: c.String("scores"), Statistics: infer.RecomputeTrained, Output: c.String("output-name")}
	if word := c.String("bn"); word != "" {
		n.Statistics, err = infer.ParseStatistics(word)
	}
	return n, err
}

// OutputNameFlag and TaskFlag choose one of several outputs after the fit.
var (
	OutputNameFlag = &cli.StringFlag{
		Name:        "output-name",
		Usage:       "take the scores from the networks' output `NAME`",
		DefaultText: "as at fit",
	}
	TaskFlag = OneOf(&cli.StringFlag{
		Name:        "task",
		Usage:       "of a posterior whose task is none: the output holds scores of `TASK`: " + strings.Join(task.Names(), "|"),
		DefaultText: "as at fit",
	}, task.Names()...)
)

// PosteriorFlag gives the new paths of posteriors that have moved since an ensemble was written.
var PosteriorFlag = &cli.StringSliceFlag{
	Name:  "posterior",
	Usage: "a posterior of the ensemble is now `FILE`; may be given several times, in any order",
}

// ReadEnsemble reads [PosteriorFlag], and what [ReadNetwork] reads.
func ReadEnsemble(c *cli.Context) (o open.EnsembleOptions, err error) {
	o.Posteriors = c.StringSlice("posterior")
	o.Network, err = ReadNetwork(c)
	return o, err
}

// ReadData reads [DataFlags] and --labels.
func ReadData(c *cli.Context, budget *memory.Budget) (d open.DataOptions, err error) {
	d = open.DataOptions{
		Preprocess: c.String("preprocess"),
		Named:      ReadNamed(c),
		Order:      fileorder.Order(c.String("file-order")),
		Memory:     budget,
		Labels:     ReadLabels(c),
	}
	if d.Columns, err = readColumns(c); err != nil {
		return d, err
	}
	d.Arrays = dataset.Auto
	if s := c.String("arrays"); s != "" {
		if d.Arrays, err = dataset.ParseArrays(s); err != nil {
			return d, console.Usagef("", "--arrays %w", err)
		}
	}
	if s := c.String("labels-as"); s != "" {
		if d.LabelsAs, err = names.ParseAs(s); err != nil {
			return d, console.Usagef("", "--labels-as %w", err)
		}
	}
	if d.Text, err = text.ParseCutting(c.String("text")); err != nil {
		err = console.Usagef("such as --text 'rows=10 bptt=35 vocabulary=vocab.txt', or --text 'window=1024 stride=512 "+
			"tokenizer=tokenizer.json'", "--text: %w", err)
	}
	d.Text.Open = tokenizer.Open
	return d, err
}

// ReadRuntime reads [RunFlags].
func ReadRuntime(c *cli.Context, budget *memory.Budget) (r open.RuntimeOptions, err error) {
	r = open.RuntimeOptions{Library: c.String("ort-lib"), BatchSize: c.Int("batch-size"), Threads: c.Int("threads"), Memory: budget}
	r.Provider, r.Free, r.Measure, err = provider(c)
	return r, err
}

// ReadBatchNorm reads [BatchNormFlags] and --seed.
func ReadBatchNorm(c *cli.Context) open.BatchNormOptions {
	samples, _ := parseSamples(c.String("bn-samples")) // the flag was checked
	return open.BatchNormOptions{
		Data:    c.String("bn-data"),
		Samples: samples,
		Augment: ReadGiven(c, "augment", c.String),
		Seed:    c.Uint64("seed"),
	}
}

// ReadGiven reads one flag.
func ReadGiven[T any](c *cli.Context, name string, read func(name string) T) open.Given[T] {
	return open.Given[T]{Value: read(name), Set: c.IsSet(name)}
}

// ReadSource reads [TemplateFlags].
func ReadSource(c *cli.Context) open.SourceOptions {
	o := open.SourceOptions{Template: c.String("template"), StateDict: ReadGiven(c, "state-dict", c.String)}
	if list := c.String("unused"); list != "" {
		o.Unused = strings.Split(list, ",")
	}
	return o
}

// ReadStudy reads the flags of a study, as far as the command has them.
func ReadStudy(c *cli.Context) (s open.StudyOptions, err error) {
	s = open.StudyOptions{
		BatchNorm:   ReadBatchNorm(c),
		Source:      ReadSource(c),
		Validation:  c.String("val"),
		All:         c.String("methods") == "all",
		Iterates:    c.StringSlice("iterates"),
		Checkpoints: c.StringSlice("checkpoints"),
		Members:     c.Int("members"),
		Scale:       c.Float64("scale"),
		GivenScale:  c.IsSet("scale"),
		Tune:        c.String("tune"),
	}
	if list := c.String("methods"); list != "" {
		if s.Methods, err = baseline.Parse(list); err != nil {
			return s, console.Usagef("", "--methods: %w", err)
		}
	}
	if s.Network, err = ReadNetwork(c); err != nil {
		return s, err
	}
	budget := ReadMemory(c)
	if s.Data, err = ReadData(c, budget); err != nil {
		return s, err
	}
	s.Runtime, err = ReadRuntime(c, budget)
	return s, err
}

// ReadDraws reads --seed and [CovarianceFlags]. With diagonal the low-rank part is left out.
func ReadDraws(c *cli.Context, diagonal bool) swag.SampleOptions {
	opts := swag.SampleOptions{Seed: c.Uint64("seed"), Rank: c.Int("rank"), Antithetic: c.Bool("antithetic")}
	if diagonal || c.IsSet("rank") && opts.Rank == 0 {
		opts.Covariance = swag.Diagonal
	}
	opts.Scale = opts.Covariance.DefaultScale()
	if c.IsSet("scale") {
		opts.Scale = c.Float64("scale")
	}
	return opts
}

// Fetched returns the provider that setup and doctor are for. auto stands for the GPU.
func Fetched(c *cli.Context) ort.Provider {
	if name := c.String("provider"); name != ort.Auto {
		return ort.Provider{Name: name, Device: c.Int("device")}
	}
	return ort.Provider{Name: ort.WebGPU}
}
