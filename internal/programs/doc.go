// Package programs knows what training programs leave in a folder: which files are checkpoints of one run, in which of their keys the
// weights are that SGD moved, where averages of these lie, and what beside the weights tells of the network.
//
// [List] looks into a folder, and [Folder.Choose] takes one set of checkpoints or asks. [Keys] finds the iterates in files that hold
// several networks. A training program is a row, a [Program].
package programs
