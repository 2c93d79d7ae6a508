package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
)

// Summary is [Trajectory] if that has a serious finding, and otherwise a line that says that it has none.
func Summary(p *swag.Posterior, s report.Screen) ([]string, error) {
	if p.Single() {
		return Trajectory(p, s)
	}
	health, err := trajectory.Check(p)
	serious := func(f trajectory.Finding) bool { return f.Serious }
	if err != nil || slices.ContainsFunc(health.Verdict(trajectory.Names(p)), serious) {
		return Trajectory(p, s)
	}
	return s.Hang("trajectory: ", fmt.Sprintf("usable. %d checkpoints count as %s unrelated ones. Details: swagwrap %s",
		health.Checkpoints, report.Fixed(health.Effective, 1), setting.Inspect)), nil
}

// Trajectory describes a posterior's trajectory and gives the verdict, in lines for the screen.
func Trajectory(p *swag.Posterior, s report.Screen) ([]string, error) {
	if p.Single() {
		return s.Hang("note: ", "one checkpoint has no spread: it gives no SWA and no SWAG. It gives temperatures, the Laplace "+
			"approximation of the last layer, prediction sets and out-of-domain scores. "+setting.Compare.String()+
			" prints the lines that collect more checkpoints"), nil
	}
	health, err := trajectory.Check(p)
	if err != nil {
		return nil, err
	}
	lines := healthLines(health, s)
	found := health.Verdict(trajectory.Names(p))
	for _, f := range found {
		what := "note: "
		if f.Serious {
			what = "warning: "
		}
		lines = append(lines, s.Hang(what, f.String())...)
	}
	if len(found) == 0 {
		lines = append(lines, "nothing speaks against this posterior")
	}
	return lines, nil
}

// healthLines returns a table of the measurements with their good values, and the spectrum.
func healthLines(h trajectory.Health, s report.Screen) []string {
	var t study.Section
	add := func(name, value, good string) {
		t.Rows = append(t.Rows, study.Row{study.Name("name", "trajectory", name), study.Shown("value", value).Aligned(report.Right),
			study.Name("good", "good", good).Blank()})
	}
	add("independent checkpoints", fmt.Sprintf("%s of %d", report.Fixed(h.Effective, 1), h.Checkpoints),
		"10 and more for SWAG; about 2 is common, and enough for SWA")
	if h.Checkpoints >= 4 {
		independent := 1 / float64(h.Checkpoints/2*2-1)
		add("variance between the halves", report.Percent(h.Drift, 0),
			"below 60 %; independent checkpoints have "+report.Percent(independent, 0)+", a straight line 75 %")
	}
	if h.Offset > 0 {
		add("given mean from their own / spread", report.Fixed(h.Offset, 2), "below 1.5")
	}
	add("spread / size of the weights", significant(h.Spread), "0.2 % to 33 %")
	add("step / size of the weights", significant(h.Step), "")
	if h.Checkpoints >= 8 {
		add("last steps / first steps", report.Fixed(h.Slowing, 2), "about 1: a constant learning rate")
	}
	add("weights at rest", significant(h.Frozen+h.SubUlp), "0 %, if none was frozen")
	if len(h.Spectrum) > 0 {
		add("low-rank / diagonal variance", report.Fixed(h.LowRank, 2), "about 1")
		add("largest eigenvalue", report.Percent(h.Spectrum[0], 0),
			bars(h.Spectrum)+"  as concentrated as "+report.Fixed(h.Dimensions, 1)+" equal ones")
	}
	var b strings.Builder
	t.Table().WriteText(&b, s) // writing to memory cannot fail
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// significant formats a share as a percentage with about two digits.
func significant(share float64) string {
	decimals := 0
	for s := share; s > 0 && s < 0.1 && decimals < 5; s *= 10 {
		decimals++
	}
	return report.Percent(share, decimals)
}

// bars draws values as blocks of up to eight eighths, relative to the first, which is the largest.
func bars(values []float64) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteRune([]rune(" ▁▂▃▄▅▆▇█")[int(8*v/values[0]+0.5)])
	}
	return strings.TrimRight(b.String(), " ")
}
