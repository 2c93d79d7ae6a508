// Package averages finds the averages among the checkpoints of a run: files that hold no weights that SGD moved, but a mean of
// other files. It knows weights as points, and files as names. It reads no file.
//
// # Criterion
//
// SGD's noise has as many dimensions as the network has weights, so an iterate is a corner of the convex hull of the set: no
// weighted mean of the others comes near it. An average lies in the hull, and its weights are those of the mean except for
// rounding. [Find] calls a file an average of others if
//
//   - the mean of some others, with equal weights or with those of a moving average, misses it by no more than a few roundings
//     of a float in the coarsest of these files ([rounds]), and
//   - the nearest single file is many times as far away ([far]), so that rounding does not explain it, and
//   - so many weights agree that no choice among the subsets of the files makes it an accident ([decisive]).
//
// Checkpoints that follow each other on a smooth path, as with full-batch gradient descent, lie near the mean of their
// neighbours. A file in the middle of its own parents must therefore fit far better, and its parents must not lie on a line.
//
// # Invariants
//
// Results do not depend on the units of the weights. A file that is equal to another one, or nearly so, is never an average.
package averages

import (
	"cmp"
	"math"
	"slices"
)

// A Mean is a file whose weights are a weighted mean of those of other files.
type Mean struct {
	File    int
	Of      []int     // the other files
	Weights []float64 // of these, with the sum 1
	Equal   bool      // the weights are equal
}

// The numbers of the criterion. Tests hold them against runs of SGD and of gradient descent, and against averages in several
// types.
const (
	rounds     = 8    // roundings, as a root mean square over the weights, that a mean may miss an average by
	far        = 20   // times the miss that the nearest single file is away
	farBetween = 300  // the same for a file between its parents in the order of the files
	decisive   = 14.5 // log of the odds against an accident: 2 million to 1
	parallel   = 0.98 // cosine from which directions count as one
	alike      = 0.01 // difference of two shares that count as one
)

// points are files as points. A coordinate is a weight, divided by its largest magnitude in any file.
type points struct {
	at   [][]float64
	unit []float64   // of each file: the rounding of its type, relative
	gram [][]float64 // inner products about the first file
	dims float64     // coordinates that move
}

// Find returns the files that are means of others, in the order of the files. A row of values has weights of one file, the same
// weights in all rows. The rows are in the order of training, as far as it is known. Find takes memory of the size of the values, and time
// of their number times the number of files.
func Find(values [][]float32) []Mean {
	if len(values) < 3 {
		return nil
	}
	p := newPoints(values)
	if p.dims == 0 {
		return nil
	}
	found := map[int]Mean{}
	p.windows(found)
	p.hulls(found)
	p.chains(found)
	var out []Mean
	for i := range values {
		if m, ok := found[i]; ok {
			out = append(out, m)
		}
	}
	return out
}

func newPoints(values [][]float32) *points {
	p := &points{at: make([][]float64, len(values)), unit: make([]float64, len(values)), gram: make([][]float64, len(values))}
	coarsest := 0.
	for i, row := range values {
		p.unit[i] = rounding(row)
		coarsest = max(coarsest, p.unit[i])
	}
	least := 1e-30
	if coarsest > float32Rounding {
		least = 6.2e-5 // below it a float16 has fewer digits
	}
	for k := range values[0] {
		low, high, size := values[0][k], values[0][k], least
		for _, row := range values {
			low, high, size = min(low, row[k]), max(high, row[k]), max(size, math.Abs(float64(row[k])))
		}
		if !(float64(high)-float64(low) > 2*size*coarsest) || math.IsInf(size, 0) { // NaN, too
			continue
		}
		for i, row := range values {
			p.at[i] = append(p.at[i], float64(row[k])/size)
		}
		p.dims++
	}
	for i := range p.at {
		p.gram[i] = make([]float64, len(p.at))
		for j := range i + 1 {
			sum := 0.
			for k, v := range p.at[i] {
				sum += (v - p.at[0][k]) * (p.at[j][k] - p.at[0][k])
			}
			p.gram[i][j], p.gram[j][i] = sum, sum
		}
	}
	return p
}

const float32Rounding = 1. / (1 << 24)

