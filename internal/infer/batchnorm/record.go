package batchnorm

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
)

// Record says what the statistics of members come from, and what is known of
// how good they are.
type Record struct {
	// Sources are empty where all statistics are kept.
	Sources []dataset.Source `json:"sources"`
	Images  int              `json:"images"`
	// MemberImages, if not 0, is how many of them each member saw: its statistics
	// are corrected by what SWA's are from as many, and from all. See [Settle].
	MemberImages int    `json:"member_images,omitempty"`
	BatchSize    int    `json:"batch_size"`
	Rule         string `json:"rule"`
	Shuffle      bool   `json:"shuffle"`
	Seed         uint64 `json:"seed"`
	// Augment says how pictures were augmented; "none" if they were not.
	Augment string `json:"augment,omitempty"`
	// AsSeen says that the data is arrays of what the network saw in training,
	// which are used as they are.
	AsSeen bool `json:"as_seen,omitempty"`
	// Provider is what computed the statistics, and ONNXRuntime the library's version; both
	// are empty for the default provider.
	Provider    string `json:"provider,omitempty"`
	ONNXRuntime string `json:"onnxruntime,omitempty"`
	// Rounding is what a precision below float32 was measured to change in the passes.
	Rounding *rounding.Change `json:"rounding,omitempty"`
	// Kept names the layers whose statistics are the checkpoints' own.
	Kept []string `json:"kept,omitempty"`
	// Stale says that some of these are kept although training updated them, so that
	// they do not belong to the weights.
	Stale bool `json:"stale,omitempty"`
	// Loss is about what the number of images costs, in nats of NLL for each
	// example, compared with infinitely many images; nil where it is not known.
	Loss *float64 `json:"loss,omitempty"`
	// Between is the largest share of a layer's variance that lies between batches.
	Between float64 `json:"between_batches"`
	// Check holds the images against what the last checkpoint stores; nil where
	// there is nothing to compare, or there are too few images to tell.
	Check *bnupdate.Check `json:"check,omitempty"`
	// Warnings are what a user of the statistics must know.
	Warnings []string `json:"warnings,omitempty"`
}

// warn fills in the warnings of a pass over the images.
func (b *Record) warn(r bnupdate.Result) {
	if h := r.Halves; h.Disagree() {
		b.Warnings = append(b.Warnings, fmt.Sprintf("the first and the second half of the batch-norm images disagree: in layer %q their means are %.0f %% of a standard deviation apart, a gap that at most %.2g %% of random orders reach: are the images sorted (--bn-order)?",
			h.Layer, 100*h.Difference, 100*h.PValue))
	}
	b.Between = slices.Max(r.BetweenShare)
	if worst := b.Between; worst > 0.2 {
		b.Warnings = append(b.Warnings, fmt.Sprintf("%.0f %% of a batch-norm layer's variance lies between batches, which the running variance leaves out: are the images sorted (--bn-order), or the batches small (--batch-size)?", 100*worst))
	}
}

// warnInitial warns of kept statistics that nothing ever changed: means of 0 and
// variances of 1, which a layer is made with.
func (b *Record) warnInitial(statistics []float32) {
	if !slices.ContainsFunc(statistics, func(v float32) bool { return v != 0 && v != 1 }) {
		b.Warnings = append(b.Warnings, "the kept statistics are those that layers are made with, means of 0 and variances of 1: were the checkpoints exported without what training computed?")
	}
}

// AllWarnings are those of the record, with what the check found first.
func (b *Record) AllWarnings() []string {
	out := slices.Clone(b.Warnings)
	if found, causes := b.Mismatch(); found != "" {
		out = append([]string{found + ". " + causes}, out...)
	}
	if b.Stale {
		out = append(out, "statistics of the last checkpoint are kept, although training updated them: they do not belong to averaged or sampled weights")
	}
	return out
}

// Mismatch says in words what the check found, and the likely causes; "" if
// nothing is off.
func (b *Record) Mismatch() (found, causes string) {
	if b == nil || b.Check == nil {
		return "", ""
	}
	off := b.Check.Off()
	if len(off) == 0 {
		return "", ""
	}
	worst := off[0]
	where := "at the first layer"
	if !b.Check.FirstOff() {
		worst = slices.MaxFunc(off, func(a, b bnupdate.LayerCheck) int { return cmp.Compare(a.Score(), b.Score()) })
		where = fmt.Sprintf("at %d of %d layers, though not at the first, most", len(off), len(b.Check.Layers))
	}
	found = fmt.Sprintf("these images are not what the network saw in training: %s (%s) the last checkpoint stores means that are %s standard deviations, and variances that are a factor of %s from what these images give; training alone explains differences of %s and a factor of %s",
		where, worst.Layer, digits(worst.Means), digits(math.Exp(worst.Variances)), digits(worst.ExpectedMeans), digits(math.Exp(worst.ExpectedVariances)))
	const (
		prepared = "another mean and standard deviation (fit --mean, --std), order of channels (fit --channels) or resizing"
		plain    = "training augmented its images and these are plain: say how (--augment), or save what its loader yields (--bn-data batches.npy)"
		other    = "another data set"
	)
	switch {
	case !b.Check.FirstOff():
		return found, "Likely causes: other images or classes than in training, sorted images (--bn-order), or another size of batches (--batch-size)"
	case b.AsSeen:
		return found, "Likely causes: these batches were saved with other transforms, or the checkpoints are of another training"
	case worst.Means > 0.5 || worst.Variances > 1.5: // augmentation does not go so far
		return found, "Likely causes: " + prepared + "; or " + other
	case b.Augment == "" || b.Augment == "none":
		return found, "Likely causes: " + plain + "; or " + prepared + "; or " + other
	}
	return found, "Likely causes: another augmentation than in training (--augment, none if these images are augmented already); or " + prepared + "; or " + other
}

func digits(v float64) string { return fmt.Sprintf("%.2g", v) }
