package table

import "fmt"

// Kinds of times in a column.
const (
	dates      = "dates"
	clocks     = "times of the day"
	timestamps = "timestamps"
	durations  = "durations"
)

// A TimeError is the error for a column of times where numbers are wanted. Files hold them as integers, whose unit differs from
// program to program.
type TimeError struct{ Column, What string }

func (e *TimeError) Error() string {
	return fmt.Sprintf("column %q: %s, want numbers: files hold them as integers whose unit differs from program to program",
		e.Column, e.What)
}

// Hint says how to convert the column with pandas.
func (e *TimeError) Hint() string {
	column := fmt.Sprintf("df[%q]", e.Column)
	how := fmt.Sprintf("(pandas.to_datetime(%s, utc=True) - pandas.Timestamp(\"1970-01-01\", tz=\"UTC\")) / pandas.Timedelta(days=1)",
		column)
	switch e.What {
	case durations:
		how = column + " / pandas.Timedelta(days=1)"
	case clocks:
		how = fmt.Sprintf("[t.hour + t.minute / 60 + t.second / 3600 for t in %s]", column)
	}
	return "convert it to the numbers that training had, such as days or hours: " + column + " = " + how
}
