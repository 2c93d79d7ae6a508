// Package measure runs programs and functions and measures their wall time, processor time and memory. The benchmarks
// in fixtures share it.
//
// Each measurement is a process of its own, so that none profits from another's memory, caches or threads. A
// benchmark that measures its own code starts itself with a job: see [Process] and [Job].
//
// # Concurrency
//
// Measure one thing at a time: two at once slow each other down.
package measure

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Usage is the time and memory that a piece of work took.
type Usage struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`      // user and system time, s
	PeakRSS int64   `json:"peak_rss"` // in bytes; 0 if not measured
}

// Func measures the time of f. It does not measure memory, because the peak includes what the process held before.
func Func(f func() error) (Usage, error) {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		return Usage{}, err
	}
	start := time.Now()
	err := f()
	u := Usage{Seconds: time.Since(start).Seconds()}
	err = errors.Join(err, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	u.CPU = cpuSeconds(&after) - cpuSeconds(&before)
	return u, err
}

func cpuSeconds(r *syscall.Rusage) float64 {
	return (time.Duration(r.Utime.Nano()) + time.Duration(r.Stime.Nano())).Seconds()
}

// peakRSS returns the peak in bytes. On Linux it is never below the peak of the program that started the process,
// about 20 MB.
func peakRSS(r *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return int64(r.Maxrss)
	}
	return int64(r.Maxrss) << 10
}

// Rounds calls f for every task in each round, counted from 1. Every second round is reversed, so that a machine that
// slows down or warms up affects all tasks equally. It stops at the first error.
func Rounds[T any](tasks []T, rounds int, f func(round int, task T) error) error {
	tasks = slices.Clone(tasks)
	for round := range rounds {
		for _, t := range tasks {
			if err := f(round+1, t); err != nil {
				return err
			}
		}
		slices.Reverse(tasks)
	}
	return nil
}

// Median returns the median of x, which must not be empty. For an even number it is the mean of the middle two.
func Median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
