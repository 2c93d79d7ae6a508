package setting

// A Vocabulary is how a program spells what a user types. What is not in it keeps the words of a library.
type Vocabulary struct {
	Program  string
	Settings map[Setting]string
	Commands map[Command]string
}

// spoken is the vocabulary of this process.
var spoken Vocabulary

// Speak makes all words those of a program. A program calls it once, before it does anything else.
func Speak(v Vocabulary) { spoken = v }

// Line returns a command, as the methods of [Command] return it, in the form that a shell takes: with the program's
// name.
func Line(command string) string {
	if spoken.Program == "" {
		return command
	}
	return spoken.Program + " " + command
}

// Quoted returns a command as [Line] does. A program's line is in backquotes, because it begins a sentence.
func Quoted(command string) string {
	if spoken.Program == "" {
		return command
	}
	return "`" + Line(command) + "`"
}
