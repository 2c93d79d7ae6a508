package ort

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/setting"
)

// setup names the command that fetches the provider's library.
func (p Provider) setup() string {
	if p.Explicit() {
		return setting.Setup.With(setting.Provider.With(p.Name))
	}
	return setting.Setup.String()
}

// setup is the command in a sentence.
func (e *LibraryError) setup() string { return setting.Quoted(Provider{Name: e.Provider}.setup()) }

// otherLibrary says how to name another library.
func (e *LibraryError) otherLibrary() string {
	if (Provider{Name: e.Provider}).Explicit() {
		return fmt.Sprintf("name a library that has this provider with %s", setting.Runtime)
	}
	return fmt.Sprintf("name the shared library of any release since %s with %s or %s", MinVersion, setting.Runtime, LibraryEnv)
}

// onCPU names the provider that runs every network.
func onCPU() string { return setting.Provider.With(CPU) }

// Newer says how a later release is fetched, if there is one, after another hint.
func (r *Runtime) Newer() string {
	if atLeast(r.version, Version) {
		return ""
	}
	return fmt.Sprintf(". Or take a later ONNX Runtime: %s fetches %s", setting.Quoted(setting.Setup.String()), Version)
}
