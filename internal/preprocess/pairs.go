package preprocess

import (
	"cmp"
	"fmt"
	"image"
	"maps"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// Pairs are pictures, and the tensors that the loader of a training program made of them. They prove the settings of the loader.
type Pairs struct {
	Shape    []int64     // of a tensor
	Files    [][]byte    // of the pictures
	Tensors  [][]float64 // of each picture
	Rounding float64     // of the type of the tensors, in units of their largest number

	expanded bool // candidates have the arithmetic of tensors, too
}

// tolerance is the difference that rounding explains, in levels of a pixel. Other pixels differ by more, or not at all.
func (p *Pairs) tolerance() float64 { return 0.01 + 200*p.Rounding }

// A Fit says how near settings come to tensors.
type Fit struct {
	Settings
	Levels float64 // the largest difference, in levels of a pixel
	Bits   bool    // all numbers are equal bit for bit
}

// Limits of the search. Larger pictures prove no more.
const (
	maxPairPixels = 1 << 25
	mostAlike     = 32  // candidates that are compared with whole pictures
	mostNear      = 4   // of them if none makes the tensors
	mostAbove     = 320 // the network's size
	windowSide    = 8   // of the parts of a tensor that are compared with all candidates, at most
	windowCount   = 3
	// mostWork bounds the pixels that are read, at about 10 ns each: windows of all candidates take half of it, whole pictures the rest.
	// The first picture is always compared.
	mostWork  = 250_000_000
	ofDecoder = 4 // a pixel that is decoded costs as much as this number of pixels that are read
	// ofTensor is how far the two ways to resize with one filter are from each other, in levels.
	ofTensor = 2
)

// orders are the orders of channels. Each has the channel of the picture for each of the tensor.
var orders = map[string][]int{"grey": {0}, "rgb": {0, 1, 2}, "bgr": {2, 1, 0}}

// layouts have the axes of channels, height and width.
var layouts = map[string][3]int{"nchw": {0, 1, 2}, "nhwc": {2, 0, 1}}

// candidate is settings whose normalisation is not known yet.
type candidate struct {
	Settings
	worst  float64 // the largest difference until now, in levels
	values [][levels + 1]seen
}

// seen is what tensors have for one level of a pixel.
type seen struct{ sum, count, low, high float64 }

// Equal reports whether settings make the tensors from the pictures.
func (p *Pairs) Equal(f Fit) bool { return f.Levels <= p.tolerance() }

// Search finds all settings that make the tensors from the pictures. If none does, nearest comes nearest to them. Work is bounded:
// afterwards p has the pictures that were compared.
func (p *Pairs) Search() (all []Fit, nearest Fit, err error) {
	files, err := p.open()
	if err != nil {
		return nil, nearest, err
	}
	order := p.order(files)
	alike, work := p.candidates(files), 0
	side := p.windowSide(files[order[0]], len(alike))
	for n, i := range order {
		if work += files[i].W * files[i].H * ofDecoder; n > 0 && work > mostWork/2 {
			break
		}
		if alike, err = p.narrow(alike, i, side); err != nil {
			return nil, nearest, err
		}
		if len(alike) <= mostAlike {
			break
		}
	}
	first := files[order[0]].W * files[order[0]].H
	alike = p.cut(alike, files[order[0]], max(mostNear, min(mostAlike, mostWork/2/first-ofDecoder)))
	var compared []int
	work = 0
	for _, i := range order {
		work += files[i].W * files[i].H * (ofDecoder + len(alike))
		if len(compared) > 0 && (work > mostWork/2 || alike[0].worst > p.tolerance()) {
			break
		}
		compared = append(compared, i)
		if err := p.tabulate(alike, i); err != nil {
			return nil, nearest, err
		}
		alike = p.nearest(alike, 2*p.tolerance())
	}
	p.keep(compared)
	nearest.Levels = math.Inf(1)
	for _, c := range alike {
		s, ok := c.normalised(p.Rounding)
		if !ok {
			continue
		}
		f, ok := c.fit(s, p.Shape)
		if ok && p.Equal(f) {
			all = append(all, f)
		}
		if ok && f.Levels < nearest.Levels {
			nearest = f
		}
	}
	if math.IsInf(nearest.Levels, 1) {
		return nil, nearest, fmt.Errorf("%d raw examples and tensors of shape %d prove nothing: want pictures of several colours, without "+
			"random augmentation", len(p.Files), p.Shape)
	}
	return all, nearest, nil
}

// keep leaves the pictures at these places.
func (p *Pairs) keep(places []int) {
	var files [][]byte
	var tensors [][]float64
	for _, i := range slices.Sorted(slices.Values(places)) {
		files, tensors = append(files, p.Files[i]), append(tensors, p.Tensors[i])
	}
	p.Files, p.Tensors = files, tensors
}

// windowSide returns the side of windows for which all candidates read a picture within the bounds.
func (p *Pairs) windowSide(f picture.File, candidates int) int {
	_, h, w := p.sides("nchw")
	if _, h2, w2 := p.sides("nhwc"); h2*w2 > h*w {
		h, w = h2, w2
	}
	scale := max(1, float64(f.W)/float64(max(1, w))) * max(1, float64(f.H)/float64(max(1, h)))
	side := windowSide
	for side > 2 && float64(2*side*(side+1)*candidates)*scale > mostWork/2 {
		side--
	}
	return side
}

// cut returns the first candidates, which resize a picture in at most so many ways.
func (p *Pairs) cut(alike []candidate, f picture.File, ways int) []candidate {
	known := map[placing]bool{}
	for i, c := range alike[:min(len(alike), mostAlike)] {
		at, _ := c.Image.place(f.W, f.H, c.Orientation)
		if known[at] = true; len(known) > ways {
			return alike[:i]
		}
	}
	return alike[:min(len(alike), mostAlike)]
}

// nearest sorts candidates, and returns those that make the tensors. If none does, it returns those that come nearest.
func (p *Pairs) nearest(alike []candidate, within float64) []candidate {
	slices.SortStableFunc(alike, func(a, b candidate) int { return cmp.Compare(a.worst, b.worst) })
	n := slices.IndexFunc(alike, func(c candidate) bool { return c.worst > within })
	switch n {
	case -1:
		return alike
	case 0:
		n = min(len(alike), mostNear)
	}
	return alike[:n]
}

// open reads the headers of all pictures.
func (p *Pairs) open() (files []picture.File, err error) {
	for i, data := range p.Files {
		f, err := picture.Open(data)
		if err == nil && f.W*f.H > maxPairPixels {
			err = fmt.Errorf("%d×%d pixels, want at most %d", f.W, f.H, maxPairPixels)
		}
		if err != nil {
			return nil, fmt.Errorf("raw example %d: %w", i, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// order returns the places of the pictures: small ones first, and those with as many pixels as the tensor last, since nothing may
// have resized them.
func (p *Pairs) order(files []picture.File) (places []int) {
	cost := make([]int, len(files))
	for i, f := range files {
		cost[i] = f.W * f.H
		if n := len(p.Tensors[i]); cost[i] == n || cost[i] == n/3 {
			cost[i] += maxPairPixels
		}
		places = append(places, i)
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(cost[a], cost[b]) })
	return places
}

// candidates returns all ways from a picture to a tensor, without normalisation.
func (p *Pairs) candidates(files []picture.File) (all []candidate) {
	turns := []picture.Orientation{""}
	for _, f := range files {
		if f.Sideways() {
			turns = []picture.Orientation{picture.Pillow, picture.Apply}
		}
	}
	for _, layout := range slices.Sorted(maps.Keys(layouts)) {
		c, h, w := p.sides(layout)
		for _, name := range slices.Sorted(maps.Keys(orders)) {
			if len(orders[name]) != c || min(h, w) < 1 {
				continue
			}
			for _, turn := range turns {
				for _, im := range transforms(h, w) {
					all = append(all, candidate{Settings: Settings{Layout: layout, Channels: name, Orientation: turn, Image: im}})
				}
			}
		}
	}
	return all
}

// sides returns the number of channels, and height and width.
func (p *Pairs) sides(layout string) (c, h, w int) {
	if len(p.Shape) != 3 {
		return 0, 0, 0
	}
	axes := layouts[layout]
	return int(p.Shape[axes[0]]), int(p.Shape[axes[1]]), int(p.Shape[axes[2]])
}

// transforms returns the ways to h by w pixels, with Pillow's arithmetic. They are resolved.
func transforms(h, w int) (all []Transform) {
	size := [2]int{h, w}
	all = []Transform{{InputSize: size}}
	add := func(mode CropMode, resize [2]int) {
		for filter := picture.Bilinear; filter <= picture.Hamming; filter++ {
			all = append(all, Transform{mode, size, resize, 0, filter, false, false})
			if mode == Center || resize != size {
				all = append(all, Transform{mode, size, resize, 0, filter, true, false})
			}
		}
	}
	// Programs resize to between 3/4 and twice the size that the network takes.
	for short := max(1, 3*h/4); short <= min(2*h, h+mostAbove); short++ {
		own := [2]int{short, int(float64(w) / shrinking(h, short))}
		add(Center, own)
		if short >= h {
			add(Squash, own)
		}
		if own[1] != short && short >= max(h, w) { // the short side, whatever the proportions of the network
			add(Center, [2]int{short, short})
		}
	}
	return all
}

// shrinking returns the crop_pct with which timm resizes to a height before it crops to another.
func shrinking(cropped, resized int) float64 {
	for digits := range 6 {
		if pct := rounded(float64(cropped)/float64(resized), digits); pct > 0 && int(float64(cropped)/pct) == resized {
			return pct
		}
	}
	return float64(cropped) / (float64(resized) + 0.5)
}

// placing is where the pixels of a tensor are in the resized picture.
type placing struct {
	w, h   int
	corner image.Point
	filter picture.Filter
	tensor bool
	turn   picture.Orientation
}

// place returns where the transform takes its pixels. ok is false if it does not fit the size.
func (t Transform) place(w, h int, turn picture.Orientation) (at placing, ok bool) {
	if t.CropMode == CropNone {
		return placing{w: w, h: h, filter: picture.Nearest, turn: turn}, w == t.InputSize[1] && h == t.InputSize[0]
	}
	rw, rh := t.resized(w, h)
	return placing{rw, rh, t.crop(rw, rh).Min, t.Interpolation, t.Tensor, turn}, true
}

// part returns a part of the picture that a transform makes.
func (at placing) part(src picture.Picture, keep image.Rectangle) (picture.Picture, error) {
	return Transform{Interpolation: at.filter, Tensor: at.tensor}.resize(src, at.w, at.h, keep.Add(at.corner))
}

// decode decodes picture i for each orientation among the candidates.
func (p *Pairs) decode(i int, of []candidate) (map[picture.Orientation]picture.Picture, error) {
	all := map[picture.Orientation]picture.Picture{}
	for _, c := range of {
		if _, done := all[c.Orientation]; done {
			continue
		}
		f, err := picture.Open(p.Files[i])
		if err == nil {
			all[c.Orientation], err = f.Oriented(c.Orientation).Decode(c.Channels == "grey")
		}
		if err != nil {
			return nil, fmt.Errorf("raw example %d: %w", i, err)
		}
	}
	return all, nil
}

// index returns where a number of a tensor is.
func (p *Pairs) index(layout string, c, y, x int) int {
	axes, at := layouts[layout], [3]int64{}
	at[axes[0]], at[axes[1]], at[axes[2]] = int64(c), int64(y), int64(x)
	return int((at[0]*p.Shape[1]+at[1])*p.Shape[2] + at[2])
}

// narrow returns the candidates that make the same tensor from picture i, as far as windows of it tell. If none does, it returns those
// that come nearest. Where Pillow's arithmetic comes near the tensor, it tries that of tensors, too.
func (p *Pairs) narrow(from []candidate, i, side int) (alike []candidate, err error) {
	sources, err := p.decode(i, from)
	if err != nil {
		return nil, err
	}
	w := &inWindows{Pairs: p, picture: i, sources: sources, places: map[string][]image.Rectangle{}}
	w.worst, w.parts = map[windowed]float64{}, map[placing][]picture.Picture{}
	for layout := range layouts {
		w.places[layout] = p.windows(layout, i, side)
	}
	for _, c := range from {
		known, err := w.add(&alike, c)
		if err != nil {
			return nil, err
		}
		smooth := c.Image.Interpolation == picture.Bilinear || c.Image.Interpolation == picture.Bicubic
		if !p.expanded && smooth && known <= ofTensor && c.Image.CropMode != CropNone {
			c.Image.Tensor = true
			if _, err := w.add(&alike, c); err != nil {
				return nil, err
			}
		}
	}
	p.expanded = true
	return p.nearest(alike, p.tolerance()), nil
}

// windowed is what makes the pixels of windows.
type windowed struct {
	placing
	layout, channels string
}

// inWindows compares candidates with windows of a picture. Candidates that place the picture equally share the work.
type inWindows struct {
	*Pairs
	picture int
	sources map[picture.Orientation]picture.Picture
	places  map[string][]image.Rectangle
	worst   map[windowed]float64
	parts   map[placing][]picture.Picture
}

// add adds a candidate with its largest difference in levels. It is infinite if the candidate does not fit the size of the picture.
func (w *inWindows) add(to *[]candidate, c candidate) (float64, error) {
	src := w.sources[c.Orientation]
	at, ok := c.Image.place(src.W, src.H, c.Orientation)
	if !ok {
		return math.Inf(1), nil
	}
	k := windowed{at, c.Layout, c.Channels}
	worst, known := w.worst[k]
	if !known {
		var err error
		if worst, err = w.compare(c.Settings, at); err != nil {
			return 0, err
		}
		w.worst[k] = worst
	}
	c.worst = worst
	*to = append(*to, c)
	return worst, nil
}

// part returns the pixels of a window.
func (w *inWindows) part(s Settings, at placing, n int) (picture.Picture, error) {
	for len(w.parts[at]) <= n {
		part, err := at.part(w.sources[s.Orientation], w.places[s.Layout][len(w.parts[at])])
		if err != nil {
			return part, err
		}
		w.parts[at] = append(w.parts[at], part)
	}
	return w.parts[at][n], nil
}

// windows returns the parts of a tensor with most contrast, of a grid.
func (p *Pairs) windows(layout string, i, side int) (all []image.Rectangle) {
	channels, h, w := p.sides(layout)
	if channels == 0 {
		return nil
	}
	type part struct {
		image.Rectangle
		contrast float64
	}
	var parts []part
	const grid = 8
	for y := range grid {
		for x := range grid {
			r := image.Rect(0, 0, side, side).Add(image.Pt(x*max(0, w-side)/(grid-1), y*max(0, h-side)/(grid-1)))
			r = r.Intersect(image.Rect(0, 0, w, h))
			var m moments
			for c := range channels {
				for y := r.Min.Y; y < r.Max.Y; y++ {
					for x := r.Min.X; x < r.Max.X; x++ {
						v := p.Tensors[i][p.index(layout, c, y, x)]
						m.add(v, v)
					}
				}
			}
			parts = append(parts, part{r, m.xx - m.x*m.x/m.n})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.contrast, a.contrast) })
	for _, q := range parts[:windowCount] {
		all = append(all, q.Rectangle)
	}
	return all
}

// compare returns the largest difference in windows, in levels, for the best normalisation of each.
func (w *inWindows) compare(s Settings, at placing) (float64, error) {
	worst, tensor := 0.0, w.Tensors[w.picture]
	for n, r := range w.places[s.Layout] {
		part, err := w.part(s, at, n)
		if err != nil {
			return 0, err
		}
		for c, from := range orders[s.Channels] {
			var m moments
			each := func(f func(level, value float64)) {
				for y := range part.H {
					for x := range part.W {
						f(float64(part.Pix[(y*part.W+x)*part.C+from]), tensor[w.index(s.Layout, c, r.Min.Y+y, r.Min.X+x)])
					}
				}
			}
			each(m.add)
			slope, base, ok := m.line()
			if !ok {
				return math.Inf(1), nil
			}
			each(func(level, value float64) { worst = max(worst, math.Abs(value-base-slope*level)/slope) })
		}
		if worst > ofTensor {
			break // the other windows make it no better
		}
	}
	return worst, nil
}

// moments are sums over pairs of numbers.
type moments struct{ n, x, y, xx, xy, yy float64 }

func (m *moments) add(x, y float64) {
	m.n, m.x, m.y, m.xx, m.xy, m.yy = m.n+1, m.x+x, m.y+y, m.xx+x*x, m.xy+x*y, m.yy+y*y
}

// line returns the line through the pairs with the least squares. ok is false if no rising line goes through them.
func (m *moments) line() (slope, base float64, ok bool) {
	x, y := m.x/m.n, m.y/m.n
	varX, varY := m.xx/m.n-x*x, m.yy/m.n-y*y
	if varX < 1e-6 { // one level
		return 1, y - x, varY <= 1e-9*max(1, y*y)
	}
	slope = (m.xy/m.n - x*y) / varX
	return slope, y - slope*x, slope > 0
}

// tabulate adds the pixels of picture i, and what the tensor has for them, to the candidates.
func (p *Pairs) tabulate(of []candidate, i int) error {
	sources, err := p.decode(i, of)
	if err != nil {
		return err
	}
	whole := map[placing]picture.Picture{}
	for k := range of {
		c := &of[k]
		src := sources[c.Orientation]
		at, ok := c.Image.place(src.W, src.H, c.Orientation)
		if !ok {
			c.worst = math.Inf(1)
			continue
		}
		_, h, w := p.sides(c.Layout)
		if _, done := whole[at]; !done {
			if whole[at], err = at.part(src, image.Rect(0, 0, w, h)); err != nil {
				return err
			}
		}
		if c.values == nil {
			c.values = make([][levels + 1]seen, len(orders[c.Channels]))
		}
		made := whole[at]
		for channel, from := range orders[c.Channels] {
			for y := range h {
				for x := range w {
					c.values[from][made.Pix[(y*w+x)*made.C+from]].add(p.Tensors[i][p.index(c.Layout, channel, y, x)])
				}
			}
		}
		c.worst = c.distance()
	}
	return nil
}

func (s *seen) add(v float64) {
	if s.count == 0 {
		s.low, s.high = v, v
	}
	s.sum, s.count, s.low, s.high = s.sum+v, s.count+1, min(s.low, v), max(s.high, v)
}

// farthest returns the largest difference to a number.
func (s *seen) farthest(v float64) float64 {
	if s.count == 0 {
		return 0
	}
	return max(math.Abs(s.low-v), math.Abs(s.high-v))
}

// line returns the line through the values of a channel.
func line(values *[levels + 1]seen) (m moments, slope, base float64, ok bool) {
	for level, v := range values {
		if v.count > 0 {
			m.add(float64(level), v.sum/v.count)
		}
	}
	slope, base, ok = m.line()
	return m, slope, base, ok
}

// distance returns the largest difference of values to the best line, in levels.
func (c *candidate) distance() (worst float64) {
	for k := range c.values {
		_, slope, base, ok := line(&c.values[k])
		if !ok {
			return math.Inf(1)
		}
		for level := range c.values[k] {
			worst = max(worst, c.values[k][level].farthest(base+slope*float64(level))/slope)
		}
	}
	return worst
}

// scales are the ways to write the line from a level of a pixel to a number of a tensor, value = slope·level + base. Programs round
// each step, so that another way has other bits.
var scales = []func(slope, base float64) (scale, mean, std float64){
	func(slope, base float64) (_, _, _ float64) { return 0, -base / slope / levels, 1 / (levels * slope) },
	func(slope, base float64) (_, _, _ float64) {
		return 1. / levels, -base / slope / levels, 1 / (levels * slope)
	},
	func(slope, base float64) (_, _, _ float64) { return 1, -base / slope, 1 / slope },
	func(slope, base float64) (_, _, _ float64) { return slope, -base, 1 },
}

// shorts round a mean and a standard deviation as people write them: as numbers, as parts of 255, and as the inverse of that.
var shorts = []struct {
	mean, std func(v float64, digits int) float64
}{
	{rounded, rounded},
	{roundedLevel, roundedLevel},
	{roundedLevel, func(v float64, digits int) float64 { return 1 / (levels * rounded(1/(levels*v), digits)) }},
}

func roundedLevel(v float64, digits int) float64 { return rounded(v*levels, digits) / levels }

// normalised returns the settings with the mean and the standard deviation that give the values, and with the fewest digits. ok is
// false if the values lie on no rising line.
func (c candidate) normalised(rounding float64) (s Settings, ok bool) {
	const most = 9 // digits
	var slopes, bases []float64
	largest := 0.0
	for k := range c.values {
		m, slope, base, ok := line(&c.values[k])
		if !ok || m.n < 2 {
			return s, false
		}
		for _, v := range c.values[k] {
			largest = max(largest, v.farthest(0))
		}
		slopes, bases = append(slopes, slope), append(bases, base)
	}
	for _, within := range []float64{0, rounding * largest} { // bit for bit, or what rounding explains
		for _, short := range shorts {
			for _, way := range scales {
				for digits := range most + 1 {
					s := c.Settings
					for i, slope := range slopes {
						scale, mean, std := way(slope, bases[i])
						s.Scale = scale
						s.Mean, s.Std = append(s.Mean, short.mean(mean, digits)), append(s.Std, short.std(std, digits))
					}
					if c.gives(s, within) {
						return s.plain(), true
					}
				}
			}
		}
	}
	s = c.Settings
	for i, slope := range slopes { // the nearest, in few digits
		_, mean, std := scales[0](slope, bases[i])
		s.Mean, s.Std = append(s.Mean, rounded(mean, 4)), append(s.Std, rounded(std, 4))
	}
	return s, slices.Min(s.Std) > 0
}

// plain leaves out a mean and a standard deviation that change nothing.
func (s Settings) plain() Settings {
	other := func(values []float64, usual float64) []float64 {
		if slices.ContainsFunc(values, func(v float64) bool { return v != usual }) {
			return values
		}
		return nil
	}
	s.Mean, s.Std = other(s.Mean, 0), other(s.Std, 1)
	return s
}

// Agreed returns what all settings have in common. another is one that differs from the first, or nil. Ways to round that give the
// same tensors count as one: the usual ones are taken.
func Agreed(fits []Fit) (s Settings, another *Fit) {
	s = fits[0].Settings
	for i, f := range fits {
		a, b := s.Image, f.Image
		s.Image.CropRoundsDown = a.CropRoundsDown && b.CropRoundsDown
		s.Image.Tensor = a.Tensor && b.Tensor
		a.CropRoundsDown, a.Tensor = b.CropRoundsDown, b.Tensor
		image, turn := a == b, s.Orientation == f.Orientation
		values := s.Channels == f.Channels && s.Layout == f.Layout && s.Scale == f.Scale && slices.Equal(s.Mean, f.Mean) &&
			slices.Equal(s.Std, f.Std)
		if !image {
			s.Image = Transform{}
		}
		if !turn {
			s.Orientation = ""
		}
		if !values {
			s.Channels, s.Layout, s.Scale, s.Mean, s.Std = "", "", 0, nil, nil
		}
		if another == nil && !(image && turn && values) {
			another = &fits[i]
		}
	}
	return s, another
}

// normalizer returns the table of settings for values.
func (c *candidate) normalizer(s Settings) (*Normalizer, error) {
	s.Channels, s.Layout = "", "nchw" // as the values are
	n, err := s.Normalizer([]int64{int64(len(c.values)), 1, 1}, true)
	return &n, err
}

// gives reports whether the settings give the values, up to a difference.
func (c *candidate) gives(s Settings, within float64) bool {
	n, err := c.normalizer(s)
	if err != nil {
		return false
	}
	for i := range c.values {
		for level, v := range c.values[i] {
			want := v.sum / v.count
			if got := n.table[min(i, len(n.table)-1)][level]; v.count > 0 && got != float32(want) &&
				!(math.Abs(float64(got)-want) <= within) {
				return false
			}
		}
	}
	return true
}

// fit says how near settings come to the values.
func (c *candidate) fit(s Settings, shape []int64) (f Fit, ok bool) {
	f = Fit{Settings: s.bordered(), Bits: true}
	resolved, err := f.Resolve(shape)
	if err != nil || resolved.Image.ResizeSize != s.Image.ResizeSize {
		return f, false
	}
	n, err := c.normalizer(s)
	if err != nil {
		return f, false
	}
	for i := range c.values {
		for level := range c.values[i] {
			v, got := &c.values[i][level], n.table[min(i, len(n.table)-1)][level]
			if v.count > 0 && (float32(v.low) != got || float32(v.high) != got) {
				f.Bits = false
				f.Levels = max(f.Levels, v.farthest(float64(got))/n.step())
			}
		}
	}
	return f, true
}

// bordered writes a size before the crop that is below the network's as timm does: as a part above 1.
func (s Settings) bordered() Settings {
	im := &s.Image
	if to, size := im.ResizeSize, im.InputSize; im.CropMode == Center && to != [2]int{} && (to[0] < size[0] || to[1] < size[1]) {
		im.CropPct, im.ResizeSize = shrinking(im.InputSize[0], im.ResizeSize[0]), [2]int{}
	}
	return s
}

// Compare makes tensors from the pictures.
func (p *Pairs) Compare(s Settings) (f Fit, err error) {
	f = Fit{Settings: s.bordered(), Bits: true}
	if s, err = f.Resolve(p.Shape); err != nil {
		return f, err
	}
	n, err := s.Normalizer(p.Shape, true)
	if err != nil {
		return f, err
	}
	size := len(p.Tensors[0])
	laid, made := make([]byte, size), make([]float32, size)
	for i, data := range p.Files {
		file, err := picture.Open(data)
		if err != nil {
			return f, fmt.Errorf("raw example %d: %w", i, err)
		}
		src, err := file.Oriented(s.Orientation).Decode(s.Planes() == 1)
		if err == nil {
			src, err = s.Image.Apply(src)
		}
		if err != nil {
			return f, fmt.Errorf("raw example %d: %w", i, err)
		}
		s.Lay(laid, src)
		n.Bytes(made, laid)
		for k, want := range p.Tensors[i] {
			if got := made[k]; got != float32(want) {
				f.Bits = false
				f.Levels = max(f.Levels, math.Abs(float64(got)-want)/n.step())
			}
		}
	}
	return f, nil
}

// step returns the least distance between two levels of a pixel.
func (n *Normalizer) step() float64 {
	least := math.Inf(1)
	for _, t := range n.table {
		least = min(least, float64(t[levels]-t[0])/levels)
	}
	return least
}
