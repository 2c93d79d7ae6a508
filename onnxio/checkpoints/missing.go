package checkpoints

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A MissingError is about tensors that differ between the checkpoints and that the graph does not have. If the network
// uses them, the exporter has computed constants from them, which stay the same in every average and member. The tensors
// of an auxiliary head, of a loss, or of a second network are not used.
type MissingError struct {
	Fault *onnxio.Error
	// Asked says that the files do not tell whether the network uses them.
	Asked bool
	// Unused are patterns of [Template.Unused] which say that it does not. There are none if the graph shows that it does.
	Unused []string
}

func (e *MissingError) Error() string { return e.Fault.Error() }
func (e *MissingError) Unwrap() error { return e.Fault }

// asked returns the error with the patterns that answer it.
func asked(e *onnxio.Error, patterns []string) *MissingError {
	if e.Hint != "" {
		e.Hint = "if the network uses it, " + e.Hint + "\n"
	}
	e.Hint += fmt.Sprintf("if the network does not use it, as an auxiliary head or the weights of a loss: %s",
		setting.Unused.With(quote(patterns)))
	return &MissingError{Fault: e, Unused: patterns}
}

// quote returns a list of patterns as a shell takes it.
func quote(patterns []string) string {
	list := strings.Join(patterns, ",")
	if strings.Contains(list, "*") {
		return "'" + list + "'"
	}
	return list
}

// patterns match names of tensors.
type patterns []*regexp.Regexp

// parsePatterns reads names, in which * stands for any text. The name of a module stands for all tensors in it.
func parsePatterns(list []string) (p patterns, err error) {
	for _, text := range list {
		match, err := nameMatching(text)
		if err != nil {
			return nil, err
		}
		p = append(p, match)
	}
	return p, nil
}

// nameMatching returns an expression for a pattern of names, in which * stands for any text.
func nameMatching(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
}

func (p patterns) match(x *statefile.Tensor) bool {
	return slices.ContainsFunc(p, func(of *regexp.Regexp) bool { return matches(of, x) })
}

func matches(of *regexp.Regexp, x *statefile.Tensor) bool {
	for _, name := range []string{x.Short, x.Name} {
		if of.MatchString(name) {
			return true
		}
		for i, c := range name {
			if c == '.' && of.MatchString(name[:i]) {
				return true
			}
		}
	}
	return false
}

// checkUnused fails for a pattern of names that no state_dict has.
func (t *Template) checkUnused(states []*state) error {
	said, err := parsePatterns(t.Unused)
	if err != nil {
		return err
	}
	for i, of := range said {
		if !slices.ContainsFunc(states, func(s *state) bool {
			return slices.ContainsFunc(s.dict.All(), func(x *statefile.Tensor) bool { return matches(of, x) })
		}) {
			return &UnusedError{fmt.Errorf("%s: no checkpoint has a tensor of this name", setting.Unused.With(quote(t.Unused[i:i+1]))),
				setting.Line(setting.Inspect.Of(states[0].file.Path)) + " lists the tensors"}
		}
	}
	return nil
}

// checkNotFilled fails for a pattern of [Template.Unused] that matches a tensor which the graph has.
func (t *Template) checkNotFilled(states []*state) error {
	said, err := parsePatterns(t.Unused)
	if err != nil {
		return err
	}
	for _, s := range t.recipe.Tensors {
		x := states[0].byName[s.from()]
		for i, of := range said {
			if x != nil && matches(of, x) {
				return &UnusedError{fmt.Errorf("%s: the graph %s has tensor %q, so the network uses it",
					setting.Unused.With(quote(t.Unused[i:i+1])), t.recipe.Template, x.Name),
					"leave it out, or name the tensors that are not in the graph alone"}
			}
		}
	}
	return nil
}

// An UnusedError is about a pattern of [Template.Unused] that says something wrong.
type UnusedError struct {
	Err  error
	Hint string
}

func (e *UnusedError) Error() string { return e.Err.Error() }
func (e *UnusedError) Unwrap() error { return e.Err }

// missing decides about the tensors that are not in the graph. It fails if the graph was computed from one of them, or if
// nothing tells and the user has not said that they are unused.
func (t *Template) missing(m *matching, r *Recipe, lacking []*statefile.Tensor, left []*onnxio.Tensor, states []*state) error {
	if len(lacking) == 0 {
		return nil
	}
	said, err := t.unused()
	if err != nil {
		return err
	}
	if len(states) > 1 {
		if u := t.use(m, lacking, left, states); u != nil {
			return t.used(u)
		}
	}
	unsaid := slices.DeleteFunc(slices.Clone(lacking), said.match)
	array := slices.IndexFunc(left, func(into *onnxio.Tensor) bool { return into.Len() > 1 })
	weight := slices.IndexFunc(left, func(into *onnxio.Tensor) bool { return !plain(t.model, into) })
	if len(states) == 1 && array < 0 && (weight < 0 || !slices.ContainsFunc(unsaid, func(x *statefile.Tensor) bool { return x.Len() == 1 })) {
		for _, x := range unsaid { // nothing shows yet whether they change
			r.Fixed[x.Short] = digest(x)
		}
		unsaid = nil
	}
	for _, x := range lacking {
		if said.match(x) {
			r.Unused = append(r.Unused, x.Short)
		}
	}
	switch {
	case len(unsaid) == 0:
		return nil
	case array >= 0:
		return t.ask(m, unsaid, left, left[array])
	case weight >= 0:
		return t.ask(m, unsaid, left, left[weight])
	}
	return t.ask(m, unsaid, left, nil)
}

