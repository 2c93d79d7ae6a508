package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
)

func (a *app) oodCommand() *cli.Command {
	return &cli.Command{
		Name:      "ood",
		Usage:     "show how well uncertainty tells images of another domain from those of the training domain",
		ArgsUsage: "POSTERIOR... IN OUT",
		Description: `Runs the methods of compare over images of the training domain, IN, and of another one, OUT, which need no labels, and
prints how well each method's uncertainty tells the two apart.

   swagwrap ood --bn-data train.npz --val val.npz posterior.safetensors test.npz letters.npz

By entropy of the averaged probabilities: the symmetrised KL divergence between the histograms of both, in the bins of the
paper, every count raised by 1e-7; and the scores of detection, in which images of OUT are those to be found: AUROC, AUPR,
and the share of IN taken for others where 95 % of OUT are found. The same by mutual information and by the largest
probability. Differences of the AUROC have the interval of DeLong et al.

Predictions that were saved, here or elsewhere, serve as well:

   swagwrap ood in.npz out.npz`,
		Flags: flags([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of a table: everything, unrounded, with the histograms"},
			&cli.StringFlag{Name: "key", Usage: "of saved predictions, use the array `NAME`", DefaultText: "the one whose name says so"},
		}, reportFlags, lineupFlags),
		Action: a.ood,
	}
}

func (a *app) ood(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) < 2 {
		return usagef("swagwrap ood --help shows an example", "%s, want POSTERIOR... IN OUT, or two files of predictions", plural(len(args), "argument"))
	}
	pages, err := openReporting(c, comparedFiles(c)...)
	if err != nil {
		return err
	}
	defer pages.abort()
	page := &report.Report{Title: "Out of the domain"}
	var found []ensemble.Detected
	var sizes [2]int
	bn := &batchNorm{}
	if len(args) == 2 {
		found, sizes, err = savedDetection(c, page, args[0], args[1])
	} else {
		found, sizes, err = a.detection(c, page, bn, args)
	}
	if err != nil {
		return err
	}
	if pages.wanted() {
		shown := *page
		shown.Facts = append(slices.Clone(page.Facts), bn.facts()...)
		if err := pages.write(oodPage(&shown, found, sizes)); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return badOutput(writeOODJSON(a.stdout, bn, found, sizes))
	}
	if err := bn.writeWarnings(a.stdout); err != nil {
		return badOutput(err)
	}
	return badOutput(writeOOD(a.stdout, page, found, sizes))
}

// detection runs methods over the images.
func (a *app) detection(c *cli.Context, page *report.Report, bn *batchNorm, args []string) (found []ensemble.Detected, sizes [2]int, err error) {
	n := len(args) - 2
	l, err := a.openLineup(c, args[:n])
	defer l.close()
	if err != nil {
		return nil, sizes, err
	}
	d := &ensemble.Detection{Lineup: l.Lineup, Validation: l.validation}
	for i, to := range []*dataset.Dataset{&d.In, &d.Out} {
		if *to, err = openData([]string{args[n+i]}, "", l.Runs[0].Network, l.pre); err != nil {
			return nil, sizes, err
		}
		sizes[i] = (*to).Len()
	}
	engine, err := a.engine(c)
	if err != nil {
		return nil, sizes, err
	}
	if err := a.settleLineup(c, l, &d.Lineup, engine); err != nil {
		return nil, sizes, err
	}
	*bn = *l.batchNorm
	bar := a.progress(c, "ood", d.Images())
	engine.Progress = bar.add
	found, err = d.Run(c.Context, engine)
	bar.done()
	if err != nil {
		return nil, sizes, badInput(err)
	}
	for _, note := range d.Notes {
		a.warnf(c, "%s", note)
	}
	page.Warnings = append(bn.warnings(), d.Notes...)
	page.Facts = []report.Fact{
		fact("in the domain", "%s images of %s", report.Thousands(sizes[0]), args[n]),
		fact("out of it", "%s of %s", report.Thousands(sizes[1]), args[n+1]),
		fact("drawn", "%s", plural(d.Members, "member")), fact("covariance", "scale %g", d.Scale), fact("random numbers", "seed %d", d.Seed),
	}
	page.Provenance = append(lineupProvenance(l, engine.Runtime.Version()), append(sourceFacts("in", d.In), sourceFacts("out", d.Out)...)...)
	return found, sizes, nil
}

