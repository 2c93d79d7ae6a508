package task

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/shares"
	"github.com/swagwrap/swagwrap/internal/target"
)

// A program is what a calibration does to scores: steps on logits, and the temperature of the softmax or sigmoid after them. It begins
// with the log-probabilities of classes or the log-odds of labels. Go, the graph of a model and lines of PyTorch interpret it.
type program struct {
	steps       []step
	temperature float64   // 0 stands for 1
	factors     []float64 // of the variances of a regression: one for each target, or one for all
	// absolute says that the first step needs finite log-probabilities. Others only need the differences of logits.
	absolute bool
	// correction multiplies the probabilities of classes, which are then divided by their sum. It is nil without [Calibration].Shares.
	correction []float64
}

// A step turns n logits into n others. It has a formula in each language.
type step interface {
	// check returns an error for numbers that do not fit each other. They are finite.
	check() error
	// apply stores the new logits of each row in dst, which may be logits. exclusive says that they are of classes, where −Inf rules
	// a class out.
	apply(dst, logits []float64, exclusive bool) []float64
	// graph adds the new logits of a value [batch, n].
	graph(j fusing, logits string) string
	// torch adds to lines of Python.
	torch(p *pytorch)
}

func (p program) check() error {
	if len(p.steps)+len(p.factors)+len(p.correction) == 0 && p.temperature == 0 {
		return errMissing
	}
	for _, s := range p.steps {
		if err := s.check(); err != nil {
			return err
		}
	}
	return positive("number", slices.Concat(p.factors, []float64{cmp.Or(p.temperature, 1)})...)
}

var errMissing = bad("numbers", "missing", "a method with its numbers")

func bad(what string, v any, want string) error { return fmt.Errorf("%s %v, want %s", what, v, want) }

func positive(what string, values ...float64) error {
	for _, v := range values {
		if !(v > 0) || math.IsInf(v, 1) {
			return bad(what, v, "a finite number above 0")
		}
	}
	return nil
}

// run stores the logits after all steps in dst, which may be logits or nil. Without steps these are logits themselves.
func (p program) run(dst, logits []float64, exclusive bool) []float64 {
	for _, s := range p.steps {
		dst = s.apply(dst, logits, exclusive)
		logits = dst
	}
	return logits
}

// softmax stores the probabilities of so many classes in dst, which may be logits or nil.
func (p program) softmax(dst, logits []float64, classes int) []float64 {
	logits = p.run(dst, logits, true)
	if dst == nil && p.steps != nil {
		dst = logits
	}
	return p.correct(calibrate.Softmax(dst, logits, classes, cmp.Or(p.temperature, 1)), classes)
}

// correct corrects probabilities of so many classes in place.
func (p program) correct(probs []float64, classes int) []float64 {
	if p.correction != nil {
		for i := 0; i < len(probs); i += classes {
			shares.Correct(probs[i:i+classes], p.correction)
		}
	}
	return probs
}

// plain reports whether probabilities stay as they are before they are corrected.
func (p program) plain() bool { return p.steps == nil && p.temperature == 0 }

// logits returns the logarithms of softmax, up to a constant for each row. The log-odds of labels have no classes.
func (p program) logits(logs []float64, classes int) []float64 {
	logs = p.run(nil, logs, classes > 0)
	switch {
	case p.temperature == 0:
	case classes == 0:
		return floats.ScaleTo(make([]float64, len(logs)), 1/p.temperature, logs)
	default:
		logs = calibrate.LogSoftmax(nil, logs, classes, p.temperature)
	}
	if p.correction == nil {
		return logs
	}
	logs = slices.Clone(logs)
	for i := range logs {
		logs[i] += math.Log(p.correction[i%classes])
	}
	return logs
}

// graph adds the logits for a softmax or a sigmoid.
func (p program) graph(j fusing, logits string) string {
	for _, s := range p.steps {
		logits = s.graph(j, logits)
	}
	if p.temperature != 0 {
		logits = j.Op("Div", logits, j.number(float32(p.temperature)))
	}
	return logits
}

