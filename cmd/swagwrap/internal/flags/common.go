package flags

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/printed"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/tokenizer"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/swag"
)

// The functions of this file make tables that several commands have. They fill groups of options, which are values: nothing below a
// command sees the command line.

// Bounds of numbers: far beyond any use, and far from overflow.
const (
	// MaxScale is the largest factor of a covariance. A posterior's own scale is 0.5 or 1.
	MaxScale = 1e6
	// maxRank is the largest rank. A posterior has fewer columns than it has checkpoints.
	maxRank = 1e6
	// maxBatch is the largest number of examples that run at a time. Memory bounds it further: see --memory.
	maxBatch = 1 << 16
	// MaxExamples is the largest number of examples that a flag can ask for. More mean all examples.
	MaxExamples = 1e9
	maxDevice   = 255
	// Standard deviations of noise in the targets' units. Exported models have their squares in float32.
	leastNoise, mostNoise = 1e-18, 1e18
	mostTarget            = 1e18
	// mostMemory is a limit in bytes that no machine reaches.
	mostMemory = 1 << 50
	// leastShare is the smallest share of examples, in per cent.
	leastShare = 1e-6
	// leastAdapt is a weight that changes nothing that matters.
	leastAdapt = 1e-3
)

// maxThreads is the largest number of threads. Each has a stack of some megabytes, which counts against the limits of a
// shell.
var maxThreads = max(256, runtime.NumCPU())

const auto = "auto"

// OutputOptions are the place of a result.
type OutputOptions struct {
	Path  string // - is standard output
	Force bool
}

// Output makes the rows of a command with a result.
func Output(o *OutputOptions) Table {
	return Table{
		Text(Row{Name: "output", Short: "o", Usage: "write the result to `FILE`; - is standard output"}, &o.Path),
		Bool(Row{Name: "force", Usage: "replace an existing output that swagwrap wrote"}, &o.Force),
	}
}

// Report makes the rows of a command with a report.
func Report(o *console.Report) Table {
	return Table{
		Text(Row{
			Name:  "report",
			Usage: "write a page with tables and figures to `FILE.html`, which needs no other file",
			Not:   "part",
		}, &o.Page),
		Text(Row{Name: "plots", Usage: "write each figure to `FOLDER`, as SVG and as PNG", Not: "part"}, &o.Plots),
		Bool(Row{Name: "force", Usage: "replace existing files that swagwrap wrote"}, &o.Force),
	}
}

// Expect makes the rows of numbers that the user's own evaluation printed. not lists the cases that refuse them.
func Expect(o *open.ExpectOptions, not string) Table {
	return Table{
		Parsed(Row{
			Name: "expect",
			Usage: "first hold the last checkpoint against the `NUMBERS` that your own evaluation printed for it on the same data, such " +
				"as \"accuracy=0.953 loss=0.2011 n=5000\"",
			Hint: "as your evaluation printed them: --expect \"accuracy=0.953 loss=0.2011 n=5000\"",
			Not:  not,
		}, &o.Numbers, printed.Parse),
		Parsed(Row{
			Name:    "expect-only",
			Usage:   "if these numbers differ: fail|warn",
			Default: "fail",
			Not:     not,
		}, &o.Warn, func(s string) (bool, error) { return s == "warn", word.Check(s, "fail", "warn") }),
	}
}

// JSON makes the row of --json of a study. usage names the printed things.
func JSON(o *console.Report, usage string) *Row {
	return Bool(Row{Name: "json", Usage: usage, Not: "part"}, &o.JSON)
}

// Template makes the rows that say how to read PyTorch checkpoints.
func Template(o *open.SourceOptions) Table {
	return Table{
		Text(Row{
			Name:  "template",
			Usage: "read PyTorch's checkpoints against the exported graph in `FILE`. GRAPH=CHECKPOINT says which file has its weights",
			Not:   "drawn weights",
		}, &o.Template),
		Text(Row{
			Name:   "state-dict",
			Usage:  "take the state_dict under `KEY` of their files, such as ema",
			Preset: "the only one",
			Given:  &o.StateDict.Set,
			Not:    "weights",
		}, &o.StateDict.Value),
		Parsed(Row{
			Name: "unused",
			Usage: "the network does not use the tensors `NAME,...` of the checkpoints, such as those of an auxiliary head: 'aux.*'. * " +
				"stands for any text",
		}, &o.Unused, func(list string) (names []string, err error) {
			if list != "" {
				names = strings.Split(list, ",")
			}
			return names, nil
		}),
	}
}