// savedDetection scores predictions that were saved.
func savedDetection(c *cli.Context, page *report.Report, in, out string) ([]ensemble.Detected, [2]int, error) {
	var probs [2][]float64
	var sizes [2]int
	classes := 0
	for i, path := range []string{in, out} {
		if strings.HasSuffix(path, ".safetensors") {
			return nil, sizes, usagef("swagwrap ood POSTERIOR IN OUT, or two files of predictions", "%s: is no file of predictions, and a posterior needs both IN and OUT behind it", path)
		}
		p, err := dataset.OpenPredictions(path, dataset.PredictionOptions{Key: c.String("key")})
		if err != nil {
			return nil, sizes, badInput(err)
		}
		if i > 0 && p.Classes != classes {
			return nil, sizes, badInput(fmt.Errorf("%s: %d classes, want %d as in %s", path, p.Classes, classes, in))
		}
		classes, sizes[i], probs[i] = p.Classes, p.Len(), p.Values
		if !p.Probabilities {
			probs[i] = calibrate.Softmax(nil, p.Values, p.Classes, 1)
		}
		if p.Len() == 0 {
			return nil, sizes, badInput(fmt.Errorf("%s: has no predictions", path))
		}
		page.Facts = append(page.Facts, fact([]string{"in the domain", "out of it"}[i], "%s predictions of %s (%s)", report.Thousands(p.Len()), path, p.From))
		page.Provenance = append(page.Provenance, report.Fact{Name: path, Value: p.SHA256})
	}
	return []ensemble.Detected{ensemble.DetectionOf("predictions", probs[0], probs[1], classes)}, sizes, nil
}