// rounding returns the relative rounding of the type that values were stored in, as their digits show.
func rounding(row []float32) float64 {
	var bits uint32
	for _, v := range row {
		bits |= math.Float32bits(v)
	}
	switch {
	case bits&0xffff == 0:
		return 1. / (1 << 8) // bfloat16
	case bits&0x1fff == 0:
		return 1. / (1 << 11) // float16
	}
	return float32Rounding
}

// product returns the inner product of the differences of two files from a third.
func (p *points) product(a, b, from int) float64 {
	return p.gram[a][b] - p.gram[a][from] - p.gram[b][from] + p.gram[from][from]
}

// distance returns the root mean square of the difference of two files.
func (p *points) distance(a, b int) float64 {
	sum := 0.
	for k, v := range p.at[a] {
		sum += (v - p.at[b][k]) * (v - p.at[b][k])
	}
	return math.Sqrt(sum / p.dims)
}

// nearest returns the distance of a file from the nearest other one.
func (p *points) nearest(file int) float64 {
	least := math.Inf(1)
	for o := range p.at {
		if o != file {
			least = min(least, p.distance(file, o))
		}
	}
	return least
}

// miss returns the root mean square of the difference of a file from a weighted mean of others, and the rounding of the coarsest.
func (p *points) miss(file int, of []int, weights []float64) (miss, unit float64) {
	unit = p.unit[file]
	for _, o := range of {
		unit = max(unit, p.unit[o])
	}
	sum := 0.
	for k, v := range p.at[file] {
		for i, o := range of {
			v -= weights[i] * p.at[o][k]
		}
		sum += v * v
	}
	return math.Sqrt(sum / p.dims), unit
}

// proves reports whether a file is the weighted mean of others.
func (p *points) proves(file int, of []int, weights []float64) bool {
	miss, unit := p.miss(file, of, weights)
	if miss > rounds*unit {
		return false
	}
	away := p.nearest(file) / max(miss, unit/2)
	if away < far || p.dims*math.Log(away) < decisive+math.Ln2*float64(len(p.at)) {
		return false
	}
	before := slices.ContainsFunc(of, func(o int) bool { return o < file })
	behind := slices.ContainsFunc(of, func(o int) bool { return o > file })
	return !before || !behind || away >= farBetween && !p.straight(of)
}

// straight reports whether files lie on a line.
func (p *points) straight(of []int) bool {
	if len(of) < 3 {
		return true
	}
	first, last := of[0], of[len(of)-1]
	long := p.product(last, last, first)
	for _, o := range of[1 : len(of)-1] {
		along := p.product(o, last, first)
		if along*along < parallel*parallel*long*p.product(o, o, first) {
			return false
		}
	}
	return true
}

func equalWeights(n int) []float64 {
	return slices.Repeat([]float64{1 / float64(n)}, n)
}

// windows looks for means of files that follow each other, and of all. They are the most frequent, and need no more dimensions than
// the accident allows. Files that are averages are left out of the others.
func (p *points) windows(found map[int]Mean) {
	for again := true; again; {
		again = false
		for file := range p.at {
			if _, known := found[file]; known {
				continue
			}
			if of := p.window(file, found); of != nil {
				found[file], again = Mean{file, of, equalWeights(len(of)), true}, true
			}
		}
	}
}

func (p *points) window(file int, found map[int]Mean) []int {
	var others []int
	for o := range p.at {
		if _, known := found[o]; !known && o != file {
			others = append(others, o)
		}
	}
	resolution := 0. // of a difference of inner products
	for _, o := range others {
		resolution = max(resolution, p.product(o, o, file))
	}
	for from := range others {
		sum, toFile := 0., 0. // products of the window with itself, and with the file: all about the first file
		for to := from; to < len(others); to++ {
			o := others[to]
			for _, e := range others[from:to] {
				sum += 2 * p.gram[e][o]
			}
			sum, toFile = sum+p.gram[o][o], toFile+p.gram[o][file]
			n := float64(to + 1 - from)
			if n < 2 {
				continue
			}
			of := others[from : to+1]
			unit := p.unit[file]
			for _, o := range of {
				unit = max(unit, p.unit[o])
			}
			if square := sum/(n*n) - 2*toFile/n + p.gram[file][file]; square > p.dims*rounds*rounds*unit*unit+1e-12*resolution {
				continue
			}
			if p.proves(file, of, equalWeights(int(n))) {
				return slices.Clone(of)
			}
		}
	}
	return nil
}

