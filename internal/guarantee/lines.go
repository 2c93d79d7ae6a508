package guarantee

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/task"
)

// mostNamed is the number of classes that a line names.
const mostNamed = 4

// Lines says below a picture what a row has of guarantees. names are those of classes.
func Lines(columns []task.Column, values []float64, names []string) (lines []task.Line) {
	add := func(text, value string) { lines = append(lines, task.Line{Text: text, Value: value, Part: -1}) }
	at := 0
	for _, c := range columns {
		own := values[at : at+c.Len()]
		at += c.Len()
		switch {
		case c.Kind == task.Subset:
			var in []string
			n := 0
			for k, v := range own {
				if v == 0 {
					continue
				}
				if n++; n <= mostNamed {
					in = append(in, task.NameOf("class", k, names))
				}
			}
			if n > mostNamed {
				in = append(in, "…")
			}
			add("set: "+strings.Join(in, ", "), fmt.Sprintf("%d of %d", n, len(own)))
		case c.Name == task.SizeColumn && c.Kind == task.Float64 && len(lines) == 0:
			add("classes in the set of a pixel", fmt.Sprintf("%.2f", own[0]))
		case c.Name == task.LowerColumn:
			add("at least", fmt.Sprintf("%.4g", own[0]))
		case c.Name == task.UpperColumn:
			add("at most", fmt.Sprintf("%.4g", own[0]))
		case c.Kind == task.Flag && own[0] != 0:
			add("no answer is guaranteed", "")
		}
	}
	return lines
}
