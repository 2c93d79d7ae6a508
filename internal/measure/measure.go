// Package measure runs pieces of work and tells what they took: the wall, the
// processors, the memory. It is what the benchmarks in fixtures share.
//
// Each measurement is a process of its own, so that no one finds memory, caches
// or threads that another left. Where the work is the benchmark's own, it starts
// itself with a job: see [Process] and [Job].
//
// # Concurrency
//
// Measure one thing at a time: two at once measure each other.
package measure

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Usage is what a stretch of work took.
type Usage struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`      // user and system time, s
	PeakRSS int64   `json:"peak_rss"` // in bytes; 0 where it was not taken
}

// Func measures f, but for its memory: what this process held before counts in
// its peak.
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

// peakRSS is in bytes. It can never be below that of the program that started
// the process, some 20 MB: Linux counts what a process held before it became
// another program.
func peakRSS(r *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return int64(r.Maxrss)
	}
	return int64(r.Maxrss) << 10
}

// Rounds calls f for every task, the given number of times; rounds count from 1.
// Every second round goes backwards, so that a machine that slows down or warms
// up does so to all alike. It stops at the first error.
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

// Median returns the median of x, which must not be empty: the mean of the
// middle two where there are two.
func Median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
