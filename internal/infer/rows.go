package infer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio"
)

// stacked returns how many rows of scores an output has for each example, if its first axis says so: 4*batch. Otherwise it
// returns 0.
func stacked(o, input onnxio.Value) int {
	if len(o.Dims) == 0 || len(input.Dims) == 0 || input.Dims[0] == "" {
		return 0
	}
	each, batch := 1, false
	for factor := range strings.SplitSeq(strings.Trim(o.Dims[0], "()"), "*") {
		factor = strings.Trim(factor, " ()")
		n, err := strconv.Atoi(factor)
		switch {
		case err == nil && n > 0 && n < 1<<20:
			each *= n
		case factor == input.Dims[0] && !batch:
			batch = true
		default:
			return 0
		}
	}
	if !batch {
		return 0
	}
	return each
}

// rowsError returns the error for an output that has not one row of scores for each of several examples.
func rowsError(output string, shape []int64, rows int) error {
	e := &onnxio.Error{
		Tensor: output,
		What:   fmt.Sprintf("output of shape %v for %d examples, want [%d classes]", shape, rows, rows),
		Hint:   notARow(),
	}
	switch {
	case len(shape) == 0 || rows < 1 || int(shape[0]) == rows:
	case len(shape) < 3 && int(shape[0])%rows == 0 && int(shape[0]) > rows:
		each := int(shape[0]) / rows
		e.What = fmt.Sprintf("%d rows of scores for %d examples, want one for each", shape[0], rows)
		e.Hint = averageRows(each)
	case slices.Contains(shape[1:], int64(rows)):
		e.What += fmt.Sprintf(". The examples are not on the first axis but on axis %d", 1+slices.Index(shape[1:], int64(rows)))
		e.Hint = "export the network with the batch on the first axis. If the other axis has members or crops, average their " +
			"probabilities: scores.softmax(-1).mean(0)"
	}
	return e
}

// averageRows says what to do with a network that gives several answers for an example.
func averageRows(each int) string {
	return fmt.Sprintf("the network stacks its answers, such as those of packed members or of crops. End it in their mean before the "+
		"export, with CLASSES classes:\n"+
		"members one below the other: scores.softmax(-1).reshape(%d, -1, CLASSES).mean(0)\n"+
		"the rows of an example together: scores.softmax(-1).reshape(-1, %d, CLASSES).mean(1)", each, each)
}
