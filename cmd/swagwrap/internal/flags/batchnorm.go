package flags

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/swag"
)

// BatchNormFlags say how to recompute batch-norm statistics.
var BatchNormFlags = []cli.Flag{
	OneOf(&cli.StringFlag{Name: "bn", Usage: "recompute batch-norm statistics that training updated, and keep those that were frozen (`auto`), recompute all, or keep all: auto|recompute|keep", Value: infer.RecomputeTrained.String()},
		"auto", "recompute", "keep"),
	&cli.StringFlag{Name: "bn-data", Usage: "recompute them from `PATH`, and hold other data against it: what the training loader yields, saved as an array of floats, or training images: a folder, list or tar, or uint8 arrays (.npz .npy IDX)"},
	AugmentFlag("what was said at fit"),
	Checked(&cli.StringFlag{Name: "bn-samples", Usage: "use `N` of them, all, or auto: as many as predictions need", DefaultText: "auto, or all with --bn-order file"}, func(s string) error {
		if n, err := strconv.Atoi(s); s != "all" && s != "auto" && (err != nil || n < 1) {
			return fmt.Errorf("%q: want a number of images, all or auto", s)
		}
		return nil
	}),
	Share(&cli.Float64Flag{Name: "bn-fraction", Category: Reference, Usage: "use the part `F` of them, above 0 and at most 1, rounded up to whole images"}, "the paper's ImageNet experiments use --bn-fraction 0.1"),
	OneOf(&cli.StringFlag{Name: "bn-order", Category: Reference, Usage: "visit them `shuffled` by the seed, or in file order: shuffled|file", Value: "shuffled"}, "shuffled", "file"),
	Parsed(&cli.StringFlag{Name: "bn-rule", Category: Reference, Usage: "combine batches by `RULE`: reference|equal-batches|pooled", Value: bnupdate.Reference.String()}, func(s string) error {
		_, err := bnupdate.ParseRule(s)
		return err
	}),
}

// AsAsked returns the given flags that influence batch-norm statistics, except --bn-data. Another command may use them.
func AsAsked(c *cli.Context) (args []string) {
	for _, name := range []string{"bn", "augment", "bn-samples", "bn-fraction", "bn-order", "bn-rule", "preprocess", "arrays", "batch-size"} {
		if c.IsSet(name) {
			args = append(args, "--"+name, fmt.Sprint(c.Value(name)))
		}
	}
	return args
}

// BatchNorm is the data for recomputing statistics.
type BatchNorm struct {
	batchnorm.Training
	study.BatchNorm // its records are set by ChooseSampleSize
	auto            bool
	augment         string // of images
}

// OpenBatchNorm opens --bn-data for the networks. Data for one of them suits all. recompute says that statistics are
// recomputed, if a network has batch norm. Otherwise the data is not required, and tells only what inputs training had.
func (a *Env) OpenBatchNorm(c *cli.Context, networks []*infer.Network, p preprocess.Settings, recompute bool) (*BatchNorm, error) {
	b := &BatchNorm{BatchNorm: study.BatchNorm{Networks: networks}}
	path, samples, file := c.String("bn-data"), c.String("bn-samples"), c.String("bn-order") == "file"
	i := slices.IndexFunc(networks, (*infer.Network).Recomputes)
	switch {
	case (i < 0 || !recompute) && path == "":
		return b, nil
	case i < 0 || !recompute:
		if recompute {
			a.Logf(c, "there are no batch-norm statistics to recompute: --bn-data tells only what inputs training had")
		}
		return b, a.openTrainingData(c, b, networks[0], p)
	case c.IsSet("bn-fraction") && c.IsSet("bn-samples"):
		return b, Usagef("", "--bn-samples and --bn-fraction both say how many images to use: give one")
	case samples == "auto" && file:
		return b, Usagef("leave out --bn-order file, or say how many: --bn-samples N|all",
			"--bn-samples auto --bn-order file: the first images of a file say nothing about the others")
	case path == "":
		return b, Usagef("give what the network saw in training: --bn-data PATH. Averaged or sampled weights do not go with any checkpoint's statistics",
			"%s: the network has batch norm, and there is no --bn-data", networks[i].Posterior.Path)
	}
	if err := a.openTrainingData(c, b, networks[i], p); err != nil {
		return b, err
	}
	b.Rule, _ = bnupdate.ParseRule(c.String("bn-rule")) // the flag was checked
	b.Order = dataset.Order{Shuffle: !file, Seed: c.Uint64("seed"), Limit: b.Data.Len()}
	if c.IsSet("bn-fraction") {
		b.Order.Limit = int(math.Ceil(c.Float64("bn-fraction") * float64(b.Data.Len())))
	} else if n, err := strconv.Atoi(samples); err == nil {
		b.Order.Limit = n
	} else {
		b.auto = samples != "all" && !file
	}
	return b, nil
}

