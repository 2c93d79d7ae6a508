package probe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tally"
)

// Inputs holds the references for the check of a sample's inputs.
type Inputs struct {
	Preprocess preprocess.Settings // of the data
	// Trained summarizes the training data, and From is its name. Trained is nil if it is unknown.
	Trained []moments.Summary
	From    string
	// Adapted is what Trained is, of the data to which the network was adapted, or nil. Data may look like either.
	Adapted *Report
	// Holds are the properties of the data.
	Holds Property
	// Training says that the sample is training data: its summary goes into the report. Noted skips the comparison,
	// because the batch-norm check judges the data.
	Training, Noted bool
	// Run compares the data with training at the first batch-norm layer if Trained is nil. It may be nil.
	Run *Runner
}

// CheckInputs compares the network's inputs with those of training. It warns if they differ by more than chance,
// augmentation and other shares of the classes explain. The warning names the fault that explains the difference.
//
// The reference is Trained if it is known, else the first batch-norm layer. For pictures without either, it is the
// range that the mean and the standard deviation of the preprocessing imply.
func (r *Report) CheckInputs(ctx context.Context, s *Sample, fields []dataset.Field, how Inputs) error {
	all := parts(s, fields, how.Preprocess)
	if how.Training {
		for _, p := range all {
			summary := p.sample.Summary()
			summary.Input = p.name
			r.Inputs = append(r.Inputs, summary)
		}
	}
	if how.Noted {
		return nil
	}
	if how.Adapted != nil {
		like, trained := &Report{}, how
		trained.Trained, trained.From, trained.Adapted = how.Adapted.Inputs, "the target data ("+how.Adapted.Data+")", nil
		if err := like.compare(ctx, s, all, trained); err != nil || len(like.Warnings) == 0 {
			return err
		}
	}
	return r.compare(ctx, s, all, how)
}

// compare compares inputs with those of training.
func (r *Report) compare(ctx context.Context, s *Sample, all []part, how Inputs) error {
	compared := false
	for _, p := range all {
		var rows []Fault
		k := slices.IndexFunc(how.Trained, func(t moments.Summary) bool {
			return t.Input == p.name && moments.Comparable(t, p.sample)
		})
		if k >= 0 {
			rows = p.against(how.Trained[k], how)
		} else {
			rows = p.plausible(how)
		}
		f := First(rows, how.Holds)
		compared = compared || k >= 0 || f != nil
		r.wrong(p, f)
	}
	if compared || how.Run == nil || !how.Run.Recomputes() && !how.Run.Posterior.Single() ||
		how.Holds&Foreign != 0 || s.Len() < shifted {
		return nil
	}
	return r.againstLayer(ctx, s, all, how)
}

// wrong takes a fault of an input into the report. It may be nil.
func (r *Report) wrong(p part, f *Fault) {
	if f == nil {
		return
	}
	of := ""
	if p.name != "" {
		of = fmt.Sprintf(" of input %q", p.name)
	}
	f.Severity, f.Hint = Wrong, "To fix it: "+f.Hint
	f.Cause = fmt.Sprintf("the values%s are not like those of training, so predictions may be wrong. Likely cause: %s", of, f.Cause)
	r.warn(f)
}

// part is one input of a sample.
type part struct {
	name     string // name of the input; "" if there is only one
	sample   *moments.Sample
	values   [][]float32                                 // the values of each example; nil for tokens
	own      func(example dataset.Values) dataset.Values // the values of the input
	step     int                                         // see [moments.NewSample]
	picture  bool
	prepared how
}

// how says how the values were prepared for the network.
type how int

const (
	unchanged  how = iota // arrays that the network takes as stored
	normalised            // floats that the card's mean and standard deviation were applied to
	decoded               // image files and uint8 arrays of pictures
)

func parts(s *Sample, fields []dataset.Field, p preprocess.Settings) (all []part) {
	pictures := dataset.Pictures(fields, p)
	for i, f := range fields {
		in := newPart(s, fields, i, pictures[i], p)
		switch {
		case dataset.Decoded(s.Dataset, i):
			in.prepared = decoded
		case !dataset.AsSeen(s.Dataset) && (pictures[i] || len(fields) == 1):
			in.prepared = normalised
		}
		if len(fields) > 1 {
			in.name = f.Name
		}
		all = append(all, in)
	}
	return all
}

