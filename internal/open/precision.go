package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/swag"
)

const noBF16 = "the processor has neither amx_bf16 nor avx512_bf16"

// A Measurement measures what the precision of an engine changes.
type Measurement func(context.Context, *infer.Engine, rounding.Options) (*rounding.Change, error)

// Precision measures and prints the effect of a precision below float32. It returns the engine to use, and what was
// measured of it. A precision of the processor that the user chose is measured only if the user asked for that. If the
// effect is too large and the user did not choose the precision, the engine computes in float32. runs is the number of runs
// of one network on one example.
func (a *Opener) Precision(ctx context.Context, o RuntimeOptions, e *infer.Engine, runs int, measure Measurement) (*infer.Engine,
	*rounding.Change, error) {
	free, how := o.Free, rounding.Options{}
	if e.Provider().GPU() {
		how.Most, how.Timed = rounding.GPUExamples, o.Provider.Name == ort.Auto
		free = free && runs >= rounding.Pays()
		switch software := (free || e.Provider().Precision == ort.F16) && e.Provider().Software(); {
		case free && software:
			a.Logf("precision f32: the GPU is the software renderer llvmpipe, which may crash in f16")
			free = false
		case software:
			a.Warnf("the GPU is the software renderer llvmpipe, which may crash in f16")
		}
		precisions := []string{e.Provider().Precision}
		if free {
			how.Most = rounding.ChoiceExamples
			precisions = append(slices.Clone(e.Provider().Low()), ort.F32)
		}
		var r *rounding.Change
		var err error
		for i, precision := range precisions {
			e = inPrecision(e, precision)
			r, err = measure(ctx, e, how)
			if i+1 == len(precisions) || err == nil && r.Objection() == "" {
				break
			}
			why := err
			if err == nil {
				a.Logf("%v", r)
				why = errors.New(r.Objection())
			}
			a.Logf("precision %s: not %s, because %v", precisions[i+1], precision, why)
		}
		if err != nil {
			if cpu, ok := Instead(ctx, a, o, e, err); ok {
				return cpu, nil, nil
			}
			return nil, nil, BadInput(err)
		}
		a.Debugf("%s", r.Took())
		if cpu, ok := a.OnCPU(o, e, r); ok {
			return cpu, nil, nil
		}
		return measured(e, r), r, a.Rounding(r)
	}
	switch feature := ort.FastBF16(); {
	case e.Provider().Name == ort.CPU:
		return e, nil, nil
	case free && feature == "":
		a.Logf("precision f32: %s", noBF16)
	case free && runs < rounding.Pays():
		a.Logf("precision f32: so few predictions take less time than to measure what bf16 changes")
	case free:
		a.Logf("precision bf16: the processor has %s", feature)
		e, how.Runs = inPrecision(e, ort.BF16), rounding.Affordable(runs)
	case !o.Measure:
		return e, nil, nil
	}
	if e.Provider().Precision != ort.BF16 {
		return e, nil, nil
	}
	r, err := measure(ctx, e, how)
	if err != nil {
		return nil, nil, BadInput(err)
	}
	if why := cmp.Or(r.Objection(), slower(r)); free && why != "" {
		a.Logf("%v", r)
		r.Used = ort.F32
		a.Logf("precision f32: %s (%s insists)", why, setting.Precision.With("bf16"))
		return measured(inPrecision(e, ort.F32), r), r, nil
	}
	return measured(e, r), r, a.Rounding(r)
}

// slower returns the reason against a precision below float32 that takes more time, or "". Processors with avx512_bf16 and
// without amx_bf16 may be slower in bf16.
func slower(r *rounding.Change) string {
	if exact, low := r.Seconds[0], r.Seconds[1]; low >= exact {
		return fmt.Sprintf("%s takes %.2g s for %d examples, and f32 %.2g s", r.Used, low, r.Examples, exact)
	}
	return ""
}

