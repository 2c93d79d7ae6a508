package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// overrule says how a user changes what was found.
func overrule() string {
	return setting.Fit.With(setting.Role.With("NAME=parameter")) + " would average them"
}

// Buffers lists the tensors of l that differ between checkpoints and are kept out of the average. It says what members
// have in their place, and warns if nothing fits a buffer to the weights of a member. The argument rows has the
// statistics and buffers of each checkpoint. The argument m has the graph, with the names of l.
func Buffers(m *onnxio.Model, l *weights.Layout, rows [][]float32) (notes, warnings []string) {
	norms := bnupdate.NewSpectralNorms(m, l)
	if n := norms.Weights(); len(n) > 0 {
		notes = append(notes, fmt.Sprintf("buffers: u and v of spectral norm of %s are kept out of the average, %d tensors. Power "+
			"iteration makes those of every member (%s)",
			some(n), 2*len(n), overrule()))
	}
	byReason := make(map[string][]weights.Tensor)
	var reasons []string
	for _, t := range l.Tensors {
		switch {
		case t.Role == weights.Buffer && !norms.Has(t.Name):
			if byReason[t.Reason] == nil {
				reasons = append(reasons, t.Reason)
			}
			byReason[t.Reason] = append(byReason[t.Reason], t)
		}
	}
	if layers := written(l); layers > 0 {
		notes = append(notes, fmt.Sprintf("the graph writes batch norm out in operators, %d layers. Their running statistics are kept "+
			"out of the average, and recomputed for every member (%s)", layers, overrule()))
	}
	for _, reason := range reasons {
		of := byReason[reason]
		var names []string
		for _, t := range of {
			names = append(names, t.Name)
		}
		warnings = append(warnings, fmt.Sprintf("buffers: %s (%s). They are kept out of the average, and every member has the last "+
			"checkpoint's, which differ by %s from the average of all %d checkpoints. %s",
			some(names), reason, report.Percent(spread(of, rows), 1), len(rows), "If they are weights, "+overrule()))
	}
	if roots := rooted(m, l); len(roots) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: the graph takes the root of them, as batch norm does with its running variance, but "+
			"it shows no batch norm. They are averaged and drawn like weights, and a draw below 0 is refused. Export again with batch "+
			"norm as one operator. %s keeps a running statistic out of the average, and every member has the last checkpoint's",
			some(roots), setting.Fit.With(setting.Role.With("NAME=buffer"))))
	}
	if folded := foldedNorms(m, l); len(folded) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: the exporter has divided these weights by their spectral norm, which has no place "+
			"in the graph any more. Averages of such weights have a norm below 1, and the network is less sure than it should be. "+
			"Export again with optimize=False",
			some(folded)))
	}
	return notes, warnings
}

// written returns the number of batch-norm layers that the graph writes out in operators. Only their statistics have a reason.
func written(l *weights.Layout) int {
	statistics := 0
	for _, t := range l.Tensors {
		if t.Role == weights.Statistic && t.Reason != "" {
			statistics++
		}
	}
	return statistics / 2
}

// rooted names the parameters that the graph takes the root of, unless something tells why they are parameters.
func rooted(m *onnxio.Model, l *weights.Layout) (names []string) {
	for _, r := range m.Roots() {
		if t, ok := l.Find(r.Tensor); ok && t.Role == weights.Parameter && t.Reason == "" {
			names = append(names, t.Name)
		}
	}
	return names
}

// foldedNorms names the parameters that the exporter computed from a weight and the
// vectors u and v of its spectral norm.
func foldedNorms(m *onnxio.Model, l *weights.Layout) (names []string) {
	declared := m.Declared()
	for _, t := range l.Role(weights.Parameter) {
		from := declared[t.Name].Folded
		if slices.ContainsFunc(from, func(u string) bool {
			stem, ok := strings.CutSuffix(u, "_u")
			return ok && slices.Contains(from, stem+"_v")
		}) {
			names = append(names, t.Name)
		}
	}
	return names
}

// some lists the first names, and how many more there are.
func some(names []string) string {
	const shown = 3
	list := make([]string, 0, shown)
	for _, n := range names[:min(len(names), shown)] {
		list = append(list, fmt.Sprintf("%q", n))
	}
	text := strings.Join(list, ", ")
	if n := len(names) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// spread is the distance of the last row from the mean of all rows, at the given tensors,
// as a share of the last row's length.
func spread(of []weights.Tensor, rows [][]float32) float64 {
	last := rows[len(rows)-1]
	var distance, size float64
	for _, t := range of {
		for i := t.Offset; i < t.Offset+t.Len(); i++ {
			mean := 0.0
			for _, row := range rows {
				mean += float64(row[i]) / float64(len(rows))
			}
			d := float64(last[i]) - mean
			distance, size = distance+d*d, size+float64(last[i])*float64(last[i])
		}
	}
	if size == 0 {
		return 0
	}
	return math.Sqrt(distance / size)
}
