package report

import (
	"errors"
	"fmt"
	"image"
	"math"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// Montage is a page of images with their predictions. WriteHTML and WritePNG write the same tiles.
type Montage struct {
	Title string
	Note  string // below the title: the ensemble and the data
	// Classes holds the names of the classes. A class without a name is shown by its number.
	Classes  []string
	Sections []Section
	// Legend explains the tiles; "" means the legend for classes.
	Legend string
	// Name returns the name of the example with an index, as in output rows.
	Name func(index int) string
	// Image returns the image of the example with an index. It is called once for each tile, and the image is not
	// kept. If it fails, this tile shows the error instead.
	Image func(index int) (image.Image, error)
}

// Section is a part of a [Montage] whose examples have something in common.
type Section struct {
	Heading, Explanation string
	Examples             []Example
}

// Example is a scored example.
type Example struct {
	Index int // row, from 0
	Label int // true class, negative if unknown
	// Top holds the most probable classes with their averaged probabilities, the prediction first. Tiles show three
	// of them.
	Top []Score
	// Entropy is that of the averaged probabilities. MutualInformation is the part of it that comes from disagreement
	// between members. Both are in nats.
	Entropy, MutualInformation float64
	// Told describes a prediction that is not a class. The fields about classes are then unused.
	Told *Told
}

// Told is the text of a tile for an example whose prediction is not a class.
type Told struct {
	Lines   []Line
	Verdict string // comparison with the truth; "" if the truth is unknown
	Wrong   bool
	// Uncertain and Disagree name the measures that order examples. Error orders the wrong ones.
	Uncertain, Disagree              string
	Uncertainty, Disagreement, Error float64
}

// Line is one predicted value. Part is the length of its bar, from 0 to 1, or negative for no bar.
type Line struct {
	Text, Value string
	Part        float64
}

// Score is a class with its probability.
type Score struct {
	Class       int
	Probability float64
}

// prediction returns the most probable class.
func (e *Example) prediction() Score { return e.Top[0] }

func (e *Example) wrong() bool {
	if e.Told != nil {
		return e.Told.Wrong
	}
	return e.Label >= 0 && e.Label != e.prediction().Class
}

// keys returns the numbers that order examples: uncertainty, disagreement of members and, for wrong ones, the error.
// ok is false if there is no prediction.
func (e *Example) keys() (uncertain, disagree, wrong float64, ok bool) {
	switch {
	case e.Told != nil:
		uncertain, disagree, wrong = e.Told.Uncertainty, e.Told.Disagreement, e.Told.Error
	case len(e.Top) == 0:
		return 0, 0, 0, false
	default:
		uncertain, disagree, wrong = e.Entropy, e.MutualInformation, e.prediction().Probability
	}
	return uncertain, disagree, wrong, finite(uncertain) && finite(disagree) && finite(wrong)
}

// shownScores is the number of classes that a tile shows.
const shownScores = 3

const legend = "Bars are averaged probabilities. Entropy is the predictive entropy and MI the mutual information, the part of it that comes from members disagreeing; both in nats."

// A caption is the text of a tile below its image, with printable characters only.
type caption struct {
	Name        string
	Bars        []bar
	Label       string // comparison with the label; empty without one
	Wrong       bool
	Entropy, MI string // for classes

	Uncertain, Disagree string
}

// A bar is a class with its probability.
type bar struct {
	Class, Percent string
	Part           float64 // of the full width, from 0 to 1; negative for no bar
}

// Bar reports whether the bar is drawn.
func (b bar) Bar() bool { return b.Part >= 0 }

// Width returns Part for CSS.
func (b bar) Width() string { return strconv.FormatFloat(100*b.Part, 'f', 1, 64) + "%" }

func (m *Montage) caption(e *Example) caption {
	c := caption{Name: text.Clean(m.Name(e.Index)), Wrong: e.wrong()}
	if t := e.Told; t != nil {
		c.Label, c.Uncertain, c.Disagree = text.Clean(t.Verdict), t.Uncertain, t.Disagree
		for _, l := range t.Lines {
			c.Bars = append(c.Bars, bar{text.Clean(l.Text), l.Value, l.Part})
		}
		return c
	}
	c.Entropy, c.MI = nats(e.Entropy), nats(e.MutualInformation)
	c.Uncertain, c.Disagree = "entropy "+c.Entropy, "MI "+c.MI
	for _, s := range e.Top[:min(len(e.Top), shownScores)] {
		part := s.Probability
		if !(part >= 0) { // NaN too
			part = 0
		}
		c.Bars = append(c.Bars, bar{m.class(s.Class), Percent(s.Probability, 1), min(part, 1)})
	}
	switch {
	case c.Wrong:
		c.Label = "wrong, labelled " + m.class(e.Label)
	case e.Label >= 0:
		c.Label = "right"
	}
	return c
}

// String returns the caption as one sentence, for readers who cannot see the image.
func (c caption) String() string {
	if c.Entropy == "" {
		var parts []string
		for _, b := range c.Bars {
			parts = append(parts, strings.TrimSpace(b.Class+" "+b.Percent))
		}
		if c.Label != "" {
			parts = append(parts, c.Label)
		}
		return c.Name + ": " + strings.Join(parts, ", ")
	}
	s := fmt.Sprintf("%s: predicted %s, %s", c.Name, c.Bars[0].Class, c.Bars[0].Percent)
	if c.Label != "" {
		s += ", " + c.Label
	}
	return s
}

func (m *Montage) legend() string {
	if m.Legend != "" {
		return m.Legend
	}
	return legend
}

// image returns the image of an example. It fails if the image has no pixels.
func (m *Montage) image(index int) (image.Image, error) {
	img, err := m.Image(index)
	if err != nil {
		return nil, errors.New(text.Clean(err.Error()))
	}
	if b := img.Bounds(); b.Empty() {
		return nil, fmt.Errorf("an image of %d×%d pixels", b.Dx(), b.Dy())
	}
	return img, nil
}

func (m *Montage) class(k int) string {
	if k < len(m.Classes) {
		if name := strings.TrimSpace(text.Clean(m.Classes[k])); name != "" {
			return name
		}
	}
	return "class " + strconv.Itoa(k)
}

// nats formats an entropy. A positive value that rounds to zero becomes "< 0.001".
func nats(x float64) string {
	if 0 < x && x < 0.0005 {
		return "< 0.001"
	}
	if math.Abs(x) < 0.0005 { // rounding may make it negative
		x = 0
	}
	return Fixed(x, 3)
}
