package swag

import "golang.org/x/sys/cpu"

// lanes is the number of weights that a vector instruction takes at a time, or 0
// where there is none.
var lanes = func() int {
	if cpu.X86.HasAVX2 {
		return 4
	}
	return 0
}()

//go:noescape
func welfordAVX2(mean, variance *float64, row *float32, n int, share float64)

//go:noescape
func subtractAVX2(dst, row *float32, mean *float64, n int)

func welford(mean, variance []float64, row []float32, share float64) {
	n := whole(len(row))
	mean, variance = mean[:len(row)], variance[:len(row)]
	if n > 0 {
		welfordAVX2(&mean[0], &variance[0], &row[0], n, share)
	}
	welfordGo(mean[n:], variance[n:], row[n:], share)
}

func subtract(dst, row []float32, mean []float64) {
	n := whole(len(row))
	dst, mean = dst[:len(row)], mean[:len(row)]
	if n > 0 {
		subtractAVX2(&dst[0], &row[0], &mean[0], n)
	}
	subtractGo(dst[n:], row[n:], mean[n:])
}

// whole returns how many of n weights vector instructions take.
func whole(n int) int {
	if lanes == 0 {
		return 0
	}
	return n / lanes * lanes
}
