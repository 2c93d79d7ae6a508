package swag

// The inner loops of a fit, each over one iterate's weights. Where a processor
// has vector instructions for them, welford and subtract use these, with the
// same bits. Explicit conversions keep compilers from fusing a product and a
// sum.

// welfordGo takes mean and variance on over one more iterate, whose share of the
// models is 1/n.
func welfordGo(mean, variance []float64, row []float32, share float64) {
	mean, variance = mean[:len(row)], variance[:len(row)]
	for i, v := range row {
		before := float64(v) - mean[i]
		mean[i] += float64(before * share)
		variance[i] += float64((float64(before*(float64(v)-mean[i])) - variance[i]) * share)
	}
}

// subtractGo sets dst to row − mean, computed in float64.
func subtractGo(dst, row []float32, mean []float64) {
	dst, mean = dst[:len(row)], mean[:len(row)]
	for i, v := range row {
		dst[i] = float32(float64(v) - mean[i])
	}
}
