package augment

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// erase is RandomErasing of torchvision or timm. Timm's can erase several rectangles, and can fill each with one
// random colour.
type erase struct {
	p            float64
	scale, ratio [2]float64
	value        []float64 // 1 value or one per channel; nil for random values
	colour       bool      // one random colour per rectangle (timm: rand)
	count        [2]int    // minimum and maximum number of rectangles, which share the area
}

// The defaults of torchvision and of timm.
var (
	eraseScale, eraseRatio         = [2]float64{0.02, 0.33}, [2]float64{0.3, 3.3}
	timmEraseScale, timmEraseRatio = [2]float64{0.02, 1.0 / 3}, [2]float64{0.3, 1 / 0.3}
)

func newErase() transform {
	return &erase{p: 0.5, scale: eraseScale, ratio: eraseRatio, value: []float64{0}, count: [2]int{1, 1}}
}

func (*erase) name() string { return "RandomErasing" }

// timm reports whether the transform can only be written with timm's arguments.
func (e *erase) timm() bool { return e.colour || e.count != [2]int{1, 1} }

func (e *erase) params() []param {
	scale, ratio, value, mode := eraseScale, eraseRatio, "", ""
	if e.timm() {
		scale, ratio = timmEraseScale, timmEraseRatio
	}
	switch {
	case e.colour:
		mode = "'rand'"
	case e.value == nil && e.timm():
		mode = "'pixel'"
	case e.value == nil:
		value = "'random'"
	case len(e.value) > 1:
		value = tuple(e.value)
	case e.value[0] != 0:
		value = number(e.value[0])
	}
	return []param{
		probabilityParam(&e.p, 0.5),
		spanParam("scale", &e.scale, scale, 0, 1, "two numbers from 0 to 1, the smaller first"),
		ratioParam(&e.ratio, ratio),
		{name: "value", text: value, read: e.readValue},
		{name: "inplace"},
		{name: "mode", text: mode, read: e.readMode},
		{name: "count", text: unless(e.count, [2]int{1, 1}, fmt.Sprintf("(%d, %d)", e.count[0], e.count[1])), read: e.readCount},
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
	case slices.Max(x) > math.MaxFloat32 || slices.Min(x) < -math.MaxFloat32:
		return "numbers in the range of float32"
	case slices.Max(x) == slices.Min(x):
		x = x[:1]
	}
	e.value = x
	return ""
}

func (e *erase) readMode(_ *arguments, v value) string {
	switch v.word {
	case "rand", "pixel":
		e.value, e.colour = nil, v.word == "rand"
	case "const", "":
	default:
		return "const, rand or pixel"
	}
	return ""
}

func (e *erase) readCount(_ *arguments, v value) string {
	n, ok := v.whole(1, 1000, 1, 2)
	switch {
	case !ok:
		return "a whole number from 1 to 1000, or the least and the most"
	case n[0] > n[len(n)-1]:
		return "the least first"
	case len(n) == 1:
		n = []int{1, n[0]}
	}
	e.count = [2]int(n)
	return ""
}

// finish sets what depends on several arguments.
func (e *erase) finish(a *arguments) error {
	_, hasValue := a.get("value")
	_, hasMode := a.get("mode")
	_, hasCount := a.get("count")
	_, all := a.named["inplace"]
	switch isTimm := hasMode || hasCount; {
	case hasValue && isTimm:
		return errors.New("value and timm's mode or count, want one of them")
	case !isTimm && !hasValue && a.printed && all:
		e.value = nil // version 2 prints no value if it is random
	case isTimm:
		if _, ok := a.get("scale"); !ok {
			e.scale = timmEraseScale
		}
		if _, ok := a.get("ratio"); !ok {
			e.ratio = timmEraseRatio
		}
	}
	return nil
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
	count := e.count[0] + r.IntN(e.count[1]-e.count[0]+1)
	for range count {
		if b, ok := e.draw(t.h, t.w, count, r); ok {
			e.fill(t, b, r)
		}
	}
}

// draw is RandomErasing.get_params for one of count rectangles. The rectangle is smaller than the picture in both
// directions. If ten attempts find none, draw returns false.
func (e *erase) draw(h, w, count int, r *random) (box, bool) {
	area := float64(h) * float64(w)
	for range 10 {
		bh, bw := shape(area*r.between(e.scale)/float64(count), logBetween(e.ratio, r))
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
		case e.colour:
			v = float32(r.NormFloat64())
		case len(e.value) == 1:
			v = float32(e.value[0])
		case e.value != nil:
			v = float32(e.value[c])
		}
		pixels := e.value == nil && !e.colour
		for y := b.top; y < b.top+b.h; y++ {
			at := c*plane + y*row + b.left*step
			for range b.w {
				if pixels {
					v = float32(r.NormFloat64())
				}
				t.x[at] = v
				at += step
			}
		}
	}
}
