package report

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/report/plot"
)

// A part is a section of a page with figures of one kind.
type part struct {
	ID, Heading, Lead string
	Figures           []*plot.Figure
}

// Group returns the figures that are folded, or those that are not.
func (p part) Group(folded bool) []*plot.Figure {
	return slices.DeleteFunc(slices.Clone(p.Figures), func(f *plot.Figure) bool { return f.Folded != folded })
}

// parts returns the sections that have figures, in the page's order. Each figure gets a unique name.
func (r *Report) parts() []part {
	all := []part{
		{"differences", "Is the difference more than chance?", differencesLead, plot.DrawDifferences(r.Differences)},
		{"shift", "When the data change", shiftLead, plot.DrawCurves("shift", r.Shifts)},
		{"reliability", "Reliability", r.reliabilityLead(), plot.DrawReliability(r.Methods)},
		{"calibration", "Calibration", calibrationLead, plot.DrawCurves("calibration", r.Calibrations)},
		{"entropy", r.uncertainty(), entropyLead, plot.DrawEntropies(r.Entropies)},
		{"risk", "Risk and coverage", riskLead, plot.DrawRisk(r.Methods)},
		{"operating", "Thresholds", operatingLead, plot.DrawOperating(r.Methods)},
		{"sweep", "Scores by setting", sweepLead, plot.DrawCurves("sweep", r.Sweeps)},
		{"spectrum", "Spectrum of the posterior", spectrumLead, plot.DrawCurves("", r.Spectrum)},
		{"lines", "Loss along directions", linesLead, plot.DrawCurves("line", r.Lines)},
		{"surfaces", "Loss surface and posterior density", surfacesLead, plot.DrawSurfaces(r.Surfaces)},
	}
	taken := map[string]bool{}
	if r.Lead != nil {
		taken[r.Lead.Name] = true
	}
	for _, p := range all {
		for _, f := range p.Figures {
			name := f.Name
			for n := 2; taken[f.Name]; n++ {
				f.Name = fmt.Sprintf("%s-%d", name, n)
			}
			taken[f.Name] = true
		}
	}
	return slices.DeleteFunc(all, func(p part) bool { return len(p.Figures) == 0 })
}

// uncertainty returns the name of the measure that the histograms show.
func (r *Report) uncertainty() string {
	for _, p := range r.Entropies {
		if p.Label != "" {
			return "Uncertainty"
		}
	}
	return "Entropy"
}

const (
	differencesLead = "Each point is a method's difference to the baseline on the same examples, with its 95 % interval. Left of the " +
		"line is better. An open mark may be chance. That holds also for some intervals that leave out zero: each is for a single " +
		"comparison, and of many some leave it out by chance."
	shiftLead = "The same examples, damaged more and more. Temperatures were fitted on clean data. A useful uncertainty grows " +
		"with the errors, so that the calibration error stays small. Bars are 95 % intervals, each for a single comparison."
	reliabilityLead = "Confidence minus accuracy in each group of predictions of similar confidence. On the zero line confidence equals " +
		"accuracy. Above it the network is too sure. The shade is the 95 % interval of each group, and the bars at the bottom are " +
		"the numbers of predictions. The axis is spread towards 1, where most predictions are. Bins that would overlap there are drawn " +
		"as one."
	calibrationLead = "Whether the predicted distributions are right. On the dark line they are. Bars are the 95 % interval of each " +
		"point, so one in twenty leaves out the line by chance."
	class1Lead = "Probability of class 1 minus share of class 1 in each group of predictions of similar probability. On the zero " +
		"line the two are equal. Above it class 1 is predicted too often. The shade is the 95 % interval of each group, and the bars at " +
		"the bottom are the numbers of predictions."
	entropyLead = "How uncertain the predictions are. A useful uncertainty is low where the network knows the subject and high where " +
		"it does not: the less the two histograms overlap, the better."
	riskLead = "What is gained if the network may say that it does not know: the share of errors if only the most confident " +
		"predictions are kept, and the others are handed to a person. Lower is better; at coverage 100 % it is the error of all."
	operatingLead = "What any threshold on the probability of class 1 could do. A curve further to the top is better; the threshold " +
		"only chooses a place on it."
	sweepLead = "Each figure changes one setting and keeps the others. Bars and bands are 95 % intervals, unless the figure names " +
		"another level."
	spectrumLead = "Variance of the posterior along its leading directions, that is the eigenvalues of the low-rank part of its covariance."
	linesLead    = "Loss on a straight line through the SWA weights, with batch-norm statistics recomputed at each point."
	surfacesLead = "Loss in planes through the SWA weights. Ellipses are contours of the posterior density; where it fits, they follow " +
		"the valley of the loss."
)

// reliabilityLead returns the introduction that fits the bins.
func (r *Report) reliabilityLead() string {
	if slices.ContainsFunc(r.Methods, func(m plot.Method) bool { return m.OfClass1 }) {
		return class1Lead
	}
	return reliabilityLead
}

// Plots returns the figures of the report in the page's order. Each has a unique name.
func (r *Report) Plots() (figures []*plot.Figure) {
	if r.Lead != nil {
		figures = append(figures, r.Lead)
	}
	for _, part := range r.parts() {
		figures = append(figures, part.Figures...)
	}
	return figures
}
