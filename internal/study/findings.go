package study

import (
	"fmt"
	"path"
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
func Findings(networks ...*infer.Network) (found []report.Finding) {
	whose := make(map[report.Finding][]string)
	for _, n := range networks {
		for _, f := range findings(n.Posterior) {
			if whose[f] == nil {
				found = append(found, f)
			}
			whose[f] = append(whose[f], path.Base(n.Posterior.Path))
		}
	}
	for i, f := range found {
		switch names := whose[f]; {
		case len(networks) == 1:
		case len(names) == len(networks):
			found[i].Text = "In each posterior: " + f.Text
		default:
			found[i].Text = strings.Join(names, ", ") + ": " + f.Text
		}
	}
	return found
}

func findings(p *swag.Posterior) (found []report.Finding) {
	health, err := trajectory.Of(p)
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
		found = append(found, report.Finding{Text: saw + ": " + f.Means + ". " + capital(f.Do) + ".", Serious: f.Serious})
	}
	if len(found) == 0 && health.Checkpoints > 1 {
		text := fmt.Sprintf("The %d checkpoints count for %s independent ones", health.Checkpoints, report.Fixed(health.Effective, 1))
		if health.Effective < enough {
			text += fmt.Sprintf(", where %d and more are good", enough)
		}
		found = append(found, report.Finding{Text: text + ". Nothing speaks against the posterior made of them."})
	}
	return found
}

// capital capitalises the first letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