// Order makes the rows that select checkpoints and their order.
func Order(o *open.FitOptions) Table {
	order := "natural"
	return Table{
		OneOf(Row{
			Name: "order",
			Usage: "take checkpoints in natural order, of the steps or epochs stored in them or of their names (9 before 10), or as " +
				"given: natural|given",
			Default: order,
			Then: func() error {
				o.AsGiven = order == "given"
				return nil
			},
		}, &order, "natural", "given"),
		Integer(Row{
			Name:   "last",
			Usage:  "take the last `K` checkpoints of the order. The first ones of a whole run are on the way to the others",
			Preset: "all",
			Not:    "extend",
		}, &o.Last, 1, math.MaxInt32),
		OneOf(Row{
			Name: "averages",
			Usage: "leave out checkpoints whose weights are proven to be an average of others, and ask where only a name says so; drop " +
				"both, or keep both: ask|keep|drop",
			Default: string(open.AskAverages),
		}, &o.Averages, string(open.AskAverages), string(open.KeepAverages), string(open.DropAverages)),
	}
}

// Methods makes the rows that say which methods of a study run, and how. members is the default of their number.
func Methods(o *open.StudyOptions, members string) Table {
	return Join(Table{
		Parsed(Row{
			Name:   "methods",
			Usage:  "run the `LIST` of methods, separated by commas, or all: " + strings.Join(baseline.Keys(), ", "),
			Preset: "those that the inputs allow, without isotropic",
		}, &o.Methods, func(list string) ([]string, error) {
			o.All = list == "all"
			return baseline.Parse(list)
		}),
		Texts(Row{
			Name: "iterates",
			Usage: "also run an ensemble of other checkpoints, such as SGLD's: `NAME=FILES`, where FILES is a pattern such as " +
				"'sgld/*.onnx'",
		}, &o.Iterates),
		Text(Row{
			Name:  "val",
			Usage: "fit temperatures, and other numbers that calibrate, on the labelled data in `FILE`",
		}, &o.Validation),
		Texts(Row{
			Name:  "checkpoints",
			Usage: "the posterior's checkpoints are now in `FOLDER`; with several posteriors, once for each",
		}, &o.Checkpoints),
		Real(Row{
			Name:    "scale",
			Usage:   "multiply SWAG's covariance by `ALPHA`",
			Default: fmt.Sprint(swag.LowRankPlusDiagonal.DefaultScale()),
			Given:   &o.GivenScale,
		}, &o.Scale, 0, MaxScale),
		Draws(Row{}, &o.Antithetic, &o.Orthogonal),
	}, Template(&o.Source), Sampling(Row{Default: members}, &o.Members, "on the data of the study", &o.BatchNorm.Seed), Study(o))
}

// Study makes the rows of a command that recomputes batch-norm statistics, reads data, and computes.
func Study(o *open.StudyOptions) Table {
	return Join(BatchNorm(&o.BatchNorm, &o.Network), Data(&o.Data, &o.Network), Run(&o.Runtime, &o.Data))
}

