package task

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/target"
)

// Pictured describes rows below their images. Every task is one.
type Pictured interface {
	// Tile describes a row. Its values are in the order of Columns, with at least three ranked classes. Its label is a
	// class, or −1. Classes or labels may have names.
	Tile(values []float64, label int, names []string) Tile
	// Selection returns how examples are chosen for display.
	Selection() Selection
}

// Tile is the text below an image.
type Tile struct {
	Lines []Line
	// Verdict compares the prediction with the label. It is "" if the label is unknown.
	Verdict string
	Wrong   bool
	// Uncertain describes the uncertainty of the row, and Disagree the disagreement of its members. Uncertainty and
	// Disagreement are the numbers by which rows are sorted. Error sorts the wrong rows.
	Uncertain, Disagree              string
	Uncertainty, Disagreement, Error float64
}

// Line is one prediction of a tile. Part is the length of its bar from 0 to 1, or negative for no bar.
type Line struct {
	Text, Value string
	Part        float64
}

// Selection holds a heading and an explanation for each section: the most certain rows, the least certain ones, those
// with the most disagreement between members, and the worst errors.
type Selection struct {
	Legend   string
	Sections [4][2]string
}

// NameOf returns the name of a class or label. One without a name is shown by its number.
func NameOf(what string, k int, names []string) string {
	if k < len(names) {
		if name := strings.TrimSpace(names[k]); name != "" {
			return name
		}
	}
	return fmt.Sprintf("%s %d", what, k)
}

// Nats formats an entropy. A positive value that rounds to zero becomes "< 0.001".
func Nats(x float64) string {
	if 0 < x && x < 0.0005 {
		return "< 0.001"
	}
	return decimals(max(x, 0), 3) // rounding may make it negative
}

// Selection implements [Pictured].
func (t classes) Selection() Selection {
	return Selection{
		"Bars are averaged probabilities. Entropy is the predictive entropy and MI the mutual information, the part of it that comes " +
			"from members disagreeing; both in nats.",
		[4][2]string{
			{"Most certain", "The lowest predictive entropy. If an image here shows nothing that belongs to the classes, the ensemble " +
				"does not notice."},
			{"Least certain", "The highest predictive entropy: several classes are about as probable."},
			{"Most disagreement between members", "The highest mutual information: each member is surer than their average. More " +
				"training data of this kind would help most."},
			{"Confident and wrong", "The highest confidence among wrong predictions. Look at the labels too: some of them may be what " +
				"is wrong."},
		}}
}

// Tile implements [Pictured]. It shows the most probable classes.
func (t classes) Tile(values []float64, label int, names []string) Tile {
	tile := Tile{Uncertainty: values[predictiveEntropy], Disagreement: values[mutualInformation], Error: values[confidence]}
	tile.Uncertain, tile.Disagree = "entropy "+Nats(tile.Uncertainty), "MI "+Nats(tile.Disagreement)
	for top := range slices.Chunk(values[ranked:][:2*min(3, t.count)], 2) {
		tile.Lines = append(tile.Lines, Line{NameOf("class", int(top[0]), names), decimals(100*top[1], 1) + " %", min(max(top[1], 0), 1)})
	}
	switch {
	case label < 0:
	case label == int(values[prediction]):
		tile.Verdict = "right"
	default:
		tile.Wrong, tile.Verdict = true, "wrong, labelled "+NameOf("class", label, names)
	}
	return tile
}

// mostLines is the largest number of labels or targets in a tile.
const mostLines = 6

// some keeps the first mostLines lines, and adds a line with the number of others.
func some(lines []Line) []Line {
	if more := len(lines) - mostLines; more > 0 {
		return append(lines[:mostLines], Line{fmt.Sprintf("and %d more", more), "", -1})
	}
	return lines
}

// decimals formats a number with a true minus sign.
func decimals(v float64, digits int) string {
	return strings.ReplaceAll(fmt.Sprintf("%.*f", digits, v+0), "-", "−")
}

