// Package study holds the common parts of the studies: the output of results as text, as a page and as JSON.
package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// Fact returns a fact for a page.
func Fact(name, format string, args ...any) report.Fact {
	return report.Fact{Name: name, Value: fmt.Sprintf(format, args...)}
}

// Used is data of a study with its role.
type Used struct {
	As   string
	Data dataset.Dataset // nil if there is none
}

// Provenance lists the version of ONNX Runtime, the posteriors of networks with their checkpoints, and the sources of
// data with their SHA-256.
func Provenance(runtime string, networks []*infer.Network, used ...Used) []report.Fact {
	facts := []report.Fact{{Name: "ONNX Runtime", Value: runtime}}
	for _, n := range networks {
		facts = append(facts, report.Fact{Name: "posterior " + file.Named(n.Posterior.Path), Value: n.Posterior.ID})
		for _, ck := range n.Posterior.Checkpoints {
			facts = append(facts, report.Fact{Name: "checkpoint " + ck.Path, Value: ck.SHA256})
		}
	}
	for _, u := range used {
		if u.Data == nil {
			continue
		}
		for _, s := range u.Data.Sources() {
			name := u.As + " " + s.Path
			if s.Kind != "" {
				name += " (" + s.Kind + ")"
			}
			facts = append(facts, report.Fact{Name: name, Value: s.SHA256})
		}
	}
	return facts
}

// BatchNorm describes the sources of the batch-norm statistics of a study's networks, and the results of the checks
// of the study's data.
type BatchNorm struct {
	Networks []*infer.Network
	Records  []*batchnorm.Record // for each network, nil without batch norm
	Probe    []*probe.Report     // for each data set and network
	Twice    []string            // what [Twice] found
}

// Whose returns a name for a network's batch norm. It includes the posterior if there are several.
func (b *BatchNorm) Whose(i int) string {
	if len(b.Networks) < 2 {
		return "batch norm"
	}
	return "batch norm of " + b.Networks[i].Posterior.Path
}

// Warnings returns the warnings about statistics and data, which stand above every output.
func (b *BatchNorm) Warnings() []string {
	out := append([]string{}, b.Twice...)
	for _, r := range b.Probe {
		for _, w := range r.Warnings {
			if w = r.Data + ": " + w; !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return append(out, b.Recomputed()...)
}

// Wrong returns those of the warnings that say that data is not like that of training.
func (b *BatchNorm) Wrong() (out []string) {
	add := func(w string) {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	for _, r := range b.Probe {
		for _, f := range r.Found {
			if f.Severity == probe.Wrong {
				add(r.Data + ": " + f.String())
			}
		}
	}
	for i, r := range b.Records {
		if f := r.Mismatch(); f != nil {
			add(b.Whose(i) + ": " + f.String())
		}
	}
	return out
}

// Notes says for each data set by which rules names became numbers, and what was left out of its files.
func (b *BatchNorm) Notes() []string {
	out := []string{}
	for _, r := range b.Probe {
		for _, note := range r.Notes {
			if note = r.Data + ": " + note; !slices.Contains(out, note) {
				out = append(out, note)
			}
		}
	}
	return out
}

// Recomputed are the warnings about recomputed statistics.
func (b *BatchNorm) Recomputed() (out []string) {
	for i, r := range b.Records {
		if r == nil {
			continue
		}
		for _, w := range r.AllWarnings() {
			out = append(out, b.Whose(i)+": "+w)
		}
	}
	return out
}

// Facts returns the facts for a page. Facts that all networks share name none.
func (b *BatchNorm) Facts() (facts []report.Fact) {
	values, whose := shared(len(b.Records), func(i int) []string { return recomputed(b.Records[i]) })
	for k, v := range values {
		if len(whose[k]) == len(b.Networks) {
			facts = append(facts, report.Fact{Name: "batch norm", Value: v})
			continue
		}
		for _, i := range whose[k] {
			facts = append(facts, report.Fact{Name: b.Whose(i), Value: v})
		}
	}
	for _, note := range b.Notes() {
		facts = append(facts, report.Fact{Name: "data", Value: note})
	}
	return facts
}

// recomputed says which statistics are kept, and what the others were recomputed on.
func recomputed(r *batchnorm.Record) (facts []string) {
	if r == nil {
		return nil
	}
	if len(r.Kept) > 0 {
		facts = append(facts, Kept(r))
	}
	if r.Examples == 0 {
		return facts
	}
	parts := []string{report.Plural(r.Examples, r.Unit)}
	if r.MemberExamples > 0 && r.MemberExamples < r.Examples {
		parts = append(parts, report.Thousands(r.MemberExamples)+" for each member")
	}
	switch {
	case r.AsSeen:
		parts = append(parts, "as the training loader gave them")
	case r.Augment != "":
		parts = append(parts, "augmentation: "+r.Augment)
	default:
		parts = append(parts, "augmentation unknown")
	}
	return append(facts, strings.Join(parts, ", "))
}

// Kept describes the statistics that are not recomputed, and the reason.
func Kept(r *batchnorm.Record) string {
	layers := "the statistics of " + report.Plural(len(r.Kept), "layer")
	if r.Examples == 0 {
		layers = "the statistics of all layers"
	}
	if r.Stale {
		return layers + " are the last checkpoint's (" + setting.BN.With("keep") + ")"
	}
	return layers + " are the same in all checkpoints: they were frozen in training, and are kept (" +
		setting.BN.With("recompute") + " recomputes them)"
}

// Interval returns a mean with its interval for JSON; value is the key of the mean.
func Interval(value string, i chance.Interval) Row {
	return Fields(value, i.Mean, "low", i.Low, "high", i.High)
}

// Texts returns errors as strings, never nil.
func Texts(errs []error) []string {
	out := []string{}
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// Other is data that validation data must not share examples with. It is the test data, or Training data.
type Other struct {
	Path     string
	Data     dataset.Dataset // or nil
	Training bool
}

// Twice returns a warning for each data set that has examples of the validation data, by their content. What is fitted on
// such data looks better than it is.
func Twice(path string, validation dataset.Dataset, others ...Other) (warnings []string) {
	for _, o := range others {
		if validation == nil || o.Data == nil {
			continue
		}
		s := dataset.Shared(validation, o.Data)
		if s.Examples == 0 {
			continue
		}
		n, of := report.Thousands(s.Examples), report.Plural(validation.Len(), dataset.Unit(validation))
		if s.All {
			n = "all"
		}
		if o.Training {
			warnings = append(warnings, fmt.Sprintf("The validation data %s and the training data %s have examples in common: %s of %s. "+
				"Networks are surer of these than of new data, so temperatures and other numbers that are fitted on them are too small. "+
				"Fit on data that training has not seen.", path, o.Path, n, of))
			continue
		}
		warnings = append(warnings, fmt.Sprintf("The validation data %s and the test data %s have examples in common: %s of %s. "+
			"Temperatures and other numbers were fitted on them, so their rows, their intervals and what to deploy do not hold for new "+
			"data. Test on other data.", path, o.Path, n, of))
	}
	return warnings
}
