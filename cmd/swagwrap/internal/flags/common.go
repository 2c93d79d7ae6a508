package flags

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/swag"
)

// TemplateFlags say how to read PyTorch checkpoints.
var TemplateFlags = []cli.Flag{
	&cli.StringFlag{
		Name:  "template",
		Usage: "read PyTorch's checkpoints against the exported graph in `FILE`. GRAPH=CHECKPOINT says which file has its weights",
	},
	&cli.StringFlag{Name: "state-dict", Usage: "take the state_dict under `KEY` of their files, such as ema", DefaultText: "the only one"},
	&cli.StringFlag{
		Name: "unused",
		Usage: "the network does not use the tensors `NAME,...` of the checkpoints, such as those of an auxiliary head: 'aux.*'. * " +
			"stands for any text",
	},
}

// OrderFlags select checkpoints and their order.
var OrderFlags = []cli.Flag{
	OneOf(&cli.StringFlag{
		Name: "order",
		Usage: "take checkpoints in `natural` order, of the steps or epochs stored in them or of their names (9 before 10), or as " +
			"given: natural|given",
		Value: "natural",
	}, "natural", "given"),
	OneOf(&cli.StringFlag{
		Name: "averages",
		Usage: "leave out checkpoints whose weights are proven to be an average of others, and `ask` where only a name says so; drop " +
			"both, or keep both: ask|keep|drop",
		Value: string(open.AskAverages),
	},
		string(open.AskAverages), string(open.KeepAverages), string(open.DropAverages)),
}

// MethodFlags say which methods run, and how.
var MethodFlags = Join([]cli.Flag{
	Parsed(&cli.StringFlag{
		Name:        "methods",
		Usage:       "run the `LIST` of methods, separated by commas, or all: " + strings.Join(baseline.Keys(), ", "),
		DefaultText: "those that the inputs allow, without isotropic",
	}, baseline.Parse),
	&cli.StringSliceFlag{
		Name:  "iterates",
		Usage: "also run an ensemble of other checkpoints, such as SGLD's: `NAME=FILES`, where FILES is a pattern such as 'sgld/*.onnx'",
	},
	&cli.StringFlag{Name: "val", Usage: "fit temperatures, and other numbers that calibrate, on the labelled data in `FILE`"},
	&cli.StringSliceFlag{
		Name:  "checkpoints",
		Usage: "the posterior's checkpoints are now in `FOLDER`; with several posteriors, once for each",
	},
	Real(0, MaxScale, &cli.Float64Flag{
		Name:  "scale",
		Usage: "multiply SWAG's covariance by `ALPHA`",
		Value: swag.LowRankPlusDiagonal.DefaultScale(),
	}),
}, TemplateFlags, SamplingFlags, BatchNormFlags, DataFlags, RunFlags)

// BatchNormFlags say how to recompute batch-norm statistics.
var BatchNormFlags = []cli.Flag{
	OneOf(&cli.StringFlag{
		Name: "bn",
		Usage: "recompute batch-norm statistics that training updated, and keep those that were frozen (`auto`), recompute all, or keep " +
			"all: auto|recompute|keep",
		Value: infer.RecomputeTrained.String(),
	},
		"auto", "recompute", "keep"),
	&cli.StringFlag{
		Name: "bn-data",
		Usage: "recompute batch-norm statistics on the training data in `PATH`, and check that other data looks like it. PATH has what " +
			"the training loader yields, as an array of floats, or training images: a folder, list or tar, or uint8 arrays (.npz .npy IDX)",
	},
	AugmentFlag("as at fit"),
	Checked(&cli.StringFlag{
		Name: "bn-samples",
		Usage: "use `N` examples, such as 5000 or 10%, or all, or auto: as many as predictions need. They are shuffled by the " +
			"seed; ordered takes all in the order of the data",
		DefaultText: "auto",
	},
		parseSamples),
}

// leastShare is the smallest share of examples, in per cent.
const leastShare = 1e-6

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
	n, err := word.Whole(s, 1, MaxExamples)
	if err != nil {
		return open.Samples{}, fmt.Errorf("%w examples, or a share such as 10%%, all, ordered or auto", err)
	}
	return open.Samples{Count: n}, nil
}

// LabelsFlag names files with labels of their own.
var LabelsFlag = &cli.StringSliceFlag{Name: "labels", Usage: "read labels from `FILE`. val=FILE is for --val, and test=FILE for --test"}

