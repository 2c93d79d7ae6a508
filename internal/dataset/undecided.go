package dataset

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Undecided is the error for a table that does not tell which columns feed the network, which has the labels, or both. A user
// gets all questions at once.
type Undecided struct {
	Path    string
	Columns []string // those that may be either
	Takes   int      // columns that the network takes
	// Inputs and Labels say which of them are not known.
	Inputs, Labels bool
}

// Unclear returns what the table at path does not tell about labelled examples. It returns nil if that is nothing, and for other
// files and networks, whose errors come when they are read.
func Unclear(path string, opts Options) *Undecided {
	if len(opts.Fields) != 1 || len(opts.Fields[0].Shape) != 1 || opts.Fields[0].Shape[0] < 1 || !isTable([]string{path}, opts) {
		return nil
	}
	t, err := tableAt(path)
	if err != nil {
		return nil
	}
	named, labels, _, err := opts.Named.Find(t.Names, opts.Target != target.Classes)
	if err != nil || named >= 0 && Pictures(opts.Fields, opts.Preprocess)[0] {
		return nil
	}
	taken := map[int]bool{named: true}
	for _, i := range labels {
		taken[i] = true
	}
	u := &Undecided{Path: path, Takes: int(opts.Fields[0].Shape[0]), Labels: labels == nil && opts.Labels == ""}
	for i, name := range t.Names {
		if !taken[i] {
			u.Columns = append(u.Columns, name)
		}
	}
	input := opts.Fields[0].Name
	told := len(opts.Columns) > 0 || opts.Known.Columns[input] != nil
	_, isList := onlyList(t.Names, t.Lists, func(i int) bool { return !taken[i] })
	u.Inputs = !told && !isList && len(u.Columns) != u.Takes
	if !u.Inputs && !u.Labels {
		return nil
	}
	return u
}

func (u *Undecided) Error() string {
	var asked []string
	if u.Inputs {
		asked = append(asked, fmt.Sprintf("which of its columns %s are the %d that the network takes", numpy.Quote(u.Columns), u.Takes))
	}
	if u.Labels {
		asked = append(asked, "which column has the labels")
	}
	return fmt.Sprintf("%s: the table does not tell %s", u.Path, strings.Join(asked, ", and "))
}

// leastDistinct is the number of rows from which values that all differ are taken for those of an identifier.
const leastDistinct = 20

// Identifiers returns the columns of texts or integers whose values all differ.
func (u *Undecided) Identifiers() (names []string) {
	t, err := tableAt(u.Path)
	if err != nil {
		return nil
	}
	read, err := t.Read(u.Columns, nil)
	if err != nil {
		return nil
	}
	for _, name := range u.Columns {
		texts := read[name].Texts
		seen := make(map[string]bool, len(texts))
		for _, text := range texts {
			_, number := strconv.ParseFloat(text, 64)
			if _, whole := strconv.ParseInt(text, 10, 64); seen[text] || text == "" || number == nil && whole != nil {
				seen = nil
				break
			}
			seen[text] = true
		}
		if len(seen) >= leastDistinct {
			names = append(names, name)
		}
	}
	return names
}

// plainNames matches names that need no quotes.
var plainNames = regexp.MustCompile(`^[\w.,-]+$`)

// Hint says what to type. If one column is left for the labels, it is taken to be the last, where most tables have it.
func (u *Undecided) Hint() string {
	columns, label := "A,B,C", "NAME"
	last := len(u.Columns) - 1
	if all := strings.Join(u.Columns[:max(last, 0)], ","); u.Inputs && u.Labels && last == u.Takes &&
		plainNames.MatchString(all+u.Columns[last]) && strings.Count(all, ",") == last-1 && len(all) < 200 {
		columns, label = all, u.Columns[last]
	}
	var words []string
	if u.Inputs {
		words = append(words, setting.Columns.With(columns))
	}
	if u.Labels {
		words = append(words, setting.LabelColumn.With(label))
	}
	hint := "say it: "
	if label != "NAME" {
		hint = fmt.Sprintf("if %q has the labels: ", label)
	}
	return hint + strings.Join(words, " ") + ". docs/tables.md has more"
}
