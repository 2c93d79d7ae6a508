package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Flags of several commands.
var (
	OutputFlags = []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the result to `FILE`; - is standard output"},
		&cli.BoolFlag{Name: "force", Usage: "overwrite an existing output"},
	}
	ThreadsFlag = AtLeast(0, &cli.IntFlag{Name: "threads", Aliases: []string{"j"}, Usage: "use `N` threads", DefaultText: "one per core"})
	MemoryFlag  = Checked(&cli.StringFlag{Name: "memory", Usage: "let networks, and pictures that are decoded, take at most `SIZE` each, such as 500M or 4G; what needs more is refused", DefaultText: "half of what is free"}, func(s string) error {
		_, err := byteSize(s)
		return err
	})
	RunFlags = Join([]cli.Flag{
		AtLeast(0, &cli.IntFlag{Name: "batch-size", Aliases: []string{"b"}, Usage: "run `N` examples at a time", DefaultText: strconv.Itoa(infer.DefaultBatchSize)}),
		ThreadsFlag,
		MemoryFlag,
	}, RuntimeFlags)
	// MembersFlag is the number of members that a command draws.
	MembersFlag = &cli.IntFlag{Name: "members", Aliases: []string{"n"}, Usage: "draw `S` members", Value: DefaultMembers, Action: func(_ *cli.Context, n int) error {
		return CheckMembers(n)
	}}
	CovarianceFlags = []cli.Flag{
		NotNegative(&cli.Float64Flag{Name: "scale", Usage: "multiply the covariance by `ALPHA`; 0 gives SWA itself", DefaultText: "0.5, or 1 with --diagonal"}),
		&cli.IntFlag{Name: "rank", Usage: "use `K` columns of the low-rank part", DefaultText: "all"},
		&cli.BoolFlag{Name: "diagonal", Usage: "leave the low-rank part out (SWAG-Diagonal)"},
		&cli.BoolFlag{Name: "antithetic", Usage: "draw members in pairs that lie opposite each other about the mean"},
	}
	SamplingFlags = []cli.Flag{
		MembersFlag,
		&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the draws and of the order of the training images", Value: 1},
	}
)

// DefaultMembers is the paper's S.
const DefaultMembers = 30

// Join concatenates groups of flags.
func Join(groups ...[]cli.Flag) []cli.Flag { return slices.Concat(groups...) }

// Engine opens ONNX Runtime.
func (a *Env) Engine(c *cli.Context) (*infer.Engine, error) {
	provider, _, err := Provider(c)
	if err != nil {
		return nil, err
	}
	passes := ort.Provider{}
	if provider.Precision == ort.BF16 { // the user's choice holds for batch-norm passes too
		if passes = provider; ort.FastBF16() == "" {
			a.Warnf(c, "%s: bf16 is emulated, and slower than f32", noBF16)
		}
	}
	rt, err := a.openRuntime(c, provider)
	if err != nil {
		return nil, err
	}
	memory := givenMemory(c)
	e := &infer.Engine{Runtime: rt, Provider: provider, Passes: passes, BatchSize: c.Int("batch-size"), Workers: c.Int("threads"), Memory: memory}
	e.Slow = func(inside time.Duration, loops bool) {
		why := ""
		if loops {
			why = ": it has a Loop, which may not end"
		}
		a.Warnf(c, "one batch has been inside the network for %v%s", inside, why)
	}
	e.Placed = func(model string, p ort.Placement) {
		if others := p.String(); others != "" {
			a.Logf(c, "%s: %s", model, others)
		} else {
			a.Debugf(c, "%s: provider %s takes all nodes", model, provider.Name)
		}
	}
	return e, rt.Limit(infer.MemoryLimit(memory))
}

// Sampling reads the flags for the distribution of the members.
func Sampling(c *cli.Context) (swag.SampleOptions, error) {
	opts := swag.SampleOptions{Seed: c.Uint64("seed"), Rank: c.Int("rank"), Antithetic: c.Bool("antithetic")}
	if c.Bool("diagonal") {
		opts.Covariance = swag.Diagonal
		if c.IsSet("rank") {
			return opts, Usagef("", "--diagonal and --rank: the diagonal alone has no columns, give one of them")
		}
	}
	opts.Scale = opts.Covariance.DefaultScale()
	if c.IsSet("scale") {
		opts.Scale = c.Float64("scale")
	}
	return opts, nil
}

// CheckMembers checks a number of members.
func CheckMembers(n int) error {
	if n < 1 || n >= swag.MaxMembers {
		return Usagef("", "--members %d: want 1 to %d", n, swag.MaxMembers-1)
	}
	return nil
}

// OpenNetwork opens a posterior and its graph.
func (a *Env) OpenNetwork(c *cli.Context, path string) (*infer.Network, error) {
	p, err := swag.Open(path)
	if err != nil {
		return nil, WrongKind(c, err, path, Posterior)
	}
	return a.Network(c, p)
}

// Network checks a posterior and opens its network. After an error the posterior is closed.
func (a *Env) Network(c *cli.Context, p *swag.Posterior) (n *infer.Network, err error) {
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	for _, w := range p.Warnings {
		a.Warnf(c, "%s: %s", p.Path, w)
	}
	if err := p.Verify(); is[*weights.ImplausibleError](err) {
		return nil, BadInput(err, "no fit writes such a number: another program made or changed the file; fit again from the checkpoints")
	} else if err != nil {
		return nil, BadInput(err)
	}
	if scores := c.String("scores"); scores != "" {
		if was := p.Card.Scores; was != "" && was != scores {
			return nil, Usagef("fit again with --scores "+scores, "--scores %s: the model card of %s says %s", scores, p.Path, was)
		}
		p.Card.Scores = scores
	}
	which := infer.RecomputeTrained
	if word := c.String("bn"); word != "" {
		if which, err = infer.ParseStatistics(word); err != nil {
			return nil, err
		}
	}
	if n, err = infer.NewNetwork(p, which, c.String("output-name")); err != nil {
		return nil, BadInput(err)
	}
	if len(p.Needs()) > 0 {
		if err := n.Attach(c.Context); err != nil {
			return nil, BadInput(fmt.Errorf("%s: its deviations are in the checkpoints: %w", p.Path, err))
		}
	}
	if _, err := n.Gives(); is[*task.AmbiguousTask](err) { // a posterior of an older version
		a.Warnf(c, "%s: %v; they are taken for logits of classes, or of class 1 of two: fit again with --task to be sure", p.Path, err)
	}
	return n, nil
}

// InputPosterior registers the posterior at path as an input, with the checkpoints that hold its deviations, and those
// that are members. It does not read the files further.
func InputPosterior(path string, members ...string) error {
	p, err := swag.Open(path)
	if err == nil {
		defer p.Close()
		for _, c := range p.Needs() {
			members = append(members, infer.CheckpointPath(p, c, ""))
		}
	}
	for _, m := range members {
		err = errors.Join(err, inputCheckpoint(m))
	}
	if both := (*file.Conflict)(nil); errors.As(err, &both) {
		return both
	}
	return nil // a later reader reports the error
}

// givenMemory returns --memory in bytes, or 0.
func givenMemory(c *cli.Context) int64 {
	n, _ := byteSize(c.String("memory")) // the flag was checked
	return n
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
	if err != nil || n < 1 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q: want a number of bytes, such as 500M or 4G", s)
	}
	return n << shift, nil
}