// Selection implements [Pictured].
func (t labels) Selection() Selection {
	return Selection{
		"Labels are those that are predicted, with a probability of 50 % or more, and those that are there; bars are averaged " +
			"probabilities. Entropy and MI, the mutual information, which comes of members disagreeing, are sums over all labels, in nats.",
		[4][2]string{
			{"Most certain", "The lowest predictive entropy over all labels. If an image here shows something that no label is for, the " +
				"ensemble does not notice."},
			{"Least certain", "The highest predictive entropy: several labels may be there or not."},
			{"Most disagreement between members", "The highest mutual information: each member is surer than their average. More " +
				"training data of this kind would help most."},
			{"Sure and wrong", "The highest probability of a label that is not there, or of the absence of one that is. Look at the " +
				"labels too: some of them may be what is wrong."},
		}}
}

// Tile implements [Pictured]. It shows the predicted labels and the true ones.
func (t labels) Tile(values []float64, _ int, names []string) Tile {
	n := t.Count
	known, p := values[:n], values[n+3:][:n]
	tile := Tile{Uncertainty: values[n], Disagreement: values[n+2]}
	tile.Uncertain, tile.Disagree = "entropy "+Nats(values[n]), "MI "+Nats(values[n+2])
	order := make([]int, n)
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	told, missed, extra := false, 0, 0
	for _, k := range order {
		predicted, there := p[k] >= 0.5, known[k] == 1
		told = told || known[k] != target.Unknown
		switch {
		case predicted && known[k] == 0:
			extra++
		case !predicted && there:
			missed++
		}
		if y := known[k]; y != target.Unknown && predicted != there {
			tile.Wrong, tile.Error = true, max(tile.Error, math.Abs(p[k]-y))
		}
		if predicted || there {
			text := NameOf("label", k, names)
			if there {
				text += ", there"
			}
			tile.Lines = append(tile.Lines, Line{text, decimals(100*p[k], 1) + " %", p[k]})
		}
	}
	if len(tile.Lines) == 0 {
		tile.Lines = []Line{{"no label", "", -1}, {NameOf("label", order[0], names), decimals(100*p[order[0]], 1) + " %", p[order[0]]}}
	}
	tile.Lines = some(tile.Lines)
	switch {
	case tile.Wrong:
		var parts []string
		if missed > 0 {
			parts = append(parts, fmt.Sprintf("%d missed", missed))
		}
		if extra > 0 {
			parts = append(parts, fmt.Sprintf("%d not there", extra))
		}
		tile.Verdict = strings.Join(parts, ", ")
	case told:
		tile.Verdict = "right"
	}
	return tile
}

// Selection implements [Pictured].
func (t regressionTask) Selection() Selection {
	legend := "Mean ± standard deviation of the members' mixture, in the targets' units. The aleatoric part is noise that the members " +
		"see; the epistemic part is how far they are from each other."
	if t.targets > 1 {
		legend += " Both parts are of all targets together, in the network's units."
	}
	return Selection{legend,
		[4][2]string{
			{"Most certain", "The smallest standard deviation. If an image here shows nothing that the targets are about, the ensemble " +
				"does not notice."},
			{"Least certain", "The largest standard deviation."},
			{"Most disagreement between members", "The largest epistemic standard deviation. More training data of this kind would help " +
				"most."},
			{"Outside their intervals", "The true value is the most standard deviations off the mean, and outside the 95 % interval. " +
				"Look at the targets too: some of them may be what is wrong."},
		}}
}