// proof is the property that proves how the values are normalised. It tells nothing about arrays of floats.
func (p part) proof() Property {
	if p.prepared == decoded {
		return Loaded
	}
	return 0
}

// maxColumns is the largest number of elements of a row that are compared column by column.
const maxColumns = 256

// maxCodes is the largest number of whole numbers in an example that count as columns and not as tokens.
const maxCodes = 16

func newPart(s *Sample, fields []dataset.Field, i int, picture bool, pre preprocess.Settings) part {
	own := fields[i] // as the network declares it; the data says how long it is
	p := part{picture: picture}
	if f := dataset.Fields(s.Dataset); f != nil {
		own.Shape = f[i].Shape
		p.own = func(v dataset.Values) dataset.Values { return v.Field(f, i) }
	} else {
		own.Shape = s.Shape()
		p.own = func(v dataset.Values) dataset.Values { return v }
	}
	free := slices.ContainsFunc(fields[i].Shape, func(d int64) bool { return d < 1 })
	if own.Ints() && (free || len(own.Shape) > 1 || own.Size().Ints > maxCodes) {
		p.sample = moments.NewTokens(p.ids(s, own, i))
		return p
	}
	for k := range s.Len() {
		v := p.own(s.Values(k))
		p.values = append(p.values, append(slices.Clip(v.Floats), converted[float32](v.Ints)...))
	}
	kind, groups, step := layout(own.Shape, fields[i].Shape, picture, pre)
	p.step = step
	p.sample = moments.NewSample(kind, groups, step, p.values)
	return p
}

// ids returns the token ids of a field, without the padding.
func (p part) ids(s *Sample, f dataset.Field, field int) (out [][]int64) {
	for k := range s.Len() {
		v := p.own(s.Values(k))
		ids := append(slices.Clip(v.Ints), converted[int64](v.Floats)...)
		if n := dataset.Length(s, field, k); n > 0 && len(f.Shape) == 1 && n < len(ids) {
			ids = ids[:n]
		}
		out = append(out, ids)
	}
	return out
}

// converted returns the values as numbers of another type.
func converted[To, From float32 | int64](values []From) []To {
	out := make([]To, len(values))
	for k, v := range values {
		out[k] = To(v)
	}
	return out
}

// layout groups the elements of a shape: by channel for pictures, by column for rows, else along the axis of features.
func layout(shape, declared []int64, picture bool, pre preprocess.Settings) (kind moments.Kind, groups, step int) {
	elements := 1
	for _, d := range shape {
		elements *= int(d)
	}
	if picture {
		if pre.LayoutOf(shape) == "nhwc" {
			return moments.Channels, int(shape[2]), 1
		}
		return moments.Channels, int(shape[0]), elements / int(shape[0])
	}
	last := len(shape) - 1
	const most = 64
	switch {
	case len(shape) < 2 && elements <= maxColumns:
		return moments.Columns, elements, 1
	case len(shape) < 2:
	case declared[last] > 0 && shape[last] <= most && (shape[last] <= shape[0] || declared[0] < 1):
		return moments.Channels, int(shape[last]), 1
	case declared[0] > 0 && shape[0] <= most:
		return moments.Channels, int(shape[0]), elements / int(shape[0])
	}
	return moments.Channels, 1, elements
}

