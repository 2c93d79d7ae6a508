package task

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/shares"
	"github.com/swagwrap/swagwrap/internal/target"
)

// methods are all ways to calibrate, in the order of help and tables. The first of a task fits a single number.
var methods = []*method{
	temperatureScaling, vectorScaling, structuredScaling, matrixScaling, quadraticScaling, vennAbers,
	temperatures, platt,
	varianceScaling, varianceEach, isotonic, noise,
}

// A method is one way to calibrate. It answers what is asked of its calibrations, so that nothing else asks which it is. Each is in a
// file of its own, with its fit and its formula.
type method struct {
	Calibrator
	// classes and labels fit to logarithms, and numbers to outcomes. They are nil for tasks without the method.
	classes func(t classes, logs []float64, labels target.Target) (*Calibration, error)
	labels  func(t labels, logOdds []float64, of target.Target) (*Calibration, error)
	numbers func(t regressionTask, outcomes []float64, known target.Target) (*Calibration, error)
	pair    bool // for two classes only
	// crossFits is [Calibrator].CrossFits for classes, or nil.
	crossFits func(outcomes []float64, labels target.Target, seed uint64) (calibrate.CrossFitted, error)
	// parts is classes for some of the rows, with less work, or nil: see [Logged].
	parts func(t classes, logs []float64, labels target.Target) (func(rows []int) *Calibration, error)
	// header follows the name of a metric, and reorders says that another class may become the most probable.
	header   string
	reorders bool
	// program is what the calibration does. It is nil for what no ensemble stores as a calibration.
	program func(c *Calibration) program
	// number returns the calibration with another number, or is nil if there are several.
	number func(c *Calibration, v float64) *Calibration
	// least and most are the bounds of a fit of temperatures or factors, or 0.
	least, most float64
	text        func(c *Calibration) string // nil for the names of the numbers
}

// method returns what the name stands for. It has no answers for an unknown name.
func (by Method) method() *method {
	for _, m := range methods {
		if m.Method == by {
			return m
		}
	}
	return &method{}
}

func (c *Calibration) method() *method { return c.Method.method() }

func (c *Calibration) program() (p program) {
	if do := c.method().program; do != nil {
		p = do(c)
	}
	if s := c.Shares; s != nil {
		p.correction = shares.Factors(s.Training, s.Now)
	}
	return p
}

// calibrators returns those of a task. fill sets the fit and what else is of the task. Without a fit the method is not for the task.
func calibrators(fill func(m *method, c *Calibrator)) (list []Calibrator) {
	for _, m := range methods {
		c := m.Calibrator
		if fill(m, &c); c.Fit != nil && !c.Completes {
			list = append(list, c)
		}
	}
	return list
}

// Methods returns the calibrators for a kind of labels, without their fits.
func Methods(of target.Kind) (list []Calibrator) {
	for _, m := range methods {
		if m.of(of) {
			list = append(list, m.Calibrator)
		}
	}
	return list
}

func (m *method) of(kind target.Kind) bool {
	return kind == target.Classes && m.classes != nil || kind == target.Labels && m.labels != nil ||
		kind == target.Numbers && m.numbers != nil
}

// WithNumber returns the calibration of the first calibrator of the named task with the number v.
func WithNumber(name string, v float64) *Calibration {
	kind := TraitsOf(name).Labels
	i := slices.IndexFunc(methods, func(m *method) bool { return m.of(kind) })
	return methods[i].number(nil, v)
}

// numbered describes fitted numbers.
func numbered(name string, values ...float64) string {
	if low, high := slices.Min(values), slices.Max(values); low != high {
		return fmt.Sprintf("%s from %.4f to %.4f", name, low, high)
	}
	return fmt.Sprintf("%s = %.4f", name, values[0])
}

// size returns the number of classes, labels or targets that the numbers are for.
func (c *Calibration) size() int {
	if c.method().pair {
		return 2
	}
	return max(len(c.Bias), len(c.Factors))
}
