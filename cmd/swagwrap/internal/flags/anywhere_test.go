package flags

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// The library sees flags before the first argument only.
func TestAnywhere(t *testing.T) {
	program := &cli.App{Commands: []*cli.Command{{Name: "score", Flags: []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
		&cli.Float64Flag{Name: "scale"},
		&cli.BoolFlag{Name: "force"},
	}}}}
	for line, want := range map[string]string{
		"score e dir":                            "score -- e dir",
		"score e dir -o out --force":             "score -o out --force -- e dir",
		"score --force e -o=out dir --scale -1":  "score --force -o=out --scale -1 -- e dir",
		"score e --scale=-1 --force=false dir":   "score --scale=-1 --force=false -- e dir",
		"score e --output -":                     "score --output - -- e",
		"score e - --force":                      "score --force -- e -",
		"score e --output --force":               "score --output --force -- e",
		"score -o out -- -e --force":             "score -o out -- -e --force",
		"score e -- -o --":                       "score -- e -o --",
		"score e dir -o":                         "score -o",
		"score --force e -h dir":                 "score -h",
		"score e --output --help":                "score --output --help -- e",
		"score e --wrong dir":                    "score --wrong -- e dir",
		"score e dir --generate-bash-completion": "score e dir --generate-bash-completion",
		"score -oout e -o=x":                     "score -o out -o=x -- e",
		"score e -o- dir -fo":                    "score -o - -fo -- e dir",
		"--version":                              "--version",
		"other e -o out":                         "other e -o out",
		"":                                       "",
	} {
		got := Anywhere(program, append([]string{"swagwrap"}, strings.Fields(line)...), HelpWidth)
		if !slices.Equal(got[1:], strings.Fields(want)) {
			t.Errorf("%s: %q, want %s", line, got[1:], want)
		}
	}
}
