package flags

import "github.com/swagwrap/swagwrap/internal/setting"

func init() { setting.Speak("swagwrap") }