// hulls looks for means of any other files. It finds the corners of the hull of all files, and writes the others as means of these.
func (p *points) hulls(found map[int]Mean) {
	n := len(p.at)
	if p.dims < float64(n+4) || n > maxHull {
		return // any file may be in the hull
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	inside := func(file int, of []int) bool {
		support, weights := p.hull(file, of)
		miss, unit := p.miss(file, support, weights)
		return miss <= rounds*unit
	}
	corners := slices.DeleteFunc(slices.Clone(all), func(file int) bool {
		_, known := found[file]
		return known || inside(file, slices.DeleteFunc(slices.Clone(all), func(o int) bool { return o == file }))
	})
	independent := p.independent(corners)
	for _, file := range all {
		if _, known := found[file]; known || slices.Contains(corners, file) || len(corners) < 2 {
			continue
		}
		support, weights := p.hull(file, corners)
		largest := slices.Max(weights)
		var main []int
		for i, o := range support {
			if weights[i] > largest/2 {
				main = append(main, o)
			}
		}
		slices.Sort(main)
		switch {
		case len(main) > 1 && p.proves(file, main, equalWeights(len(main))):
			found[file] = Mean{file, main, equalWeights(len(main)), true}
		case independent && len(support) > 2 && len(corners) > max(3, n-len(corners)) && p.proves(file, support, weights):
			found[file] = Mean{File: file, Of: support, Weights: weights}
		}
	}
}

// independent reports whether no file is a sum of multiples of the others. On a spiral, as of gradient descent with momentum, many
// files lie in one plane, and the inner ones between the outer ones.
func (p *points) independent(files []int) bool {
	for i, file := range files {
		others := slices.Delete(slices.Clone(files), i, i+1)
		weights := p.affine(file, others)
		if weights == nil {
			return false
		}
		if miss, unit := p.miss(file, others, weights); miss < farBetween*unit {
			return false
		}
	}
	return len(files) > 1
}

// maxHull bounds the time for hulls.
const maxHull = 300

// hull returns the point of the convex hull of some files that is nearest to a file, as a weighted mean (Wolfe 1976, Finding the
// nearest point in a polytope). It stops when the point is proven to be far away.
func (p *points) hull(file int, of []int) (support []int, weights []float64) {
	size := 0.
	best := of[0]
	for _, o := range of {
		d := p.product(o, o, file)
		size = max(size, d)
		if d < p.product(best, best, file) {
			best = o
		}
	}
	support, weights = []int{best}, []float64{1}
	unit := p.unit[file]
	for _, o := range of {
		unit = max(unit, p.unit[o])
	}
	enough := math.Sqrt(p.dims) * rounds * unit
	for range 3 * len(of) {
		square := 0. // of the distance
		lowest, next := math.Inf(1), -1
		for _, o := range of {
			along := 0.
			for i, s := range support {
				along += weights[i] * p.product(s, o, file)
			}
			if i := slices.Index(support, o); i >= 0 {
				square += weights[i] * along
			}
			if along < lowest {
				lowest, next = along, o
			}
		}
		if lowest > square-1e-13*size || slices.Contains(support, next) || lowest > 4*enough*math.Sqrt(square) {
			break
		}
		support, weights = append(support, next), append(weights, 0)
		support, weights = p.inner(file, support, weights)
	}
	return support, weights
}

// inner moves to the nearest point of the affine hull of the support, and drops files whose weight would become negative.
func (p *points) inner(file int, support []int, weights []float64) ([]int, []float64) {
	for len(support) > 1 {
		affine := p.affine(file, support)
		if affine == nil {
			break
		}
		step, out := 1., -1
		for i, a := range affine {
			if a <= 1e-12 && weights[i]-a > 0 {
				if s := weights[i] / (weights[i] - a); s < step || out < 0 {
					step, out = s, i
				}
			}
		}
		if out < 0 {
			return support, affine
		}
		for i, a := range affine {
			weights[i] += step * (a - weights[i])
		}
		support, weights = slices.Delete(support, out, out+1), slices.Delete(weights, out, out+1)
	}
	return support, weights
}

// affine returns the weights, with the sum 1, of the point nearest to a file in the affine hull of the support. It returns nil if the
// support is not independent.
func (p *points) affine(file int, support []int) []float64 {
	n := len(support)
	m, largest := make([][]float64, n), 0.
	for i, a := range support {
		m[i] = make([]float64, n+1)
		for j, b := range support {
			m[i][j] = p.product(a, b, file)
		}
		largest = max(largest, m[i][i])
	}
	for i := range m { // adds a multiple of all ones, which changes only the sum of the weights
		for j := range n {
			m[i][j] += largest
		}
		m[i][n] = 1
	}
	x := solve(m)
	sum := 0.
	for _, v := range x {
		sum += v
	}
	if x == nil || !(math.Abs(sum) > 0) {
		return nil
	}
	for i := range x {
		x[i] /= sum
	}
	return x
}

// solve solves linear equations, whose right sides are the last column. It changes m. It returns nil if they have no single solution.
func solve(m [][]float64) []float64 {
	n := len(m)
	for c := range n {
		pivot := slices.MaxFunc(m[c:], func(a, b []float64) int { return cmp.Compare(math.Abs(a[c]), math.Abs(b[c])) })
		if pivot[c] == 0 {
			return nil
		}
		for r := c; r < n; r++ {
			if &m[r][0] == &pivot[0] {
				m[c], m[r] = m[r], m[c]
			}
		}
		for r := c + 1; r < n; r++ {
			f := m[r][c] / m[c][c]
			for k := c; k <= n; k++ {
				m[r][k] -= f * m[c][k]
			}
		}
	}
	x := make([]float64, n)
	for r := n - 1; r >= 0; r-- {
		x[r] = m[r][n]
		for k := r + 1; k < n; k++ {
			x[r] -= m[r][k] * x[k]
		}
		x[r] /= m[r][r]
	}
	return x
}

// A link is a file that is a mean of two: the average before it, and an iterate.
type link struct {
	file, from, iterate int
	share               float64 // of the average before
}

// chains looks for moving averages of the saved files: average t is d·average t−1 + (1−d)·iterate t. Two such files with one d prove
// it, if the iterates lie in different directions. The first average of a chain is no mean of files, but the second shows it.
func (p *points) chains(found map[int]Mean) {
	n := len(p.at)
	if n < 5 || n > maxHull {
		return
	}
	var links []link
	for file := range n {
		for a := range n {
			for b := range n {
				if l := (link{file: file, from: a, iterate: b}); a != b && a != file && b != file && p.linked(&l) {
					links = append(links, l)
				}
			}
		}
	}
	for _, l := range links {
		for _, next := range links {
			if next.from != l.file || next.iterate == l.from || next.iterate == l.iterate || math.Abs(next.share-l.share) > alike ||
				p.parallel(l, next) {
				continue
			}
			for _, x := range []link{l, next} {
				if _, known := found[x.file]; !known {
					found[x.file] = Mean{File: x.file, Of: []int{x.from, x.iterate}, Weights: []float64{x.share, 1 - x.share}}
				}
			}
			if _, known := found[l.from]; !known && math.Abs(l.share-0.5) > alike { // at one half, both are alike
				found[l.from] = Mean{File: l.from}
			}
		}
	}
}

// linked reports whether a file lies between two others, and sets the share of the first.
func (p *points) linked(l *link) bool {
	long, along := p.product(l.iterate, l.iterate, l.from), p.product(l.file, l.iterate, l.from)
	if !(long > 0) {
		return false
	}
	iterate := along / long
	l.share = 1 - iterate
	if iterate < alike || l.share < alike {
		return false
	}
	square := p.product(l.file, l.file, l.from)
	unit := max(p.unit[l.file], p.unit[l.from], p.unit[l.iterate])
	if square-along*iterate > p.dims*rounds*rounds*unit*unit+1e-12*long {
		return false
	}
	of, weights := []int{l.from, l.iterate}, []float64{l.share, iterate}
	miss, unit := p.miss(l.file, of, weights)
	if miss > rounds*unit {
		return false
	}
	away := p.nearest(l.file) / max(miss, unit/2)
	return away >= far && p.dims*math.Log(away) >= decisive+3*math.Log(float64(len(p.at)))
}

// parallel reports whether two links go in one direction.
func (p *points) parallel(a, b link) bool {
	u, v := [2]int{a.iterate, a.from}, [2]int{b.iterate, b.from}
	dot := p.gram[u[0]][v[0]] - p.gram[u[0]][v[1]] - p.gram[u[1]][v[0]] + p.gram[u[1]][v[1]]
	return dot*dot > parallel*parallel*p.product(u[0], u[0], u[1])*p.product(v[0], v[0], v[1])
}
