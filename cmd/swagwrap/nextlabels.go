package main

import (
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/study/summary"
)

// maxNext bounds the rows of --next-labels, which are kept in memory.
const maxNext = 100_000

var nextLabelsFlag = flags.Whole(1, maxNext, &cli.IntFlag{Name: "next-labels", Usage: "list `N` rows to label next, for a better accuracy to expect: the uncertain more often, of all predicted classes"})

// chooseNext makes the summary choose n rows to label, if n is not 0.
func chooseNext(s *summary.Summary, n int) error {
	if n == 0 || s.Choose(n) {
		return nil
	}
	return console.Usagef("swagwrap calibrate --ensemble stores it, from labelled predictions of classes", "--next-labels: the ensemble does not know its accuracy on validation data")
}
