package ensemble_test

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/ensemble"
)

// Two posteriors, of which the first counts more than its members are.
func ExampleEnsemble_Mix() {
	var e ensemble.Ensemble
	if err := e.Mix(2, 5, []float64{7, 3}); err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range e.Components {
		fmt.Printf("%d members, weight %.1f\n", c.Members, c.Weight)
	}
	// Output:
	// 3 members, weight 0.7
	// 2 members, weight 0.3
}
