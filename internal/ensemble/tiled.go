package ensemble

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// joiner puts the averaged outcomes of tiles together to those of pictures. Where tiles overlap, it takes their mean, as
// MMSegmentation and MONAI (mode "constant") do, but of probabilities. It holds the sums of one picture.
type joiner struct {
	dataset.Tiled
	first   int // picture of the part
	next    int // picture to complete
	sum     []float64
	covered []uint16 // tiles that hold each pixel
	err     error    // of a tile of the picture
}

// pictures returns the tiles that the job scores, or nil if its examples are whole.
func (job *Scoring) pictures() dataset.Tiled {
	t, _ := job.Data.(dataset.Tiled)
	return t
}

// Examples returns the number of rows of the whole job: that of pictures, not of their tiles.
func (job *Scoring) Examples() int {
	if t := job.pictures(); t != nil {
		return t.Pictures()
	}
	return job.Data.Len()
}

// Begin returns the example to run first if so many rows of the job, or of its part, are there already.
func (s *Scorer) Begin(rows int) int {
	if s.join == nil {
		return rows
	}
	s.join.next = s.join.first + rows
	return s.join.First(s.join.next) - s.join.First(s.join.first)
}

// Begun returns the row that [Scorer.Rows] gives first for the chunk.
func (s *Scorer) Begun(c *infer.Chunk) int {
	if s.join == nil {
		return c.First
	}
	return s.join.next - s.join.first
}

// joined calls yield with the rows of the pictures that the chunk completes.
func (s *Scorer) joined(t task.Dense, c *infer.Chunk, yield func(*predictions.Row) bool) {
	j, width := s.join, t.About().Width
	var row predictions.Row
	for i := range c.Len {
		at := j.First(j.first) + c.First + i
		k, h, w, y, x := j.Place(at)
		each := width / task.Positions(t)
		if at == j.First(k) {
			j.sum, j.covered, j.err = make([]float64, h*w*each), make([]uint16, h*w), nil
		}
		if j.err = cmp.Or(j.err, c.Errs[i]); j.err == nil {
			j.add(c.Average(c.Outcome[i*width:][:width], i).Outcome, each, h, w, y, x)
		}
		if at+1 < j.First(k+1) {
			continue
		}
		for p, n := range j.covered {
			for v := range each {
				j.sum[p*each+v] /= float64(max(1, n))
			}
		}
		j.next = k + 1
		s.pictureRow(t.Sized(h, w), k, &row)
		if !yield(&row) {
			return
		}
	}
}

// add adds the outcome of a tile at (y, x) of a picture of h×w pixels.
func (j *joiner) add(outcome []float64, each, h, w, y, x int) {
	side := j.Side()
	for r := range min(side, h-y) {
		for c := range min(side, w-x) {
			p := (y+r)*w + x + c
			j.covered[p]++
			to, from := j.sum[p*each:][:each], outcome[(r*side+c)*each:]
			for v := range to {
				to[v] += from[v]
			}
		}
	}
}

// pictureRow makes the row of picture k from its averages.
func (s *Scorer) pictureRow(t task.Dense, k int, r *predictions.Row) {
	*r = predictions.Row{Index: k - s.join.first, Path: s.join.PictureName(k), Label: -1, Values: r.Values[:0], Sums: r.Sums[:0]}
	label, err := s.labels.Load(k)
	if err == nil && !label.None() {
		err = t.CheckLabel(label)
	}
	s.denseValues(t, task.Average{Outcome: s.join.sum}, label, cmp.Or(s.join.err, err), r)
}

// denseValues fills in a row from the averages of an example, or from the reason why it has none.
func (s *Scorer) denseValues(t task.Dense, a task.Average, label truth.Truth, err error, r *predictions.Row) {
	if err == nil {
		a.Threshold = s.job.Threshold
		if s.job.Ensemble.Calibration != nil {
			a.Calibrate = func(outcome []float64) { s.job.Ensemble.Calibrated(t.Each(), outcome) }
		}
		err = t.Read(&s.reading, s.job.Want, a, label)
	}
	if err != nil {
		r.Error = strings.Join(strings.Fields(err.Error()), " ")
		if !s.job.SkipErrors {
			r.Fatal = fmt.Errorf("%s: %w", r.Path, err)
		}
		return
	}
	r.Values, r.Sums = append(r.Values, s.reading.Values...), append(r.Sums, s.reading.Sums...)
	if s.job.Positions != nil {
		r.Fatal = s.job.Positions(r.Path, t, &s.reading)
	}
}
