package detect_test

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// Against scikit-learn and pytorch-ood; testdata/features.py says more. Some features never vary, and some covariances
// are of fewer examples than features.
func TestFeatures(t *testing.T) {
	t.Parallel()
	var problems []struct {
		Width, K                       int
		Labels                         []int
		Features, New, Distances, Near []float64
	}
	testfile.JSON(t, "testdata/features.json", &problems)
	if len(problems) < 3 {
		t.Fatal("testdata/features.json lacks problems")
	}
	for _, p := range problems {
		known, others := mat.NewDense(len(p.Labels), p.Width, p.Features), mat.NewDense(len(p.Near), p.Width, p.New)
		m, err := detect.FitMahalanobis(known, p.Labels)
		if err != nil {
			t.Fatal(err)
		}
		testfile.Near(t, "Mahalanobis distances", m.Distances(others), p.Distances)
		testfile.Near(t, "distances to neighbours", detect.NeighbourDistances(known, others, p.K), p.Near)
	}
	if _, err := detect.FitMahalanobis(mat.NewDense(2, 1, []float64{1, 2}), []int{0, 1}); err == nil {
		t.Error("no error without variance")
	}
}