// BatchNorm makes the rows that say how to recompute batch-norm statistics.
func BatchNorm(o *open.BatchNormOptions, n *open.NetworkOptions) Table {
	return Table{
		Parsed(Row{
			Name: "bn",
			Usage: "recompute batch-norm statistics that training updated, and keep those that were frozen (auto), recompute all, or " +
				"keep all: auto|recompute|keep",
			Default: infer.RecomputeTrained.String(),
			Not:     "drawn alone",
		}, &n.Statistics, infer.ParseStatistics),
		Text(Row{
			Name: "bn-data",
			Usage: "recompute batch-norm statistics on the training data in `PATH`, and check that other data looks like it. PATH has " +
				"what the training loader yields, as an array of floats, or training images: a folder, list or tar, or uint8 arrays " +
				"(.npz .npy IDX)",
			Not: "drawn alone",
		}, &o.Data),
		Augment(&o.Augment, "as at fit"),
		Parsed(Row{
			Name: "bn-samples",
			Usage: "use `N` examples, such as 5000 or 10%, or all, or auto: as many as predictions need. They are shuffled by the " +
				"seed; ordered takes all in the order of the data",
			Preset: auto,
		}, &o.Samples, parseSamples),
	}
}

// parseSamples parses --bn-samples: a number, a share such as 10%, or a word.
func parseSamples(s string) (open.Samples, error) {
	switch s {
	case "", auto:
		return open.Samples{}, nil
	case "all":
		return open.Samples{All: true}, nil
	case "ordered":
		return open.Samples{Ordered: true}, nil
	}
	if share, ok := strings.CutSuffix(s, "%"); ok {
		p, err := word.Real(share, leastShare, 100)
		if err != nil {
			return open.Samples{}, fmt.Errorf("%q: want %g%% to 100%%, such as 10%%", s, leastShare)
		}
		return open.Samples{Percent: p}, nil
	}
	n, err := word.Integer(s, 1, MaxExamples)
	if err != nil {
		return open.Samples{}, fmt.Errorf("%w examples, or a share such as 10%%, all, ordered or auto", err)
	}
	return open.Samples{Count: n}, nil
}

// Augment makes the row that says how training images were augmented. preset describes the default.
func Augment(o *open.Given[string], preset string) *Row {
	return Text(Row{
		Name: "augment",
		Usage: "augment training images as training did, by `SPEC`: none, cifar, imagenet, transforms in torchvision's words " +
			"(\"RandomCrop(32, padding=4), RandomHorizontalFlip\"), or a file with them",
		Preset: preset,
		Given:  &o.Set,
	}, &o.Value)
}

// Adapt makes the rows that say to which data batch-norm statistics are adapted. more names further values of --adapt. shift is a
// text that is a target of its own, or nil.
func Adapt(o *open.AdaptOptions, more string, shift *string) Table {
	t := Table{
		Parsed(Row{
			Name:  "adapt",
			Usage: "adapt batch-norm statistics to the data in `TARGET`, which differ from training and need no labels" + more,
			Hint:  "--adapt " + open.WholeBlocks + "512",
			Not:   "outputs",
		}, &o.Data, func(s string) (_ string, err error) {
			if n, ok := strings.CutPrefix(s, open.WholeBlocks); ok {
				if o.Blocks, err = word.Integer(n, batchnorm.LeastTarget, MaxExamples); err != nil {
					err = fmt.Errorf("%s: %w", s, err)
				}
			}
			return s, err
		}),
		Real(Row{
			Name:    "adapt-weight",
			Usage:   "with --adapt, and compare --shift: a share `W` of the statistics is of the target, and the rest of training",
			Default: fmt.Sprint(batchnorm.DefaultWeight),
			Not:     "untargeted",
		}, &o.Weight, leastAdapt, 1),
	}
	t[1].Then = func() error {
		if o.Data != "" && o.Data != open.NoTarget || shift != nil && *shift != "" {
			return nil
		}
		return t.Refuse("untargeted", "leave it out, or say to which data: --adapt TARGET", "--*: needs a target")
	}
	return t
}

// RefuseNoTarget refuses values of --adapt that are for score alone.
func RefuseNoTarget(o open.AdaptOptions) error {
	switch {
	case o.Data == open.NoTarget:
		return console.Usagef("leave it out", "--adapt none is for score, of an ensemble that was adapted")
	case o.Blocks > 0:
		return console.Usagef("--adapt TARGET adapts to all of a target", "--adapt %s is for score", o.Data)
	}
	return nil
}