// against lists what may be wrong with an input, compared with training.
func (p part) against(trained moments.Summary, how Inputs) []Fault {
	changes, tried := p.changes(how.Preprocess), []moments.Change{}
	for _, f := range changes {
		if p.possible(f, how.Preprocess) && f.Unless&how.Holds == 0 {
			tried = append(tried, *f.Undo)
		}
	}
	e := moments.Explain(trained, p.sample, tried)
	if !e.Found() {
		return nil
	}
	evidence, beyond, frequent, cause, fix := p.evidence(trained, e, how.From), "", "", "", ""
	for i := range changes {
		f := &changes[i]
		f.When = e.Change != nil && e.Change.Name == f.Undo.Name
		f.Cause += ". " + evidence
	}
	ids := p.sample.Kind == moments.Tokens
	if now := p.sample.Summary().Tokens; ids {
		beyond = fmt.Sprintf("%.0f %% of the texts have ids that training did not have. Ids here go from %d to %d, and those of "+
			"%s from %d to %d", 100*e.Beyond, now.Min, now.Max, how.From, trained.Tokens.Min, trained.Tokens.Max)
		frequent = fmt.Sprintf("the frequent ids of %s are not frequent here: %s", how.From, p.frequent(trained))
	}
	if len(e.Columns) > 0 {
		cause, fix = p.columns(trained, e, how.From)
	}
	return slices.Concat(changes, []Fault{
		{Name: "ids beyond training", Unless: Foreign, When: ids && e.Beyond > 0.1, Cause: beyond, Hint: tokenizer},
		{Name: "other frequent ids", Unless: Foreign, When: ids, Cause: frequent, Hint: tokenizer},
		{Name: "columns", Unless: Foreign, When: cause != "", Cause: cause, Hint: fix},
		{Name: "lower contrast", Unless: Foreign, When: !ids && p.fainter(trained),
			Cause: "pictures of lower contrast, " + otherData + evidence, Hint: compareBatch()},
		{Name: "other data", Unless: Foreign, When: true, Cause: otherData + evidence, Hint: compareBatch()},
	}, p.plausible(how))
}

// possible reports whether a fault explains pictures that the model card normalises: without the fault, pixels lie between 0 and
// 1. Values that are only fainter than in training look like a missing normalisation, but theirs do not.
func (p part) possible(f Fault, s preprocess.Settings) bool {
	if !p.picture || p.values == nil || f.Unless&Foreign != 0 || s.Mean == nil && s.Std == nil {
		return true
	}
	return p.inside(f.Undo.Then(p.normalise(s, true), p.sample.Groups())) >= insideShare
}

// fainter reports whether all channels of pictures vary less than in training.
func (p part) fainter(trained moments.Summary) bool {
	const clearly = 0.75
	if !p.picture {
		return false
	}
	for g, now := range p.sample.Summary().Groups {
		if !(now.Std < clearly*trained.Groups[g].Std) {
			return false
		}
	}
	return true
}

// insideShare is the least share of the pixels between 0 and 1: augmentation may replace some by noise.
const insideShare = 0.98

const otherData = "another data set, or data that was prepared in another way. "

func compareBatch() string {
	return "compare what the network receives, " + setting.Score.With(setting.SaveBatch.With("FILE.npy")) + ", with a batch of training"
}

const tokenizer = "make the ids with the tokenizer that training used"

// frequent describes the shares of training's most frequent ids in this sample.
func (p part) frequent(trained moments.Summary) string {
	now := map[int64]float64{}
	for _, f := range p.sample.Summary().Tokens.Frequent {
		now[f.ID] = f.Share
	}
	var list []string
	for _, f := range trained.Tokens.Frequent[:min(3, len(trained.Tokens.Frequent))] {
		list = append(list, fmt.Sprintf("id %d has a share of %.1f %%, not %.1f %%", f.ID, 100*now[f.ID], 100*f.Share))
	}
	return strings.Join(list, ", ")
}

// evidence names the worst channel or column with its moments.
func (p part) evidence(trained moments.Summary, e moments.Explanation, from string) string {
	if p.sample.Kind == moments.Tokens {
		return fmt.Sprintf("Compared with %s", from)
	}
	g := 0
	if off := e.Off(); len(off) > 0 {
		g = off[0]
	}
	now := p.sample.Summary().Groups[g]
	was := trained.Groups[g]
	return fmt.Sprintf("%s has %s here, and %s in %s", p.group(g), moment(now.Mean, now.Std), moment(was.Mean, was.Std), from)
}