// inPrecision returns an engine whose provider has another precision.
func inPrecision(e *infer.Engine, precision string) *infer.Engine {
	p := e.Provider()
	p.Precision = precision
	return e.With(p, e.Options().Passes)
}

// measured returns an engine that tells what its precision changes.
func measured(e *infer.Engine, r *rounding.Change) *infer.Engine {
	how := e.Options()
	how.Rounding = r
	return infer.NewEngine(e.Runtime(), how)
}

// OnCPU reports whether the provider auto takes the CPU after all, and returns the engine for it.
func (a *Opener) OnCPU(o RuntimeOptions, e *infer.Engine, r *rounding.Change) (cpu *infer.Engine, ok bool) {
	why := tooSlow(r)
	if o.Provider.Name != ort.Auto || why == "" {
		return e, false
	}
	a.Logf("%v", r)
	a.Logf("provider cpu: %s", why)
	return onCPU(e), true
}

// Instead reports whether the provider auto takes the CPU because the GPU cannot run the network, and returns the engine for
// it. Faults of data and networks come again on the CPU.
func Instead(ctx context.Context, a *Opener, o RuntimeOptions, e *infer.Engine, err error) (cpu *infer.Engine, ok bool) {
	if err == nil || o.Provider.Name != ort.Auto || ctx.Err() != nil || errors.As(err, new(*Error)) {
		return e, false
	}
	a.Logf("provider cpu: %v", err)
	return onCPU(e), true
}

// onCPU returns the engine on the CPU in float32.
func onCPU(e *infer.Engine) *infer.Engine {
	return e.With(ort.Provider{Name: ort.CPU, Precision: ort.F32}, ort.Provider{})
}

// tooSlow returns the reason why the provider auto takes the CPU, or "".
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
func (a *Opener) Rounding(r *rounding.Change) error {
	a.Logf("%v", r)
	switch why := r.Objection(); {
	case why == "":
	case r.OnGPU():
		return disagrees(r)
	default:
		r.Insisted = true
		a.Warnf("%s, and is used as asked (%s would not)", why, setting.Precision.With("auto"))
	}
	return nil
}

// disagrees is the error for a GPU whose results are not those of the CPU.
func disagrees(r *rounding.Change) error {
	return BadInput(errors.New(r.Objection()), setting.Provider.With("cpu")+" computes the right numbers; please report the GPU and the "+
		"network")
}

// DrawnPrecision is like [Opener.Precision], for a study that draws count members itself.
func (a *Opener) DrawnPrecision(ctx context.Context, o RuntimeOptions, run infer.Run, l *Study, how swag.SampleOptions, count int,
	data dataset.Dataset) (*infer.Engine, error) {
	if l.Single() {
		how, count = swag.SampleOptions{}, 1
	}
	runs := count * data.Len()
	if l.Runs[0].Network.Recomputes() {
		runs += count * l.Inputs.BatchNorm.Images()
	}
	e, _, err := a.Precision(ctx, o, run.Engine, runs,
		func(ctx context.Context, e *infer.Engine, opts rounding.Options) (*rounding.Change, error) {
			r, err := batchnorm.Draws{
				Run:       run.On(e),
				Network:   l.Runs[0].Network,
				BatchNorm: l.Inputs.BatchNorm,
				How:       how,
				Count:     count,
			}.MeasureRounding(ctx, opts, data)
			// it chose how many examples batch norm sees
			if err == nil && r.OnGPU() && r.Objection() != "" && l.Runs[0].Network.Recomputes() {
				return nil, disagrees(r)
			}
			return r, err
		})
	return e, err
}

// openRuntime loads the ONNX Runtime library that has the provider.
func (a *Opener) openRuntime(library string, p ort.Provider) (*ort.Runtime, error) {
	l, err := p.Find(library)
	if err != nil {
		return nil, err
	}
	if err := file.Input(l.Path); err != nil {
		return nil, err
	}
	rt, err := p.Open(l)
	if err == nil {
		a.Debugf("ONNX Runtime %s: %s", rt.Version(), rt.Path())
	}
	return rt, err
}
