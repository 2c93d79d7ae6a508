//go:build !amd64

package swag

func welford(mean, variance []float64, row []float32, share float64) {
	welfordGo(mean, variance, row, share)
}

func lowRank(dst []float32, rows [][]float32, z []float32) { lowRankGo(dst, rows, z, 0) }
