package show

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
)

func (r words) testExamples() string {
	if cut, ok := dataset.CutOf(r.Test); ok {
		return cut.Count("test")
	}
	return report.Plural(r.Test.Len(), "test "+dataset.Unit(r.Test))
}

// units returns the word for examples: "images" or "examples".
func (r words) units() string { return dataset.Unit(r.Test) + "s" }

// unit returns the word for what has a prediction: "image", "example", "token" of a text, or "position" of other data.
func (r words) unit() string {
	if word := r.example(); r.Kept || word == "token" {
		return word
	}
	return "position"
}

// example returns the word for an example, or for a token of a text.
func (r words) example() string {
	if _, ok := dataset.CutOf(r.Test); ok {
		return "token"
	}
	return dataset.Unit(r.Test)
}

// baselineName returns the name of the baseline without its temperature.
func (r words) baselineName() string { return short(r.verdict.Base) }

func (r words) fittedOn() string {
	if r.Validation == nil && !r.Kept {
		return "nothing, without " + setting.Val.String()
	}
	if r.Validation == nil {
		return "halves of the test " + r.units()
	}
	if cut, ok := dataset.CutOf(r.Validation); ok && !r.Kept {
		every, off := baseline.SampleEvery(r.Task, r.Validation.Len()), 0.0
		if every == 1 {
			return cut.Count("validation")
		}
		for _, m := range r.Methods {
			if m.Scaling != nil {
				off = max(off, m.Scaling.Each[0].Error)
			}
		}
		return fmt.Sprintf("1 in %d of %s, which gives T a standard error of %.1g at most", every, cut.Count("validation"), off)
	}
	return report.Plural(r.Validation.Len(), "validation "+dataset.Unit(r.Test))
}

// noisePlace describes the data on which the noise was fitted, or returns "".
func (r words) noisePlace() string {
	if task.Missing(r.Task) == nil {
		return ""
	}
	return "noise of each method fitted on " + r.fittedOn()
}

func (r words) rank() int { return r.Runs[0].Network.Posterior.Options.Columns }

// heading returns the settings in one line.
func (r words) heading() string {
	how := fmt.Sprintf("%s, scale %g, rank %d", report.Plural(r.Drawn(), "member"), r.Scale, r.rank())
	if r.Single() {
		how = "one checkpoint"
	}
	s := fmt.Sprintf("%s, %s, seed %d", r.testExamples(), how, r.Seed)
	if r.Validation != nil || r.Kept {
		s += fmt.Sprintf("; %s fitted on %s", r.First().Symbol, r.fittedOn())
	}
	if place := r.noisePlace(); place != "" {
		s += "; " + place
	}
	if n := len(r.Runs); n > 1 {
		s += fmt.Sprintf("; %d posteriors, single rows of %s", n, r.Runs[0].Network.Posterior.Path)
	}
	return s
}

// facts returns the settings that the numbers depend on.
func (r words) facts() []report.Fact {
	facts := []report.Fact{study.Fact("test "+r.units(), "%s", report.Thousands(r.Test.Len()))}
	if cut, ok := dataset.CutOf(r.Test); ok {
		facts = []report.Fact{study.Fact("test tokens", "%s", report.Thousands(cut.Predictions)), study.Fact("in", "%s", cut.How())}
		if cut.Documents != nil {
			facts = append(facts, study.Fact("documents", "%s", report.Thousands(len(cut.Documents))))
		}
		if cut.Unknown > 0 {
			facts = append(facts, study.Fact("words not in the vocabulary", "%s", report.Thousands(cut.Unknown)))
		}
	}
	if r.Single() {
		facts = append(facts, study.Fact("checkpoints", "1"))
	} else {
		facts = append(facts, study.Fact("members", "%d", r.Drawn()), study.Fact("scale", "%g", r.Scale),
			study.Fact("rank", "%d", r.rank()))
	}
	facts = append(facts, study.Fact("seed", "%d", r.Seed), study.Fact(r.First().Symbol+" fitted on", "%s", r.fittedOn()))
	if r.noisePlace() != "" {
		facts = append(facts, study.Fact("noise of each method fitted on", "%s", r.fittedOn()))
	}
	if n := len(r.Runs); n > 1 {
		facts = append(facts, study.Fact("posteriors", "%d; single rows of %s", n, r.Runs[0].Network.Posterior.Path))
	}
	return facts
}

// called returns the name of a method in sentences. The last checkpoint is what users call their network.
func called(m *compare.Method) string {
	own := map[string]string{
		baseline.SGD:       "your network",
		baseline.SGDTemp:   "your network with a temperature",
		baseline.SGDVector: "your network with vector scaling",
	}
	if name, ok := own[m.Key]; ok {
		return name
	}
	return short(m)
}

// short returns the name of a method without its number.
func short(m *compare.Method) string {
	name, _, _ := strings.Cut(m.Name, " (")
	return name
}

// collected says what more checkpoints gave networks whose learning rate had fallen to zero. The figures are means over
// three seeds, from the tables "MNIST, 1,000 images" and "MNIST, 250 images" of docs/results.md and
// fixtures/results/README.md: the NLL of the row "SGD, falling rate", and of SWA.
const collected = "One checkpoint gives no SWA and no SWAG. On MNIST with 1,000 images, 20 more epochs at a constant learning rate and " +
	"SWA " +
	"took the NLL from 0.2397 to 0.2096, without temperatures. With 250 images it went from 0.7129 to 0.5913."

// code returns the lines of Python that collect more checkpoints, if there is only one.
func (r words) code() []string {
	if !r.Single() {
		return nil
	}
	fit := []string{setting.Template.With("model.onnx")}
	if name := r.Runs[0].Network.Posterior.Card.Task; name != "" {
		fit = append(fit, setting.Task.With(name))
	}
	fit = append(fit, setting.Output.With("posterior.safetensors"), "checkpoints")
	return []string{
		"# 20 more epochs at a constant learning rate, without a scheduler (swagwrap.callback does the same)",
		`os.makedirs("checkpoints", exist_ok=True)`,
		"for group in optimizer.param_groups:",
		`    group["lr"] = 0.01  # a tenth to a half of the first rate of training`,
		"for epoch in range(20):",
		"    train_one_epoch(model, optimizer, train_loader)",
		`    torch.save(model.state_dict(), f"checkpoints/epoch-{epoch:02d}.pt")`,
		`torch.onnx.export(model.eval(), (x,), "model.onnx", dynamo=True, optimize=False,  # x is a batch of inputs`,
		`                  dynamic_shapes=({0: torch.export.Dim("batch")},))`,
		"# then: " + setting.Line(setting.Fit.With(fit...)),
	}
}
