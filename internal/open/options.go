package open

import (
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/ort"
)

// Given is a value that may be missing.
type Given[T any] struct {
	Value T
	Set   bool
}

// NetworkOptions say how the networks of posteriors are read.
type NetworkOptions struct {
	Scores     string           // the form of the scores, or ""
	Statistics infer.Statistics // which batch-norm statistics are recomputed
	Output     string           // the name of the scores' output, or ""
	// Task says what the output means, of a posterior whose task is none. "" leaves it at that.
	Task string
}

// DataOptions say how examples are read.
type DataOptions struct {
	Preprocess string              // changes of the model card's preprocessing, or ""
	Columns    map[string][]string // of tables, by input
	Text       text.Cutting
	Arrays     dataset.Arrays
	Named      listing.Columns // those of labels and paths
	Order      fileorder.Order // of files, where rows without names belong to them
	LabelsAs   names.As
	Memory     *memory.Budget
	Labels     Labels
}

// Labels are files with labels of their own. An empty name stands for none.
type Labels struct{ Main, Validation, Test string }

// RuntimeOptions say what computes, and how much of the machine it may take.
type RuntimeOptions struct {
	Library   string       // of ONNX Runtime, or ""
	Provider  ort.Provider // auto is a name, too
	Free      bool         // the program chooses the precision
	Measure   bool         // the effect of a chosen precision is measured
	BatchSize int          // 0 for the default
	Threads   int          // 0 for one per core
	Memory    *memory.Budget
}

// BatchNormOptions say how batch-norm statistics are recomputed.
type BatchNormOptions struct {
	Data    string        // the path of the training data, or ""
	Samples Samples       // how many examples are used
	Augment Given[string] // instead of the model card's augmentation
	Seed    uint64        // of the order of the examples
}

// Samples says how many examples recompute batch-norm statistics. The zero value stands for as many as predictions need.
type Samples struct {
	Count   int     // this many
	Percent float64 // or this share
	All     bool    // or all
	Ordered bool    // or all, in the order of the data. Without it the data are shuffled.
}

// of returns the number of examples to use, out of n. A share is rounded up as in the paper's ImageNet experiments.
func (s Samples) of(n int) int {
	switch {
	case s.Count > 0:
		return s.Count
	case s.Percent > 0:
		return int(math.Ceil(s.Percent / 100 * float64(n)))
	}
	return n
}

// SourceOptions say how checkpoints are read.
type SourceOptions struct {
	Template  string        // the exported graph, or GRAPH=CHECKPOINT, or ""
	StateDict Given[string] // the key of the weights in a checkpoint
	Unused    []string      // patterns of tensors that the network does not use
}

// StudyOptions are what the studies share.
type StudyOptions struct {
	Network     NetworkOptions
	Data        DataOptions
	BatchNorm   BatchNormOptions
	Source      SourceOptions
	Runtime     RuntimeOptions
	Validation  string   // the path of the validation data, or ""
	Methods     []string // those that were asked for, or nil
	All         bool     // all methods were asked for
	Iterates    []string // other checkpoints, each NAME=FILES
	Checkpoints []string // the folders where the posteriors' checkpoints are now
	Members     int
	Antithetic  bool // members are drawn in pairs
	Orthogonal  bool // at right angles: see [swag.SampleOptions]
	Scale       float64
	GivenScale  bool   // the user gave Scale
	Tune        string // the file of tuned settings, or ""
	Expect      ExpectOptions
	// NeedsOutcomes is a given option that needs the outcomes of all examples in memory, or "".
	NeedsOutcomes string
}
