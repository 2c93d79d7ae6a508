package flags

import "github.com/swagwrap/swagwrap/internal/setting"

func init() { setting.Speak("swagwrap", Typed) }

// Typed returns the name of a flag, or its letter, as a user types it.
func Typed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
