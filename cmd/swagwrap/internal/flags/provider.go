package flags

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/swag"
)

const auto = "auto"

var precisions = []string{auto, ort.F32, ort.BF16}

var (
	// ProviderFlag selects the library that computes.
	ProviderFlag = OneOf(&cli.StringFlag{Name: "provider", Usage: "compute with ONNX Runtime's own kernels, or with Intel's, which swagwrap setup --provider openvino fetches: " + strings.Join(ort.Names, "|"), Value: ort.CPU}, ort.Names...)
	// RuntimeFlags select the ONNX Runtime library, the provider and the precision.
	RuntimeFlags = []cli.Flag{
		&cli.StringFlag{Name: "ort-lib", Usage: "use the ONNX Runtime library `FILE` (default: $SWAGWRAP_ORT_LIB, else that of the Python package onnxruntime beside a swagwrap from pip, else the one that swagwrap setup fetched; with --provider openvino, the one that setup fetched for it)"},
		ProviderFlag,
		OneOf(&cli.StringFlag{Name: "precision", Usage: "compute in `P`; with --provider openvino auto is bf16 where the processor has instructions for it and it is measured to change little: " + strings.Join(precisions, "|"), Value: ort.F32}, precisions...),
	}
)

// Provider reads --provider and --precision. free says that the program may choose the precision. It is float32 until
// [Env.Precision] has measured the effect of a lower one.
func Provider(c *cli.Context) (p ort.Provider, free bool, err error) {
	p = ort.Provider{Name: c.String("provider"), Precision: c.String("precision")}
	switch {
	case p.Precision == ort.BF16 && p.Name == ort.CPU:
		return p, false, Usagef("--provider openvino computes in bf16", "--precision bf16: --provider cpu computes in f32")
	case p.Precision == auto:
		p.Precision, free = ort.F32, true
	}
	return p, free, nil
}

const noBF16 = "the processor has neither amx_bf16 nor avx512_bf16"

// Precision measures and prints the effect of a precision below float32. If the effect is too large and the user did
// not choose the precision, it returns to float32. runs is the number of runs of one network on one example.
func (a *Env) Precision(c *cli.Context, e *infer.Engine, runs int, measure func(context.Context, *infer.Engine) (*rounding.Change, error)) error {
	_, free, err := Provider(c)
	switch feature := ort.FastBF16(); {
	case err != nil || e.Provider.Name == ort.CPU:
		return err
	case free && feature == "":
		a.Logf(c, "precision f32: %s", noBF16)
	case free && runs < rounding.Pays:
		a.Logf(c, "precision f32: so few predictions take less time than to measure what bf16 changes")
	case free:
		a.Logf(c, "precision bf16: the processor has %s", feature)
		e.Provider.Precision = ort.BF16
	}
	if e.Provider.Precision != ort.BF16 {
		return nil
	}
	r, err := measure(c.Context, e)
	if err != nil {
		return BadInput(err)
	}
	e.Rounding = r
	if why := r.Objection(); free && why != "" {
		a.Logf(c, "%v", r)
		e.Provider.Precision = ort.F32
		r.Used = ort.F32
		a.Logf(c, "precision f32: %s (--precision bf16 insists)", why)
		return nil
	}
	a.Rounding(c, r)
	return nil
}

// Rounding prints the effect of the precision in use.
func (a *Env) Rounding(c *cli.Context, r *rounding.Change) {
	a.Logf(c, "%v", r)
	if why := r.Objection(); why != "" {
		r.Insisted = true
		a.Warnf(c, "%s, and is used as asked (--precision auto would not)", why)
	}
}

// DrawnPrecision is like [Env.Precision], for a study that draws count members itself.
func (a *Env) DrawnPrecision(c *cli.Context, e *infer.Engine, l *Inputs, how swag.SampleOptions, count int, data dataset.Dataset) error {
	return a.Precision(c, e, count*data.Len(), func(ctx context.Context, e *infer.Engine) (*rounding.Change, error) {
		return batchnorm.Draws{Engine: e, Network: l.Runs[0].Network, BatchNorm: l.Inputs.BatchNorm, How: how, Count: count}.MeasureRounding(ctx, data)
	})
}

// openRuntime loads the ONNX Runtime library that has the provider.
func (a *Env) openRuntime(c *cli.Context, p ort.Provider) (*ort.Runtime, error) {
	l, err := p.Find(c.String("ort-lib"))
	if err != nil {
		return nil, err
	}
	if err := file.Input(l.Path); err != nil {
		return nil, err
	}
	rt, err := p.Open(l.Path)
	if err == nil {
		a.Debugf(c, "ONNX Runtime %s: %s", rt.Version(), rt.Path())
	}
	return rt, err
}