// corrected adds the corrected probabilities.
func (p program) corrected(j fusing, probs string) string {
	if p.correction == nil {
		return probs
	}
	probs = j.Op("Mul", probs, j.row(p.correction))
	return j.Op("Div", probs, j.Sum(probs))
}

// logOdds adds the log-odds of class 1 of two, which are finite: 0·∞ is no number.
func (j fusing) logOdds(logits string) string {
	logits = j.AtLeast(j.AtMost(logits, 0), -float32(calibrate.MaxLogOdds))
	return j.Sum(j.Op("Mul", logits, j.Constant([]float32{-1, 1}, 1, 2)))
}

// pytorch holds lines of Python that have a tensor of logits.
type pytorch struct {
	lines  []string
	logits string // an expression
	axis   int    // of the classes
	back   string // puts the classes back into their place
	// single says that there is only the logit of class 1 of two. independent says that each logit is of a label.
	single, independent bool
	result              string // the probabilities, if a step gives them
}

func (p *pytorch) add(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// both adds the logit of class 0, if there is only that of class 1.
func (p *pytorch) both() {
	if p.single {
		p.add("scores = torch.cat([torch.zeros_like(scores), scores], dim=-1)")
		p.single, p.axis = false, -1
	}
}

// last puts the classes last, where a number for each of them can be used.
func (p *pytorch) last() {
	if !p.independent && p.axis != -1 {
		p.logits, p.back, p.axis = fmt.Sprintf("%s.movedim(%d, -1)", p.logits, p.axis), fmt.Sprintf(".movedim(-1, %d)", p.axis), -1
	}
}

// odds adds the bounded log-odds z of class 1 of two.
func (p *pytorch) odds() {
	if p.single {
		p.add("z = scores.clamp(-87.3, 87.3)")
	} else {
		p.add("z = (scores.select(%d, 1) - scores.select(%[1]d, 0)).clamp(-87.3, 87.3)", p.axis)
	}
}

// PyTorch returns the lines of Python that apply the calibration to the scores of a model of PyTorch, for the named task. x is a
// batch of inputs. axis is that of [OutputSpec]; 0 stands for the last.
func (c *Calibration) PyTorch(name string, form Form, axis int) []string {
	do := c.program() // nothing exports lines and corrects class shares
	if do.factors != nil {
		return []string{
			"mean, variance = model(x).chunk(2, dim=1)  # of the targets, as the head gives them",
			fmt.Sprintf("variance = variance * torch.tensor(%s)", list(do.factors)),
		}
	}
	p := &pytorch{logits: "scores", axis: axis, single: name == "binary", independent: TraitsOf(name).Labels == target.Labels}
	if axis == 0 {
		p.axis = -1
	}
	sigmoids, logs := p.single || p.independent, form == Probabilities || form == LogProbabilities
	switch {
	case sigmoids:
		p.add("scores = model(x)%s", map[Form]string{Probabilities: ".logit()", LogProbabilities: ".exp().logit()"}[form])
	case do.absolute && !logs:
		p.add("scores = torch.log_softmax(model(x), dim=%d)", p.axis)
	default:
		p.add("scores = model(x)%s", map[Form]string{Probabilities: ".log()"}[form])
	}
	if p.single && do.absolute {
		p.both()
		p.add("scores = torch.log_softmax(scores, dim=-1)")
	}
	for _, s := range do.steps {
		s.torch(p)
	}
	if do.temperature != 0 {
		p.logits += fmt.Sprintf(" / %v", do.temperature)
	}
	switch {
	case p.result != "":
	case p.single || p.independent:
		p.result = fmt.Sprintf("torch.sigmoid(%s)", p.logits)
	default:
		p.result = fmt.Sprintf("torch.softmax(%s, dim=%d)%s", p.logits, p.axis, p.back)
	}
	p.add("probabilities = %s", p.result)
	return p.lines
}

// list writes numbers as a list of Python.
func list(values []float64) string {
	var words []string
	for _, v := range values {
		words = append(words, fmt.Sprint(v))
	}
	return "[" + strings.Join(words, ", ") + "]"
}