// ChooseSampleSize compares the images with the statistics in the checkpoints. With --bn-samples auto it also chooses how many
// images SWA and the members see.
func (a *Env) ChooseSampleSize(c *cli.Context, e *infer.Engine, b *BatchNorm, members swag.SampleOptions) error {
	was := e.Progress
	defer func() { e.Progress = was }()
	bar := &Bar{}
	if b.Data != nil {
		bar = a.Progress(c, "batch norm", int64(b.Images())) // at first the largest possible number
	}
	e.Progress = bar.Add
	data, records, err := batchnorm.ChooseSampleSize(c.Context, e, b.Networks, b.Training, batchnorm.SampleSizing{Auto: b.auto, Members: members, Resize: bar.Resize})
	bar.Done()
	if err != nil {
		return BadInput(err)
	}
	b.Training, b.Records = data, records
	for i, r := range records {
		if r == nil {
			continue
		}
		r.Augment, r.AsSeen = b.augment, b.Data != nil && r.Images > 0 && dataset.AsSeen(b.Data)
		a.describeBatchNorm(c, b, i)
	}
	for _, w := range b.Recomputed() {
		a.WarnLong(c, w)
	}
	return nil
}

// describeBatchNorm prints the origin of a network's statistics.
func (a *Env) describeBatchNorm(c *cli.Context, b *BatchNorm, i int) {
	r, what := b.Records[i], b.Whose(i)
	if n := len(r.Kept); n > 0 {
		a.Logf(c, "%s: %s", what, study.Kept(r))
	}
	if r.Images == 0 {
		return
	}
	all := b.Data.Len()
	loss := "by an unknown amount"
	if r.Loss != nil {
		loss = fmt.Sprintf("by %s at most", report.Fixed(*r.Loss, 5))
	}
	switch {
	case r.MemberImages > 0 && r.MemberImages < r.Images:
		a.Logf(c, "%s: SWA sees %s of %s images, and each member %s of them, corrected by what SWA's statistics from these lack (infinitely many images would lower the NLL %s)", what,
			report.Thousands(r.Images), report.Thousands(all), report.Thousands(r.MemberImages), loss)
	case r.Images < all:
		a.Logf(c, "%s: %s of %s images (infinitely many would lower the NLL %s)", what, report.Thousands(r.Images), report.Thousands(all), loss)
	default:
		a.Debugf(c, "%s: all %s images (infinitely many would lower the NLL %s)", what, report.Thousands(all), loss)
	}
	a.Debugf(c, "%s: at most %s of a layer's variance lies between batches", what, report.Percent(r.Between, 1))
	switch {
	case r.Check == nil: // the record has a warning
	case len(r.Check.Layers) == 0:
		a.Logf(c, "%s: all checkpoints store equal statistics, so these images cannot be checked", what)
	case len(r.Check.Off()) == 0:
		first := r.Check.Layers[0]
		a.Debugf(c, "%s: these images give the statistics that the last %d checkpoints store (first layer: means within %s standard deviations, variances within a factor of %s)", what, r.Check.Checkpoints,
			fmt.Sprintf("%.4g", first.Means), fmt.Sprintf("%.4g", math.Exp(first.Variances)))
	}
	if room, ok := dataset.Room(b.Data); ok && room < r.Images {
		a.Debugf(c, "%s: %s of these images fit in %d MiB, the others are decoded anew each time", what, report.Thousands(room), cacheBytes>>20)
	}
}

// AugmentFlag says how training images were augmented. preset describes the default.
func AugmentFlag(preset string) cli.Flag {
	return &cli.StringFlag{Name: "augment", Usage: "augment training images as training did, by `SPEC`: none, cifar, imagenet, transforms in torchvision's words (\"RandomCrop(32, padding=4), RandomHorizontalFlip\"), or a file with them or with timm's args.yaml", DefaultText: preset}
}

// Augmentation reads --augment, or else the model card. told is false if neither has an augmentation.
func Augmentation(c *cli.Context, card swag.Card) (p augment.Pipeline, told bool, err error) {
	spec := c.String("augment")
	switch info, statErr := os.Stat(spec); {
	case !c.IsSet("augment") && card.Augment == "":
		return p, false, nil
	case !c.IsSet("augment"):
		if p, err = augment.Parse(card.Augment); err != nil {
			err = BadInput(fmt.Errorf("model card: augment: %w", err))
		}
		return p, true, err
	case statErr == nil && info.Mode().IsRegular():
		p, err = augment.ReadFile(spec)
		return p, true, BadInput(err)
	}
	if p, err = augment.Parse(spec); err != nil {
		err = Usagef("", "--augment: %w", err)
	}
	return p, true, err
}

// openTrainingData opens --bn-data for a network. Arrays of floats that the network saw in training are used unchanged.
// Images are augmented.
func (a *Env) openTrainingData(c *cli.Context, b *BatchNorm, n *infer.Network, p preprocess.Settings) error {
	augmentation, told, err := Augmentation(c, n.Posterior.Card)
	if err != nil {
		return err
	}
	opts, err := DataOptions(c, "", n, p)
	if err != nil {
		return err
	}
	opts.Cache = cacheBytes
	opts.ClassNames, opts.Unlabelled = nil, true
	opts.Augment = augmentation
	path := c.String("bn-data")
	if b.Data, err = dataset.Open([]string{path}, opts); err != nil {
		return WrongData(c, err, path)
	}
	switch {
	case dataset.AsSeen(b.Data):
		what := "floats"
		if dataset.Fields(b.Data) != nil {
			what = "arrays"
		}
		a.Logf(c, "%s: %s, taken as what the network saw in training: they are neither normalised nor augmented", path, what)
	case told:
		b.augment = augmentation.String()
	default:
		a.Logf(c, "%s: these images are used plain, since nobody said how training augmented them (--augment SPEC, or --augment none if it did not; fit --augment remembers it)", path)
	}
	return nil
}
