package study

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
)

// What fit saw is reported in whole sentences, the name of a checkpoint as it is written; of
// several posteriors each is named. Where nothing was seen, the count is reported.
func TestFindings(t *testing.T) {
	network := func(path string, h trajectory.Health) *infer.Network {
		js, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		p := &swag.Posterior{Path: path, Health: js}
		for i := range h.Checkpoints {
			p.Checkpoints = append(p.Checkpoints, swag.Checkpoint{Path: fmt.Sprintf("runs/epoch-%d.pt", i)})
		}
		return &infer.Network{Posterior: p}
	}
	sound := trajectory.Health{Checkpoints: 30, Effective: 24.31, Spread: 0.1, Slowing: 1}
	wanders, few, stray := sound, sound, sound
	wanders.Effective, few.Effective, stray.Outliers = 2.14, 5, []int{4}
	const nothing = ". Nothing speaks against the posterior made of them."
	walk := "The 30 checkpoints tell as much as 2.1 unrelated ones: this is common at a constant learning rate, where the weights wander. It does not hurt SWA. The variance of SWAG grows with the number of checkpoints. " +
		"Collect for 40 epochs or more: 38 were better than 20 in all our runs. For SWA every second checkpoint was enough. Then the comparison with Tune shows whether SWAG is better than SWA, and at which scale."
	separate := "epoch-4.pt stands apart from the others, more than four steps away: the mean is pulled off and the variance is mostly this distance. " +
		"Leave out what diverged, or is not of this run at this learning rate."
	for name, c := range map[string]struct {
		networks []*infer.Network
		want     []report.Finding
	}{
		"sound":             {[]*infer.Network{network("p", sound)}, []report.Finding{{Text: "The 30 checkpoints tell as much as 24.3 unrelated ones" + nothing}}},
		"few":               {[]*infer.Network{network("p", few)}, []report.Finding{{Text: "The 30 checkpoints tell as much as 5.0 unrelated ones, where 10 and more are good" + nothing}}},
		"a walk":            {[]*infer.Network{network("p", wanders)}, []report.Finding{{Text: walk}}},
		"two":               {[]*infer.Network{network("a/p", wanders), network("b/q", stray)}, []report.Finding{{Text: "p: " + walk}, {Text: "q: " + separate, Serious: true}}},
		"alike":             {[]*infer.Network{network("a/p", wanders), network("b/q", wanders)}, []report.Finding{{Text: "In each posterior: " + walk}}},
		"one checkpoint":    {[]*infer.Network{network("p", trajectory.Health{Checkpoints: 1, Effective: 1})}, nil},
		"another program's": {[]*infer.Network{{Posterior: &swag.Posterior{Health: json.RawMessage("null"), Path: "p"}}, {Posterior: &swag.Posterior{Health: json.RawMessage(`"none"`)}}}, nil},
	} {
		if diff := cmp.Diff(c.want, Findings("", c.networks...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Where validation data say whether another average is better, that takes the place of advice.
func TestFindingsOfAverages(t *testing.T) {
	js, err := json.Marshal(trajectory.Health{Checkpoints: 30, Effective: 2, Drift: 0.7, Spread: 0.1, Slowing: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := &infer.Network{Posterior: &swag.Posterior{Health: js, Checkpoints: make([]swag.Checkpoint, 30)}}
	const saw = "The weights still drift: 70 % of their variance lies between the two halves: the mean lies behind the end of training, and the variance is the way there. "
	for averages, want := range map[string]string{
		"":       "The comparison with Val FILE shows whether the average of the last ones is better. If it is not, train longer before the first checkpoint, or at a higher learning rate.",
		"Found.": "Found.",
	} {
		if diff := cmp.Diff([]report.Finding{{Text: saw + want, Serious: true}}, Findings(averages, n)); diff != "" {
			t.Error(diff)
		}
	}
}
