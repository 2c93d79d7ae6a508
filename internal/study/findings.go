package study

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
)

// enough is the number of independent checkpoints from which there is no finding about it. The table of fit uses it
// too.
const enough = 10

// Findings returns what fit found about the checkpoints of the networks' posteriors. If it found no problem, the
// finding is the number of independent checkpoints. A finding of several posteriors names them once.
//
// averages says what validation data found about other averages of the checkpoints, or is "".
func Findings(averages string, networks ...*infer.Network) []report.Finding {
	found, whose := shared(len(networks), func(i int) []report.Finding { return findings(averages, networks[i].Posterior) })
	for k, f := range found {
		switch {
		case len(networks) == 1:
		case len(whose[k]) == len(networks):
			found[k].Text = "In each posterior: " + f.Text
		default:
			var names []string
			for _, i := range whose[k] {
				names = append(names, path.Base(networks[i].Posterior.Path))
			}
			found[k].Text = strings.Join(names, ", ") + ": " + f.Text
		}
	}
	return found
}

// shared returns the different values that n networks have, in the order in which they come, and the networks of each.
func shared[T comparable](n int, of func(network int) []T) (values []T, whose [][]int) {
	for i := range n {
		for _, v := range of(i) {
			k := slices.Index(values, v)
			if k < 0 {
				k, values, whose = len(values), append(values, v), append(whose, nil)
			}
			whose[k] = append(whose[k], i)
		}
	}
	return values, whose
}

func findings(averages string, p *swag.Posterior) (found []report.Finding) {
	health, err := trajectory.Check(p)
	if err != nil { // a posterior of another program without this information
		return nil
	}
	name := trajectory.Names(p)
	for _, f := range health.Verdict(name) {
		saw := capital(f.Saw)
		for i := range p.Checkpoints {
			if strings.HasPrefix(f.Saw, name(i)) {
				saw = f.Saw
			}
		}
		do := capital(f.Do) + "."
		if averages != "" && f.Do == trajectory.OtherAverages() {
			do = averages
		}
		found = append(found, report.Finding{Text: saw + ": " + f.Means + ". " + do, Serious: f.Serious})
	}
	if len(found) == 0 && health.Checkpoints > 1 {
		text := fmt.Sprintf("The %d checkpoints tell as much as %s unrelated ones", health.Checkpoints, report.Fixed(health.Effective, 1))
		if health.Effective < enough {
			text += fmt.Sprintf(", where %d and more are good", enough)
		}
		found = append(found, report.Finding{Text: text + ". Nothing speaks against the posterior made of them."})
	}
	return found
}

// capital capitalises the first letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
