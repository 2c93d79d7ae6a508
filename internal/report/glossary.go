package report

import "strings"

// A term is a word of the tables and figures, explained in one line.
type term struct{ Name, Meaning string }

// glossary is in the order in which a reader meets the words.
var glossary = []term{
	{"accuracy", "Share of images whose most probable class is the true one. Higher is better."},
	{"top-5", "Share of images whose true class is among the five most probable. Higher is better."},
	{"NLL", "Negative log-likelihood: the mean of −ln of the probability that the true class got, in nats. It punishes confident errors most. Lower is better."},
	{"at best T", "The score with a temperature of the method's own, so that methods are compared at their best calibration: fitted on one half of the images and applied to the other, the mean over random splits, or the score as it is where that is better."},
	{"Brier", "Mean squared distance between the probabilities and the truth, from 0 to 2. Lower is better."},
	{"ECE", "Expected calibration error: the mean gap between confidence and accuracy over groups of images of like confidence, 20 of equal size unless it says otherwise. Lower is better; few images make it look worse than it is."},
	{"classwise", "The calibration error of each class's probability, averaged over classes. Lower is better."},
	{"AURC", "Area under the risk–coverage curve: mean error rate over all shares of images kept, the most confident first. Lower is better."},
	{"risk", "Share of errors among the images that are kept. Lower is better."},
	{"coverage", "Share of images that are kept, or that a prediction set holds the true class of."},
	{"confidence", "Probability of the most probable class."},
	{"entropy", "How spread out the probabilities are: 0 if one class has them all, ln of the number of classes if all are equal, in nats."},
	{"mutual information", "The part of the entropy that comes from members disagreeing, in nats. High on what was not in the training data."},
	{"AUROC", "Chance that a random image out of domain has the higher score than one in domain; 0.5 is guessing, 1 is perfect."},
	{"AUPR", "Area under the precision–recall curve, where out of domain is what is looked for. Higher is better."},
	{"FPR", "Share of images in domain that raise a false alarm when 95 % of those out of domain are found. Lower is better."},
	{"KL", "Symmetrised Kullback–Leibler divergence between the two entropy histograms, in nats. Higher is better: they overlap less."},
	{"set size", "Mean number of classes in a conformal prediction set that holds the true one as often as its level says. The level is above the accuracy: below it the most probable class alone is right too often, and some sets must be empty. Lower is better."},
	{"SWAG", "Stochastic weight averaging, Gaussian: predictions averaged over members, networks drawn from a normal distribution around the SWA weights."},
	{"SWA", "Stochastic weight averaging: the network at the mean of the checkpoints."},
	{"Temp", "Temperature scaling: logits divided by one number T, fitted on validation images. It changes confidence, never the prediction."},
	{"BN", "Batch normalisation. Its statistics belong to one set of weights and are recomputed for each member."},
	{"scale", "α multiplies the posterior's covariance; ½ is the paper's, 0 is SWA."},
	{"rank", "Number of deviation columns in the posterior's covariance; 20 in the paper."},
	{"σ", "One posterior standard deviation along the direction that is meant."},
	{"95 %", "An interval that holds the true value in 95 of 100 repetitions; of many intervals looked at together, some miss."},
	{"draws", "How far the number would move, as a standard error, if other members were drawn, or the batch-norm images came in another order: the same network on the same images."},
}

// glossaryOf is what the words in a report need.
func (r *Report) glossaryOf(parts []part) []term {
	var b strings.Builder
	say := func(words ...string) { b.WriteString(strings.ToLower(strings.Join(words, "\n")) + "\n") }
	for _, t := range r.Tables {
		say(t.Title, t.Explanation)
		if t.Table == nil {
			continue
		}
		for _, c := range t.Table.cols {
			say(c.Header)
		}
		for _, row := range t.Table.rows {
			say(row[0])
		}
		say(t.Table.notes...)
	}
	for _, f := range r.Facts {
		say(f.Name)
	}
	for _, p := range parts {
		say(p.Heading, p.Lead)
		for _, f := range p.figures {
			say(f.Words()...)
		}
	}
	var terms []term
	for _, t := range glossary {
		if strings.Contains(b.String(), strings.ToLower(t.Name)) {
			terms = append(terms, t)
		}
	}
	return terms
}
