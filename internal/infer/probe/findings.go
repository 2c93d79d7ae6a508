package probe

import (
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Known takes the form of the scores from an earlier check of the same network on the same data, and reports whether there
// was one. Such a check left no doubt with [Few] examples, and no warning. keep keeps that of the check that follows. kept
// may be nil.
func (r *Runner) Known(kept *store.Store, report *Report, s *Sample) (known bool, keep func()) {
	key := r.findingKey(s)
	if kept == nil || key == nil {
		return false, func() {}
	}
	d, before := &Decision{}, len(report.Warnings)
	if kept.Recall(key, d) && r.agrees(d) {
		report.Scores = d
		return true, nil
	}
	was := r.Form()
	return false, func() {
		if d := report.Scores; d != nil && r.few && len(report.Warnings) == before && r.Form() == was && r.agrees(d) {
			kept.Remember(key, d)
		}
	}
}

// agrees reports whether a decision teaches nothing that the graph and the card do not say.
func (r *Runner) agrees(d *Decision) bool {
	return d.Form == r.Form() && d.By != "" || d.By == "default" && d.Form == task.Logits && r.Form() == ""
}

// findingKey returns what the check of scores depends on, or nil if nothing identifies that.
func (r *Runner) findingKey(s *Sample) store.Key {
	if !r.Traits().Form || r.Scoreless() || r.Large() {
		return nil
	}
	size, err := r.Batch(s)
	if err != nil {
		return nil
	}
	k, _ := r.engine.FindingKey("form of scores", r.Network, dataset.ID(s.Dataset), s, s.spread(Few))
	if k != nil {
		k["of"], k["batch"], k["task"], k["output"], k["form"] = s.Len(), size, r.Posterior.Card.Task, r.Output(), r.Form()
	}
	return k
}
