#!/bin/sh
# Expected: pairs that are equal in one of the two lists count for neither side in Kendall's τ, as tau-a and tau-b say.
# Happens: stat.Kendall counts an equal pair as one that rises. With 1, 1, 1, 1 on one side it is 1 or −1, by the order of the other. For
#   0/1 errors that have nothing to do with an uncertainty of five steps it is .18, and it changes with the order of rows. Without ties it
#   is right.
# Versions: gonum 0.17.0.
# Matters: the correlation of uncertainty with errors, which are 0 or 1, is a usual figure of a posterior: here it is high for no reason.
# Source: seen by running, and Signbit in stat.go.
. "$(dirname "$0")/lib.sh"
printf 'module finding\n\ngo 1.24\n\nrequire gonum.org/v1/gonum v0.17.0\n' >go.mod
cat >main.go <<'END'
package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"sort"

	"gonum.org/v1/gonum/stat"
)

var changed bool

func seen(what string, got, want, tolerance float64) {
	words := "as described "
	if !(math.Abs(got-want) <= tolerance) {
		words, changed = "CHANGED      ", true
	}
	fmt.Printf("%s %s: %.3f\n", words, what, got)
}

// tauA is Kendall's tau-a by its definition.
func tauA(x, y []float64) float64 {
	sum, pairs := 0., 0.
	for i := range x {
		for j := range i {
			if product := (x[i] - x[j]) * (y[i] - y[j]); product != 0 {
				sum += math.Copysign(1, product)
			}
			pairs++
		}
	}
	return sum / pairs
}

func main() {
	equal, up, down := []float64{1, 1, 1, 1}, []float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}
	seen("1 2 3 4 and 4 3 2 1", stat.Kendall(up, down, nil), -1, 1e-9)
	seen("1 1 1 1 and 1 2 3 4", stat.Kendall(equal, up, nil), 1, 1e-9)
	seen("1 1 1 1 and 4 3 2 1", stat.Kendall(equal, down, nil), -1, 1e-9)
	seen("1 1 1 1 and itself", stat.Kendall(equal, equal, nil), 1, 1e-9)
	r := rand.New(rand.NewSource(0))
	var x, steps, errors []float64
	for range 1000 {
		x = append(x, r.Float64())
		steps = append(steps, float64(r.Intn(5)))
		errors = append(errors, math.Trunc(r.Float64()+.1))
	}
	seen("1,000 rows without ties, and their squares", stat.Kendall(x, func() (s []float64) {
		for _, v := range x {
			s = append(s, v*v)
		}
		return s
	}(), nil), 1, 1e-9)
	seen("unrelated errors and five steps: tau-a", tauA(steps, errors), 0, .03)
	seen("the same: gonum", stat.Kendall(steps, errors, nil), .18, .03)
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return steps[order[a]] > steps[order[b]] })
	var sortedSteps, sortedErrors []float64
	for _, i := range order {
		sortedSteps, sortedErrors = append(sortedSteps, steps[i]), append(sortedErrors, errors[i])
	}
	seen("the same rows, by falling step: tau-a", tauA(sortedSteps, sortedErrors), tauA(steps, errors), 1e-9)
	seen("the same rows, by falling step: gonum", stat.Kendall(sortedSteps, sortedErrors, nil), -.46, .1)
	if changed {
		os.Exit(1)
	}
}
END
GOFLAGS=-mod=mod go run . 2>build.txt || {
	code=$?
	grep -q 'exit status 1' build.txt && exit 1
	cat build.txt >&2
	exit 2
}