// Labels makes the row of --labels, which names files with labels of their own.
func Labels(l *open.Labels) *Row {
	return Repeated(Row{
		Name:  "labels",
		Usage: "read labels from `FILE`. val=FILE is for --val, and test=FILE for --test",
		Not:   "outputs",
	}, func(s string) error {
		switch of, file, _ := strings.Cut(s, "="); of {
		case "val":
			l.Validation = file
		case "test":
			l.Test = file
		default:
			l.Main = s
		}
		return nil
	})
}

// Scores makes the row that says the form of a classifier's scores.
func Scores(field *string) *Row {
	return Parsed(Row{
		Name: "scores",
		Usage: "the scores of a classifier are logits, probabilities or log-probabilities: `FORM`. Needed only where neither the " +
			"graph nor the values tell",
		Preset: "what the model card, the graph or the values say",
	}, field, func(s string) (string, error) {
		_, err := task.ParseForm(s)
		return s, err
	})
}

// OutputNameAndTask makes the rows that choose one of several outputs after the fit.
func OutputNameAndTask(n *open.NetworkOptions) Table {
	return Table{OutputName(n), OneOf(Row{
		Name:   "task",
		Usage:  "of a posterior whose task is none: the output holds scores of `TASK`: " + strings.Join(task.Names(), "|"),
		Preset: "as at fit",
	}, &n.Task, task.Names()...)}
}

// OutputName makes the row that names the output with the scores after the fit.
func OutputName(n *open.NetworkOptions) *Row {
	return Text(Row{Name: "output-name", Usage: "take the scores from the networks' output `NAME`", Preset: "as at fit"}, &n.Output)
}

// Posterior makes the row for the new paths of posteriors that have moved since an ensemble was written.
func Posterior(o *open.EnsembleOptions) *Row {
	return Texts(Row{
		Name:  "posterior",
		Usage: "a posterior of the ensemble is now `FILE`; may be given several times, in any order",
		Not:   "alone",
	}, &o.Posteriors)
}

// Threads makes the row of --threads.
func Threads(field *int) *Row {
	return Integer(Row{Name: "threads", Short: "j", Usage: "use `N` threads", Preset: "one per core"}, field, 0, maxThreads)
}

// ParseThreads parses a number of threads. 0 is one per core, and so is auto.
func ParseThreads(s string) (int, error) {
	if s == auto {
		return 0, nil
	}
	n, err := word.Integer(s, 0, maxThreads)
	if err != nil {
		err = fmt.Errorf("%w, or auto", err)
	}
	return n, err
}

// BatchSize makes the row of --batch-size. preset describes the default.
func BatchSize(field *int, preset string) *Row {
	return Integer(Row{Name: "batch-size", Short: "b", Usage: "run `N` examples at a time", Preset: preset}, field, 0, maxBatch)
}

// Rank makes a row for a number of columns. One column has no spread.
func Rank(r Row, field *int) *Row {
	r.Name = "rank"
	return IntegerIf(r, field, fmt.Sprintf("0, or 2 to %d", int(maxRank)), func(k int) bool { return k == 0 || within(k, 2, maxRank) })
}

// Noise makes the row of --noise-std, for each target or for all.
func Noise(r Row, field *[]float64) *Row {
	r.Name = "noise-std"
	return Reals(r, field, leastNoise, mostNoise)
}

// Count makes the row of the number of members. 0 stands for auto, and how describes what that looks at.
func Count(r Row, field *int, how string) *Row {
	r.Name, r.Short = "members", "n"
	r.Hint = inDigits + ", or " + auto
	r.Usage = fmt.Sprintf("draw `S` members; auto draws as few antithetic pairs as are as near to very many members as %d independent "+
		"ones, %s", ensemble.DefaultMembers, how)
	return Parsed(r, field, func(s string) (int, error) {
		if s == auto {
			return 0, nil
		}
		n, err := word.Integer(s, 1, swag.MaxMembers-1)
		if err != nil {
			err = fmt.Errorf("%w, or %s", err, auto)
		}
		return n, err
	})
}

// Usual is the number of members without a reason for another one.
var Usual = strconv.Itoa(ensemble.DefaultMembers)

