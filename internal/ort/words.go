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
