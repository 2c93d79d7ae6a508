package augment

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/word"
)

// erase is torchvision's RandomErasing.
type erase struct {
	p            float64
	scale, ratio [2]float64
	value        []float64 // 1 value or one per channel; nil for random values
}

var eraseScale, eraseRatio = [2]float64{0.02, 0.33}, [2]float64{0.3, 3.3}

func (*erase) name() string { return "RandomErasing" }

func (e *erase) params() []param {
	value := ""
	switch {
	case e.value == nil:
		value = "'random'"
	case len(e.value) > 1:
		value = tuple(e.value)
	case e.value[0] != 0:
		value = number(e.value[0])
	}
	return []param{
		probabilityParam(&e.p, 0.5),
		spanParam("scale", &e.scale, eraseScale, 0, 1, "two numbers from 0 to 1, the smaller first"),
		ratioParam(&e.ratio, eraseRatio),
		{name: "value", text: value, read: e.readValue},
		{name: "inplace"},
	}
}

func (e *erase) readValue(_ *arguments, v value) string {
	x, ok := v.numbers(1, 3)
	switch {
	case v.kind != 'l' && v.word == "random":
		e.value = nil
		return ""
	case !ok:
		return "a number, three, or 'random'"
	case slices.Max(x) > most || slices.Min(x) < -most:
		return word.Span(-most, most)
	case slices.Max(x) == slices.Min(x):
		x = x[:1]
	}
	e.value = x
	return ""
}

// tensor holds a picture's values in the network's layout.
type tensor struct {
	x       []float32
	c, h, w int
	last    bool // channels are the last dimension
}

func (e *erase) apply(t tensor, r *random) {
	if !r.happens(e.p) {
		return
	}
	if b, ok := e.draw(t.h, t.w, r); ok {
		e.fill(t, b, r)
	}
}

// draw is RandomErasing.get_params. The rectangle is smaller than the picture in both
// directions. If ten attempts find none, draw returns false.
func (e *erase) draw(h, w int, r *random) (box, bool) {
	area := float64(h) * float64(w)
	for range 10 {
		bh, bw := shape(area*r.between(e.scale), logBetween(e.ratio, r))
		if bh < h && bw < w {
			return box{r.IntN(h - bh + 1), r.IntN(w - bw + 1), bh, bw}, true
		}
	}
	return box{}, false
}

// fill overwrites a rectangle, channel by channel.
func (e *erase) fill(t tensor, b box, r *random) {
	plane, row, step := t.h*t.w, t.w, 1
	if t.last {
		plane, row, step = 1, t.w*t.c, t.c
	}
	for c := range t.c {
		var v float32
		switch {
		case len(e.value) == 1:
			v = float32(e.value[0])
		case e.value != nil:
			v = float32(e.value[c])
		}
		for y := b.top; y < b.top+b.h; y++ {
			at := c*plane + y*row + b.left*step
			for range b.w {
				if e.value == nil {
					v = float32(r.NormFloat64())
				}
				t.x[at] = v
				at += step
			}
		}
	}
}
