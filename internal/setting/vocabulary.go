package setting

import "sync/atomic"

var (
	program string                   // the name of the program of this process, or "" in a library
	typed   func(flag string) string // how its user types a flag
	used    atomic.Bool              // a word was made
)

// Speak makes all words those of a program, whose user types flags as flag returns them. A program calls it once, before it does
// anything else. Speak panics if a word was made already: a message would keep the words of a library.
func Speak(name string, flag func(name string) string) {
	if used.Load() {
		panic("setting: a word was made before the program spoke: make messages in functions, not in variables of packages")
	}
	program, typed = name, flag
}

// spoken returns the program for a word.
func spoken() string {
	used.Store(true)
	return program
}

// Line returns a command, as the methods of [Command] return it, in the form that a shell takes: with the program's
// name.
func Line(command string) string {
	if name := spoken(); name != "" {
		return name + " " + command
	}
	return command
}

// Quoted returns a command as [Line] does. A program's line is in backquotes, because it begins a sentence.
func Quoted(command string) string {
	if spoken() != "" {
		return "`" + Line(command) + "`"
	}
	return command
}