// ReadLabels reads --labels.
func ReadLabels(c *cli.Context) (l open.Labels) {
	for _, s := range c.StringSlice("labels") {
		switch of, file, _ := strings.Cut(s, "="); of {
		case "val":
			l.Validation = file
		case "test":
			l.Test = file
		default:
			l.Main = s
		}
	}
	return l
}

// AsGiven returns those of the named flags that were given, as arguments for another command.
func AsGiven(c *cli.Context, names ...string) (args []string) {
	for _, name := range names {
		if !c.IsSet(name) {
			continue
		}
		switch v := c.Value(name).(type) {
		case bool:
			args = append(args, fmt.Sprintf("--%s=%v", name, v))
		case cli.StringSlice:
			for _, s := range v.Value() {
				args = append(args, "--"+name, s)
			}
		case cli.Float64Slice:
			for _, x := range v.Value() {
				args = append(args, "--"+name, fmt.Sprint(x))
			}
		default:
			args = append(args, "--"+name, fmt.Sprint(v))
		}
	}
	return args
}

// AugmentFlag says how training images were augmented. preset describes the default.
func AugmentFlag(preset string) cli.Flag {
	return &cli.StringFlag{
		Name: "augment",
		Usage: "augment training images as training did, by `SPEC`: none, cifar, imagenet, transforms in torchvision's words " +
			"(\"RandomCrop(32, padding=4), RandomHorizontalFlip\"), or a file with them",
		DefaultText: preset,
	}
}

// ScoresFlag is the form of a classifier's scores.
var ScoresFlag = Checked(&cli.StringFlag{
	Name: "scores",
	Usage: "the scores of a classifier are logits, probabilities or log-probabilities: `FORM`. Needed only where neither the " +
		"graph nor the values tell",
	DefaultText: "what the model card, the graph or the values say",
}, task.ParseForm)

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
)

// maxThreads is the largest number of threads. Each has a stack of some megabytes, which counts against the limits of a
// shell.
var maxThreads = max(256, runtime.NumCPU())

// Threads reads a number of threads. 0 is one per core, and so is auto.
func Threads(s string) (int, error) {
	if s == auto {
		return 0, nil
	}
	n, err := word.Whole(s, 0, maxThreads)
	if err != nil {
		err = fmt.Errorf("%w, or auto", err)
	}
	return n, err
}

// BatchSizeFlag returns --batch-size. preset describes the default.
func BatchSizeFlag(preset string) Int {
	return Whole(0, maxBatch, &cli.IntFlag{
		Name:        "batch-size",
		Aliases:     []string{"b"},
		Usage:       "run `N` examples at a time",
		DefaultText: preset,
	})
}

// RankFlag bounds a number of columns. One column has no spread.
func RankFlag(f *cli.IntFlag) Int {
	return WholeIf(fmt.Sprintf("0, or 2 to %d", int(maxRank)), func(k int) bool { return k == 0 || within(k, 2, maxRank) }, f)
}

// SamplesFlag returns --samples. 0 stands for all examples.
func SamplesFlag(f *cli.IntFlag) Int { return Whole(0, MaxExamples, f) }

// NoiseFlag returns --noise-std, for each target or for all.
func NoiseFlag(usage, preset string) Floats {
	return Reals(leastNoise, mostNoise, &cli.Float64SliceFlag{Name: "noise-std", Usage: usage, DefaultText: preset})
}

