package batchnorm

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// Record gives the source of the members' statistics, and the known facts about their quality.
type Record struct {
	// Sources are empty if all statistics are kept.
	Sources  []dataset.Source `json:"sources"`
	Examples int              `json:"examples"`
	// Unit is the word for one of them; see [dataset.Unit].
	Unit string `json:"unit,omitempty"`
	// MemberExamples, if not 0, is the number of examples that each member saw. Its statistics are corrected by the
	// difference between SWA's statistics from as many images and from all. See [ChooseSampleSize].
	MemberExamples int    `json:"member_examples,omitempty"`
	BatchSize      int    `json:"batch_size"`
	Rule           string `json:"rule"`
	Shuffle        bool   `json:"shuffle"`
	Seed           uint64 `json:"seed"`
	// Augment says how pictures were augmented; "none" if they were not.
	Augment string `json:"augment,omitempty"`
	// AsSeen says that the data is arrays of the network's inputs in training. They are used unchanged.
	AsSeen bool `json:"as_seen,omitempty"`
	// Provider computed the statistics, and ONNXRuntime is the library's version. Both are empty for the default
	// provider.
	Provider    string `json:"provider,omitempty"`
	ONNXRuntime string `json:"onnxruntime,omitempty"`
	// Rounding is the measured change by a precision below float32 in the passes.
	Rounding *rounding.Change `json:"rounding,omitempty"`
	// Kept names the layers that keep the statistics of the checkpoints.
	Kept []string `json:"kept,omitempty"`
	// Stale says that some of the kept statistics were updated by training, so they do not belong to the weights.
	Stale bool `json:"stale,omitempty"`
	// Loss is the estimated cost of the number of examples, in nats of NLL for each example, compared with infinitely
	// many. Nil if unknown.
	Loss *float64 `json:"loss,omitempty"`
	// Between is the largest share of a layer's variance that lies between batches.
	Between float64 `json:"between_batches"`
	// Check compares the examples with the statistics that the checkpoints store; nil if there are too few.
	Check *bnupdate.Check `json:"check,omitempty"`
	// MoreExamples is how many more examples the check needs; 0 if it was made.
	MoreExamples int `json:"check_needs_examples,omitempty"`
	// Warnings are notes that a user of the statistics must know.
	Warnings []string `json:"warnings,omitempty"`
}

// warn fills in the warnings of a pass over the examples.
func (b *Record) warn(r bnupdate.Result) {
	b.Between = slices.Max(r.BetweenShare)
	limit := min(0.2, 8/float64(max(r.BatchSize, 1))) // eight times the share of examples in random order
	if worst := b.Between; worst > limit {
		b.Warnings = append(b.Warnings, fmt.Sprintf("%.0f %% of a batch-norm layer's variance lies between batches, which the running "+
			"variance leaves out: is the data sorted (%s), or are the batches small (%s)?", 100*worst, setting.BNSamples.With("ordered"),
			setting.BatchSize))
	}
}

// warnInitial warns of kept statistics that nothing ever changed: means of 0 and variances of 1, the initial values
// of a layer.
func (b *Record) warnInitial(statistics []float32) {
	if !slices.ContainsFunc(statistics, func(v float32) bool { return v != 0 && v != 1 }) {
		b.Warnings = append(b.Warnings, "the kept statistics are those that layers are made with, means of 0 and variances of 1: were "+
			"the checkpoints exported without what training computed?")
	}
}

// AllWarnings returns the warnings of the record, starting with those of the check.
func (b *Record) AllWarnings() []string {
	out := slices.Clone(b.Warnings)
	if f := b.Mismatch(); f != nil {
		out = append([]string{f.String()}, out...)
	}
	if b.MoreExamples > 0 {
		out = append(out, fmt.Sprintf("this data was not compared with that of training: %d examples are too few. Give at least %d more "+
			"(%s, %s)", b.Examples, b.MoreExamples, setting.BNData, setting.BNSamples))
	}
	if b.Stale {
		out = append(out, "statistics of the last checkpoint are kept, although training updated them: they do not belong to averaged "+
			"or sampled weights")
	}
	return out
}

// Mismatch is what the check found, with the likely causes. It returns nil if nothing is off.
func (b *Record) Mismatch() *probe.Fault {
	if b == nil || b.Check == nil || len(b.Check.Off()) == 0 {
		return nil
	}
	off := b.Check.Off()
	first := b.Check.FirstOff()
	where, worst := "at the first layer", b.Check.Layers[0]
	if !first {
		most := slices.MaxFunc(off, func(i, j int) int { return cmp.Compare(b.Check.Score(i), b.Check.Score(j)) })
		where, worst = fmt.Sprintf("at %d of %d layers, though not at the first, most", len(off), len(b.Check.Layers)), b.Check.Layers[most]
	}
	found := fmt.Sprintf("this data is not what the network saw in training: %s (%s) the checkpoints store means that are %s standard "+
		"deviations, and variances that are a factor of %s from what this data gives; chance and training explain differences of %s and "+
		"a factor of %s",
		where, worst.Layer, digits(worst.Means), digits(math.Exp(worst.Variances)), digits(worst.ExpectedMeans),
		digits(math.Exp(worst.ExpectedVariances)))
	prepared := fmt.Sprintf("another mean and standard deviation (%s), order of channels (channels=bgr) or resizing; or another data set",
		setting.Fit.With(setting.Preprocess.With(`"mean=M std=S"`)))
	plain := fmt.Sprintf("training augmented its images and these are plain: say how (%s), or save what its loader yields (%s)",
		setting.Augment, setting.BNData.With("batches.npy"))
	f := &probe.Fault{Name: "statistics of other data", Severity: probe.Wrong, When: true, Cause: found}
	switch {
	case !first:
		f.Hint = "other examples than in training, or not all of its classes"
	case b.AsSeen:
		f.Hint = "these batches were saved with other transforms, or the checkpoints are of another training"
	case worst.Means > 0.5 || worst.Variances > 1.5: // augmentation has a smaller effect
		f.Hint = prepared
	case b.Augment == "" || b.Augment == "none":
		f.Hint = plain + "; or " + prepared
	default:
		f.Hint = "another augmentation than in training (" + setting.Augment.String() + ", none if this data is augmented already); or " +
			prepared
	}
	f.Hint = "Likely causes: " + f.Hint
	return f
}

func digits(v float64) string { return fmt.Sprintf("%.2g", v) }
