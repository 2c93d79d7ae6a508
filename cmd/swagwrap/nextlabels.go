package main

import (
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
)

// maxNext bounds the rows of --next-labels, which are kept in memory.
const maxNext = 100_000

func nextLabels(field *int) *flags.Row {
	return flags.Integer(flags.Row{
		Name: "next-labels",
		Usage: "list `N` rows to label next, for a better accuracy or error to expect: the uncertain more often, of all kinds of " +
			"predictions",
		Not: "outputs part",
	}, field, 1, maxNext)
}

// chooseNext makes the summary of a task's predictions choose n rows to label, if n is not 0.
func chooseNext(s *summary.Summary, t task.Task, n int) error {
	if n == 0 || s.Choose(n) {
		return nil
	}
	if why := task.NoSigns(t); why != "" {
		return console.Usagef("leave out --next-labels", "--next-labels: %s", why)
	}
	return console.Usagef("swagwrap calibrate --ensemble stores it, from labelled predictions",
		"--next-labels: the ensemble does not know its accuracy on validation data")
}
