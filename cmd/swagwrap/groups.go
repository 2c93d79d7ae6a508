package main

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/groups"
	"github.com/swagwrap/swagwrap/internal/dataset/keys"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/task"
)

func groupsRow(field *string) *flags.Row {
	return flags.Text(flags.Row{
		Name: "groups",
		Usage: "unit=`HOW`: intervals count groups that depend on each other, such as patients. report=HOW: show figures for each " +
			"group, such as each hospital. HOW is folder, folder:2, TABLE.csv:COLUMN, or a regular expression with parentheses for the " +
			"path",
		Not: "outputs",
	}, field)
}

// groupWord begins a part of --groups.
var groupWord = regexp.MustCompile(`(?:^|\s+)(unit|report)=`)

// grouping reads the value of --groups for examples. d has them, or is nil. of is the name of the task.
func grouping(text string, examples keys.Examples, d dataset.Dataset, of string) (g task.Grouping, err error) {
	if text != "" && of == task.NextToken {
		return g, console.Usagef("leave it out", "--groups: the units of a text are its documents, or blocks, and examples are windows "+
			"of it")
	}
	words := groupWord.FindAllStringSubmatchIndex(text, -1)
	if text != "" && (len(words) == 0 || words[0][0] != 0) {
		return g, console.Usagef("--groups unit="+text+": what depends on each other is one unit of chance\n--groups report="+
			text+": figures for each group", "--groups %s: want unit=HOW, report=HOW, or both", text)
	}
	for k, w := range words {
		end := len(text)
		if k+1 < len(words) {
			end = words[k+1][0]
		}
		how := text[w[1]:end]
		of, err := groups.Parse(how, examples)
		if bad := (*groups.FormError)(nil); errors.As(err, &bad) {
			return g, console.Usagef("--groups unit=folder, or such as --groups 'unit=/(video[0-9]+)_'", "--groups: %w", err)
		}
		if err != nil {
			return g, open.WrongGroups(fmt.Errorf("--groups: %w", err))
		}
		if err := usable(how, text[w[2]:w[3]], of, d); err != nil {
			return g, err
		}
		to, by := &g.Unit, &g.UnitBy
		if text[w[2]:w[3]] == "report" {
			to, by = &g.Report, &g.ReportBy
		}
		if *to != nil {
			return g, console.Usagef("", "--groups: %s twice", text[w[2]:w[3]])
		}
		*to, *by = of, how
	}
	return g, nil
}

// usable refuses groups that no example has, and a single unit of chance.
func usable(how, use string, of func(i int, name string) string, d dataset.Dataset) error {
	if d == nil {
		return nil
	}
	first := of(0, d.Name(0))
	for i := range d.Len() {
		if of(i, d.Name(i)) != first {
			return nil
		}
	}
	switch {
	case first == "":
		return console.Usagef("names are such as "+d.Name(0), "--groups %s=%s: no example has a group", use, how)
	case use == "unit" && d.Len() > 1:
		return console.Usagef("a single unit has no interval: name patients, videos or days, or leave unit= out",
			"--groups unit=%s: all examples are of the unit %q", how, first)
	}
	return nil
}