// used returns the error for a tensor that the graph was computed from.
func (t *Template) used(u *use) error {
	e := &onnxio.Error{
		Path:   t.model.Path,
		Tensor: u.of.Name,
		Hint:   "export the graph again so that it keeps the tensor: " + onnxio.KeepTorchScript + "\n" + asTensor,
	}
	if u.how == "" {
		e.What = fmt.Sprintf("of shape %v, is not in the graph: the exporter says that it has computed %s from it. That constant would "+
			"stay the same in all averages and members", u.of.Shape, u.constant)
	} else {
		e.What = fmt.Sprintf("of shape %v, is not in the graph, which has %s of %s as a constant: %s. That constant would stay the same "+
			"in all averages and members", u.of.Shape, u.how, u.path, u.constant)
	}
	return &MissingError{Fault: e}
}

// asTensor is for code that takes a number out of a tensor. The older exporter loses the tensor then, whatever its options.
const asTensor = "in the network's code, take elements as tensors (gain[0]), not as Python's numbers: .item(), float(), .tolist() and " +
	".numpy() leave only the number"

// ask returns the question whether the network uses tensors that change and that the graph does not have. instead is a
// constant that may have been computed from them, or nil.
func (t *Template) ask(m *matching, lacking []*statefile.Tensor, left []*onnxio.Tensor, instead *onnxio.Tensor) error {
	e := t.lacks(m, lacking, instead)
	constants := t.constants(left)
	if instead == nil {
		e.What = fmt.Sprintf("of %s, changes from checkpoint to checkpoint and is not in the graph", m.file.Path)
		if n := len(lacking) - 1; n > 0 {
			e.What = fmt.Sprintf("of %s, and %d more change from checkpoint to checkpoint and are not in the graph", m.file.Path, n)
		}
	}
	var names, numbers []string
	for _, x := range lacking {
		names = append(names, fmt.Sprintf("%s %v", x.Short, x.Shape))
	}
	for _, c := range constants {
		numbers = append(numbers, c.String())
	}
	e.What += ". Missing: " + firstOf(names)
	if len(numbers) > 0 {
		e.What += ". In no checkpoint: " + firstOf(numbers)
	}
	question := asked(e, m.patternsOf(lacking))
	question.Asked = instead == nil || instead.Len() == 1
	return question
}

// firstOf lists the first of some names in their order, and the number of the others.
func firstOf(names []string) string {
	if n := len(names) - maxDifferences; n > 0 {
		return strings.Join(names[:maxDifferences], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}

// patternsOf returns patterns for tensors that are not in the graph. A pattern stands for the outermost module of which the
// graph has nothing.
func (m *matching) patternsOf(lacking []*statefile.Tensor) (list []string) {
	module := func(name string) string {
		for i, c := range name {
			if c == '.' && !slices.ContainsFunc(m.dict.Tensors, func(x *statefile.Tensor) bool {
				return m.known[x] && strings.HasPrefix(x.Short, name[:i+1])
			}) {
				return name[:i+1] + "*"
			}
		}
		return name
	}
	of := make(map[string]int)
	for _, x := range lacking {
		of[module(x.Short)]++
	}
	for _, x := range lacking {
		name := module(x.Short)
		if of[name] == 1 {
			name = x.Short
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// copies returns the tensors of other networks in the state_dict that have the same tensors as the graph, such as a moving
// average or a teacher. Such a network has at least half of the graph's tensors under other names, in several modules.
func (m *matching) copies() map[*statefile.Tensor]bool {
	prefix, first := "", true
	for _, x := range m.dict.Tensors {
		if !m.known[x] {
			continue
		}
		module := x.Short[:strings.LastIndex(x.Short, ".")+1]
		for ; !first && !strings.HasPrefix(module, prefix); prefix = prefix[:strings.LastIndex(strings.TrimSuffix(prefix, "."), ".")+1] {
		}
		if first {
			prefix, first = module, false
		}
	}
	// Some averages keep names without their dots.
	plainName := func(name string) string { return strings.ReplaceAll(name, ".", "") }
	known, modules := make(map[string]*statefile.Tensor), make(map[string]bool)
	for _, x := range m.dict.Tensors {
		if rest, ok := strings.CutPrefix(x.Short, prefix); ok && m.known[x] {
			known[plainName(rest)] = x
			modules[rest[:strings.LastIndex(rest, ".")+1]] = true
		}
	}
	if len(modules) < 2 {
		return nil
	}
	of := make(map[string][]*statefile.Tensor)
	for _, x := range m.dict.Tensors {
		for i, c := range x.Short {
			if o := known[plainName(x.Short[i+1:])]; c == '.' && !m.known[x] && o != nil && slices.Equal(o.Shape, x.Shape) {
				of[x.Short[:i+1]] = append(of[x.Short[:i+1]], x)
			}
		}
	}
	found := make(map[*statefile.Tensor]bool)
	for _, tensors := range of {
		if 2*len(tensors) >= len(known) {
			for _, x := range tensors {
				found[x] = true
			}
		}
	}
	return found
}

// Question returns the error of a template about which the user is asked, or nil.
func Question(err error) *MissingError {
	if e := (*MissingError)(nil); errors.As(err, &e) && e.Asked {
		return e
	}
	return nil
}
