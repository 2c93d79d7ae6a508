package swag

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func welfordAVX2(mean, variance *float64, row *float32, n int, share float64)

//go:noescape
func subtractAVX2(dst, row *float32, mean *float64, n int)

//go:noescape
func lowRankAVX2(dst, rows *float32, stride int, z *float32, k, n int)

//go:noescape
func combineAVX2(dst *float32, mean, sd, z *float64, lowRank *float32, n int)

// roundDown returns how many of n weights the vector instructions process, in steps of some weights.
func roundDown(n, some int) int {
	if !cpu.X86.HasAVX2 {
		return 0
	}
	return n / some * some
}

func welford(mean, variance []float64, row []float32, share float64) {
	n := roundDown(len(row), 4)
	mean, variance = mean[:len(row)], variance[:len(row)]
	if n > 0 {
		welfordAVX2(&mean[0], &variance[0], &row[0], n, share)
	}
	welfordGo(mean[n:], variance[n:], row[n:], share)
}

func subtract(dst, row []float32, mean []float64) {
	n := roundDown(len(row), 4)
	dst, mean = dst[:len(row)], mean[:len(row)]
	if n > 0 {
		subtractAVX2(&dst[0], &row[0], &mean[0], n)
	}
	subtractGo(dst[n:], row[n:], mean[n:])
}

func lowRank(dst []float32, rows [][]float32, z []float32) {
	n := roundDown(len(dst), 32)
	if len(rows) == 0 {
		n = 0
	}
	if n > 0 {
		for _, row := range rows {
			_ = row[:len(dst)]
		}
		stride := 0
		if len(rows) > 1 {
			stride = int(uintptr(unsafe.Pointer(&rows[1][0])) - uintptr(unsafe.Pointer(&rows[0][0])))
		}
		_ = z[:len(rows)]
		lowRankAVX2(&dst[0], &rows[0][0], stride, &z[0], len(rows), n)
	}
	lowRankGo(dst[n:], rows, z, n)
}

func combine(dst []float32, mean, sd, z []float64, lowRank []float32) {
	n := roundDown(len(dst), 4)
	mean, sd, z, lowRank = mean[:len(dst)], sd[:len(dst)], z[:len(dst)], lowRank[:len(dst)]
	if n > 0 {
		combineAVX2(&dst[0], &mean[0], &sd[0], &z[0], &lowRank[0], n)
	}
	combineGo(dst[n:], mean[n:], sd[n:], z[n:], lowRank[n:])
}
