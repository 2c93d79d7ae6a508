package swag

// These are the inner loops of fits and draws. If the processor has vector instructions for them, welford, subtract,
// lowRank and combine use these, with the same bits. Explicit conversions keep compilers from fusing a product and a
// sum.

// welfordGo updates mean and variance with one more iterate, whose share of the models is 1/n.
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

// lowRankGo sets dst to the sum of the rows, each times its z. It starts at element first of each row. The result is
// a range of the product D̂·z2, in float32 and in the order of the columns of D̂. The rows lie at equal distances in
// memory.
func lowRankGo(dst []float32, rows [][]float32, z []float32, first int) {
	clear(dst)
	for k, row := range rows {
		row := row[first:][:len(dst)]
		for i, v := range row {
			dst[i] += float32(z[k] * v)
		}
	}
}

// combineGo sets dst to mean + (sd·z + lowRank), computed in float64.
func combineGo(dst []float32, mean, sd, z []float64, lowRank []float32) {
	mean, sd, z, lowRank = mean[:len(dst)], sd[:len(dst)], z[:len(dst)], lowRank[:len(dst)]
	for i := range dst {
		dst[i] = float32(mean[i] + (float64(sd[i]*z[i]) + float64(lowRank[i])))
	}
}
