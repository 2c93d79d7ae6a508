// Package printed holds the last checkpoint against the numbers that the user's own evaluation printed, and looks for what explains a
// difference.
//
// # Invariants
//
// An explanation is a change with which all numbers agree. It was computed, or the network ran with it.
package printed

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/word"
)

// A Number is what an evaluation printed.
type Number struct {
	Name string // as the user typed it
	Text string

	metric  *metric
	value   float64
	half    float64 // of a unit of the last digit
	percent bool
	digits  int // after the decimal point
}

// Numbers are what one evaluation printed.
type Numbers struct {
	List     []Number
	Examples int // 0 if it is not given
}

var (
	pair     = regexp.MustCompile(`([^\s,;:=]+)\s*[:=]\s*([^\s,;:=]+)`)
	between  = regexp.MustCompile(`^[\s,;]*$`)
	around   = strings.NewReplacer(" - ", "  ", " | ", "  ", "{", " ", "}", " ", "'", "", `"`, "") // Keras, tqdm and dicts of Python
	prefixes = []string{"val_", "valid_", "validation_", "test_", "eval_", "mean_", "avg_", "average_"}
	counts   = []string{"n", "examples", "samples", "size", "num_examples", "num_samples", "count", "total"}
)

// Parse reads numbers as evaluations print them, such as "accuracy=0.953 loss=0.2011 n=5000".
func Parse(s string) (*Numbers, error) {
	x := &Numbers{}
	s = around.Replace(s)
	for _, p := range pair.FindAllStringSubmatch(s, -1) {
		if err := x.add(p[1], p[2]); err != nil {
			return nil, err
		}
	}
	if rest := pair.ReplaceAllString(s, ""); !between.MatchString(rest) {
		return nil, fmt.Errorf("%q: want NAME=NUMBER", strings.Trim(rest, " ,;"))
	}
	if len(x.List) == 0 {
		return nil, errors.New("no number of a metric")
	}
	return x, nil
}

func (x *Numbers) add(name, text string) error {
	at, isCount := find(name)
	if isCount {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%s=%s: want a number of examples", name, text)
		}
		x.Examples = n
		return nil
	}
	if at < 0 {
		return fmt.Errorf("%s: want one of %s", name, strings.Join(known(), ", "))
	}
	number := Number{Name: name, Text: text, metric: &metrics[at]}
	if err := number.read(text); err != nil {
		return fmt.Errorf("%s=%s: %w", name, text, err)
	}
	x.List = append(x.List, number)
	return nil
}

// find returns the place of a metric, or −1. A name may have what frameworks put around it, such as val_ and a part before a slash.
func find(name string) (metric int, isCount bool) {
	name = strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	name = strings.TrimSuffix(strings.NewReplacer("@", "", "-", "_", ".", "_").Replace(name), "_epoch")
	for {
		for i, m := range metrics {
			if slices.Contains(strings.Fields(m.names), name) {
				return i, false
			}
		}
		if slices.Contains(counts, name) {
			return -1, true
		}
		at := slices.IndexFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		if at < 0 {
			return -1, false
		}
		name = name[len(prefixes[at]):]
	}
}

// known returns the first name of each metric.
func known() (names []string) {
	for _, m := range metrics {
		names = append(names, strings.Fields(m.names)[0])
	}
	return append(names, counts[0])
}

// read reads the value, and how far rounding may have moved it.
func (x *Number) read(text string) error {
	digits, percent := strings.CutSuffix(text, "%")
	v, err := word.Real(digits, -math.MaxFloat64, math.MaxFloat64)
	if err != nil {
		return err
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(digits), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	power, _ := strconv.Atoi(exponent)
	x.digits, x.percent = max(0, len(decimals)-power), percent
	x.value, x.half = v, 0.5*math.Pow(10, float64(power-len(decimals)))
	if x.percent = percent || x.metric.is(share) && v > 1; x.percent {
		x.value, x.half = x.value/100, x.half/100
	}
	switch {
	case percent && !x.metric.is(share):
		return errors.New("a percentage of what is no share")
	case x.metric.is(share) && (x.value > 1 || x.value < 0):
		return errors.New("want a share, such as 0.953 or 95.3%")
	case x.metric.is(share) && x.half > 0.05, x.half >= math.Abs(v) && !x.metric.is(share) && v == 0:
		return errors.New("agrees with nearly everything: want more digits, such as 0.953")
	}
	return nil
}

// shown writes a value in the form of the number, with a digit more.
func (x *Number) shown(v float64) string {
	const most = 6
	digits := min(x.digits+1, most)
	if x.percent {
		return strconv.FormatFloat(100*v, 'f', digits, 64) + "%"
	}
	if a := math.Abs(v); a > 0 && a < 0.01 || a >= 1e6 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// typed returns the number as the user typed it, in the same unit as shown.
func (x *Number) typed() string {
	if x.percent && !strings.HasSuffix(x.Text, "%") {
		return x.Text + "%"
	}
	return x.Text
}
