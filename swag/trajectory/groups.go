package trajectory

import (
	"cmp"
	"math"
	"slices"
)

// apartness is how many times longer a distance between two groups is than any link within them. In testdata/runs.py no
// run at a constant or falling rate falls into groups. Runs of different seeds do, and so do later epochs of runs that
// began at one network.
const apartness = 3

// groups returns the sets of iterates that are far from one another, or nil if there is only one set. The sets are those
// of single linkage: they stay together when the longest links of the minimum spanning tree are cut. Each set has at
// least two iterates, and each cut link is at least apartness times as long as any that is left. The order of the
// iterates does not matter.
//
// Iterates on the way to the others are no set, because they are as far from one another as from the rest. Nor are those
// at a high learning rate before it falls.
func groups(sq [][]float64) [][]int {
	links := spanningTree(sq)
	slices.SortFunc(links, func(a, b link) int { return cmp.Compare(b.length, a.length) })
	var found [][]int
	widest := float64(apartness)
	for cut := 1; cut < len(links); cut++ {
		ratio := math.Sqrt(links[cut-1].length / links[cut].length)
		if !(ratio >= widest) || math.IsInf(ratio, 1) {
			continue
		}
		sets := joined(len(sq), links[cut:])
		if !slices.ContainsFunc(sets, func(set []int) bool { return len(set) < 2 }) {
			found, widest = sets, ratio
		}
	}
	return found
}

// restarts returns the iterates, in the given order, that lead back to the first one. Each is less than half as far from
// the first iterate of its run before as from the iterate before it. That step is at least twice as long as the median
// step, and its neighbours are not. Runs have at least three iterates.
func restarts(sq [][]float64) (at []int) {
	const least = 3
	if len(sq) < 2*least {
		return nil
	}
	given := make([]int, len(sq))
	for i := range given {
		given[i] = i
	}
	long := 4 * median(stepLengths(sq, given)) * median(stepLengths(sq, given))
	begin := 0
	for t := 1; t < len(sq); t++ {
		if step := sq[t-1][t]; step > long && 4*sq[begin][t] < step {
			if t-begin < least || len(sq)-t < least || sq[t-2][t-1] > long || sq[t][t+1] > long {
				return nil
			}
			at, begin = append(at, t), t
		}
	}
	return at
}

// link is an edge of a tree, with its squared length.
type link struct {
	a, b   int
	length float64
}

// spanningTree returns the edges of the minimum spanning tree, by Prim's algorithm.
func spanningTree(sq [][]float64) (links []link) {
	nearest := make([]int, len(sq)) // for each iterate outside the tree, the nearest one inside
	outside := make([]int, 0, len(sq))
	for i := 1; i < len(sq); i++ {
		outside = append(outside, i)
	}
	for len(outside) > 0 {
		best := 0
		for k, i := range outside {
			if sq[i][nearest[i]] < sq[outside[best]][nearest[outside[best]]] {
				best = k
			}
		}
		i := outside[best]
		links = append(links, link{nearest[i], i, sq[i][nearest[i]]})
		outside = slices.Delete(outside, best, best+1)
		for _, k := range outside {
			if sq[k][i] < sq[k][nearest[k]] {
				nearest[k] = i
			}
		}
	}
	return links
}

// joined returns the sets of n iterates that links hold together. Sets are in the order of their first iterates, and
// each is ascending.
func joined(n int, links []link) (sets [][]int) {
	set := make([]int, n)
	for i := range set {
		set[i] = i
	}
	for _, l := range links {
		from, to := set[l.b], set[l.a]
		for i := range set {
			if set[i] == from {
				set[i] = to
			}
		}
	}
	at := map[int]int{}
	for i, s := range set {
		if _, ok := at[s]; !ok {
			at[s] = len(sets)
			sets = append(sets, nil)
		}
		sets[at[s]] = append(sets[at[s]], i)
	}
	return sets
}
