package baseline

import (
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// Adapt says to which data, without their labels, the statistics of adapted methods are mixed (Schneider et al. 2020).
type Adapt struct {
	Weight float64
	// Target is the target of the first data set, or nil: then the data set itself is.
	Target dataset.Dataset
	// Parts are, for each data set of [Targets], the examples that are one target. A data set without parts is one.
	Parts [][][]int
}

// swaAdapted is SWA whose statistics are adapted to the data that it predicts. The temperature is that of SWA, on validation data
// with the statistics of training.
var swaAdapted = &Method{
	Key:      "swa-temp-adapted",
	From:     fromSWA,
	Fits:     true,
	Outcomes: true,
	Features: true,
	Name:     called("SWA-Temp, adapted"),
	Needs:    needsTarget(needsSpread),
	Cost:     func(in *Inputs, c Cost) int64 { return 2 * c.Data },
	Run: func(ctx context.Context, w *work) error {
		return w.adapted(ctx, w.swaOf, func(ctx context.Context, _ *Predicted, f adaptedNetwork) error {
			m, err := w.swa(ctx, 0)
			if err != nil {
				return err
			}
			source := make([]float32, m.Filled.Statistics.Len())
			if err := m.Filled.Statistics.ReadAt(source, 0); err != nil {
				return err
			}
			return f(0, m.Filled.Parameters, source)
		})
	},
}

// swagAdapted is SWAG with members that are adapted likewise.
var swagAdapted = &Method{
	Key:      "swag-temp-adapted",
	From:     fromSWAG,
	Fits:     true,
	Outcomes: true,
	Features: true,
	Name:     called("SWAG-Temp, adapted"),
	Needs:    needsTarget(needsDeviations),
	Cost:     func(in *Inputs, c Cost) int64 { return int64(in.most()) * (2*c.Data + c.BatchNorm) },
	Run: func(ctx context.Context, w *work) error {
		return w.adapted(ctx, w.swagOf, func(ctx context.Context, base *Predicted, f adaptedNetwork) error {
			n, how := w.Runs[0].Network, w.swag()
			return infer.EachMember(ctx, w.run.Memory(), n.Posterior, how, 0, base.Members, func(k int, parameters weights.Vector) error {
				r, err := batchnorm.Recompute(ctx, w.run, n, parameters, w.BatchNorm.ForMember(n, how, k))
				if err != nil {
					return err
				}
				return f(k, parameters, r.Statistics)
			})
		})
	},
}

// Adapts reports whether a method adapts to the data that it predicts.
func Adapts(key string) bool { return PlainOf(key) != "" }

// PlainOf returns the method that an adapted one adapts, or "".
func PlainOf(key string) string {
	return map[string]string{swaAdapted.Key: SWATemp, swagAdapted.Key: SWAGTemp}[key]
}

// needsTarget returns the needs of a method that adapts.
func needsTarget(more func(*Inputs) string) func(*Inputs) string {
	return func(in *Inputs) string {
		switch {
		case in.Adapt == nil:
			return "data that differ (" + setting.Adapt.String() + ")"
		case !in.Runs[0].Network.Recomputes():
			return "batch norm"
		}
		return more(in)
	}
}

// adaptedNetwork gets network k: its weights, and its batch-norm statistics of training.
type adaptedNetwork func(k int, parameters weights.Vector, source []float32) error

// adapted predicts each data set with each network, adapted to its parts. each calls a function with the networks of a result. plain
// returns that result, which has the predictions of the validation data.
func (w *work) adapted(ctx context.Context, plain func(context.Context) (*Predicted, error),
	each func(context.Context, *Predicted, adaptedNetwork) error) error {
	if _, ok := w.networks.(computing); !ok || w.shard != nil {
		return nil
	}
	base, err := plain(ctx)
	if err != nil {
		return err
	}
	n := w.Runs[0].Network
	adapting, err := n.Adapting(w.Adapt.Weight)
	if err != nil {
		return err
	}
	p := w.result(false)
	p.Validation, p.By = base.Validation, task.OneNumber
	err = each(ctx, base, func(k int, parameters weights.Vector, source []float32) error {
		for i, sums := range p.Data {
			for _, part := range w.Adapt.parts(i, w.targets.Data[i].Len()) {
				data := dataset.Picked(w.targets.Data[i], part)
				to := batchnorm.Adaptation{Target: data, Weight: w.Adapt.Weight, Seed: w.Seed}
				if i == 0 && w.Adapt.Target != nil {
					to.Target = w.Adapt.Target
				}
				statistics, _, err := to.Statistics(ctx, w.run, adapting, parameters, source)
				if err != nil {
					return err
				}
				m, err := n.Model(fmt.Sprintf("%s member %d", p.Name, k), parameters, weights.Slice(statistics))
				if err != nil {
					return err
				}
				var own infer.Sums
				if err := w.run.Predict(ctx, m, data, &own); err != nil {
					return err
				}
				sums.Scatter(&own, part, w.targets.Data[i].Len())
			}
			sums.Members++
			sums.Weight++
		}
		p.Members++
		return nil
	})
	if err != nil {
		return err
	}
	return w.yield(p)
}

// parts returns the parts of data set i, of n examples. Parts that are too small are one.
func (a *Adapt) parts(i, n int) [][]int {
	all := [][]int{dataset.Order{}.Indices(n)}
	if i >= len(a.Parts) || len(a.Parts[i]) == 0 {
		return all
	}
	for _, part := range a.Parts[i] {
		if len(part) < batchnorm.LeastTarget {
			return all
		}
	}
	return a.Parts[i]
}
