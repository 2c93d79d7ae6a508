package augment

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

// timm reports whether the op can only be written with timm's arguments.
func (e erase) timm() bool { return e.colour || e.count != [2]int{1, 1} }

func (e erase) String() string {
	scale, ratio := eraseScale, eraseRatio
	if e.timm() {
		scale, ratio = timmEraseScale, timmEraseRatio
	}
	value := ""
	switch {
	case e.colour:
		value = "mode='rand'"
	case e.value == nil && e.timm():
		value = "mode='pixel'"
	case e.value == nil:
		value = "value='random'"
	case len(e.value) > 1:
		value = "value=" + tuple(e.value)
	case e.value[0] != 0:
		value = "value=" + number(e.value[0])
	}
	return call("RandomErasing", probabilityArg(e.p, 0.5), spanArg("scale", e.scale, scale), spanArg("ratio", e.ratio, ratio), value,
		unless(e.count, [2]int{1, 1}, "count=(%d, %d)", e.count[0], e.count[1]))
}

// tensor holds a picture's values in the network's layout.
type tensor struct {
	x       []float32
	c, h, w int
	last    bool // channels are the last dimension
}

func (e erase) apply(t tensor, r *random) {
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
func (e erase) draw(h, w, count int, r *random) (box, bool) {
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
func (e erase) fill(t tensor, b box, r *random) {
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