// group names a channel or column, counted from 0 as in arrays.
func (p part) group(g int) string {
	switch {
	case p.sample.Groups() == 1 && p.sample.Kind == moments.Channels:
		return "The input"
	case p.picture:
		return fmt.Sprintf("Channel %d", g)
	case p.sample.Kind == moments.Columns:
		return fmt.Sprintf("Column %d (counted from 0)", g)
	}
	return fmt.Sprintf("Feature %d (counted from 0)", g)
}

// columns names the fault of each of a few columns, counted from 0 as in arrays.
func (p part) columns(trained moments.Summary, e moments.Explanation, from string) (cause, fix string) {
	cause, fix = "other units, or another order of columns",
		"give the columns in the units and the order of training; for tables "+setting.Columns.With("A,B,C")+" says the order"
	if n := len(e.Columns); n > 1 && n == p.sample.Groups() {
		cause = "columns that are not standardised as in training, other units, or another data set"
		fix = "give the columns standardised as in training, in its units and order"
	}
	now := p.sample.Summary()
	const named = 2
	var list []string
	for _, c := range e.Columns[:min(named, len(e.Columns))] {
		what := "is not like in training"
		switch {
		case c.From >= 0:
			from := c.From
			if k := slices.IndexFunc(e.Columns, func(o moments.ColumnChange) bool { return o.From == c.Column }); k >= 0 {
				from = e.Columns[k].Column
			}
			what = fmt.Sprintf("has the values that column %d had in training", from)
		case len(c.Units) > 0:
			what = "has " + c.Units[0].Name
			if len(c.Units) > 1 {
				what += ", or " + c.Units[1].Name
			}
		case c.Share > 0.5:
			what = "has values outside the range of training"
		}
		a, b := now.Groups[c.Column], trained.Groups[c.Column]
		list = append(list, fmt.Sprintf("column %d %s (%s here, %s in %s)", c.Column, what, moment(a.Mean, a.Std),
			moment(b.Mean, b.Std), from))
	}
	sentence := "Counted from 0, " + strings.Join(list, ", and ")
	if more := len(e.Columns) - named; more > 0 {
		sentence += fmt.Sprintf(". %d more columns differ", more)
	}
	return cause + ". " + sentence, fix
}

// moment formats a mean and a standard deviation. A mean that differs from 0 only by rounding is shown as 0.
func moment(mean, std float64) string {
	if math.Abs(mean) < 1e-3*std {
		mean = 0
	}
	return fmt.Sprintf("mean %.3g and standard deviation %.3g", mean, std)
}

// plausible lists what may be wrong with pictures by the range that mean and standard deviation of the preprocessing imply. Without
// normalisation pixels lie in [0, 1]. With it dark pixels are negative.
func (p part) plausible(how Inputs) []Fault {
	m, s := how.Preprocess.Unit()
	if !p.picture || m == nil && s == nil {
		return nil
	}
	const outside = 0.9 // share of values
	groups := p.sample.Groups()
	undo := p.normalise(how.Preprocess, true)
	share, raw := p.inside(undo), p.inside(moments.Change{})
	low, high, dark := math.Inf(1), math.Inf(-1), math.Inf(1)
	for g, now := range p.sample.Changed(undo).Summary().Groups {
		low, high, dark = min(low, now.Min), max(high, now.Max), min(dark, groupValue(undo.Shift, g))
	}
	if share > outside && !(raw > 0.999 && dark > 0.02) {
		return nil
	}
	all := fmt.Sprintf("Once the mean %v and the standard deviation %v are taken out, values go from %.3g to %.3g, and pixels lie "+
		"between 0 and 1", m, s, low, high)
	rows := p.changes(how.Preprocess)
	for i := range rows {
		f := &rows[i]
		c, spread := f.Undo.Then(undo, groups), 0.0
		for _, g := range p.sample.Changed(c).Summary().Groups {
			spread = max(spread, g.Std)
		}
		f.When, f.Cause = f.Unless&Foreign == 0 && p.inside(c) >= insideShare && spread > 0.08, f.Cause+". "+all
	}
	return append(rows, Fault{Name: "no pixels", When: share <= outside, // else bright pictures
		Cause: "values that are no pixels, or a wrong mean and standard deviation. " + all,
		Hint:  "say how pictures are normalised: " + setting.Preprocess.With(`"mean=M std=S"`) + ", or " + setting.Preprocess.With("FILE")})
}

