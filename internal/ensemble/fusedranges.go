package ensemble

import (
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/fused"
)

// observe calls use with the least and the largest elements of values inside each member, on examples.
func (j *Fused) observe(ctx context.Context, e *infer.Engine, data dataset.Dataset, values func(*onnxio.Model) []string,
	use func(at int, names []string, low, high []float32) error) error {
	observers := make(map[*infer.Network]*infer.Observer)
	return j.members(e.Options().Threads, e.Memory()).each(ctx, 0, len(j.Members), func(at int, m Member) (err error) {
		o := observers[m.Network]
		if o == nil {
			if o, err = m.Network.NewObserver(values); err != nil {
				return err
			}
			observers[m.Network] = o
		}
		low, high, err := o.Observe(ctx, e, m.Parameters, m.Statistics, data)
		if err != nil {
			return err
		}
		return use(at, o.Values, low, high)
	})
}

// Calibrate finds the ranges of values inside the members on examples, and makes the model compute in 8 bits.
func (j *Fused) Calibrate(ctx context.Context, e *infer.Engine, data dataset.Dataset) error {
	j.Ranges = make([]map[string]fused.Range, len(j.Members))
	return j.observe(ctx, e, data, onnxio.QDQValues, func(at int, names []string, low, high []float32) error {
		j.Ranges[at] = make(map[string]fused.Range, len(names))
		for k, name := range names {
			if v := low[k] + high[k]; v-v != 0 {
				return fmt.Errorf("member %d: tensor %q: %v to %v on the calibration data", j.Members[at], name, low[k], high[k])
			}
			j.Ranges[at][name] = fused.Range{Low: low[k], High: high[k]}
		}
		return nil
	})
}

// Peak is the largest magnitude inside the members.
type Peak struct {
	Value  float64
	Member int
	Tensor string
}

// Peak finds the largest magnitude inside the members on examples.
func (j *Fused) Peak(ctx context.Context, e *infer.Engine, data dataset.Dataset) (p Peak, err error) {
	err = j.observe(ctx, e, data, onnxio.FloatValues, func(at int, names []string, low, high []float32) error {
		for k, name := range names {
			if v := float64(max(-low[k], high[k])); v > p.Value {
				p = Peak{v, j.Members[at], name}
			}
		}
		return nil
	})
	return p, err
}

// Err returns an error if float16 does not hold the number.
func (p Peak) Err(path string) error {
	if p.Value <= onnxio.LargestHalf {
		return nil
	}
	return &onnxio.Error{
		Path:   path,
		Tensor: p.Tensor,
		What:   fmt.Sprintf("%.3g in member %d, and float16 holds numbers up to %d", p.Value, p.Member, onnxio.LargestHalf),
		Hint:   "export the ensemble in float32",
	}
}
