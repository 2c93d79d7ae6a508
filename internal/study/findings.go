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

// enough is the number of independent checkpoints from which on nothing is to be said
// of it: fit's table has it too.
const enough = 10

// Findings are what fit saw of the checkpoints that the networks' posteriors come from.
// Where it saw nothing, they say how many independent checkpoints there are.
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
	if err != nil { // another program's posterior, which says nothing of it
		return nil
	}
	name := func(i int) string { return path.Base(p.Checkpoints[i].Path) }
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

// capital begins a sentence.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
