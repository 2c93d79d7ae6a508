package flags

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/report"
)

// Positionals checks the number of arguments against ArgsUsage. A name in brackets may be missing. One with "..." may
// occur several times.
func Positionals(c *cli.Context) error {
	want := strings.Fields(c.Command.ArgsUsage)
	least := len(slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s[0] == '[' }))
	many := strings.Contains(c.Command.ArgsUsage, "...")
	if n := c.NArg(); n < least || n > len(want) && !many {
		return console.Usagef("swagwrap "+c.Command.Name+" --help shows an example", "%s, want %s", report.Plural(n, "argument"),
			c.Command.ArgsUsage)
	}
	return nil
}
