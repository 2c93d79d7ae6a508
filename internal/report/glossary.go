package report

// A term is a word of the tables and figures with a one-line explanation. Also holds other spellings.
type term struct {
	Name, Meaning string
	Also          []string
}

// glossary is in the order in which a reader meets the words.
var glossary = []term{
	{Name: "accuracy", Meaning: "Share of examples whose most probable class is the true one. Higher is better."},
	{Name: "top-5", Meaning: "Share of examples whose true class is among the five most probable. Higher is better."},
	{
		Name: "NLL",
		Meaning: "Negative log-likelihood: the mean of −ln of the probability that the true class got, or of the density at the true " +
			"number, in nats. It punishes confident errors most. Lower is better.",
	},
	{
		Name: "at best T",
		Meaning: "The score with a temperature of the method's own, so that methods are compared at their best calibration: fitted on " +
			"one half of the examples and applied to the other, the mean over random splits, or the score as it is where that is better.",
	},
	{Name: "Brier", Meaning: "Mean squared distance between the probabilities and the labels, from 0 to 2. Lower is better."},
	{
		Name: "ECE",
		Meaning: "Expected calibration error: the mean gap between confidence and accuracy over groups of examples of like confidence, " +
			"20 of equal size unless it says otherwise. Lower is better; few examples make it look worse than it is.",
	},
	{
		Name:    "classwise",
		Meaning: "The calibration error of each class's probability, averaged over classes. Lower is better.",
		Also:    []string{"classwise ECE"},
	},
	{
		Name: "AURC",
		Meaning: "Area under the risk–coverage curve: mean error rate over all shares of examples kept, the most confident first. Lower " +
			"is better.",
	},
	{Name: "risk", Meaning: "Share of errors among the examples that are kept. Lower is better."},
	{
		Name: "coverage",
		Meaning: "Share of examples that are kept, or that a prediction set holds the true class of; of predicted numbers, share of the " +
			"true ones that lie in their 95 % intervals: 95 % is right, and neither more nor less is better.",
	},
	{Name: "confidence", Meaning: "Probability of the most probable class."},
	{
		Name: "entropy",
		Meaning: "How spread out the probabilities are: 0 if one class has them all, ln of the number of classes if all are equal, in " +
			"nats.",
		Also: []string{"entropies"},
	},
	{
		Name:    "mutual information",
		Meaning: "The part of the entropy that comes from members disagreeing, in nats. High on what was not in the training data.",
	},
	{Name: "RMSE", Meaning: "Root of the mean squared error of the predicted mean, in the targets' units. Lower is better."},
	{Name: "MAE", Meaning: "Mean absolute error of the predicted mean, in the targets' units. Lower is better."},
	{
		Name: "CRPS",
		Meaning: "Continuous ranked probability score: how far the predicted distribution lies from the true number, in the target's " +
			"units; the absolute error where nothing but a number is predicted. Lower is better.",
	},
	{
		Name: "ENCE",
		Meaning: "Expected normalised calibration error: the mean over groups of examples of like predicted variance of |root of the " +
			"mean variance − RMSE|, as a share of the former. Lower is better; few examples make it look worse than it is.",
	},
	{
		Name: "MACE",
		Meaning: "Mean absolute calibration error: how far the coverage of central intervals is from what they are to hold, the mean " +
			"over levels from 0 to 1. Lower is better; few examples make it look worse than it is.",
	},
	{
		Name: "PIT",
		Meaning: "Probability integral transform: the predicted probability of a number up to the true one. Evenly spread over 0 to 1 " +
			"where predicted distributions are right.",
	},
	{
		Name: "epistemic",
		Meaning: "The part of the predicted variance that comes from members disagreeing: the variance of their means. High on what was " +
			"not in the training data.",
	},
	{Name: "aleatoric", Meaning: "The part of the predicted variance that each member has for itself: the mean of their variances."},
	{
		Name: "SWA-Scaled",
		Meaning: "SWA with variance scaling: all predicted variances multiplied by one number s², fitted on validation data. It changes " +
			"intervals, never the predicted mean.",
		Also: []string{"variance scaling"},
	},
	{Name: "SWAG-Scaled", Meaning: "SWAG with variance scaling."},
	{
		Name:    "AUROC",
		Meaning: "Chance that a random example out of domain has the higher score than one in domain; 0.5 is guessing, 1 is perfect.",
	},
	{Name: "AUPR", Meaning: "Area under the precision–recall curve of finding examples out of domain. Higher is better."},
	{
		Name:    "FPR",
		Meaning: "Share of examples in domain that raise a false alarm when 95 % of those out of domain are found. Lower is better.",
		Also:    []string{"FPR@95"},
	},
	{
		Name: "KL",
		Meaning: "Symmetrised Kullback–Leibler divergence between the two histograms of uncertainty, in nats. Higher is better: they " +
			"overlap less.",
		Also: []string{"sym. KL"},
	},
	{
		Name: "set size",
		Meaning: "Mean number of classes in a conformal prediction set that holds the true one as often as its level says. The level is " +
			"above the accuracy: below it the most probable class alone is right too often, and some sets must be empty. Lower is better.",
	},
	{
		Name: "SWAG",
		Meaning: "Stochastic weight averaging, Gaussian: predictions averaged over members, networks drawn from a normal distribution " +
			"around the SWA weights.",
	},
	{Name: "SWAG-Temp", Meaning: "SWAG with temperature scaling of the averaged probabilities."},
	{
		Name:    "SWAG-MemberTemp",
		Meaning: "SWAG with one temperature for the probabilities of each member, before they are averaged. It cannot be an ensemble.",
	},
	{Name: "SWAG-Diag", Meaning: "SWAG whose normal distribution has no covariances: each weight varies by itself."},
	{Name: "MultiSWAG", Meaning: "Predictions averaged over the members of several SWAG posteriors, each of a training run of its own."},
	{Name: "SWA", Meaning: "Stochastic weight averaging: the network at the mean of the checkpoints."},
	{
		Name: "SWA-Temp",
		Meaning: "SWA with temperature scaling: logits divided by one number T, fitted on validation data. It changes confidence, never " +
			"the prediction.",
		Also: []string{"temperature scaling", "T fitted on"},
	},
	{
		Name:    "SWA-Vector",
		Meaning: "SWA with vector scaling: each class's logit has a factor and an offset of its own, fitted on validation data.",
		Also:    []string{"vector scaling"},
	},
	{
		Name: "SWA-SVS",
		Meaning: "SWA with structured vector scaling: vector scaling with a penalty that grows with the classes and shrinks with the " +
			"examples.",
	},
	{Name: "SWA-SMS", Meaning: "SWA with structured matrix scaling: each class's logit also depends a little on those of the others."},
	{Name: "SWA-Quadratic", Meaning: "SWA whose log-odds of two classes go through a quadratic polynomial."},
	{Name: "SWA-VennAbers", Meaning: "SWA whose log-odds of two classes go through an inductive Venn–Abers predictor."},
	{
		Name:    "SWA-Laplace",
		Meaning: "SWA whose last layer is drawn from a Laplace approximation with Kronecker factors; τ is the precision of its prior.",
	},
	{Name: "SWA-Dropout", Meaning: "SWA averaged over random dropout masks (MC dropout)."},
	{Name: "your network", Meaning: "The last checkpoint, unchanged."},
	{
		Name:    "SGD",
		Meaning: "The checkpoints as training saved them, without averaging their weights; of all iterates, the mean of their predictions.",
	},
	{Name: "your network-Temp", Meaning: "The last checkpoint with temperature scaling."},
	{Name: "your network-Vector", Meaning: "The last checkpoint with vector scaling."},
	{Name: "your network-SVS", Meaning: "The last checkpoint with structured vector scaling."},
	{Name: "your network-SMS", Meaning: "The last checkpoint with structured matrix scaling."},
	{Name: "your network-Quadratic", Meaning: "The last checkpoint with quadratic scaling of its log-odds."},
	{Name: "your network-VennAbers", Meaning: "The last checkpoint with an inductive Venn–Abers predictor."},
	{
		Name: "your network-Laplace",
		Meaning: "The last checkpoint with its last layer drawn from a Laplace approximation with Kronecker factors; τ is the precision " +
			"of its prior.",
	},
	{Name: "your network-Scaled", Meaning: "The last checkpoint with variance scaling."},
	{Name: "members", Meaning: "The networks that predictions are averaged over.", Also: []string{"member"}},
	{
		Name:    "BN",
		Meaning: "Batch normalisation. Its statistics belong to one set of weights and are recomputed for each member.",
		Also:    []string{"batch norm", "batch-norm statistics"},
	},
	{Name: "scale", Meaning: "α multiplies the posterior's covariance; ½ is the paper's, 0 is SWA."},
	{Name: "rank", Meaning: "Number of deviation columns in the posterior's covariance; 20 in the paper."},
	{
		Name: "independent checkpoints",
		Meaning: "How many checkpoints without memory of each other would know their mean as well. 10 and more are good; a random walk " +
			"has about 2, however long.",
		Also: []string{"unrelated ones"},
	},
	{Name: "σ", Meaning: "One posterior standard deviation along the direction that is meant."},
	{
		Name:    "95 %",
		Meaning: "An interval that holds the true value in 95 of 100 repetitions; of many intervals looked at together, some miss.",
		Also:    []string{"95 % interval", "95 % intervals"},
	},
	{
		Name: "draws",
		Meaning: "How far the number would move, as a standard error, if other members were drawn, or the batch-norm data came in " +
			"another order: the same network on the same examples.",
	},
}
