package setting

import "strings"

// A Command is one thing that a user asks the program to do.
type Command uint8

const (
	Calibrate Command = iota
	Compare
	Export
	Fit
	Inspect
	List
	OOD
	Sample
	Score
	Setup
	commands // the number of commands
)

// deeds are the commands in the words of a library.
var deeds = [commands]struct{ goName, noun string }{
	Calibrate: {"Calibrate", "the calibration"},
	Compare:   {"Compare", "the comparison"},
	Export:    {"Export", "the export"},
	Fit:       {"Fit", "the fit"},
	Inspect:   {"Inspect", "the inspection"},
	List:      {"List", "the listing"},
	OOD:       {"OOD", "the detection"},
	Sample:    {"Sample", "the sampling"},
	Score:     {"Score", "the scoring"},
	Setup:     {"Setup", "the set-up"},
}

// AllCommands returns all commands.
func AllCommands() []Command {
	all := make([]Command, commands)
	for i := range all {
		all[i] = Command(i)
	}
	return all
}

// GoName returns the name of the constant, whatever vocabulary is spoken.
func (c Command) GoName() string { return deeds[c].goName }

// String returns the command as the user knows it.
func (c Command) String() string {
	if word, ok := spoken().Commands[c]; ok {
		return word
	}
	return deeds[c].noun
}

// With returns the command with settings, as [Setting.With] or its String returns them, and files after them.
func (c Command) With(settings ...string) string { return c.join(" with ", settings) }

// Of returns the command with the files that it is for.
func (c Command) Of(files ...string) string { return c.join(" of ", files) }

// join returns the command with its parts. link stands between them in the words of a library.
func (c Command) join(link string, parts []string) string {
	if word, ok := spoken().Commands[c]; ok {
		return word + " " + strings.Join(parts, " ")
	}
	return c.String() + link + strings.Join(parts, " and ")
}
