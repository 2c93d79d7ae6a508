package trajectory_test

import (
	"fmt"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
)

// Ten iterates of two weights that go one way, and never vary around a centre.
func Example() {
	var iterates [][]float32
	for t := range 10 {
		iterates = append(iterates, []float32{10 + float32(t), 20})
	}
	health := trajectory.NewHealth(swag.Trajectory{Weights: 2, Iterates: iterates})
	fmt.Printf("drift %.2f, worth %.1f iterates\n", health.Drift, health.Effective)
	for _, finding := range health.Verdict(func(i int) string { return fmt.Sprintf("epoch-%d.onnx", i+1) }) {
		fmt.Println(finding.Saw)
	}
	// Output:
	// drift 0.76, worth 1.5 iterates
	// the weights still drift: 76 % of their variance lies between the two halves
}