// Tile implements [Pictured]. It shows means and standard deviations, and the true values. Rows are ordered in the
// units of the network, in which targets are comparable.
func (t regressionTask) Tile(values []float64, _ int, _ []string) Tile {
	at := func(column, k int) float64 { return values[column*t.targets+k] }
	var tile Tile
	var lines []Line
	var aleatoric, epistemic float64 // mean variances, in the network's units
	known := at(0, 0) == at(0, 0)
	for k := range t.targets {
		std, unit := at(2, k), t.units(k).Std
		text := ""
		if t.targets > 1 {
			text = fmt.Sprintf("%d: ", k)
		}
		// two digits of the standard deviation, or four digits of the mean if there is none
		digits := func(of float64, n int) int { return min(max(n-1-int(math.Floor(math.Log10(of))), 0), 9) }
		places := digits(std, 2)
		if std > 0 {
			text += decimals(at(1, k), places) + " ± " + decimals(std, places)
		} else {
			places = digits(max(math.Abs(at(1, k)), 1e-9), 4)
			text += decimals(at(1, k), places)
		}
		line := Line{text, "", -1}
		if known {
			line.Value = "true " + decimals(at(0, k), places)
			if off := math.Abs(at(0, k)-at(1, k)) / std; at(0, k) < at(5, k) || at(0, k) > at(6, k) {
				tile.Wrong, tile.Error = true, max(tile.Error, off)
			}
		}
		lines = append(lines, line)
		aleatoric += math.Pow(at(3, k)/unit, 2) / float64(t.targets)
		epistemic += math.Pow(at(4, k)/unit, 2) / float64(t.targets)
	}
	tile.Lines = some(lines)
	switch {
	case !known:
	case tile.Wrong:
		tile.Verdict = decimals(tile.Error, 1) + " standard deviations off"
	case at(5, 0) == at(5, 0):
		tile.Verdict = "inside the interval"
	}
	if tile.Disagreement = math.Sqrt(epistemic); tile.Disagreement < leastShare*math.Sqrt(aleatoric+epistemic) {
		tile.Disagreement = 0
	}
	tile.Uncertainty = tile.Disagreement
	if aleatoric > 0 {
		tile.Uncertainty = math.Sqrt(aleatoric + epistemic)
		tile.Uncertain = "aleatoric " + short(at(3, 0))
	}
	tile.Disagree = "epistemic " + short(at(4, 0))
	if t.targets > 1 { // over all targets; 1 is a standard deviation of a target in the network's units
		tile.Disagree = "epistemic " + short(math.Sqrt(epistemic))
		if tile.Uncertain != "" {
			tile.Uncertain = "aleatoric " + short(math.Sqrt(aleatoric))
		}
	}
	return tile
}

// leastShare is the smallest difference of sums that rounding cannot explain, as a fraction of a standard deviation.
const leastShare = 1e-6

// short formats a standard deviation with two digits.
func short(v float64) string {
	if !(v > 0) || math.IsInf(v, 1) {
		return "0"
	}
	return decimals(v, min(max(1-int(math.Floor(math.Log10(v))), 0), 9))
}

// Selection implements [Pictured].
func (t several) Selection() Selection {
	return Selection{
		Legend: "Above: picture, true classes, predicted classes. Below: errors (red; grey counts nowhere), entropy, mutual information " +
			"(the brightest is the highest of the picture). Bars are shares of the pixels. Entropy and MI are means over the pixels, in " +
			"nats.",
		Sections: [4][2]string{
			{"Most certain", "The lowest mean entropy."},
			{"Least certain", "The highest mean entropy: many pixels have several classes that are about as probable."},
			{"Most disagreement between members", "The highest mean mutual information. More training data of this kind would help most."},
			{"Worst", "The highest NLL of the labelled pixels. Look at the masks too: some of them may be what is wrong."},
		}}
}

// Tile implements [Pictured] for classes. It shows the most frequent predicted classes.
func (t several) Tile(values []float64, _ int, names []string) Tile {
	at := func(name string) float64 {
		for _, want := range []RowOptions{{}, {Target: true}} {
			size, place := 0, -1
			for _, c := range t.Columns(want) {
				if c.Name == name {
					place = size
				}
				size += c.Len()
			}
			if size == len(values) && place >= 0 {
				return values[place]
			}
		}
		return 0
	}
	tile := Tile{Uncertainty: at("predictive_entropy"), Disagreement: at("mutual_information"), Error: at("nll")}
	tile.Uncertain, tile.Disagree = "entropy "+Nats(tile.Uncertainty), "MI "+Nats(tile.Disagreement)
	if at(labelledColumn) > 0 {
		tile.Verdict, tile.Wrong = fmt.Sprintf("accuracy %.1f %%, NLL %.3f", 100*at(rightColumn), tile.Error), true
	}
	shares := values[len(values)-t.about.Classes:]
	order := make([]int, len(shares))
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shares[b], shares[a]) })
	for _, c := range order[:min(3, len(order))] {
		tile.Lines = append(tile.Lines, Line{
			Text:  NameOf("class", c, names),
			Value: fmt.Sprintf("%.1f %%", 100*shares[c]),
			Part:  shares[c],
		})
	}
	return tile
}
