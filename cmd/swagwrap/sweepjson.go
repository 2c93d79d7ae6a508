package main

import (
	"io"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/ensemble"
)

// scoresJSON are scores, unrounded. What is not a finite number is null.
type scoresJSON struct {
	Members  int      `json:"members"`
	Accuracy *float64 `json:"accuracy"`
	NLL      *float64 `json:"nll"`
	ECE      *float64 `json:"ece"`
	Brier    *float64 `json:"brier"`
}

func newScoresJSON(members int, s ensemble.Scores) scoresJSON {
	return scoresJSON{members, finite(s.Accuracy), finite(s.NLL), finite(s.ECE), finite(s.Brier)}
}

// settingJSON names a setting.
type settingJSON struct {
	Name       string  `json:"setting"`
	Covariance string  `json:"covariance"` // "swa", "swag" or "swag-diag"
	Scale      float64 `json:"scale"`
	Rank       int     `json:"rank"`
	Recomputed bool    `json:"bn_recomputed"`
}

func newSettingJSON(s ensemble.Setting) settingJSON {
	out := settingJSON{s.String(), s.Covariance.String(), s.Scale, s.Rank, !s.Stale}
	if s.SWA() {
		out.Covariance = "swa"
	}
	return out
}

// intervalJSON is a mean with its interval, or null where it is not finite.
type intervalJSON struct {
	Mean *float64 `json:"mean"`
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

func newIntervalJSON(i calibrate.Interval) intervalJSON {
	return intervalJSON{finite(i.Mean), finite(i.Low), finite(i.High)}
}

type sweepPointJSON struct {
	settingJSON
	scoresJSON
	Default    bool         `json:"default"`
	Difference intervalJSON `json:"nll_difference_95"`
	Brier      intervalJSON `json:"brier_difference_95"`
	Accuracy   intervalJSON `json:"accuracy_difference_95"`
}

type curvePointJSON struct {
	scoresJSON
	AnyChoice intervalJSON `json:"nll_any_choice_90"`
}

type choiceJSON struct {
	settingJSON
	Of      int           `json:"of_settings"` // without those with stale statistics
	On      string        `json:"chosen_on"`   // "validation" or "halves"
	Halves  []settingJSON `json:"halves,omitempty"`
	Gain    intervalJSON  `json:"nll_difference_95"`
	Better  bool          `json:"better_than_default"`
	Share   float64       `json:"bootstrap_share"`
	Default float64       `json:"bootstrap_share_default"`
}

type membersJSON struct {
	Members   int      `json:"members"`
	Standard  *float64 `json:"nll_standard_error"`
	Excess    *float64 `json:"nll_excess"`
	Images    *float64 `json:"nll_standard_error_of_images"`
	Tolerance *float64 `json:"tolerance"`
	Enough    int      `json:"enough"` // 0: not known
}

func writeSweepJSON(w io.Writer, s *ensemble.Sweep, r *ensemble.SweepResult, bn *batchNorm) error {
	n := r.Members
	out := struct {
		Images     int                 `json:"images"`
		Validation int                 `json:"validation_images"`
		Seed       uint64              `json:"seed"`
		ECE        string              `json:"ece_binning"`
		Points     []sweepPointJSON    `json:"settings"`
		Curve      []curvePointJSON    `json:"members_curve"`
		Members    membersJSON         `json:"members"`
		Choice     choiceJSON          `json:"choice"`
		Warnings   []string            `json:"warnings"`
		BatchNorm  *ensemble.BatchNorm `json:"batch_norm"`
		Verdict    []string            `json:"verdict"`
	}{Images: s.Test.Len(), Seed: s.Seed, ECE: s.ECE.Binning.String(), Verdict: sweepVerdict(s, r),
		Members: membersJSON{n.Members, finite(n.Standard), finite(n.Excess), finite(n.Images), finite(n.Tolerance), n.Enough}}
	if s.Validation != nil {
		out.Validation = s.Validation.Len()
	}
	out.Warnings, out.BatchNorm = append([]string{}, bn.warnings()...), bn.records[0]
	for _, w := range r.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}
	for _, p := range r.Points {
		out.Points = append(out.Points, sweepPointJSON{newSettingJSON(p.Setting), newScoresJSON(p.Members, p.Scores), p.Default,
			newIntervalJSON(p.NLLDifference), newIntervalJSON(p.BrierDifference), newIntervalJSON(p.AccuracyDifference)})
	}
	for _, p := range r.Curve {
		out.Curve = append(out.Curve, curvePointJSON{newScoresJSON(p.Members, p.Scores), newIntervalJSON(p.AnyOrder)})
	}
	c := r.Choice
	out.Choice = choiceJSON{newSettingJSON(c.Setting), c.Candidates, "validation", nil, newIntervalJSON(c.Gain), c.Better(), c.Share, c.DefaultShare}
	if !c.Validated {
		out.Choice.On, out.Choice.Halves = "halves", []settingJSON{newSettingJSON(c.Halves[0]), newSettingJSON(c.Halves[1])}
	}
	return indentJSON(w, out)
}