// Sampling makes the rows of a number of members, and of the seed. r and how are for [Count].
func Sampling(r Row, members *int, how string, seed *uint64) Table {
	return Table{
		Count(r, members, how),
		Seed(Row{Usage: "`SEED` of the draws and of the order of the training data", Not: "settings"}, seed),
	}
}

// DrawOptions say how members are drawn.
type DrawOptions struct {
	Scale      open.Given[float64]
	Rank       open.Given[int]
	Antithetic bool
	Orthogonal bool
}

// Covariance makes the rows that say how members are drawn.
func Covariance(o *DrawOptions) Table {
	return Table{
		Real(Row{
			Name:   "scale",
			Usage:  "multiply the covariance by `ALPHA`; 0 gives SWA itself",
			Preset: "0.5, or 1 with --rank 0",
			Given:  &o.Scale.Set,
			Not:    "settings swa last iterates drawn alone",
		}, &o.Scale.Value, 0, MaxScale),
		Rank(Row{
			Usage:  "use `K` columns of the low-rank part; 0 leaves it out (SWAG-Diagonal)",
			Preset: "all",
			Given:  &o.Rank.Set,
			Not:    "settings swa last iterates swag-diag drawn alone",
		}, &o.Rank.Value),
		Draws(Row{Not: "settings swa last iterates drawn alone"}, &o.Antithetic, &o.Orthogonal),
	}
}

// The values of --draws.
const pairs, orthogonal, independent = "antithetic", "orthogonal", "independent"

// Draws makes the row that says whether members come in antithetic pairs, and these at right angles.
func Draws(r Row, antithetic, orthogonals *bool) *Row {
	r.Name, r.Default = "draws", pairs
	r.Usage = "draw members in pairs that are mirror images at the mean (antithetic), so that fewer suffice, in such pairs at right " +
		"angles to each other (orthogonal), or one by one as the paper does: `HOW`, " + pairs + "|" + orthogonal + "|" + independent
	return Parsed(r, antithetic, func(s string) (bool, error) {
		*orthogonals = s == orthogonal
		return s != independent, word.Check(s, pairs, orthogonal, independent)
	})
}

// Draws returns how members are drawn. With diagonal the low-rank part is left out.
func (o DrawOptions) Draws(seed uint64, diagonal bool) swag.SampleOptions {
	opts := swag.SampleOptions{Seed: seed, Rank: o.Rank.Value}
	if diagonal || o.Rank.Set && opts.Rank == 0 {
		opts.Covariance = swag.Diagonal
	}
	opts.Scale = opts.Covariance.DefaultScale()
	if o.Scale.Set {
		opts.Scale = o.Scale.Value
	}
	opts.Antithetic = o.Antithetic && opts.Scale > 0
	opts.Orthogonal = o.Orthogonal && opts.Antithetic && opts.Covariance == swag.LowRankPlusDiagonal
	return opts
}

// Memory makes the row of --memory. All options that take memory share one budget.
func Memory(budgets ...**memory.Budget) *Row {
	var size int64
	return Parsed(Row{
		Name: "memory",
		Usage: "let networks take at most `SIZE` in ONNX Runtime, decoding pictures as much, and caches half as much, such as " +
			"500M or 4G; a network or picture that needs more is refused. Not counted: the program, results, and arrays that are read " +
			"whole",
		Preset: "networks: half of what is free; caches: what makes no command slower",
		Then: func() error {
			shared := memory.New(size)
			for _, b := range budgets {
				*b = shared
			}
			return nil
		},
	}, &size, byteSize)
}

// byteSize parses sizes such as 1000000, 500M or 4G. The units are powers of 1,024. An empty text is 0.
func byteSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	digits, shift := s, 0
	if i := strings.IndexByte("KMGT", s[len(s)-1]&^0x20); i >= 0 {
		digits, shift = s[:len(s)-1], 10*(i+1)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > mostMemory>>shift {
		return 0, fmt.Errorf("%q: want 1 to 1024T of bytes, such as 500M or 4G", s)
	}
	return n << shift, nil
}