// Flags of several commands.
var (
	OutputFlags = []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the result to `FILE`; - is standard output"},
		&cli.BoolFlag{Name: "force", Usage: "replace an existing output that swagwrap wrote"},
	}
	ThreadsFlag = Whole(0, maxThreads, &cli.IntFlag{
		Name:        "threads",
		Aliases:     []string{"j"},
		Usage:       "use `N` threads",
		DefaultText: "one per core",
	})
	MemoryFlag = Checked(&cli.StringFlag{
		Name: "memory",
		Usage: "let networks take at most `SIZE` in ONNX Runtime, decoding pictures as much, and caches half as much, such as " +
			"500M or 4G; a network or picture that needs more is refused. Not counted: the program, results, and arrays that are read " +
			"whole",
		DefaultText: "networks: half of what is free; caches: what makes no command slower",
	}, byteSize)
	RunFlags = Join([]cli.Flag{
		BatchSizeFlag(strconv.Itoa(infer.DefaultBatchSize)),
		ThreadsFlag,
		MemoryFlag,
	}, RuntimeFlags)
	// MembersFlag is the number of members that a command draws.
	MembersFlag = Whole(1, swag.MaxMembers-1, &cli.IntFlag{
		Name:    "members",
		Aliases: []string{"n"},
		Usage:   "draw `S` members",
		Value:   ensemble.DefaultMembers,
	})
	CovarianceFlags = []cli.Flag{
		Real(0, MaxScale, &cli.Float64Flag{
			Name:        "scale",
			Usage:       "multiply the covariance by `ALPHA`; 0 gives SWA itself",
			DefaultText: "0.5, or 1 with --rank 0",
		}),
		RankFlag(&cli.IntFlag{
			Name:        "rank",
			Usage:       "use `K` columns of the low-rank part; 0 leaves it out (SWAG-Diagonal)",
			DefaultText: "all",
		}),
		&cli.BoolFlag{Name: "antithetic", Usage: "draw members in pairs, each the mirror image of the other at the mean"},
	}
	SamplingFlags = []cli.Flag{
		MembersFlag,
		SeedFlag("`SEED` of the draws and of the order of the training data"),
	}
)

// Join concatenates groups of flags.
func Join(groups ...[]cli.Flag) []cli.Flag { return slices.Concat(groups...) }

