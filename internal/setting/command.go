package setting

import "strings"

// A Command is one thing that a user asks the program to do. Its text is the name of the program's command.
type Command string

const (
	Calibrate Command = "calibrate"
	Compare   Command = "compare"
	Export    Command = "export"
	Fit       Command = "fit"
	Inspect   Command = "inspect"
	List      Command = "list"
	OOD       Command = "ood"
	Sample    Command = "sample"
	Score     Command = "score"
	Setup     Command = "setup"
)

// nouns are the commands in the words of a library.
var nouns = map[Command]string{
	Calibrate: "the calibration",
	Compare:   "the comparison",
	Export:    "the export",
	Fit:       "the fit",
	Inspect:   "the inspection",
	List:      "the listing",
	OOD:       "the detection",
	Sample:    "the sampling",
	Score:     "the scoring",
	Setup:     "the set-up",
}

// String returns the command as the user knows it.
func (c Command) String() string {
	if spoken() == "" {
		return nouns[c]
	}
	return string(c)
}

// With returns the command with settings, as [Setting.With] or its String returns them, and files after them.
func (c Command) With(settings ...string) string { return c.join(" with ", settings) }

// WithFiles returns the command with the files that it is for.
func (c Command) WithFiles(files ...string) string { return c.join(" of ", files) }

// join returns the command with its parts. link stands between them in the words of a library.
func (c Command) join(link string, parts []string) string {
	if spoken() == "" {
		return c.String() + link + strings.Join(parts, " and ")
	}
	return string(c) + " " + strings.Join(parts, " ")
}
