package ensemble

import (
	"cmp"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// joiner puts the averaged outcomes of tiles together to those of pictures. Where tiles overlap, it takes their mean, as
// MMSegmentation and MONAI (mode "constant") do, but of probabilities. It holds the sums of a band of one picture, as high
// as a tile: rows above the next tile are complete.
type joiner struct {
	*dataset.Tiles
	first   int // picture of the part
	next    int // picture to complete
	task    task.Task
	top     int // first row of the band
	each    int // numbers of a pixel
	w       int // width of the picture
	sum     []float64
	covered []uint16 // tiles that hold each pixel
	err     error    // the error of a tile of the picture, or of its labels
}

// Examples returns the number of rows of the whole job: that of pictures, not of their tiles.
func (job *Scoring) Examples() int {
	if t := job.pictures(); t != nil {
		return t.Pictures()
	}
	return job.Data.Len()
}

// Name returns the name of an example of the whole job: that of a picture, not of a tile.
func (job *Scoring) Name(i int) string {
	if t := job.pictures(); t != nil {
		return t.PictureName(i)
	}
	return job.Data.Name(i)
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

// tile adds example i of a chunk to its picture. It reports whether the picture is complete, and then makes its row.
func (s *Scorer) tile(c *infer.Chunk, i int, r *predictions.Row) bool {
	j, width := s.join, s.Task().About().Width
	at := j.First(j.first) + c.First + i
	k, h, w, y, x := j.Place(at)
	if at == j.First(k) {
		s.beginPicture(k, h, w)
	}
	s.complete(y)
	if j.err = cmp.Or(j.err, c.Errs[i]); j.err == nil {
		j.add(c.Average(c.Outcome[i*width:][:width], i).Outcome, h, y, x)
	}
	if at+1 < j.First(k+1) {
		return false
	}
	s.complete(h)
	if j.sum != nil {
		s.reading.End()
	}
	j.next = k + 1
	s.begin(r, k-j.first, j.PictureName(k), target.Target{})
	s.end(j.task, j.err, r)
	return true
}

// beginPicture begins picture k of h×w pixels.
func (s *Scorer) beginPicture(k, h, w int) {
	j, t := s.join, s.Task() // of a tile
	j.task, j.top, j.w, j.each = task.Sized(t, h, w), 0, w, t.About().Width/task.Positions(t)
	rows := min(h, j.Tiling.Size)
	j.sum, j.covered = nil, nil
	if j.err = s.room(t, h, w, rows); j.err != nil {
		return
	}
	j.sum, j.covered = make([]float64, rows*w*j.each), make([]uint16, rows*w)
	label, err := s.labels.Load(k)
	if err == nil && !label.None() {
		err = j.task.CheckLabel(label)
	}
	j.err = err
	s.reading.NoMaps = s.job.Positions == nil
	s.beginSizes(k-s.first(), j.PictureName(k))
	s.reading.Begin(j.task, s.job.Want, label)
}

// room fails if the averages of some rows of a picture of h×w pixels, and the maps of all, take more than the memory. A
// small file may name a large size.
func (s *Scorer) room(t task.Task, h, w, rows int) error {
	const average, maps = 8, 5 * 4 // bytes
	need := int64(rows) * int64(w) * average * int64(t.About().Width/task.Positions(t))
	if s.job.Positions != nil {
		need += int64(h) * int64(w) * maps
	}
	if limit := s.engine.Memory().Joined(); need > limit {
		return &listing.MemoryError{What: fmt.Sprintf("predicting %d×%d pixels", w, h), Bytes: need, Limit: limit}
	}
	return nil
}

// complete reads the rows of the picture above row y, and makes room for the next.
func (s *Scorer) complete(y int) {
	j := s.join
	pixels := (y - j.top) * j.w
	if pixels == 0 || j.sum == nil {
		return
	}
	for p, n := range j.covered[:pixels] {
		for v := range j.each {
			j.sum[p*j.each+v] /= float64(max(1, n))
		}
	}
	if j.err == nil {
		j.err = s.reading.Add(s.calibrated(j.task, task.Average{Outcome: j.sum[:pixels*j.each]}), j.top*j.w)
	}
	clear(j.sum[copy(j.sum, j.sum[pixels*j.each:]):])
	clear(j.covered[copy(j.covered, j.covered[pixels:]):])
	j.top = y
}

// add adds the outcome of a tile at (y, x) of a picture of h rows.
func (j *joiner) add(outcome []float64, h, y, x int) {
	side := j.Tiling.Size
	for r := range min(side, h-y) {
		for c := range min(side, j.w-x) {
			p := (y+r-j.top)*j.w + x + c
			j.covered[p]++
			to, from := j.sum[p*j.each:][:j.each], outcome[(r*side+c)*j.each:]
			for v := range to {
				to[v] += from[v]
			}
		}
	}
}
