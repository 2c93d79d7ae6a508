package ood

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// A score of features that cannot be computed is left out alone, with its own reason. Scores with the same reason share a note.
func TestScoresFailAlone(t *testing.T) {
	features := [2]*mat.Dense{mat.NewDense(2, 1, []float64{1, 2}), mat.NewDense(1, 1, []float64{3})}
	good := score{of: func(x *mat.Dense) []float64 { return mat.Col(nil, 0, x) }}
	bad := score{of: func(x *mat.Dense) []float64 { // only of OUT
		if n, _ := x.Dims(); n == 1 {
			return []float64{math.NaN()}
		}
		return []float64{0, 0}
	}}
	for j := range featureMeasures {
		for why, fails := range map[string]score{"singular": {err: errors.New("singular")}, "a score is not a number": bad} {
			scores := slices.Repeat([]score{good}, len(featureMeasures))
			scores[j] = fails
			sides := [2]side{make(side, 2+len(scores)), make(side, 2+len(scores))}
			notes := apply(scores, features, &sides)
			if want := featureMeasures[j].Name + " is left out: " + why; len(notes) != 1 || notes[0] != want {
				t.Errorf("%q, want %q", notes, want)
			}
			for k := range sides {
				for i := range scores {
					if got := sides[k][2+i]; (got == nil) != (i == j) {
						t.Errorf("%s fails: %s of side %d is %v", featureMeasures[j].Name, featureMeasures[i].Name, k, got)
					}
				}
			}
		}
	}
	head := score{err: errors.New("no last layer")}
	scores := []score{{err: errors.New("singular")}, good, good, head, head}
	sides := [2]side{make(side, 5), make(side, 5)}
	if got, want := strings.Join(apply(scores, features, &sides), "\n"), "Mahalanobis is left out: singular\nViM and NNGuide are left out: no last layer"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
