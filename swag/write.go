package swag

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/swagwrap/swagwrap/weights"
)

// writer fills the sections of a posterior file.
type writer struct {
	sw                                    *weights.SafetensorsWriter
	mean, variance, before, mixing, last  io.Writer
	deviations                            []io.Writer
	trajectory, statistics, health, graph io.Writer
	healthLen                             int
}

func newWriter(to io.WriterAt, f *fitter) (*writer, error) {
	in, o := f.in, f.options
	checkpoints, theta0, warnings := in.Checkpoints, in.Theta0, append([]string{}, in.Warnings...)
	if p := in.Previous; p != nil {
		checkpoints, theta0 = append(slices.Clone(p.Checkpoints), checkpoints...), p.Theta0
	}
	meta, err := weights.NewMetadata(PosteriorKind, PosteriorVersion, f.opts.Producer, map[string]any{
		"options":     o,
		"checkpoints": checkpoints,
		"theta0":      theta0,
		"layout":      in.Layout.Tensors,
		"warnings":    warnings,
		"card":        in.Card,
	})
	if err != nil {
		return nil, err
	}
	w := &writer{healthLen: 1<<14 + 256*o.Models}
	// The widest elements come first, so that every section is aligned.
	var sections []weights.Section
	var places []*io.Writer
	deviations := -1
	add := func(wanted bool, name string, dtype weights.DType, at *io.Writer, shape ...int64) {
		if wanted {
			sections, places = append(sections, weights.Section{Name: name, DType: dtype, Shape: shape}), append(places, at)
		}
	}
	add(true, meanSection, weights.F64, &w.mean, f.d)
	add(true, varianceSection, weights.F64, &w.variance, f.d)
	add(o.keepsBefore(), beforeSection, weights.F64, &w.before, f.d)
	add(o.mixes(), mixingSection, weights.F64, &w.mixing, int64(o.Columns), int64(o.Models))
	if o.Columns > 0 && !o.Referenced {
		deviations = len(sections)
		add(true, deviationsSection, weights.F32, nil, int64(o.Columns), f.d)
	}
	add(o.keepsLast(), lastSection, weights.F32, &w.last, f.d)
	add(true, trajectorySection, weights.F32, &w.trajectory, int64(o.Models), trajectoryLen(f.d))
	add(true, statisticsSection, weights.F32, &w.statistics, int64(len(checkpoints)), in.Layout.Len(weights.Statistic))
	add(true, healthSection, weights.U8, &w.health, int64(w.healthLen))
	add(true, graphSection, weights.U8, &w.graph, int64(len(in.Graph)))
	if w.sw, err = weights.NewSafetensorsWriter(to, sections, meta); err != nil {
		return nil, err
	}
	for i, at := range places {
		if i == deviations {
			w.deviations = w.sw.Rows(i)
		} else {
			*at = w.sw.Section(i)
		}
	}
	return w, nil
}

// writeMoments writes a block's part of mean, variance and what was made along
// with them, and adds what is summed over blocks.
func (f *fitter) writeMoments(b *block) error {
	if err := weights.WriteFloat64s(f.out.mean, b.mean); err != nil {
		return err
	}
	if err := weights.WriteFloat64s(f.out.variance, b.variance); err != nil {
		return err
	}
	if f.out.before != nil {
		if err := weights.WriteFloat64s(f.out.before, b.before); err != nil {
			return err
		}
	}
	if f.out.last != nil {
		if err := weights.WriteFloat32s(f.out.last, b.theta[len(b.theta)-1]); err != nil {
			return err
		}
	}
	for _, g := range b.grams {
		f.gram.AddSym(f.gram, g)
	}
	for t, row := range b.samples {
		f.trajectory[f.seen+t] = append(f.trajectory[f.seen+t], row...)
	}
	f.frozen, f.subUlp = f.frozen+b.frozen, f.subUlp+b.subUlp
	if f.options.Deviations == Final {
		return nil
	}
	return f.writeDeviations(b)
}

// writeDeviations writes a block's part of the deviations.
func (f *fitter) writeDeviations(b *block) error {
	for k, w := range f.out.deviations {
		if err := weights.WriteFloat32s(w, b.deviations[k]); err != nil {
			return err
		}
	}
	return nil
}

// finish writes what does not come in blocks, and the header.
func (f *fitter) finish() error {
	w := f.out
	for _, row := range f.mixing {
		if err := weights.WriteFloat64s(w.mixing, row); err != nil {
			return err
		}
	}
	for _, row := range f.trajectory {
		if err := weights.WriteFloat32s(w.trajectory, row); err != nil {
			return err
		}
	}
	if err := f.writeStatistics(); err != nil {
		return err
	}
	var health any
	if f.opts.Health != nil {
		health = f.opts.Health(f.sampled())
	}
	js, err := json.Marshal(health)
	if err != nil {
		return err
	}
	// Its length had to be known before the content: JSON may end in spaces.
	if _, err := fmt.Fprintf(w.health, "%-*s", w.healthLen, js); err != nil {
		return err
	}
	if _, err := w.graph.Write(f.in.Graph); err != nil {
		return err
	}
	return w.sw.Close()
}

// writeStatistics writes a row of batch-norm statistics for each checkpoint,
// those of the posterior that is continued first. One that is not finite cannot
// be of a network that was ever run.
func (f *fitter) writeStatistics() error {
	if p := f.in.Previous; p != nil {
		for _, row := range p.StoredStatistics {
			if err := weights.WriteFloat32s(f.out.statistics, row); err != nil {
				return err
			}
		}
	}
	row := make([]float32, f.in.Layout.Len(weights.Statistic))
	if len(row) == 0 {
		return nil
	}
	for _, c := range f.in.Checkpoints {
		if err := c.Statistics.ReadAt(row, 0); err != nil {
			return err
		}
		if i := slices.IndexFunc(row, func(v float32) bool { return v-v != 0 }); i >= 0 {
			tensor, at := f.in.Layout.At(weights.Statistic, int64(i))
			return fmt.Errorf("%s: tensor %q: value %v at index %d, want finite batch-norm statistics", c, tensor.Name, row[i], at)
		}
		if err := weights.WriteFloat32s(f.out.statistics, row); err != nil {
			return err
		}
	}
	return nil
}
