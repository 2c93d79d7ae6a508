package flags

import (
	"errors"
	"fmt"
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
	ThreadsFlag = &cli.IntFlag{Name: "threads", Aliases: []string{"j"}, Usage: "use `N` threads", DefaultText: "one per core"}
	MemoryFlag  = &cli.StringFlag{Name: "memory", Usage: "let networks, and pictures that are decoded, take at most `SIZE` each, such as 500M or 4G; what needs more is refused", DefaultText: "half of what is free"}
	RunFlags    = Join([]cli.Flag{
		&cli.IntFlag{Name: "batch-size", Aliases: []string{"b"}, Usage: "run `N` examples at a time", DefaultText: strconv.Itoa(infer.DefaultBatchSize)},
		ThreadsFlag,
		MemoryFlag,
	}, RuntimeFlags)
	CovarianceFlags = []cli.Flag{
		&cli.Float64Flag{Name: "scale", Usage: "multiply the covariance by `ALPHA`; 0 gives SWA itself", DefaultText: "0.5, or 1 with --diagonal"},
		&cli.IntFlag{Name: "rank", Usage: "use `K` columns of the low-rank part", DefaultText: "all"},
		&cli.BoolFlag{Name: "diagonal", Usage: "leave the low-rank part out (SWAG-Diagonal)"},
		&cli.BoolFlag{Name: "antithetic", Usage: "draw members in pairs that lie opposite each other about the mean"},
	}
	SamplingFlags = []cli.Flag{
		&cli.IntFlag{Name: "members", Aliases: []string{"n"}, Usage: "draw `S` members", Value: 30},
		&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the draws and of the order of the training images", Value: 1},
	}
)

// Join concatenates groups of flags.
func Join(groups ...[]cli.Flag) []cli.Flag {
	var all []cli.Flag
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// Engine opens ONNX Runtime.
func (a *Env) Engine(c *cli.Context) (*infer.Engine, error) {
	if c.Int("batch-size") < 0 || c.Int("threads") < 0 {
		return nil, Usagef("", "--batch-size and --threads: want positive numbers")
	}
	memory, err := ByteSize(c.String("memory"))
	if err != nil {
		return nil, Usagef("", "--memory %w", err)
	}
	provider, passes, err := a.provider(c)
	if err != nil {
		return nil, err
	}
	rt, err := a.openRuntime(c, provider)
	if err != nil {
		return nil, err
	}
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

// Members reads and checks --members.
func Members(c *cli.Context) (int, error) {
	n := c.Int("members")
	if n < 1 || n >= swag.MaxMembers {
		return 0, Usagef("", "--members %d: want 1 to %d", n, swag.MaxMembers-1)
	}
	return n, nil
}

// OpenNetwork opens a posterior and its graph.
func (a *Env) OpenNetwork(c *cli.Context, path string) (*infer.Network, error) {
	p, err := swag.Open(path)
	if err != nil {
		return nil, WrongKind(c, err, path, Posterior)
	}
	return a.Network(c, p)
}

// Network checks a posterior and opens its network.
func (a *Env) Network(c *cli.Context, p *swag.Posterior) (*infer.Network, error) {
	for _, w := range p.Warnings {
		a.Warnf(c, "%s: %s", p.Path, w)
	}
	if err := p.Verify(); err != nil {
		p.Close()
		if errors.As(err, new(*weights.ImplausibleError)) {
			return nil, BadInput(err, "no fit writes such a number: another program made or changed the file; fit again from the checkpoints")
		}
		return nil, BadInput(err)
	}
	if err := setScores(c, p.Path, &p.Card); err != nil {
		p.Close()
		return nil, err
	}
	which := infer.RecomputeTrained
	if word := c.String("bn"); word != "" {
		var err error
		if which, err = infer.ParseStatistics(word); err != nil {
			p.Close()
			return nil, Usagef("", "--bn %w", err)
		}
	}
	n, err := infer.NewNetwork(p, which, c.String("output-name"))
	if err == nil && len(p.Needs()) > 0 {
		if err = n.Attach(c.Context); err != nil {
			err = fmt.Errorf("%s: its deviations are in the checkpoints: %w", p.Path, err)
		}
	}
	if err != nil {
		p.Close()
		return nil, BadInput(err)
	}
	if _, err := n.Gives(); errors.As(err, new(*task.AmbiguousTask)) { // a posterior of an older version
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

// ByteSize parses sizes such as 1000000, 500M or 4G. The units are powers of 1,024. An empty text is 0.
func ByteSize(s string) (int64, error) {
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