// Run makes the rows of a command that runs networks on data.
func Run(o *open.RuntimeOptions, d *open.DataOptions) Table {
	return Join(Table{
		BatchSize(&o.BatchSize, strconv.Itoa(infer.DefaultBatchSize)),
		Threads(&o.Threads),
		Memory(&o.Memory, &d.Memory),
	}, Runtime(o))
}

// measured, behind bf16, asks what it changes.
const measured = ",measured"

// Provider makes the row of --provider.
func Provider(field *string) *Row {
	providers := append(slices.Clone(ort.Names), ort.Auto)
	return OneOf(Row{
		Name: "provider",
		Usage: "compute with ONNX Runtime's own kernels, with Intel's (openvino), or on a GPU: with Vulkan or Metal (webgpu), or " +
			"NVIDIA's (cuda); swagwrap setup --provider fetches the others. auto takes the GPU where it is measured to be faster, and " +
			"to agree with the CPU: " + strings.Join(providers, "|"),
		Default: ort.CPU,
	}, field, providers...)
}

// FetchedProvider makes the row of --provider of setup.
func FetchedProvider(field *string) *Row {
	fetched := append(slices.Clone(ort.Names), ort.Auto, ort.Web)
	return OneOf(Row{
		Name:    "provider",
		Usage:   "fetch what --provider `NAME` of other commands needs, or web, for export --web: " + strings.Join(fetched, "|"),
		Default: ort.CPU,
	}, field, fetched...)
}

// Fetched returns the provider that setup and doctor are for. auto stands for the GPU.
func Fetched(name string) ort.Provider {
	if name == ort.Auto {
		name = ort.WebGPU
	}
	return ort.Provider{Name: name}
}

// Library makes the row that selects the ONNX Runtime library.
func Library(field *string) *Row {
	return Text(Row{
		Name: "ort-lib",
		Usage: "use the ONNX Runtime library `FILE` (default: $SWAGWRAP_ORT_LIB, else that of the Python package onnxruntime if pip " +
			"installed swagwrap, else the one that swagwrap setup fetched; with --provider openvino, the one that setup fetched for " +
			"it)",
	}, field)
}

// Runtime makes the rows that select the ONNX Runtime library, the provider and the precision.
func Runtime(o *open.RuntimeOptions) Table {
	precisions, precision, device := []string{auto, ort.F32, ort.TF32, ort.BF16, ort.BF16 + measured, ort.F16}, "", false
	return Table{
		Library(&o.Library),
		Provider(&o.Provider.Name),
		Integer(Row{
			Name:    "device",
			Usage:   "with --provider cuda compute on GPU `N`, from 0; the parts of a job use several",
			Default: "0",
			Given:   &device,
		}, &o.Provider.Device, 0, maxDevice),
		OneOf(Row{
			Name: "precision",
			Usage: "compute in `P`; auto is bf16 with --provider openvino, where the processor has instructions for it, and on a GPU " +
				"the fastest that is measured to change little and to be faster; bf16,measured tells what bf16 changes: " +
				strings.Join(precisions, "|"),
			Default: ort.F32,
			Then:    func() error { return choosePrecision(o, precision, device) },
		}, &precision, precisions...),
	}
}

// choosePrecision sets the precision. The program may choose it for auto: it is float32 until the effect of a lower one was measured.
func choosePrecision(o *open.RuntimeOptions, precision string, device bool) error {
	p := &o.Provider
	p.Precision, o.Measure = strings.CutSuffix(precision, measured)
	switch {
	case device && !p.ChoosesDevice():
		return console.Usagef("--provider cuda --device 1 takes the second GPU; webgpu takes the GPU that the driver "+
			"prefers", "--device %d: is not for --provider %s", p.Device, p.Name)
	case p.Precision != auto && p.Precision != ort.F32 && !slices.Contains(p.Low(), p.Precision):
		return console.Usagef("--provider openvino computes in bf16, webgpu in f16, and cuda in f16 or tf32. ONNX "+
			"Runtime's CUDA has no convolution in bf16",
			"--precision %s: --provider %s computes in %s", p.Precision, p.Name,
			strings.Join(append([]string{ort.F32}, p.Low()...), " or "))
	case p.Precision == auto:
		p.Precision, o.Free = ort.F32, true
	}
	return nil
}

