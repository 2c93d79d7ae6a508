package intake

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/ort"
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

// findingKey returns what the check of scores depends on, or nil if the posterior or the data has no identity. The names and
// sizes of pictures, which identify them, do not show every change of their content, so the key has the examples that run.
func (r *Runner) findingKey(s *Sample) store.Key {
	id := dataset.ID(s.Dataset)
	if id == "" || r.Posterior.ID == "" || !r.Traits().Form || r.Scoreless() || r.Large() {
		return nil
	}
	sum, n := sha256.New(), min(Few, s.Len())
	for k := range n {
		s.Values(k * s.Len() / n).Hash(sum)
	}
	size, err := r.Batch(s)
	if err != nil {
		return nil
	}
	return store.Key{
		"kind":        "form of scores",
		"posterior":   r.Posterior.ID,
		"data":        id,
		"examples":    hex.EncodeToString(sum.Sum(nil)),
		"of":          s.Len(),
		"batch":       size,
		"task":        r.Posterior.Card.Task,
		"output":      r.Output(),
		"form":        r.Form(),
		"onnxruntime": r.engine.Runtime().Version(),
		"processor":   ort.Processor(),
	}
}
