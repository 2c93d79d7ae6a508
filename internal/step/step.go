// Package step names the moments of a run at which a kill or a signal must do no harm. Tests stop a process at such a
// step, and then kill it. Nothing happens at a step in the program itself.
package step

// The steps of a run. A run may come to each of them many times.
const (
	Computed = "computed" // a batch or another unit of the work is done
	Made     = "made"     // a temporary file or folder is there
	Wrote    = "wrote"    // bytes were written to an output under its temporary name
	Begun    = "begun"    // a file of rows has its head
	Rows     = "rows"     // rows were added to a file of rows
	Synced   = "synced"   // a file is complete and on disk, and does not have its name yet
	Named    = "named"    // a file has its name, and possibly its temporary name too
)

// Reached is called at each step, by any goroutine. Only tests change it, before a run begins.
var Reached = func(name string) {}
