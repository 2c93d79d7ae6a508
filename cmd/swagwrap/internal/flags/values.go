package flags

import (
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/ort"
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

// Network says how the networks of posteriors are read.
type Network struct {
	Scores     string           // the form of the scores, or ""
	Statistics infer.Statistics // which batch-norm statistics are recomputed
	Output     string           // the name of the scores' output, or ""
}

// ReadNetwork reads --scores, --bn and --output-name, as far as the command has them.
func ReadNetwork(c *cli.Context) (n Network, err error) {
	n = Network{Scores: c.String("scores"), Statistics: infer.RecomputeTrained, Output: c.String("output-name")}
	if word := c.String("bn"); word != "" {
		n.Statistics, err = infer.ParseStatistics(word)
	}
	return n, err
}

// Data says how examples are read.
type Data struct {
	Preprocess string   // changes of the model card's preprocessing, or ""
	Columns    []string // of tables
	Named      listing.Columns
	Text       text.Cutting
	Arrays     dataset.Arrays
	LabelsAs   names.As
	Memory     int64 // in bytes, or 0
	Labels     Labels
}

// ReadData reads [DataFlags], --memory and --labels.
func ReadData(c *cli.Context) (d Data, err error) {
	d = Data{Preprocess: c.String("preprocess"), Columns: c.StringSlice("columns"), Named: ReadNamed(c), Memory: memory(c), Labels: ReadLabels(c)}
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
		err = console.Usagef("such as --text 'rows=10 bptt=35 vocabulary=vocab.txt', or --text 'window=1024 stride=512 tokenizer=tokenizer.json'", "--text: %w", err)
	}
	return d, err
}

// Labels are the files of --labels.
type Labels struct{ Main, Validation, Test string }

// Runtime says what computes, and how much of the machine it may take.
type Runtime struct {
	Library   string       // of ONNX Runtime, or ""
	Provider  ort.Provider // auto is a name, too
	Free      bool         // the program chooses the precision
	BatchSize int          // 0 for the default
	Threads   int          // 0 for one per core
	Memory    int64        // in bytes, or 0 for half of what is free
}

// ReadRuntime reads [RunFlags].
func ReadRuntime(c *cli.Context) (r Runtime, err error) {
	r = Runtime{Library: c.String("ort-lib"), BatchSize: c.Int("batch-size"), Threads: c.Int("threads"), Memory: memory(c)}
	r.Provider, r.Free, err = provider(c)
	return r, err
}

// BatchNorm says how batch-norm statistics are recomputed.
type BatchNorm struct {
	Data    string        // the path of the training data, or ""
	Samples string        // how many examples: see [Samples]
	Augment Given[string] // instead of the model card's augmentation
	Seed    uint64        // of the order of the examples
	Asked   []string      // these flags as arguments for another command
}

// ReadBatchNorm reads [BatchNormFlags] and --seed.
func ReadBatchNorm(c *cli.Context) BatchNorm {
	return BatchNorm{Data: c.String("bn-data"), Samples: c.String("bn-samples"), Augment: ReadGiven(c, "augment", c.String), Seed: c.Uint64("seed"), Asked: asAsked(c)}
}

// Given is the value of a flag that may be missing.
type Given[T any] struct {
	Value T
	Set   bool
}

// ReadGiven reads one flag.
func ReadGiven[T any](c *cli.Context, name string, read func(name string) T) Given[T] {
	return Given[T]{read(name), c.IsSet(name)}
}

// Source says how checkpoints are read.
type Source struct {
	Template  string        // the exported graph, or GRAPH=CHECKPOINT, or ""
	StateDict Given[string] // the key of the weights in a checkpoint
}

// ReadSource reads [TemplateFlags].
func ReadSource(c *cli.Context) Source {
	return Source{c.String("template"), ReadGiven(c, "state-dict", c.String)}
}

// Study has what the studies share.
type Study struct {
	Network
	Data
	BatchNorm
	Source
	Runtime
	Validation  string   // the path of the validation data, or ""
	Methods     []string // those that were asked for, or nil
	All         bool     // all methods were asked for
	Iterates    []string // other checkpoints, each NAME=FILES
	Checkpoints []string // the folders where the posteriors' checkpoints are now
	Members     int
	Scale       float64
	Tune        string   // the file of tuned settings, or ""
	Reading     []string // how data is read, as arguments for another command
}

// ReadStudy reads the flags of a study, as far as the command has them.
func ReadStudy(c *cli.Context) (s Study, err error) {
	s = Study{BatchNorm: ReadBatchNorm(c), Source: ReadSource(c), Validation: c.String("val"), All: c.String("methods") == "all", Iterates: c.StringSlice("iterates"),
		Checkpoints: c.StringSlice("checkpoints"), Members: c.Int("members"), Scale: c.Float64("scale"), Tune: c.String("tune"), Reading: readAsAsked(c)}
	if list := c.String("methods"); list != "" {
		if s.Methods, err = baseline.Parse(list); err != nil {
			return s, console.Usagef("", "--methods: %w", err)
		}
	}
	if s.Network, err = ReadNetwork(c); err != nil {
		return s, err
	}
	if s.Data, err = ReadData(c); err != nil {
		return s, err
	}
	s.Runtime, err = ReadRuntime(c)
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
