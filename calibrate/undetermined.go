package calibrate

import "fmt"

// LeastRows is the least number of rows that determine a fitted number. With fewer rows the number is mostly chance.
const LeastRows = 10

// TooFew returns the reason why so many rows do not determine a fitted number, or "".
func TooFew(rows int) string {
	switch {
	case rows >= LeastRows:
		return ""
	case rows == 1:
		return fmt.Sprintf("it is fitted on 1 row, want at least %d", LeastRows)
	}
	return fmt.Sprintf("it is fitted on %d rows, want at least %d", rows, LeastRows)
}

// OneValue is the reason why rows with one label do not determine a fitted number.
func OneValue(rows int) string { return fmt.Sprintf("all %d rows have the same label", rows) }

// Undetermined returns the reason why the rows do not determine T, or "". T then only shows a direction: it may make
// predictions of other rows worse. The reasons are too few rows, a single label, a T at its bound, and a T whose standard
// error is above its half. In the last case neither 1/T nor T is two standard errors from 0. Rows that are all predicted wrong
// do not determine T either.
func (t Temperature) Undetermined() string {
	few := TooFew(t.Rows)
	switch {
	case few != "":
		return few
	case t.OneLabel:
		return OneValue(t.Rows)
	case t.Right == 0:
		return fmt.Sprintf("none of %d rows is predicted correctly: the predictions do not fit the labels", t.Rows)
	case t.AtBound && t.T < 1:
		return fmt.Sprintf("every one of %d rows is predicted correctly, so T falls to its bound %g", t.Rows, t.T)
	case t.AtBound:
		return fmt.Sprintf("the predictions of %d rows do not fit the labels, so T rises to its bound %g", t.Rows, t.T)
	case t.Error > t.T/2:
		return fmt.Sprintf("T = %.3g has a standard error of %.2g", t.T, t.Error)
	}
	return ""
}

// Contradicted reports whether enough rows show that the predictions do not fit the labels: none is right, or T is at its upper
// bound.
func (t Temperature) Contradicted() bool {
	return TooFew(t.Rows) == "" && !t.OneLabel && (t.Right == 0 || t.AtBound && t.T > 1)
}

// Undetermined returns the reason why the rows do not determine the scales and biases, or "". The reasons are too few rows, rows
// that are all right after scaling, classes without a label, and a fit that did not converge.
func (v VectorScaling) Undetermined(rows int) string {
	few := TooFew(rows)
	switch n := len(v.Absent); {
	case few != "":
		return few
	case n == len(v.Scale)-1:
		return OneValue(rows)
	case v.Separated:
		return fmt.Sprintf("all %d rows are right after scaling, so that nothing bounds the scales but the ridge", rows)
	case n > 0:
		return fmt.Sprintf("classes without a label among the rows fitted on: %d of %d, the first is %d; nothing is known about their "+
			"probabilities", n, len(v.Scale), v.Absent[0])
	case !v.Converged:
		return "the fit ended before it converged"
	}
	return ""
}
