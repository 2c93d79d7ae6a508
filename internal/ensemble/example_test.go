package ensemble_test

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/ensemble"
)

// Two posteriors, of which the first counts more than its members are.
func ExampleMix() {
	components, err := ensemble.Mix(2, 5, []float64{7, 3}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range components {
		fmt.Printf("%d members, weight %.1f\n", c.Members, c.Weight)
	}
	// Output:
	// 3 members, weight 0.7
	// 2 members, weight 0.3
}
