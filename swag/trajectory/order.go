package trajectory

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
)

// reorder finds the checkpoints that stand apart, and whether the others are out
// of training order. Of a random walk through many weights the squared distances
// add up along the path, so that the order with the shortest path, the sum of
// squared steps, is the one that was walked. Independent iterates in many weights
// have all orders about equally long, and none is called wrong.
//
// Among few directions some order is shorter by chance. A better one is returned
// only if its path is smooth, and shorter by 5 % and by a share of 2.2/√p, with p
// directions: through 8 to 80 simulated independent iterates the shortest path was
// shorter by 1.2/√p to 2/√p. TestHealthFalseAlarms checks that fewer than one good
// order in twenty is called wrong. Fewer than eight iterates never are.
func reorder(sq [][]float64, given []int) (outliers, order, misplaced []int) {
	path := shortPath(sq, given)
	if len(jumps(sq, given)) > 0 {
		// Along the short path: an order that is wrong jumps to and fro as well.
		outliers = strays(sq, path)
	}
	rest := slices.DeleteFunc(slices.Clone(given), func(t int) bool { return slices.Contains(outliers, t) })
	if len(rest) < 8 {
		return outliers, nil, nil
	}
	if len(outliers) > 0 {
		path = shortPath(sq, rest)
	}
	shorter := max(0.05, 2.2/math.Sqrt(directions(sq, path)))
	if pathLength(sq, path) > (1-shorter)*pathLength(sq, rest) || !smooth(sq, path) {
		return outliers, nil, nil
	}
	back := slices.Clone(path)
	slices.Reverse(back)
	misplaced = outOfOrder(path)
	if m := outOfOrder(back); len(m) < len(misplaced) {
		path, misplaced = back, m
	}
	return outliers, path, misplaced
}

// smooth reports whether the path leads somewhere: iterates four apart are
// farther from each other than those two apart, by more than 1.4 in the median
// of the squared distances. It is 2 for a random walk, 4 for a straight line, and
// 1 for noise about anything slow. The search does not look at either distance.
func smooth(sq [][]float64, path []int) bool {
	apart := func(k int) float64 {
		var distances []float64
		for i := range len(path) - k {
			distances = append(distances, sq[path[i]][path[i+k]])
		}
		return median(distances)
	}
	return apart(4) > 1.4*apart(2)
}

// directions returns in how many directions the steps of a path go: one over the
// mean squared cosine of two of them that share no end, which is 1/p if all p
// directions are alike, and the participation ratio of their variances if not.
func directions(sq [][]float64, path []int) float64 {
	var sum, pairs float64
	for i := range len(path) - 1 {
		a, b := path[i], path[i+1]
		for j := range i - 1 {
			c, d := path[j], path[j+1]
			if lengths := sq[a][b] * sq[c][d]; lengths > 0 {
				product := (sq[a][d] + sq[b][c] - sq[a][c] - sq[b][d]) / 2
				sum += product * product / lengths
				pairs++
			}
		}
	}
	if sum == 0 {
		return math.Inf(1)
	}
	return pairs / sum
}

// jumps returns the places after which a path has a step more than four times
// as long as the median of the nine steps around it, so that a learning rate that
// changes slowly makes none. Nor does chance, if five or more directions vary:
// fewer than one trajectory in a hundred has one (TestHealthFalseAlarms).
func jumps(sq [][]float64, path []int) (after []int) {
	const around, far = 9, 4
	steps := stepLengths(sq, path)
	for i, s := range steps {
		lo := max(0, min(i-around/2, len(steps)-around))
		if s > far*median(steps[lo:min(lo+around, len(steps))]) {
			after = append(after, i)
		}
	}
	return after
}

// strays returns the iterates outside the longest stretch of the path without a
// jump, in ascending order; of equally long stretches, the later is kept.
func strays(sq [][]float64, path []int) []int {
	lo, keepLo, keepHi := 0, 0, 0
	for _, after := range append(jumps(sq, path), len(path)-1) {
		if hi := after + 1; hi-lo >= keepHi-keepLo {
			keepLo, keepHi = lo, hi
		}
		lo = after + 1
	}
	return slices.Sorted(slices.Values(slices.Concat(path[:keepLo], path[keepHi:])))
}

