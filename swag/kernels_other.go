//go:build !amd64

package swag

func welford(mean, variance []float64, row []float32, share float64) {
	welfordGo(mean, variance, row, share)
}

func subtract(dst, row []float32, mean []float64) { subtractGo(dst, row, mean) }
