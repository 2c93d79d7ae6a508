package trajectory

import (
	"math"
	"slices"
)

// reorder finds outliers, and checks whether the other checkpoints are in training order. In a random walk through
// many weights, squared distances add up along the path. So the true order has the shortest path, the least sum of
// squared steps. For independent iterates in many weights all orders are about equally long, so none is called wrong.
//
// With few directions some order is shorter by chance. A better order is returned only if its path is smooth, and
// shorter by 5 % and by a share of 2.2/√p for p directions. For 8 to 80 simulated independent iterates the shortest
// path was shorter by 1.2/√p to 2/√p. TestHealthFalseAlarms checks that fewer than one correct order in twenty is
// called wrong. Orders of fewer than eight iterates are never called wrong.
func reorder(sq [][]float64, given []int) (outliers, order, misplaced []int) {
	path := shortPath(sq, given)
	if len(jumps(sq, given)) > 0 {
		// Use the short path, because a wrong order has jumps too.
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

// smooth reports whether the path leads somewhere. The median squared distance of iterates four steps from each other must be
// more than 1.4 times that of iterates two steps from each other. The ratio is 2 for a random walk, 4 for a straight line, and 1 for noise
// around a slow motion. The search for a short path uses neither distance.
func smooth(sq [][]float64, path []int) bool {
	distance := func(k int) float64 {
		var distances []float64
		for i := range len(path) - k {
			distances = append(distances, sq[path[i]][path[i+k]])
		}
		return median(distances)
	}
	return distance(4) > 1.4*distance(2)
}

// directions returns the number of directions in which a path's steps go. It is the inverse of the mean squared
// cosine of two steps without a common end, which is 1/p for p equal directions. In general it is the participation
// ratio of the directions' variances.
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

// jumps returns the places after which a path has a long step: more than four times the median of the nine steps
// around it. A learning rate that changes slowly causes no jumps. Chance causes one in fewer than one trajectory in a
// hundred, if five or more directions vary (TestHealthFalseAlarms).
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

// strays returns the iterates outside the longest stretch of the path without a jump, in ascending order. If several
// stretches have this length, the last one is kept.
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

// shortPath returns an order of the given iterates with a short path. It reverses stretches and moves single iterates
// until neither helps. These are the 2-opt and 1-opt moves of the travelling salesman problem, with open ends. A second
// search from the order along the leading principal axis found no more random walks.
func shortPath(sq [][]float64, path []int) []int {
	p := slices.Clone(path)
	n := len(p)
	// at returns the squared step between two places, or 0 beyond the ends.
	at := func(i, j int) float64 {
		if i < 0 || j < 0 || i >= n || j >= n {
			return 0
		}
		return sq[p[i]][p[j]]
	}
	const rounding = 1e-9 // relative; without it rounding could make the search endless
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
				left, right := j-1, j // the places between which it would stand
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

// pathLength returns the sum of the squared steps.
func pathLength(sq [][]float64, path []int) float64 {
	var sum float64
	for i := 1; i < len(path); i++ {
		sum += sq[path[i-1]][path[i]]
	}
	return sum
}

// outOfOrder returns the elements outside a longest ascending subsequence of the path, in ascending order.
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
