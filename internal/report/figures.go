package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// A figure is a drawing with what is said below it.
type figure struct {
	name string // of its file, without an ending
	*drawing
	note  string
	small bool // one of several that stand side by side
}

// A part of a page holds figures of one kind.
type part struct {
	ID, Heading, Lead string
	figures           []figure
}

// parts are those that there is something to show of, in the page's order.
func (r *Report) parts() []part {
	all := []part{
		{"differences", "Is the difference more than chance?", differencesLead, r.differenceFigures()},
		{"reliability", "Reliability", reliabilityLead, r.reliabilityFigures()},
		{"entropy", "Entropy", entropyLead, r.entropyFigures()},
		{"risk", "Risk and coverage", riskLead, r.riskFigures()},
		{"sweep", "Scores by setting", sweepLead, curveFigures("sweep", r.Sweeps)},
		{"spectrum", "Spectrum of the posterior", spectrumLead, r.spectrumFigures()},
		{"lines", "Loss along directions", linesLead, curveFigures("line", r.Lines)},
		{"surfaces", "Loss surface and posterior density", surfacesLead, r.surfaceFigures()},
	}
	var parts []part
	for _, p := range all {
		if len(p.figures) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

const (
	differencesLead = "Each point is a method's difference to the baseline on the same images, with its 95 % interval. Left of the line is better. Where the interval holds zero, these images do not tell the two apart."
	reliabilityLead = "Confidence minus accuracy in each group of predictions of similar confidence. On the zero line confidence can be taken at its word; above it the network promises too much. The confidence axis is spread towards 1, where most predictions are. Bars are 95 % intervals from the number of images in a group."
	entropyLead     = "How uncertain the predictions are. A useful uncertainty is low where the network knows the subject and high where it does not: the less the two histograms overlap, the better."
	riskLead        = "The share of errors if only the most confident predictions are kept, and the others are handed to a person. Lower is better; at coverage 100 % it is the error of all."
	sweepLead       = "Each figure changes one setting and keeps the others. Bars and bands are intervals, of 95 % if nothing else is said."
	spectrumLead    = "Variance of the posterior along its leading directions, that is the eigenvalues of the low-rank part of its covariance."
	linesLead       = "Loss on a straight line through the SWA weights, with batch-norm statistics recomputed at each point."
	surfacesLead    = "Loss in planes through the SWA weights. Ellipses are contours of the posterior density; where it fits, they follow the valley of the loss."
)

// Plot is one figure of a [Report], to be written as a file.
type Plot struct {
	Name string // lower-case letters, digits and hyphens; no two plots of a report share one
	d    *drawing
}

// WriteSVG writes the plot as an SVG file on white.
func (p Plot) WriteSVG(w io.Writer) error {
	_, err := w.Write(p.d.titled().file())
	return err
}

// WritePNG writes the plot as a PNG file on white, with three pixels to each unit
// of the SVG file. Letters other than Latin, Greek and Cyrillic are shown as
// boxes.
func (p Plot) WritePNG(w io.Writer) error { return p.d.titled().writePNG(w) }

// Plots returns the figures of the report in the page's order.
func (r *Report) Plots() []Plot {
	var plots []Plot
	taken := map[string]bool{}
	for _, part := range r.parts() {
		for _, f := range part.figures {
			name := f.name
			for n := 2; taken[name]; n++ {
				name = fmt.Sprintf("%s-%d", f.name, n)
			}
			taken[name] = true
			plots = append(plots, Plot{name, f.drawing})
		}
	}
	return plots
}

// maxName is the length of a file name made from a title.
const maxName = 60

// fileName joins words to a name that every file system takes.
func fileName(words ...string) string {
	name := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToLower(r)
		}
		return '-'
	}, strings.Join(words, "-"))
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '-' }), "-")
	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}
