package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
)

const (
	badBins    = "calibrate: number of bins is negative"
	badBinning = "calibrate: unknown binning"
)

// defaultBins is the number of bins of the SWAG paper (Maddox et al. 2019, section 5.1) and its code.
const defaultBins = 20

// Binning is a way to group predictions by confidence, the probability of the most probable class.
type Binning int

const (
	// EqualMass sorts the n predictions by confidence and cuts them into B bins before the elements floor(b·n/B). A
	// cut within equal confidences moves to the end of their run. So every prediction counts, their order does not
	// matter, and bins can be empty.
	EqualMass Binning = iota

	// EqualWidth puts confidence x into the bin b with b/B < x ≤ (b+1)/B, as Guo et al. 2017 and their code do, and 0 into the
	// first.
	EqualWidth

	// SwagReference is only for reproducing published SWAG numbers. It follows calibration_curve in swag/utils.py of
	// github.com/wjmaddox/swa_gaussian. Its edges are every ceil(n/B)-th of the sorted confidences, and the largest.
	// A prediction counts only strictly between two edges. Predictions on an edge are left out, and so are all with
	// the largest confidence. If many confidences are saturated at 1, most of the error is not counted.
	SwagReference
)

// String returns the name of b in tables and flags.
func (b Binning) String() string {
	switch b {
	case EqualMass:
		return "equal-mass"
	case EqualWidth:
		return "equal-width"
	case SwagReference:
		return "swag-reference"
	}
	return fmt.Sprintf("Binning(%d)", int(b))
}

// ECEOptions are the options of [ECE] and [Reliability]. The zero value is ready
// to use.
type ECEOptions struct {
	Binning Binning
	Bins    int // 0 means 20
}

// GuoBins returns the bins that most papers use: 15 of equal width (Guo et al. 2017, section 2, and their code).
func GuoBins() ECEOptions { return ECEOptions{Binning: EqualWidth, Bins: 15} }

// String describes the bins, such as "20 bins of equal mass".
func (o ECEOptions) String() string {
	kind := map[Binning]string{EqualMass: "of equal mass", EqualWidth: "of equal width", SwagReference: "of the SWAG authors' code"}
	return fmt.Sprintf("%d bins %s", o.bins(), kind[o.Binning])
}

// Name returns the name of the bins in flags. It is that of the binning, followed by the number of bins unless that
// is the default.
func (o ECEOptions) Name() string {
	if o.bins() == defaultBins {
		return o.Binning.String()
	}
	return fmt.Sprintf("%v-%d", o.Binning, o.bins())
}

// bins returns the number of bins, and panics if it is negative.
func (o ECEOptions) bins() int {
	if o.Bins < 0 {
		panic(badBins)
	}
	return cmp.Or(o.Bins, defaultBins)
}

// A ReliabilityBin is a group of predictions of similar confidence. If Count is 0, Confidence and Accuracy are 0 and
// have no meaning.
type ReliabilityBin struct {
	// Lower and Upper are the edges of the bin. With EqualMass they are the smallest and largest confidence in it. If
	// such a bin is empty, both are the confidence at which it would begin.
	Lower, Upper float64

	Count      int     // predictions
	Confidence float64 // mean confidence
	Accuracy   float64 // share of correct predictions
}

// ECE returns the expected calibration error of p (Naeini et al. 2015),
//
//	Σ_b (n_b/n) |confidence_b − accuracy_b|
//
// over the bins of [Reliability]. Empty bins add nothing.
func ECE(p Predictions, opts ECEOptions) float64 {
	return calibrationError(Reliability(p, opts), p.Len())
}

// Reliability returns the bins of a reliability diagram in ascending order of confidence, including empty ones. There
// are opts.Bins of them; [SwagReference] can have fewer. The diagram of the SWAG paper plots Confidence − Accuracy
// against Confidence.
//
// Reliability panics if opts.Bins is negative or opts.Binning is unknown.
func Reliability(p Predictions, opts ECEOptions) []ReliabilityBin {
	p.check()
	return reliability(sortedTopLabels(p), opts)
}

// TopLabelECE is [ECE] for predictions that are reduced to their top label. It sorts g.
func TopLabelECE(g []TopLabel, opts ECEOptions) float64 {
	order(g)
	return calibrationError(reliability(g, opts), len(g))
}

// TopLabelReliability is [Reliability] for predictions that are reduced to their top label. It also returns the
// warnings of [Evaluate] about these bins. It sorts g.
func TopLabelReliability(g []TopLabel, opts ECEOptions) ([]ReliabilityBin, []error) {
	order(g)
	m := Metrics{N: len(g)}
	bins := reliability(g, opts)
	m.warnOfBins(bins, opts)
	return bins, m.Warnings
}

