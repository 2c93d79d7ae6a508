// Package setting names the settings and the commands of the program in messages. A package below the program cannot
// know how a user types them. It names them as values:
//
//	fmt.Sprintf("%s allows more", setting.Memory.With("SIZE"))
//
// By default the words are those of a Go programmer: "Memory SIZE allows more". The program calls [Speak] once, with its
// name, and then the message is "--memory SIZE allows more". So a message has no spelling of its own, and a
// flag that is renamed is renamed in all messages.
//
// # Invariants
//
// Words are made when a message is made. A package must not make one when it starts, as the value of a variable: the
// program has not spoken yet. Speak panics then. A test in internal/arch holds that no text below the program names a
// flag.
//
// # Concurrency
//
// Speak is called before anything else. After it, everything here may be called from several goroutines.
package setting