func groupValue(v []float64, g int) float64 { return v[min(g, len(v)-1)] }

// inside returns the share of the values that lie in [0, 1] after a change, within a tolerance.
func (p part) inside(c moments.Change) float64 {
	count, all := 0, 0
	groups := p.sample.Groups()
	scale, shift := make([]float64, groups), make([]float64, groups)
	for g := range groups {
		_, scale[g], shift[g] = c.Group(g)
	}
	for _, x := range p.values {
		all += len(x)
		for first := 0; first < len(x); first += p.step { // values of one group
			g := first / p.step % groups
			a, b := scale[g], shift[g]
			for _, v := range x[first:min(first+p.step, len(x))] {
				if y := float64(a*float64(v)) + b; y >= -0.02 && y <= 1.02 {
					count++
				}
			}
		}
	}
	return float64(count) / float64(max(all, 1))
}

// againstLayer compares the examples at the first batch-norm layer with training. It undoes one possible fault after
// the other, and runs the examples again.
func (r *Report) againstLayer(ctx context.Context, s *Sample, parts []part, how Inputs) error {
	ctx = tally.For(ctx, tally.Check("inputs"))
	layer, err := how.Run.firstLayer(ctx)
	if err != nil || layer == nil {
		return err
	}
	defer layer.session.Close()
	now, err := layer.shift(ctx, s)
	if err != nil || now.score() < 1 {
		return err
	}
	all := fmt.Sprintf("At the first batch-norm layer (%s) means differ by %.2g standard deviations from those of training, and "+
		"variances by a factor of %.2g", now.layer, now.means, math.Exp(now.variances))
	const tried = 64 // examples
	some := *s
	some.rows = s.rows[:min(tried, len(s.rows))]
	best, of := min(1, now.score()/2), parts[0]
	found := Fault{}
	for _, p := range parts {
		if p.values == nil {
			continue
		}
		for _, f := range p.changes(how.Preprocess) {
			if !p.possible(f, how.Preprocess) || f.Unless&how.Holds != 0 {
				continue
			}
			some.values = p.changed(s, some.Len(), *f.Undo)
			then, err := layer.shift(ctx, &some)
			if err != nil {
				return err
			}
			if then.score() < best {
				best, of, found = then.score(), p, f
				found.When, found.Cause = true, f.Cause+". "+all
			}
		}
	}
	fix := "give the values in the units of training, standardised if those of training were"
	if of.picture {
		fix = "say how training normalised: " + setting.Fit.With(setting.Preprocess.With(`"mean=M std=S"`)) + ", or " +
			setting.Fit.With(setting.Preprocess.With("NAME"))
	}
	r.wrong(of, First([]Fault{found,
		{Name: "another spread at the first layer", Unless: of.proof(), // the first convolution keeps a factor that all values have
			When: 2*math.Abs(now.spread) > 0.8*now.variances && now.variances > maxLogRatio,
			Cause: fmt.Sprintf("another mean and standard deviation than in training, with about %.3g times the spread. %s",
				math.Exp(now.spread), all), Hint: fix},
		{Name: "other data at the first layer", Unless: Frozen, When: true, Cause: otherData + all, Hint: compareBatch()},
	}, how.Holds|how.Run.holds))
	return nil
}

// changed returns the first n examples of a sample with one input changed.
func (p part) changed(s *Sample, n int, c moments.Change) (out []dataset.Values) {
	groups := p.sample.Groups()
	for i, x := range p.values[:n] {
		y := dataset.Values{Floats: slices.Clone(s.values[i].Floats), Ints: slices.Clone(s.values[i].Ints)}
		own := p.own(y)
		for k := range x {
			g := k / p.step % groups
			from, scale, shift := c.Group(g)
			v := float64(scale*float64(x[k+(from-g)*p.step])) + shift
			if len(own.Ints) > 0 {
				own.Ints[k] = int64(math.Round(v))
			} else {
				own.Floats[k] = float32(v)
			}
		}
		out = append(out, y)
	}
	return out
}
