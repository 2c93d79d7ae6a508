package word

import (
	"math"
	"strconv"
	"strings"
)

// Numbers parses finite numbers with commas between. ok is false if s is anything else.
func Numbers(s string) (out []float64, ok bool) {
	for part := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}
