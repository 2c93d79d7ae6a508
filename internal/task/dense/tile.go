package dense

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/task"
)

// Selection implements [task.Pictured].
func (t several) Selection() task.Selection {
	return task.Selection{
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

// Tile implements [task.Pictured] for classes. It shows the most frequent predicted classes.
func (t several) Tile(values []float64, _ int, names []string) task.Tile {
	at := func(name string) float64 {
		for _, want := range []task.RowOptions{{}, {Truth: true}} {
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
	tile := task.Tile{Uncertainty: at("predictive_entropy"), Disagreement: at("mutual_information"), Error: at("nll")}
	tile.Uncertain, tile.Disagree = "entropy "+task.Nats(tile.Uncertainty), "MI "+task.Nats(tile.Disagreement)
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
		tile.Lines = append(tile.Lines, task.Line{
			Text:  task.NameOf("class", c, names),
			Value: fmt.Sprintf("%.1f %%", 100*shares[c]),
			Part:  shares[c],
		})
	}
	return tile
}