// ReadMemory makes the budget of a command from --memory. All that takes memory gets it.
func ReadMemory(c *cli.Context) *memory.Budget {
	n, _ := byteSize(c.String("memory")) // the flag was checked
	return memory.New(n)
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

const auto = "auto"

var (
	providers = append(slices.Clone(ort.Names), ort.Auto)
	fetched   = append(slices.Clone(providers), ort.Web)
)

// measured, behind bf16, asks what it changes.
const measured = ",measured"

var precisions = []string{auto, ort.F32, ort.TF32, ort.BF16, ort.BF16 + measured, ort.F16}

var (
	// ProviderFlag selects the library that computes.
	ProviderFlag = OneOf(&cli.StringFlag{
		Name: "provider",
		Usage: "compute with ONNX Runtime's own kernels, with Intel's (openvino), or on a GPU: with Vulkan or Metal (webgpu), or " +
			"NVIDIA's (cuda); swagwrap setup --provider fetches the others. auto takes the GPU where it is measured to be faster, and " +
			"to agree with the CPU: " + strings.Join(providers, "|"),
		Value: ort.CPU,
	}, providers...)
	// FetchedFlag is that of setup.
	FetchedFlag = OneOf(&cli.StringFlag{
		Name:  "provider",
		Usage: "fetch what --provider `NAME` of other commands needs, or web, for export --web: " + strings.Join(fetched, "|"),
		Value: ort.CPU,
	}, fetched...)
	// DeviceFlag selects one of several GPUs.
	DeviceFlag = Whole(0, maxDevice, &cli.IntFlag{
		Name:  "device",
		Usage: "with --provider cuda compute on GPU `N`, from 0; the parts of a job use several",
		Value: 0,
	})
	// RuntimeFlags select the ONNX Runtime library, the provider and the precision.
	RuntimeFlags = []cli.Flag{
		&cli.StringFlag{
			Name: "ort-lib",
			Usage: "use the ONNX Runtime library `FILE` (default: $SWAGWRAP_ORT_LIB, else that of the Python package onnxruntime if pip " +
				"installed swagwrap, else the one that swagwrap setup fetched; with --provider openvino, the one that setup fetched for " +
				"it)",
		},
		ProviderFlag, DeviceFlag,
		OneOf(&cli.StringFlag{
			Name: "precision",
			Usage: "compute in `P`; auto is bf16 with --provider openvino, where the processor has instructions for it, and on a GPU " +
				"the fastest that is measured to change little and to be faster; bf16,measured tells what bf16 changes: " +
				strings.Join(precisions, "|"),
			Value: ort.F32,
		}, precisions...),
	}
)

// provider reads --provider and --precision. free says that the program may choose the precision. It is float32 until the
// effect of a lower one was measured. measure asks for that of a precision that the user chose.
func provider(c *cli.Context) (p ort.Provider, free, measure bool, err error) {
	p = ort.Provider{Name: c.String("provider"), Device: c.Int("device")}
	p.Precision, measure = strings.CutSuffix(c.String("precision"), measured)
	switch {
	case c.IsSet("device") && !p.ChoosesDevice():
		return p, false, false, console.Usagef("--provider cuda --device 1 takes the second GPU; webgpu takes the GPU that the driver "+
			"prefers", "--device %d: is not for --provider %s", p.Device, p.Name)
	case p.Precision != auto && p.Precision != ort.F32 && !slices.Contains(p.Low(), p.Precision):
		return p, false, false, console.Usagef("--provider openvino computes in bf16, webgpu in f16, and cuda in f16 or tf32. ONNX "+
			"Runtime's CUDA has no convolution in bf16",
			"--precision %s: --provider %s computes in %s", p.Precision, p.Name,
			strings.Join(append([]string{ort.F32}, p.Low()...), " or "))
	case p.Precision == auto:
		p.Precision, free = ort.F32, true
	}
	return p, free, measure, nil
}

// PreprocessFlag replaces the preprocessing of the model card for one command.
var PreprocessFlag = preprocessFlag("as at fit")

func preprocessFlag(preset string) cli.Flag {
	return &cli.StringFlag{
		Name: "preprocess",
		Usage: "preprocess pictures as `SPEC` says: a file, " +
			strings.Join(preprocess.Presets(), "|") + `, or "mean=M std=S input-size=N ..."`,
		DefaultText: preset,
	}
}

// DataFlags say how a command preprocesses its data.
var DataFlags = []cli.Flag{
	PreprocessFlag,
	ColumnsFlag,
	LabelColumnFlag,
	PathColumnFlag,
	FileOrderFlag,
	ScoresFlag,
	&cli.StringFlag{
		Name: "text",
		Usage: "cut the text of a language model as `SPEC` says: \"rows=10 bptt=35 vocabulary=FILE\", or \"window=1024 stride=512 " +
			"tokenizer=FILE\"",
		DefaultText: "rows=10 bptt=35",
	},
	LabelsAsFlag,
	ArraysFlag,
}

// PreparedFlags say how data is read for an exported model.
var PreparedFlags = []cli.Flag{PreprocessFlag, ColumnsFlag, LabelColumnFlag, PathColumnFlag, FileOrderFlag, ArraysFlag}

// ArraysFlag says what arrays hold.
var ArraysFlag = Checked(&cli.StringFlag{
	Name: "arrays",
	Usage: "arrays of floats hold `WHAT`: pixels in [0, 1], which are normalised, or what the network saw in training; of a network " +
		"that takes no pictures likewise arrays of uint8: pixels|seen|auto",
	Value: dataset.Auto.String(),
}, dataset.ParseArrays)

// LabelColumnFlag and PathColumnFlag name the columns of a list or a table that are no inputs.
var (
	LabelColumnFlag = &cli.StringSliceFlag{
		Name:        "label-column",
		Usage:       "of a list or a table, the labels are in the column `NAME`; for several labels or targets A,B,C",
		DefaultText: "label, class, target, or a similar name",
	}
	PathColumnFlag = &cli.StringFlag{
		Name:        "path-column",
		Usage:       "of a list or a table, the paths of pictures are in the column `NAME`",
		DefaultText: "path, file, image, or a similar name",
	}
)

// FileOrderFlag says the order of files where rows without names belong to them.
var FileOrderFlag = fileOrderFlag("as at fit, or a question where it matters")

func fileOrderFlag(preset string) cli.Flag {
	return OneOf(&cli.StringFlag{
		Name: "file-order",
		Usage: "where rows of an array or a table without names belong to files: files have the order of their names as text (1, " +
			"10, 2) or of the numbers in them (1, 2, 10), or that of the tar: " + strings.Join(fileorder.Words(), "|"),
		DefaultText: preset,
	}, fileorder.Words()...)
}

// ReadNamed reads --label-column and --path-column.
func ReadNamed(c *cli.Context) listing.Columns {
	return listing.Columns{Path: c.String("path-column"), Labels: c.StringSlice("label-column")}
}

// LabelsAsFlag says how labels that look like numbers are read.
var LabelsAsFlag = Checked(&cli.StringFlag{
	Name: "labels-as",
	Usage: "labels such as 10 are the numbers of classes, or their names, which are numbered in the order of fit --class-names or of " +
		"the alphabet: numbers|names|`auto`. Class folders are names, as for torchvision, except with numbers",
	Value: names.Auto.String(),
}, names.ParseAs)
