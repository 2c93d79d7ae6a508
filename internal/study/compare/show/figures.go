package show

import (
	"math"

	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
)

// differences returns the differences in the first loss, and in errors if the task has them, for the same methods.
// They show the same verdicts as the text.
func (r figures) differences() (all []plot.Differences) {
	name, ranked := r.baselineName(), r.verdict.Unranked == compare.Ranked
	for _, loss := range []task.Loss{r.Loss(), {Key: compare.ErrorLoss}} {
		d := plot.Differences{
			Note:     "Left is better. Bars are 95 % intervals for new " + r.units() + ".",
			Title:    loss.Name + " against " + name,
			Label:    loss.Name + " − " + loss.Name + "(" + name + "), nats per " + r.example(),
			Baseline: name,
		}
		unit := 1.0
		if loss.Key == compare.ErrorLoss {
			d.Title, d.Label, unit = "Error rate against "+name, "errors − errors("+name+"), percentage points", 100
		}
		for _, m := range r.Methods {
			if x, ok := m.Differences[loss.Key]; ok && !m.StaleBN && m.Sound() { // its loss would flatten the others
				if loss.Key != compare.ErrorLoss {
					x.Interval = r.Held(m, r.verdict.Base, x.Interval)
				}
				if math.IsNaN(x.Low) {
					continue
				}
				sign := 0
				if ranked {
					sign = r.Told(m, loss.Key)
				}
				label := m.Name
				if m == r.verdict.Choice {
					label += " (deploy)"
				}
				d.Rows = append(d.Rows, plot.Difference{
					Name:  label,
					Value: unit * x.Mean,
					Lower: unit * x.Low,
					Upper: unit * x.High,
					Open:  sign == 0,
				})
			}
		}
		if len(d.Rows) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// calibrationError returns the calibration error as tables show it, or "" for a task without one.
func calibrationError(m *compare.Method) string {
	if !m.Has("ece") {
		return ""
	}
	return m.Score("ece").Header + " " + study.Format(m.Score("ece"))
}

// calibrations returns the task's figures with the methods that figures name.
func (r figures) calibrations() (all []plot.Curve) {
	place := map[string]int{}
	for _, m := range r.Methods {
		if m.StaleBN || !r.major(m) {
			continue
		}
		for _, f := range m.Figures {
			k, ok := place[f.Key]
			if !ok {
				k = len(all)
				place[f.Key] = k
				all = append(all, plot.Curve{Title: f.Title, XLabel: f.XLabel, YLabel: f.YLabel, Note: f.Note, Ideal: &f.Ideal})
			}
			all[k].Series = append(all[k].Series, plot.Series{Name: m.Name, X: f.X, Y: f.Y, Lower: f.Lower, Upper: f.Upper})
		}
	}
	return all
}
