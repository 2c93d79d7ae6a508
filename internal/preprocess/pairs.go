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
	windowSide    = 8   // of the parts of a tensor that are compared with all candidates
	windowCount   = 3
)

// orders are the orders of channels. Each has the channel of the picture for each of the tensor.
var orders = map[string][]int{"grey": {0}, "rgb": {0, 1, 2}, "bgr": {2, 1, 0}}

// layouts have the axes of channels, height and width.
var layouts = map[string][3]int{"nchw": {0, 1, 2}, "nhwc": {2, 0, 1}}

// candidate is settings whose normalisation is not known yet.
type candidate struct {
	Settings
	worst  float64 // the largest difference in the windows, in levels
	values [][levels + 1]struct{ sum, count float64 }
}

// Equal reports whether settings make the tensors from the pictures.
func (p *Pairs) Equal(f Fit) bool { return f.Levels <= p.tolerance() }

// Search finds all settings that make the tensors from the pictures. If none does, nearest comes nearest to them.
func (p *Pairs) Search() (all []Fit, nearest Fit, err error) {
	files, err := p.open()
	if err != nil {
		return nil, nearest, err
	}
	alike := p.candidates(files)
	for _, i := range p.order(files) {
		if alike, err = p.narrow(alike, i); err != nil {
			return nil, nearest, err
		}
		if len(alike) <= mostAlike {
			break
		}
	}
	alike = alike[:min(len(alike), mostAlike)]
	for i := range p.Files {
		if err := p.tabulate(alike, i); err != nil {
			return nil, nearest, err
		}
	}
	nearest.Levels = math.Inf(1)
	for _, c := range alike {
		s, ok := c.normalised(p.Rounding)
		if !ok {
			continue
		}
		f, err := p.Compare(s)
		if err == nil && p.Equal(f) {
			all = append(all, f)
		}
		if err == nil && f.Levels < nearest.Levels {
			nearest = f
		}
	}
	if math.IsInf(nearest.Levels, 1) {
		return nil, nearest, fmt.Errorf("%d raw examples and tensors of shape %d prove nothing: want pictures of several colours",
			len(p.Files), p.Shape)
	}
	return all, nearest, nil
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

// transforms returns the ways to h by w pixels. They are resolved.
func transforms(h, w int) (all []Transform) {
	size := [2]int{h, w}
	all = []Transform{{InputSize: size}}
	add := func(mode CropMode, resize [2]int) {
		for filter := picture.Bilinear; filter <= picture.Hamming; filter++ {
			for _, tensor := range []bool{false, filter == picture.Bilinear || filter == picture.Bicubic} {
				for _, down := range []bool{false, mode == Center || resize != size} {
					t := Transform{mode, size, resize, 0, filter, down, tensor}
					if len(all) == 0 || t != all[len(all)-1] {
						all = append(all, t)
					}
				}
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
// that come nearest.
func (p *Pairs) narrow(from []candidate, i int) (alike []candidate, err error) {
	sources, err := p.decode(i, from)
	if err != nil {
		return nil, err
	}
	type key struct {
		placing
		layout, channels string
	}
	worst, parts, places := map[key]float64{}, map[placing][]picture.Picture{}, map[string][]image.Rectangle{}
	for layout := range layouts {
		places[layout] = p.windows(layout, i)
	}
	for _, c := range from {
		src := sources[c.Orientation]
		at, ok := c.Image.place(src.W, src.H, c.Orientation)
		if !ok {
			continue
		}
		k := key{at, c.Layout, c.Channels}
		if _, known := worst[k]; !known {
			if worst[k], err = p.inWindows(c.Settings, i, places[c.Layout], func(n int) (picture.Picture, error) {
				for len(parts[at]) <= n {
					part, err := at.part(src, places[c.Layout][len(parts[at])])
					if err != nil {
						return part, err
					}
					parts[at] = append(parts[at], part)
				}
				return parts[at][n], nil
			}); err != nil {
				return nil, err
			}
		}
		c.worst = worst[k]
		alike = append(alike, c)
	}
	slices.SortStableFunc(alike, func(a, b candidate) int { return cmp.Compare(a.worst, b.worst) })
	n := slices.IndexFunc(alike, func(c candidate) bool { return c.worst > p.tolerance() })
	switch n {
	case -1:
		return alike, nil
	case 0:
		n = min(len(alike), mostNear)
	}
	return alike[:n], nil
}

// windows returns the parts of a tensor with most contrast, of a grid.
func (p *Pairs) windows(layout string, i int) (all []image.Rectangle) {
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
			r := image.Rect(0, 0, windowSide, windowSide).Add(image.Pt(x*max(0, w-windowSide)/(grid-1), y*max(0, h-windowSide)/(grid-1)))
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

// inWindows returns the largest difference in windows, in levels, for the best normalisation of each.
func (p *Pairs) inWindows(s Settings, i int, places []image.Rectangle, part func(n int) (picture.Picture, error)) (float64, error) {
	worst := 0.0
	for n, r := range places {
		part, err := part(n)
		if err != nil {
			return 0, err
		}
		for c, from := range orders[s.Channels] {
			var m moments
			each := func(f func(level, value float64)) {
				for y := range part.H {
					for x := range part.W {
						f(float64(part.Pix[(y*part.W+x)*part.C+from]), p.Tensors[i][p.index(s.Layout, c, r.Min.Y+y, r.Min.X+x)])
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
		if worst > 1 {
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
			c.values = make([][levels + 1]struct{ sum, count float64 }, len(orders[c.Channels]))
		}
		made := whole[at]
		for channel, from := range orders[c.Channels] {
			for y := range h {
				for x := range w {
					v := &c.values[from][made.Pix[(y*w+x)*made.C+from]]
					v.sum += p.Tensors[i][p.index(c.Layout, channel, y, x)]
					v.count++
				}
			}
		}
	}
	return nil
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
	for _, values := range c.values {
		var m moments
		for level, v := range values {
			if v.count > 0 {
				m.add(float64(level), v.sum/v.count)
				largest = max(largest, math.Abs(v.sum/v.count))
			}
		}
		slope, base, ok := m.line()
		if !ok || m.n < 2 {
			return s, false
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

// gives reports whether the settings give the values, up to a difference.
func (c candidate) gives(s Settings, within float64) bool {
	s.Channels, s.Layout = "", "nchw" // as the values are
	n, err := s.Normalizer([]int64{int64(len(c.values)), 1, 1}, true)
	if err != nil {
		return false
	}
	for i, values := range c.values {
		for level, v := range values {
			want := v.sum / v.count
			if got := n.table[min(i, len(n.table)-1)][level]; v.count > 0 && got != float32(want) &&
				!(math.Abs(float64(got)-want) <= within) {
				return false
			}
		}
	}
	return true
}

// Compare makes tensors from the pictures.
func (p *Pairs) Compare(s Settings) (f Fit, err error) {
	f = Fit{Settings: s, Bits: true}
	im := &f.Image
	if to, size := im.ResizeSize, im.InputSize; im.CropMode == Center && to != [2]int{} && (to[0] < size[0] || to[1] < size[1]) {
		im.CropPct, im.ResizeSize = shrinking(im.InputSize[0], im.ResizeSize[0]), [2]int{} // with a border
	}
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
