package setting

import "sync/atomic"

// A Vocabulary is how a program spells what a user types. What is not in it keeps the words of a library.
type Vocabulary struct {
	Program  string
	Settings map[Setting]string
	Commands map[Command]string
}

var (
	vocabulary Vocabulary  // of this process
	said       atomic.Bool // a word was made
)

// Speak makes all words those of a program. A program calls it once, before it does anything else. Speak panics if a
// word was made already: a message would keep the words of a library.
func Speak(v Vocabulary) {
	if said.Load() {
		panic("setting: a word was made before the program spoke: make messages in functions, not in variables of packages")
	}
	vocabulary = v
}

// spoken returns the vocabulary for a word.
func spoken() *Vocabulary {
	said.Store(true)
	return &vocabulary
}

// Line returns a command, as the methods of [Command] return it, in the form that a shell takes: with the program's
// name.
func Line(command string) string {
	if program := spoken().Program; program != "" {
		return program + " " + command
	}
	return command
}

// Quoted returns a command as [Line] does. A program's line is in backquotes, because it begins a sentence.
func Quoted(command string) string {
	if spoken().Program != "" {
		return "`" + Line(command) + "`"
	}
	return command
}
