package inputs

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/swag"
)

const noBF16 = "the processor has neither amx_bf16 nor avx512_bf16"

// Precision measures and prints the effect of a precision below float32. If the effect is too large and the user did
// not choose the precision, it returns to float32. runs is the number of runs of one network on one example.
func (a *Env) Precision(c *cli.Context, e *infer.Engine, runs int, measure func(context.Context, *infer.Engine) (*rounding.Change, error)) error {
	_, free, err := flags.Provider(c)
	if err == nil && e.Provider.GPU() {
		free = free && runs >= rounding.Pays(e.Provider)
		switch software := (free || e.Provider.Precision == ort.F16) && e.Provider.Software(); {
		case free && software:
			a.Logf(c, "precision f32: the GPU is the software renderer llvmpipe, which may crash in f16")
			free = false
		case software:
			a.Warnf(c, "the GPU is the software renderer llvmpipe, which may crash in f16")
		case free:
			e.Provider.Precision = ort.F16
		}
		r, err := measure(c.Context, e)
		if why := error(nil); free {
			if why = err; err == nil && r.Objection() != "" {
				a.Logf(c, "%v", r)
				why = errors.New(r.Objection())
			}
			if why != nil {
				a.Logf(c, "precision f32: %v", why)
				e.Provider.Precision = ort.F32
				r, err = measure(c.Context, e)
			}
		}
		if err != nil {
			return flags.BadInput(err)
		}
		if a.OnCPU(c, e, r) {
			return nil
		}
		e.Rounding = r
		return a.Rounding(c, r)
	}
	switch feature := ort.FastBF16(); {
	case err != nil || e.Provider.Name == ort.CPU:
		return err
	case free && feature == "":
		a.Logf(c, "precision f32: %s", noBF16)
	case free && runs < rounding.Pays(e.Provider):
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
		return flags.BadInput(err)
	}
	e.Rounding = r
	if why := r.Objection(); free && why != "" {
		a.Logf(c, "%v", r)
		e.Provider.Precision = ort.F32
		r.Used = ort.F32
		a.Logf(c, "precision f32: %s (--precision bf16 insists)", why)
		return nil
	}
	return a.Rounding(c, r)
}

// OnCPU reports whether --provider auto takes the CPU after all. The engine then does.
func (a *Env) OnCPU(c *cli.Context, e *infer.Engine, r *rounding.Change) bool {
	why := tooSlow(r)
	if c.String("provider") != ort.Auto || why == "" {
		return false
	}
	a.Logf(c, "%v", r)
	a.Logf(c, "provider cpu: %s", why)
	e.Provider, e.Passes = ort.Provider{Name: ort.CPU, Precision: ort.F32}, ort.Provider{}
	return true
}

// tooSlow returns the reason why --provider auto takes the CPU, or "".
func tooSlow(r *rounding.Change) string {
	if why := r.Objection(); why != "" {
		return why
	}
	if cpu, gpu := r.Seconds[0], r.Seconds[1]; gpu >= cpu {
		return fmt.Sprintf("the GPU takes %.2g s for %d examples, and the CPU %.2g s", gpu, r.Examples, cpu)
	}
	return ""
}

// Rounding prints the effect of the precision in use. It refuses a GPU whose results are not those of the CPU.
func (a *Env) Rounding(c *cli.Context, r *rounding.Change) error {
	a.Logf(c, "%v", r)
	switch why := r.Objection(); {
	case why == "":
	case r.OnGPU():
		return a.disagrees(r)
	default:
		r.Insisted = true
		a.Warnf(c, "%s, and is used as asked (--precision auto would not)", why)
	}
	return nil
}

// disagrees is the error for a GPU whose results are not those of the CPU.
func (a *Env) disagrees(r *rounding.Change) error {
	return flags.BadInput(errors.New(r.Objection()), "--provider cpu computes the right numbers; please report the GPU and the network")
}

// DrawnPrecision is like [Env.Precision], for a study that draws count members itself.
func (a *Env) DrawnPrecision(c *cli.Context, e *infer.Engine, l *Study, how swag.SampleOptions, count int, data dataset.Dataset) error {
	if l.Single() {
		how, count = swag.SampleOptions{}, 1
	}
	return a.Precision(c, e, count*data.Len(), func(ctx context.Context, e *infer.Engine) (*rounding.Change, error) {
		r, err := batchnorm.Draws{Engine: e, Network: l.Runs[0].Network, BatchNorm: l.Inputs.BatchNorm, How: how, Count: count}.MeasureRounding(ctx, data)
		if err == nil && r.OnGPU() && r.Objection() != "" && l.Runs[0].Network.Recomputes() { // it chose how many examples batch norm sees
			return nil, a.disagrees(r)
		}
		return r, err
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
	rt, err := p.Open(l)
	if err == nil {
		a.Debugf(c, "ONNX Runtime %s: %s", rt.Version(), rt.Path())
	}
	return rt, err
}