// Preprocess makes the row of --preprocess. preset describes the default.
func Preprocess(field *string, preset string) *Row {
	return Text(Row{
		Name: "preprocess",
		Usage: "preprocess pictures as `SPEC` says: a file, " +
			strings.Join(preprocess.Presets(), "|") + `, or "mean=M std=S input-size=N ..."`,
		Preset: preset,
	}, field)
}

// Data makes the rows that say how a command reads its data.
func Data(d *open.DataOptions, n *open.NetworkOptions) Table {
	prepared := Prepared(d)
	return Join(prepared[:5], Table{
		Scores(&n.Scores),
		Parsed(Row{
			Name: "text",
			Usage: "cut the text of a language model as `SPEC` says: \"rows=10 bptt=35 vocabulary=FILE\", or \"window=1024 stride=512 " +
				"tokenizer=FILE\"",
			Preset: "rows=10 bptt=35",
			Hint: "such as --text 'rows=10 bptt=35 vocabulary=vocab.txt', or --text 'window=1024 stride=512 " +
				"tokenizer=tokenizer.json'",
		}, &d.Text, parseCutting),
		Parsed(Row{
			Name: "labels-as",
			Usage: "labels such as 10 are the numbers of classes, or their names, which are numbered in the order of fit --class-names " +
				"or of the alphabet: numbers|names|auto. Class folders are names, as for torchvision, except with numbers",
			Default: names.Auto.String(),
		}, &d.LabelsAs, names.ParseAs),
	}, prepared[5:])
}

// parseCutting reads the flag --text, whose tokenizer is opened by package tokenizer.
func parseCutting(spec string) (text.Cutting, error) {
	cut, err := text.ParseCutting(spec)
	cut.Open = tokenizer.Open
	return cut, err
}

// Prepared makes the rows that say how data is read for an exported model.
func Prepared(d *open.DataOptions) Table {
	d.Text, _ = parseCutting("") // the empty text is always valid
	return Table{
		Preprocess(&d.Preprocess, "as at fit"),
		columns(&d.Columns, "as at fit"),
		LabelColumn(&d.Named.Labels),
		PathColumn(&d.Named.Path),
		FileOrder(&d.Order, "as at fit, or a question where it matters"),
		Parsed(Row{
			Name: "arrays",
			Usage: "arrays of floats hold `WHAT`: pixels in [0, 1], which are normalised, or what the network saw in training; of a " +
				"network that takes no pictures likewise arrays of uint8: pixels|seen|auto",
			Default: dataset.Auto.String(),
		}, &d.Arrays, dataset.ParseArrays),
	}
}

// LabelColumn makes the row that names the columns with labels.
func LabelColumn(field *[]string) *Row {
	return Texts(Row{
		Name:   "label-column",
		Usage:  "of a list or a table, the labels are in the column `NAME`; for several labels or targets A,B,C",
		Preset: "label, class, target, or a similar name",
	}, field)
}

// PathColumn makes the row that names the column with paths.
func PathColumn(field *string) *Row {
	return Text(Row{
		Name:   "path-column",
		Usage:  "of a list or a table, the paths of pictures are in the column `NAME`",
		Preset: "path, file, image, or a similar name",
	}, field)
}

// FileOrder makes the row that says the order of files where rows without names belong to them. preset describes the default.
func FileOrder[T ~string](field *T, preset string) *Row {
	return OneOf(Row{
		Name: "file-order",
		Usage: "where rows of an array or a table without names belong to files: files have the order of their names as text (1, " +
			"10, 2) or of the numbers in them (1, 2, 10), or that of the tar: " + strings.Join(fileorder.Words(), "|"),
		Preset: preset,
	}, field, fileorder.Words()...)
}

// Allow makes the row that allows what a command refuses by default.
func Allow(field *bool, what, means string) *Row {
	return Parsed(Row{Name: "allow", Usage: what + ": " + means}, field, func(s string) (bool, error) {
		return true, word.Check(s, what)
	})
}