// shortPath returns an order of the given iterates in which their path is short:
// the better of what the search finds from the order they are in and from that
// along their leading principal axis, which a random walk passes once.
func shortPath(sq [][]float64, given []int) []int {
	best := improve(sq, given)
	axis, ok := principalAxis(sq, given)
	if !ok {
		return best
	}
	places := make([]int, len(given))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(i, j int) int { return cmp.Compare(axis[i], axis[j]) })
	along := make([]int, len(given))
	for i, at := range places {
		along[i] = given[at]
	}
	const rounding = 1e-9 // relative
	if other := improve(sq, along); pathLength(sq, other) < pathLength(sq, best)*(1-rounding) {
		return other
	}
	return best
}

// principalAxis returns the coordinates of some iterates on their leading
// principal axis, up to a factor. Their inner products are −½ of the squared
// distances, doubly centred (Torgerson, "Multidimensional scaling",
// Psychometrika 1952).
func principalAxis(sq [][]float64, some []int) (coordinates []float64, ok bool) {
	n := float64(len(some))
	within := scatter(sq, some) / n
	toMean := make([]float64, len(some)) // squared distances from the mean
	for i, a := range some {
		for _, b := range some {
			toMean[i] += sq[a][b] / n
		}
		toMean[i] -= within
	}
	g := mat.NewSymDense(len(some), nil)
	for i, a := range some {
		for j, b := range some[:i+1] {
			g.SetSym(i, j, (toMean[i]+toMean[j]-sq[a][b])/2)
		}
	}
	axes, _, ok := dense.Principal(g, 1)
	if !ok {
		return nil, false
	}
	return axes[0], true
}

// improve shortens a path by turning stretches round and moving single iterates,
// until nothing helps: 2-opt and 1-opt moves of the travelling salesman, with
// open ends.
func improve(sq [][]float64, path []int) []int {
	p := slices.Clone(path)
	n := len(p)
	// at is the squared step between two places; none leads beyond the ends.
	at := func(i, j int) float64 {
		if i < 0 || j < 0 || i >= n || j >= n {
			return 0
		}
		return sq[p[i]][p[j]]
	}
	const rounding = 1e-9 // relative; a smaller gain might be undone for ever
	for improved := true; improved; {
		improved = false
		for i := range n {
			for j := i + 1; j < n; j++ {
				if at(i-1, j)+at(i, j+1) < (at(i-1, i)+at(j, j+1))*(1-rounding) {
					slices.Reverse(p[i : j+1])
					improved = true
				}
			}
		}
		for i := range n {
			for j := range n {
				left, right := j-1, j // the places it would stand between
				if j > i {
					left, right = j, j+1
				}
				cut, gap := at(i-1, i)+at(i, i+1)+at(left, right), at(i-1, i+1)+at(left, i)+at(i, right)
				if i != j && gap < cut*(1-rounding) {
					t := p[i]
					p = slices.Insert(slices.Delete(p, i, i+1), j, t)
					improved = true
				}
			}
		}
	}
	return p
}

// pathLength is the sum of the squared steps.
func pathLength(sq [][]float64, path []int) float64 {
	var sum float64
	for i := 1; i < len(path); i++ {
		sum += sq[path[i-1]][path[i]]
	}
	return sum
}

// outOfOrder returns, in ascending order, what is not in a longest ascending
// subsequence of the path.
func outOfOrder(path []int) []int {
	length, before := make([]int, len(path)), make([]int, len(path))
	end := 0
	for i := range path {
		length[i], before[i] = 1, -1
		for j := range i {
			if path[j] < path[i] && length[j] >= length[i] {
				length[i], before[i] = length[j]+1, j
			}
		}
		if length[i] > length[end] {
			end = i
		}
	}
	var out []int
	in := map[int]bool{}
	for i := end; i >= 0; i = before[i] {
		in[path[i]] = true
	}
	for _, t := range path {
		if !in[t] {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out
}
