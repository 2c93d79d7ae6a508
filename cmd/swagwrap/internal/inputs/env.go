// Package inputs opens the files that commands read: models, posteriors and data. It checks them, and prints the findings.
package inputs

import "github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"

// Env opens files for one run of the program.
type Env struct{ *flags.Env }
