package calibrate

import "math"

// expSteps is the number of steps of [exp] from one power of two to the next.
const expSteps = 64

var expTable = func() (t [expSteps]float64) {
	for k := range t {
		t[k] = math.Exp2(float64(k) / expSteps)
	}
	return t
}()

// exp returns the exponential of x ≤ 0 in a fraction of the time of [math.Exp], with a relative error of 1e-13. Below −700 it is 0.
func exp(x float64) float64 {
	if !(x > -700) {
		return 0
	}
	k := math.Floor(x*(expSteps/math.Ln2) + 0.5)
	r := x - k*(math.Ln2/expSteps)
	n := int(k)
	power := math.Float64frombits(uint64(1023+n>>6) << 52)
	return power * expTable[n&(expSteps-1)] * (1 + r*(1+r*(0.5+r*(1.0/6+r*(1.0/24+r/120)))))
}
