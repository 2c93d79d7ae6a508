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
// finding is the number of independent checkpoints.
func Findings(networks ...*infer.Network) (found []report.Finding) {
	for _, n := range networks {
		p := n.Posterior
		whose := ""
		if len(networks) > 1 {
			whose = path.Base(p.Path) + ": "
		}
		for _, f := range findings(p) {
			found = append(found, report.Finding{Text: whose + f.Text, Serious: f.Serious})
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