// ClasswiseECE returns the mean over the classes of the calibration error of one probability each,
//
//	1/C Σ_c Σ_b (n_cb/n) |mean p_c − share of label c|
//
// over bins of the examples by p_c (Kull et al. 2019, equation 4, and Nixon et al. 2019 for bins of equal mass). Unlike
// [ECE] it includes the classes that are not the most probable. The error of a class without labels is its mean
// probability. With many classes nearly all p_c are near 0, and so is the result. Compare it only between predictions
// of the same classes.
//
// ClasswiseECE panics where [Reliability] does.
func ClasswiseECE(p Predictions, opts ECEOptions) float64 {
	p.check()
	var sum float64
	g, values, other := make([]TopLabel, p.Len()), make([]keyed, p.Len()), make([]keyed, p.Len())
	for c := range p.Classes {
		for i := range values {
			values[i] = keyed{orderedBits(p.Probs[i*p.Classes+c]), int32(i)}
		}
		for k, v := range sortKeyed(values, other) {
			g[k] = TopLabel{p.Probs[int(v.at)*p.Classes+c], p.Labels[v.at] == c}
		}
		sum += calibrationError(reliability(g, opts), len(g))
	}
	return sum / float64(p.Classes)
}

// reliability cuts predictions in ascending order of confidence into bins.
func reliability(g []TopLabel, opts ECEOptions) []ReliabilityBin {
	switch opts.Binning {
	case EqualMass:
		return equalMass(g, opts.bins())
	case EqualWidth:
		return equalWidth(g, opts.bins())
	case SwagReference:
		return swagReference(g, opts.bins())
	}
	panic(badBinning)
}

func calibrationError(bins []ReliabilityBin, n int) float64 {
	var ece float64
	for _, b := range bins {
		ece += float64(b.Count) / float64(n) * math.Abs(b.Confidence-b.Accuracy)
	}
	return ece
}

// TopLabel is the part of a prediction that calibration needs.
type TopLabel struct {
	Confidence float64 // the probability of a class, usually of the most probable one
	Correct    bool    // whether that class is the label
}

// sortedTopLabels returns the predictions in ascending order of confidence, so that every binning is a way to cut the
// slice.
func sortedTopLabels(p Predictions) []TopLabel {
	g := make([]TopLabel, p.Len())
	for i, label := range p.Labels {
		class, confidence := top(p.Row(i))
		g[i] = TopLabel{confidence, class == label}
	}
	order(g)
	return g
}

func order(g []TopLabel) {
	slices.SortFunc(g, func(a, b TopLabel) int { return cmp.Compare(a.Confidence, b.Confidence) })
}

func equalMass(g []TopLabel, n int) []ReliabilityBin {
	bins := make([]ReliabilityBin, n)
	start := 0
	for b := range bins {
		end := (b + 1) * len(g) / n
		for 0 < end && end < len(g) && g[end].Confidence == g[end-1].Confidence {
			end++
		}
		first := g[min(start, len(g)-1)].Confidence
		last := first
		if start < end {
			last = g[end-1].Confidence
		}
		bins[b] = newBin(first, last, g[start:end])
		start = end
	}
	return bins
}

// WidthBin returns the bin of a probability among n of equal width: see [EqualWidth].
func WidthBin(p float64, n int) int {
	b := min(int(p*float64(n)), n-1)
	for b > 0 && p <= float64(b)/float64(n) {
		b--
	}
	return b
}

func equalWidth(g []TopLabel, n int) []ReliabilityBin {
	bins := make([]ReliabilityBin, n)
	start := 0
	for b := range bins {
		end := start
		for end < len(g) && WidthBin(g[end].Confidence, n) == b {
			end++
		}
		bins[b] = newBin(float64(b)/float64(n), float64(b+1)/float64(n), g[start:end])
		start = end
	}
	return bins
}

func swagReference(g []TopLabel, n int) []ReliabilityBin {
	step := (len(g) + n - 1) / n
	var edges []float64
	for i := 0; i < len(g); i += step {
		edges = append(edges, g[i].Confidence)
	}
	if len(g)%step != 1 { // otherwise the largest confidence is an edge already
		edges = append(edges, g[len(g)-1].Confidence)
	}
	var bins []ReliabilityBin
	for b := range len(edges) - 1 {
		lower, upper := edges[b], edges[b+1]
		start := sort.Search(len(g), func(i int) bool { return g[i].Confidence > lower })
		end := sort.Search(len(g), func(i int) bool { return g[i].Confidence >= upper })
		bins = append(bins, newBin(lower, upper, g[start:max(start, end)]))
	}
	return bins
}

func newBin(lower, upper float64, g []TopLabel) ReliabilityBin {
	b := ReliabilityBin{Lower: lower, Upper: upper, Count: len(g)}
	if len(g) == 0 {
		return b
	}
	var right int
	for _, x := range g {
		b.Confidence += x.Confidence
		if x.Correct {
			right++
		}
	}
	b.Confidence /= float64(len(g))
	b.Accuracy = float64(right) / float64(len(g))
	return b
}
