package flags

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/maruel/natural"
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// OrderFlags say in which order checkpoints are taken, and which of them.
var OrderFlags = []cli.Flag{
	&cli.StringFlag{Name: "order", Usage: "take checkpoints in `natural` order of their names (9 before 10), or as given: natural|given", Value: "natural"},
	&cli.IntFlag{Name: "start", Usage: "begin with the `N`-th of them", Value: 1},
	&cli.IntFlag{Name: "every", Usage: "from there take every `C`-th", Value: 1},
}

// Models returns the arguments, and in place of a folder the ONNX files in it,
// in natural order. Its subfolders and hidden files are left out.
func Models(args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		if info, err := os.Stat(arg); err != nil || !info.IsDir() {
			paths = append(paths, arg) // what cannot be read is said where it is opened
			continue
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, BadInput(err)
		}
		var found []string
		for _, e := range entries {
			if name := e.Name(); !e.IsDir() && name[0] != '.' && strings.EqualFold(filepath.Ext(name), ".onnx") {
				found = append(found, filepath.Join(arg, name))
			}
		}
		if len(found) == 0 {
			return nil, BadInput(fmt.Errorf("%s: a folder without ONNX files", arg), "its subfolders are not searched: name the files, or the folder that holds them")
		}
		slices.SortFunc(found, natural.Compare)
		paths = append(paths, found...)
	}
	return paths, nil
}

// CheckpointOrder returns the chosen checkpoints in training order.
func (a *Env) CheckpointOrder(c *cli.Context) ([]string, error) {
	given, err := Models(c.Args().Slice())
	if err != nil {
		return nil, err
	}
	sorted := slices.Clone(given)
	slices.SortStableFunc(sorted, natural.Compare)
	paths := sorted
	switch order := c.String("order"); {
	case order == "given" && !slices.Equal(given, sorted):
		paths = given
		a.Warnf(c, "the checkpoints are taken as given, which is not the order of the numbers in their names: D keeps the last ones")
	case order == "natural" && !slices.Equal(given, sorted) && !slices.IsSorted(given):
		a.Logf(c, "the checkpoints are taken in the order of the numbers in their names, not as given (--order given)")
	case order != "given" && order != "natural":
		return nil, Usagef("", "--order %q: want natural or given", order)
	}
	start, every := c.Int("start"), c.Int("every")
	if start < 1 || every < 1 {
		return nil, Usagef("", "--start %d, --every %d: want at least 1", start, every)
	}
	if start > len(paths) {
		return nil, Usagef("", "--start %d: there are %d checkpoints", start, len(paths))
	}
	var chosen []string
	for i := start - 1; i < len(paths); i += every {
		chosen = append(chosen, paths[i])
	}
	if len(chosen) < len(paths) {
		a.Logf(c, "%d of %d checkpoints (--start %d, --every %d)", len(chosen), len(paths), start, every)
	}
	return chosen, nil
}

// listed is the number of checkpoints that are named one by one.
const listed = 40

// LogOrder prints the order of the checkpoints: what their names have in common
// once, then what tells them apart.
func (a *Env) LogOrder(c *cli.Context, paths []string) {
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	prefix, suffix := common(names)
	for i, name := range names {
		names[i] = name[len(prefix) : len(name)-len(suffix)]
	}
	if len(names) > listed && !c.Bool("verbose") {
		names = slices.Concat(names[:listed/2], []string{"…"}, names[len(names)-listed/2:])
	}
	for i, line := range text.Wrap("order: "+prefix+"{"+strings.Join(names, " ")+"}"+suffix, 110) {
		if i > 0 {
			line = "       " + line
		}
		a.Logf(c, "%s", line)
	}
}

// common returns what all names begin with and, behind that, end with. A number
// is never cut.
func common(names []string) (prefix, suffix string) {
	if len(names) < 2 {
		return "", ""
	}
	shared := func(a, b string) int {
		n := 0
		for n < len(a) && n < len(b) && a[n] == b[n] {
			n++
		}
		return n
	}
	prefix = names[0]
	for _, name := range names {
		prefix = prefix[:shared(prefix, name)]
	}
	prefix = strings.TrimRight(prefix, "0123456789")
	suffix = reversed(names[0][len(prefix):])
	for _, name := range names {
		suffix = suffix[:shared(suffix, reversed(name[len(prefix):]))]
	}
	return prefix, strings.TrimLeft(reversed(suffix), "0123456789")
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