// writeOOD prints the settings, the tables and the verdict.
func writeOOD(w io.Writer, page *report.Report, found []ensemble.Detected, sizes [2]int) error {
	var head []string
	for _, f := range page.Facts {
		head = append(head, f.Value)
	}
	fmt.Fprintf(w, "%s\n\n", strings.Join(head, ", "))
	if err := entropyTable(found, sizes).WriteText(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := measuresTable(found).WriteText(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, line := range oodVerdict(found) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func decimal(header string) report.Column {
	return report.Column{Header: header, Align: report.Decimal}
}

// entropyTable has the scores by predictive entropy.
func entropyTable(found []ensemble.Detected, sizes [2]int) *report.Table {
	base := detectionBaseline(found)
	columns := []report.Column{{Header: "by entropy"}, decimal("mean in"), decimal("mean out"), decimal("sym. KL"), decimal("AUROC"), decimal("AUPR"), decimal("FPR@95")}
	if len(found) > 1 {
		columns = append(columns, decimal("AUROC − AUROC("+base.Name+")"), report.Column{Header: "[95 %]"})
	}
	t := report.NewTable(columns...)
	for _, x := range found {
		cells := []string{x.Name, report.Fixed(x.InEntropy, 4), report.Fixed(x.OutEntropy, 4), report.Fixed(x.Distance, 3),
			report.Fixed(x.Entropy.AUROC, 4), report.Fixed(x.Entropy.AUPR, 4), report.Percent(x.Entropy.FPR95, 1)}
		if len(found) > 1 && !x.Baseline {
			cells = append(cells, report.Signed(x.Difference.Mean, 4), report.Interval(x.Difference.Low, x.Difference.High, 4))
		}
		t.Row(cells...)
	}
	t.Note(fmt.Sprintf("OUT is what is to be found, %s of the images; sym. KL: entropies in %d bins of the paper, counts raised by %g, nats",
		report.Percent(float64(sizes[1])/float64(sizes[0]+sizes[1]), 0), len(found[0].In.Counts), calibrate.DefaultSmoothing))
	for _, x := range found {
		if n := outside(x); n != "" {
			t.Note(fmt.Sprintf("%s: outside the bins, and so of sym. KL: %s", x.Name, n))
		}
		for _, note := range x.Notes {
			t.Note(fmt.Sprintf("%s: %v", x.Name, note))
		}
	}
	return t
}

// outside counts the entropies that are in no bin.
func outside(x ensemble.Detected) string {
	var parts []string
	for _, h := range []struct {
		where string
		of    calibrate.Histogram
	}{{"in", x.In}, {"out", x.Out}} {
		if h.of.Below > 0 {
			parts = append(parts, fmt.Sprintf("%s below %.0e %s", report.Thousands(h.of.Below), h.of.Edges[0], h.where))
		}
		if h.of.Above > 0 {
			parts = append(parts, fmt.Sprintf("%s above %.2f %s", report.Thousands(h.of.Above), h.of.Edges[len(h.of.Edges)-1], h.where))
		}
	}
	return strings.Join(parts, ", ")
}

// measuresTable has the scores by the other two measures.
func measuresTable(found []ensemble.Detected) *report.Table {
	t := report.NewTable(report.Column{Header: "by other measures"}, decimal("mutual information: AUROC"), decimal("AUPR"), decimal("FPR@95"),
		decimal("largest probability: AUROC"), decimal("AUPR"), decimal("FPR@95"))
	for _, x := range found {
		cells := []string{x.Name, "", "", ""}
		if r := x.MutualInformation; r != nil {
			cells = []string{x.Name, report.Fixed(r.AUROC, 4), report.Fixed(r.AUPR, 4), report.Percent(r.FPR95, 1)}
		}
		r := x.Confidence
		t.Row(append(cells, report.Fixed(r.AUROC, 4), report.Fixed(r.AUPR, 4), report.Percent(r.FPR95, 1))...)
	}
	return t
}

func detectionBaseline(found []ensemble.Detected) *ensemble.Detected {
	for i := range found {
		if found[i].Baseline {
			return &found[i]
		}
	}
	return &found[0]
}

// oodVerdict says in plain words what was found. It claims a difference only where
// the interval leaves 0 out.
func oodVerdict(found []ensemble.Detected) []string {
	base := detectionBaseline(found)
	if len(found) == 1 {
		return []string{fmt.Sprintf("A random image of OUT is the less certain one of a pair in %s of all pairs.", report.Percent(base.Entropy.AUROC, 1))}
	}
	var lines, better, worse []string
	candidate := max(0, slices.IndexFunc(found, func(x ensemble.Detected) bool { return x.Key == ensemble.SWAG }))
	if x := found[candidate]; !x.Baseline {
		lines = append(lines, detectionLine(&x, base))
	}
	for i, x := range found {
		text := fmt.Sprintf("%s (%s)", x.Name, report.Signed(x.Difference.Mean, 4))
		switch {
		case x.Baseline || i == candidate:
		case x.Difference.Low > 0:
			better = append(better, text)
		case x.Difference.High < 0:
			worse = append(worse, text)
		}
	}
	if len(better) > 0 {
		lines = append(lines, fmt.Sprintf("Better than %s: %s.", base.Name, strings.Join(better, ", ")))
	}
	if len(worse) > 0 {
		lines = append(lines, fmt.Sprintf("Worse than %s: %s.", base.Name, strings.Join(worse, ", ")))
	}
	if len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("No method differs from %s at telling the two apart, as far as these images show.", base.Name))
	}
	if base.Entropy.AUROC < 0.5 {
		lines = append(lines, fmt.Sprintf("With %s the images of OUT are the more certain ones: are IN and OUT the right way round?", base.Name))
	}
	if n := len(found) - 1; n > 1 {
		lines = append(lines, fmt.Sprintf("%d methods stand against one, each with a 95 %% interval: if none differed, chance would still show a difference in up to %s of such tables.",
			n, report.Percent(1-math.Pow(0.95, float64(n)), 0)))
	}
	return lines
}

// detectionLine compares a method with the baseline.
func detectionLine(x, base *ensemble.Detected) string {
	d := x.Difference
	numbers := fmt.Sprintf("AUROC %s against %s, %s %s", report.Fixed(x.Entropy.AUROC, 4), report.Fixed(base.Entropy.AUROC, 4),
		report.Signed(d.Mean, 4), report.Interval(d.Low, d.High, 4))
	switch {
	case d.Low > 0:
		return fmt.Sprintf("%s's entropy tells the two apart better than that of %s: %s.", x.Name, base.Name, numbers)
	case d.High < 0:
		return fmt.Sprintf("%s's entropy tells the two apart worse than that of %s: %s.", x.Name, base.Name, numbers)
	}
	return fmt.Sprintf("These images show no difference between %s and %s at telling the two apart: %s.", x.Name, base.Name, numbers)
}

// oodPage fills a report.
func oodPage(page *report.Report, found []ensemble.Detected, sizes [2]int) *report.Report {
	page.Verdict = oodVerdict(found)
	page.Tables = []report.NamedTable{
		{Title: "By predictive entropy", Explanation: "How well the entropy of the averaged probabilities tells the images of the other domain.", Table: entropyTable(found, sizes)},
		{Title: "By other measures", Table: measuresTable(found)},
	}
	for _, x := range found {
		page.Entropies = append(page.Entropies, plot.HistogramPair{Name: x.Name, In: x.In, Out: x.Out,
			Note: fmt.Sprintf("AUROC %s, symmetrised KL %s nats", report.Fixed(x.Entropy.AUROC, 3), report.Fixed(x.Distance, 2))})
	}
	return page
}

// writeOODJSON prints everything, unrounded.
func writeOODJSON(w io.Writer, bn *batchNorm, found []ensemble.Detected, sizes [2]int) error {
	type histogram struct {
		Edges  []float64 `json:"edges"`
		Counts []int     `json:"counts"`
		Below  int       `json:"below"`
		Above  int       `json:"above"`
	}
	type row struct {
		Method            string            `json:"method"`
		Key               string            `json:"key,omitempty"`
		Members           int               `json:"members,omitempty"`
		StaleBN           bool              `json:"stale_bn"`
		InEntropy         float64           `json:"mean_entropy_in"`
		OutEntropy        float64           `json:"mean_entropy_out"`
		Distance          *float64          `json:"symmetrised_kl"`
		In                histogram         `json:"in"`
		Out               histogram         `json:"out"`
		Entropy           ensemble.Ranking  `json:"entropy"`
		MutualInformation *ensemble.Ranking `json:"mutual_information"`
		Confidence        ensemble.Ranking  `json:"max_probability"`
		Difference        *differenceJSON   `json:"auroc_difference"`
		Baseline          bool              `json:"baseline"`
		Warnings          []string          `json:"warnings"`
	}
	out := struct {
		In        int                   `json:"images_in"`
		Out       int                   `json:"images_out"`
		Smoothing float64               `json:"smoothing"`
		Methods   []row                 `json:"methods"`
		Warnings  []string              `json:"warnings"`
		BatchNorm []*ensemble.BatchNorm `json:"batch_norm,omitempty"`
		Verdict   []string              `json:"verdict"`
	}{In: sizes[0], Out: sizes[1], Smoothing: calibrate.DefaultSmoothing, Warnings: append([]string{}, bn.warnings()...), BatchNorm: bn.records, Verdict: oodVerdict(found)}
	of := func(h calibrate.Histogram) histogram { return histogram{h.Edges, h.Counts, h.Below, h.Above} }
	for _, x := range found {
		r := row{Method: x.Name, Key: x.Key, Members: x.Members, StaleBN: x.StaleBN, InEntropy: x.InEntropy, OutEntropy: x.OutEntropy,
			Distance: finite(x.Distance), In: of(x.In), Out: of(x.Out), Entropy: x.Entropy, MutualInformation: x.MutualInformation,
			Confidence: x.Confidence, Baseline: x.Baseline, Warnings: texts(x.Notes)}
		if !x.Baseline {
			r.Difference = &differenceJSON{finite(x.Difference.Mean), finite(x.Difference.Low), finite(x.Difference.High)}
		}
		out.Methods = append(out.Methods, r)
	}
	return indentJSON(w, out)
}
