package swag

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/swagwrap/swagwrap/weights"
)

// A section is a section of a posterior file. A posterior that does not need it leaves it out.
type section struct {
	weights.Section
	quantity weights.Quantity // what its numbers are
	wanted   bool
}

// sections lists the sections of a posterior file, widest elements first, so that each is aligned. Sections of free
// length have no shape.
func (o Options) sections(l *weights.Layout, checkpoints int) []section {
	d, columns, models := l.Len(weights.Parameter), int64(o.Columns), int64(o.Models)
	of := func(name string, dtype weights.DType, q weights.Quantity, wanted bool, shape ...int64) section {
		return section{weights.Section{Name: name, DType: dtype, Shape: shape}, q, wanted}
	}
	return []section{
		of(meanSection, weights.F64, weights.Weight, true, d),
		of(varianceSection, weights.F64, weights.Variance, models > 1, d),
		of(beforeSection, weights.F64, weights.Weight, o.Referenced && o.Deviations == Running, d),
		of(mixingSection, weights.F64, weights.Number, o.mixes(), columns, models),
		of(deviationsSection, weights.F32, weights.Deviation, columns > 0 && !o.Referenced, columns, d),
		of(lastSection, weights.F32, weights.Weight, o.keepsLast(), d),
		of(trajectorySection, weights.F32, weights.Weight, models > 1, models, trajectoryLen(d)),
		of(statisticsSection, weights.F32, weights.Number, true, int64(checkpoints), l.Len(weights.Statistic)),
		of(healthSection, weights.U8, weights.Number, true),
		of(graphSection, weights.U8, weights.Number, true),
	}
}

// writer fills the sections of a posterior file. After an error it writes no more.
type writer struct {
	sw         *weights.SafetensorsWriter
	to         map[string]io.Writer
	deviations []io.Writer // one for each row of the section
	healthLen  int
	err        error
}

func newWriter(to io.WriterAt, f *fitter) (*writer, error) {
	in, o := f.in, f.options
	checkpoints, theta0, warnings := in.Checkpoints, in.Theta0, append([]string{}, in.Warnings...)
	if p := in.Previous; p != nil {
		checkpoints, theta0 = append(slices.Clone(p.Checkpoints), checkpoints...), p.Theta0
	}
	values := map[string]any{
		"options":     o,
		"checkpoints": checkpoints,
		"theta0":      theta0,
		"layout":      in.Layout.Tensors,
		"warnings":    warnings,
		"card":        in.Card,
	}
	if in.Template != nil {
		values[templateKey] = in.Template
	}
	if in.Mean != nil {
		values[meanKey] = in.Mean
	}
	version := PosteriorVersion
	if o.Power > 0 {
		version = risingVersion
	}
	meta, err := weights.NewMetadata(PosteriorKind, version, f.opts.Producer, values)
	if err != nil {
		return nil, err
	}
	w := &writer{to: make(map[string]io.Writer), healthLen: 1<<14 + 256*o.Models}
	var sections []weights.Section
	for _, s := range o.sections(in.Layout, len(checkpoints)) {
		switch s.Name {
		case healthSection:
			s.Shape = []int64{int64(w.healthLen)}
		case graphSection:
			s.Shape = []int64{int64(len(in.Graph))}
		}
		if s.wanted {
			sections = append(sections, s.Section)
		}
	}
	if w.sw, err = weights.NewSafetensorsWriter(to, sections, meta); err != nil {
		return nil, err
	}
	for i, s := range sections {
		if s.Name == deviationsSection {
			w.deviations = w.sw.Rows(i)
		} else {
			w.to[s.Name] = w.sw.Section(i)
		}
	}
	return w, nil
}

// put appends to a section, if the file has it.
func put[T float32 | float64](w *writer, section string, values []T) {
	if to := w.to[section]; to != nil && w.err == nil {
		w.err = weights.WriteFloats(to, values)
	}
}

// writeMoments writes a block's part of the mean, the variance and the sections computed with them. It also adds the
// block to the sums over blocks.
func (f *fitter) writeMoments(b *block) error {
	w := f.out
	put(w, meanSection, b.mean)
	put(w, varianceSection, b.variance)
	put(w, beforeSection, b.before)
	put(w, lastSection, b.theta[len(b.theta)-1])
	for _, g := range b.grams {
		f.gram.AddSym(f.gram, g)
	}
	for t, row := range b.samples {
		f.trajectory[f.seen+t] = append(f.trajectory[f.seen+t], row...)
	}
	f.centre = append(f.centre, b.centre...)
	f.frozen, f.subUlp = f.frozen+b.frozen, f.subUlp+b.subUlp
	if f.options.Deviations == Final {
		return w.err
	}
	return f.writeDeviations(b)
}

// writeDeviations writes a block's part of the deviations.
func (f *fitter) writeDeviations(b *block) error {
	for k, to := range f.out.deviations {
		if f.out.err == nil {
			f.out.err = weights.WriteFloats(to, b.deviations[k])
		}
	}
	return f.out.err
}

// finish writes the sections that do not come in blocks, and the header.
func (f *fitter) finish() error {
	w := f.out
	for _, row := range f.mixing {
		put(w, mixingSection, row)
	}
	for _, row := range f.trajectory {
		put(w, trajectorySection, row)
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
	// The length had to be known before the content, so the JSON is padded with spaces.
	if _, err := fmt.Fprintf(w.to[healthSection], "%-*s", w.healthLen, js); err != nil {
		return err
	}
	if _, err := w.to[graphSection].Write(f.in.Graph); err != nil {
		return err
	}
	return w.sw.Close()
}

// writeStatistics writes a row of batch-norm statistics for each checkpoint, first those of the continued posterior.
// A statistic that is not finite is an error: no network that ever ran has one.
func (f *fitter) writeStatistics() error {
	if p := f.in.Previous; p != nil {
		for _, row := range p.StoredStatistics {
			put(f.out, statisticsSection, row)
		}
	}
	row := make([]float32, f.in.Layout.Len(weights.Statistic))
	if len(row) == 0 {
		return f.out.err
	}
	for _, c := range f.in.Checkpoints {
		if err := c.Statistics.ReadAt(row, 0); err != nil {
			return err
		}
		if i := slices.IndexFunc(row, func(v float32) bool { return v-v != 0 }); i >= 0 {
			tensor, at := f.in.Layout.At(weights.Statistic, int64(i))
			return fmt.Errorf("%s: %w", c, &weights.ImplausibleError{
				Tensor: tensor,
				Index:  at,
				Value:  row[i],
				Want:   "finite batch-norm statistics and buffers",
			})
		}
		put(f.out, statisticsSection, row)
	}
	return f.out.err
}
