package compare

import (
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Result holds the numbers of a comparison. [Result.Verdict] decides by them, and package show says them.
type Result struct {
	*Comparison
	Task    task.Task
	Methods []*Method // in the order of the tables
	// Constant is a network that learnt nothing, in the same metrics: see [task.Constant]. No network runs for it. ConstantOf names the
	// data with its targets. Constant is nil if there are no targets.
	Constant   *Method
	ConstantOf string
	Steps      []Step // the price list: what each costlier method gains
	Tests      int    // the number of differences that p-values are adjusted for
	// Kept reports that the outcomes of all examples were in memory. Figures that need all of them exist only then: the loss
	// at the best temperature, and the effect of draws.
	Kept bool
	// Shifted is the difference in the first loss of the two methods of the headline, on all severities of the [dataset.Damaged].
	Shifted   Difference
	OfRuns    []*Result // the runs of EachRun, this one first
	Notes     []string  // methods that were left out, with the reason
	BatchNorm study.BatchNorm
	Runtime   string // the version of ONNX Runtime
}

// Method holds the numbers of one method.
type Method struct {
	Key     string // name for --methods
	Name    string // name in tables
	Members int
	// Antithetic reports that the members are pairs.
	Antithetic bool
	// Networks is the number of networks for a prediction.
	Networks int
	// Deploy holds the settings with which sample makes the method's ensemble, including the temperature. Posteriors
	// are its runs. Both are nil if no ensemble is equivalent to the method.
	Deploy     *ensemble.Settings
	Posteriors []baseline.Run
	*task.Evaluation
	// AtBestT is the first loss with the method's own temperature, so that the comparison does not depend on one. The
	// temperature is fitted on one half of the test data and applied to the other, averaged over [calibrate.Splits]
	// splits. The loss without a temperature is used if it is lower. NaN if no temperature can be fitted.
	AtBestT float64
	// Scaled holds the method with each calibrator of the task. It is nil if not requested; an element is nil if its
	// calibrator cannot be fitted.
	Scaled []*Scaled
	// Recalibrated is the method after a map has recalibrated its distributions. It is nil if not requested or if the
	// task has no such map.
	Recalibrated *task.Evaluation
	// Threshold is the threshold of the method; 0 means the default.
	Threshold float64
	// Scaling is the scaling that is part of the method, in SWA-Temp and SWA-Vector.
	Scaling *task.Fitted
	// Noise is the fitted noise if the networks predict none.
	Noise *task.Fitted
	// Undetermined is the reason why the data do not determine what was fitted for the method, or "": see [task.Calibration].
	// The tables show such a method, and the verdict does not count it.
	Undetermined string
	// Differences are the differences to the baseline by the key of the loss; nil for the baseline itself. They are
	// between these networks with these draws.
	Differences map[string]Difference
	// Draws is the effect of the random draws of both methods on the difference in the first loss.
	Draws chance.Draws
	// AllGroups has the figures of all test examples, and Groups those of each group, in the order of names. They are nil
	// without Grouping.Report.
	AllGroups *task.Group
	Groups    []*task.Group
	// OverRuns is the difference to the baseline in the first loss over runs of training. It is nil without EachRun.
	OverRuns *chance.OverRuns
	// Shifted is nil without a [dataset.Damaged].
	Shifted *Shifted
	StaleBN bool // the batch-norm statistics do not belong to the weights

	Redrawn
	doubts []error // warnings from before the evaluation
}

// Difference is the difference of a method to the baseline in a loss.
type Difference struct {
	chance.Difference
	// Adjusted is the p-value after Holm's procedure over the differences that the verdict may mention. It is NaN for
	// others.
	Adjusted float64
}

// Scaled is a method after its outcomes were scaled.
type Scaled struct {
	*task.Evaluation
	Fitted *task.Fitted
}

// Step is one step of the price list, from the user's own network to a tuned ensemble. Difference is what the step
// changes in the first loss.
type Step struct {
	From, To *Method
	Difference
}

// ErrorLoss is the key of the loss that counts errors. Some tasks have none.
const ErrorLoss = "error"

// Loss returns the loss that decides verdicts.
func (r *Result) Loss() task.Loss { return r.Methods[0].Losses[0] }

// Value returns the mean of that loss for a method.
func (r *Result) Value(m *Method) float64 { return m.Value(r.Loss().Key) }

// Main returns the difference of a method in that loss.
func (r *Result) Main(m *Method) Difference { return m.Differences[r.Loss().Key] }

// First returns the calibrator of the task that fits a single number.
func (r *Result) First() task.Calibrator { return r.Task.Calibrators()[0] }

// Listed returns the calibrators that tables compare. The first fits a single number.
func (r *Result) Listed() []task.Calibrator { return listed(r.Task) }

func listed(t task.Task) []task.Calibrator {
	return slices.DeleteFunc(t.Calibrators(), func(c task.Calibrator) bool { return c.Unlisted })
}

// Method returns the method with a key, or nil.
func (r *Result) Method(key string) *Method { return find(r.Methods, key) }

func find(methods []*Method, key string) *Method {
	if i := slices.IndexFunc(methods, func(m *Method) bool { return m.Key == key }); i >= 0 {
		return methods[i]
	}
	return nil
}

func (r *Result) base() *Method { return r.baseOf((*Method).Sound) }

// baseOf returns the baseline among the methods that ok accepts, or the first method if it accepts none.
func (r *Result) baseOf(ok func(*Method) bool) *Method {
	for _, key := range []string{baseline.SWATemp, baseline.SWA, baseline.SGDTemp} {
		if m := r.Method(key); m != nil && ok(m) {
			return m
		}
	}
	if i := slices.IndexFunc(r.Methods, ok); i >= 0 {
		return r.Methods[i]
	}
	return r.Methods[0]
}

// Sound reports whether the data determine all that was fitted for the method.
func (m *Method) Sound() bool { return m.Undetermined == "" }

// OwnDraws returns the effect of the method's random draws on its first loss. ok is false for a method without draws, or
// with too few of them.
func (m *Method) OwnDraws() (d chance.Draws, ok bool) {
	if len(m.Without) < 2 {
		return d, false
	}
	return chance.NewDraws(m.Losses[0].Values, m.Without, m.Weights), true
}

// Drawn returns the number of members that were asked for or, if it was found, that of SWAG or of the first method with members.
func (r *Result) Drawn() int {
	if r.Members > 0 {
		return r.Members
	}
	for _, key := range []string{baseline.SWAG, baseline.SWAGTemp} {
		if m := r.Method(key); m != nil {
			return m.Members
		}
	}
	for _, m := range r.Methods {
		if m.Antithetic {
			return m.Members
		}
	}
	return ensemble.DefaultMembers
}

// Drawn reports whether the method has random draws.
func (m *Method) Drawn() bool { return m.Without != nil }

// Sign returns 1 or −1 for a significant difference, and 0 otherwise.
func (d Difference) Sign() int {
	switch {
	case !(d.Adjusted < significant):
		return 0
	case d.Mean > 0:
		return 1
	}
	return -1
}

// Finite reports whether the difference is a finite number. It is not if a true class has probability 0.
func (d Difference) Finite() bool { return !math.IsNaN(d.Mean) && !math.IsInf(d.Mean, 0) }
