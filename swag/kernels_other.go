//go:build !amd64

package swag

func welford(mean, variance []float64, row []float32, share float64) {
	welfordGo(mean, variance, row, share)
}

func subtract(dst, row []float32, mean []float64) { subtractGo(dst, row, mean) }

func lowRank(dst []float32, rows [][]float32, z []float32) { lowRankGo(dst, rows, z, 0) }

func combine(dst []float32, mean, sd, z []float64, lowRank []float32) {
	combineGo(dst, mean, sd, z, lowRank)
}
