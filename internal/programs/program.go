package programs

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A Program is a training program. A new one is a row of [programs]. What none knows goes the general way.
type Program struct {
	Name string
	// Keys are at the top of its checkpoints, all of them, and Files are near the checkpoints. One of the two shows the program.
	Keys  []string
	Files []string
	// Author is what its own exporter of graphs writes as their author. The metadata of such a graph has values of Preprocess and Classes.
	Author string
	// Preprocess returns the preprocessing that values near the checkpoints say, as words of --preprocess, or "". Where keys are missing,
	// for which the program took values of its own, it returns these as unsaid.
	Preprocess func(v map[string]any) (words string, unsaid []string)
	// Resolve returns the line of Python that writes the whole preprocessing to preprocess.json, from the file with the values.
	Resolve func(file string) string
	// Settings are files with the values of Preprocess and Classes.
	Settings []string
	// Classes is the key of the names of classes in Settings and in the checkpoints.
	Classes []string
	// Figures says where the program writes what it measured on its own validation data.
	Figures []Figures
	// OfAverage is the key that its checkpoints have if it measured its average, and not the weights that SGD moved, or "".
	OfAverage string
}

// Figures is a file with what a program measured, and the columns or keys of what it measured.
type Figures struct {
	File string
	Last []string // keys down to a list, whose last item with a figure counts, or nil
	Of   []string // patterns of the names
}

// A Run is a set of checkpoints and what lies near it.
type Run struct {
	Program *Program // or nil
	last    *statefile.File
	graph   map[string]any // what the metadata of the exported graph say
	dirs    []string       // the nearest first
	above   []string       // the folder above these, for the files of a program whose checkpoints show it
}

// Near returns what lies near checkpoints, up to the folder top. last is the last checkpoint, or nil for a model. graph is the exported
// graph, or "": its folder counts, too.
func Near(paths []string, top, graph string, last *statefile.File) *Run {
	r := &Run{last: last}
	if len(paths) == 0 {
		return r
	}
	path, top := filepath.Clean(paths[len(paths)-1]), filepath.Clean(top)
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		path = filepath.Dir(path)
	}
	r.dirs = []string{path}
	for range maxLevels + 1 {
		if within, err := filepath.Rel(top, path); err != nil || within == "." || strings.HasPrefix(within, "..") {
			break
		}
		path = filepath.Dir(path)
		r.dirs = append(r.dirs, path)
	}
	above := filepath.Dir(path)
	if dir := filepath.Dir(graph); graph != "" && !slices.Contains(r.dirs, dir) {
		r.dirs = append(r.dirs, dir)
	}
	for _, p := range programs {
		if r.last != nil && len(p.Keys) > 0 && !slices.ContainsFunc(p.Keys, func(key string) bool { return !r.has(key) }) {
			r.Program, r.above = p, []string{above}
			return r
		}
	}
	for _, p := range programs {
		if len(p.Files) > 0 && !slices.ContainsFunc(p.Files, func(name string) bool { return r.find(name) == "" }) {
			r.Program = p
			break
		}
	}
	return r
}

// has reports whether a key is in the last checkpoint.
func (r *Run) has(key string) bool {
	return valueAt(r.last.Values, strings.Split(key, "/")...) != nil ||
		slices.ContainsFunc(r.last.Ignored, func(g statefile.Ignored) bool { return g.Name == key }) ||
		slices.ContainsFunc(r.last.StateDicts(), func(sd *statefile.StateDict) bool {
			return sd.Key == key || strings.HasPrefix(sd.Key, key+"/")
		})
}

// find returns the nearest file that a pattern matches, or "".
func (r *Run) find(pattern string) string {
	for _, dir := range slices.Concat(r.dirs, r.above) {
		found, _ := filepath.Glob(filepath.Join(escaped(dir), pattern)) // the pattern is valid
		for _, path := range found {
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	return ""
}

func escaped(dir string) string {
	return strings.NewReplacer("*", "\\*", "?", "\\?", "[", "\\[", "\\", "\\\\").Replace(dir)
}

// Find returns the nearest of the files, or "".
func (r *Run) Find(names ...string) string { return First(r.dirs, names...) }

// First returns the first of the files that is in one of the folders, or "".
func First(dirs []string, names ...string) string {
	for _, dir := range dirs {
		for _, name := range names {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	return ""
}

// settings calls f for the values of the program, with the words of where they are, until it returns true.
func (r *Run) settings(f func(v map[string]any, from string) bool) {
	if r.Program == nil {
		return
	}
	for _, name := range r.Program.Settings {
		if path := r.find(name); path != "" && f(read(path), path) {
			return
		}
	}
	if r.last != nil && f(r.last.Values, r.last.Path) {
		return
	}
	if author := r.Program.Author; author != "" && author == r.graph["author"] {
		f(r.graph, ofGraph)
	}
}

// A Preprocessing is what lies near checkpoints. Nothing shows that examples were prepared so: see [preprocess.Settings].Arrays.
type Preprocessing struct {
	preprocess.Settings
	Spec string // for [preprocess.Settings.With]
	From string // the file, and the program
}

// Preprocess returns a configuration of Hugging Face or timm, or else what the program's settings say. It returns nil if there is none.
func (r *Run) Preprocess() *Preprocessing {
	for _, name := range []string{"preprocessor_config.json", "processor_config.json", "config.json"} {
		if path := r.Find(name); path != "" {
			if s, err := preprocess.ReadFile(path); err == nil {
				s.Arrays = preprocess.Unchanged
				return &Preprocessing{s, path, path}
			}
		}
	}
	words, file, _ := r.words()
	s, err := preprocess.Settings{}.With(words)
	if words == "" || err != nil {
		return nil
	}
	s.Arrays = preprocess.Unchanged
	return &Preprocessing{s, words, file + " of " + r.Program.Name}
}

// words returns the words of preprocessing that the program's settings say, or else what they lack, and the file.
func (r *Run) words() (words, from string, unsaid []string) {
	r.settings(func(v map[string]any, file string) bool {
		if r.Program.Preprocess != nil {
			words, unsaid = r.Program.Preprocess(v)
			from = file
		}
		return words != "" || unsaid != nil
	})
	return words, from, unsaid
}

// An UnsaidError is returned for pictures that a program prepared with values of its own, which it wrote nowhere.
type UnsaidError struct {
	File    string
	Keys    []string
	Program *Program
}

func (e *UnsaidError) Error() string {
	return fmt.Sprintf("%s: does not say %s: %s prepared pictures with its own, which are in no file", e.File, strings.Join(e.Keys, ", "),
		e.Program.Name)
}

// Hints say how to get them.
func (e *UnsaidError) Hints() []string {
	return []string{"in Python: " + e.Program.Resolve(e.File), "then " + setting.Preprocess.With("preprocess.json")}
}

// Unsaid returns an error if the preprocessing of the run is not known because the program took values of its own. It returns nil if
// [Run.Preprocess] knows it, and for other programs.
func (r *Run) Unsaid() *UnsaidError {
	if words, from, unsaid := r.words(); words == "" && unsaid != nil && r.Preprocess() == nil {
		return &UnsaidError{from, unsaid, r.Program}
	}
	return nil
}

// ofGraph says where values of the exported graph come from.
const ofGraph = "the metadata of the graph"

// WithGraph adds what the metadata of the exported graph say.
func (r *Run) WithGraph(metadata map[string]string) {
	r.graph = map[string]any{}
	for key, text := range metadata {
		var v any = text
		if d := pythonDict(text); len(d) > 0 { // such as ultralytics' names
			v = d
		} else if list := []any(nil); json.Unmarshal([]byte(text), &list) == nil {
			v = list
		}
		r.graph[key] = v
	}
	for _, p := range programs {
		if r.Program == nil && p.Author != "" && p.Author == metadata["author"] {
			r.Program = p
		}
	}
}

// Classes returns the names of classes that the metadata of the exported graph, the program's settings or the checkpoints say, and where.
func (r *Run) Classes() (names []string, from string) {
	if names = namesOf(r.graph["names"]); names != nil {
		return names, "names in " + ofGraph
	}
	r.settings(func(v map[string]any, file string) bool {
		for _, key := range r.Program.Classes {
			if names = namesOf(valueAt(v, strings.Split(key, "/")...)); names != nil {
				from = key + " in " + file
				return true
			}
		}
		return false
	})
	return names, from
}

// pythonDict reads a dict from numbers to texts as Python prints it. It returns nil for other texts.
func pythonDict(text string) map[string]any {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), "{")
	out := map[string]any{}
	for ok && text != "}" {
		key, rest, found := strings.Cut(text, ":")
		rest = strings.TrimSpace(rest)
		if !found || len(rest) < 2 || rest[0] != '\'' && rest[0] != '"' {
			return nil
		}
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 || strings.Contains(rest[:end+2], "\\") {
			return nil
		}
		out[strings.TrimSpace(key)] = rest[1 : end+1]
		text = strings.TrimLeft(rest[end+2:], ", ")
	}
	return out
}

// Pad returns the pad token of the network, and the file that says it. ok is false if none does. The configuration of the network counts
// before that of its tokenizer, which names the token only.
func (r *Run) Pad() (token int64, from string, ok bool) {
	for _, dir := range r.dirs {
		path := filepath.Join(dir, "config.json")
		if token, ok = tokenOf(valueAt(readJSON(path), "pad_token_id")); ok {
			return token, path, true
		}
	}
	path := r.Find("tokenizer_config.json")
	about := readJSON(path)
	name := about["pad_token"]
	if v := valueAt(name, "content"); v != nil {
		name = v
	}
	added, _ := about["added_tokens_decoder"].(map[string]any)
	for number, v := range added {
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && name != nil && valueAt(v, "content") == name {
			return n, path, true
		}
	}
	return 0, "", false
}

func tokenOf(v any) (n int64, ok bool) {
	of := numbersOf(v)
	if len(of) != 1 || of[0] < 0 || of[0] != float64(int64(of[0])) {
		return 0, false
	}
	return int64(of[0]), true
}

// Measured returns what the program says that it measured, in words, or "".
func (r *Run) Measured() string {
	if r.Program == nil {
		return ""
	}
	for _, f := range r.Program.Figures {
		path := r.find(f.File)
		if path == "" {
			continue
		}
		var v any = read(path)
		if filepath.Ext(path) == ".json" && v.(map[string]any) == nil {
			v = readList(path)
		}
		if found := f.in(v); len(found) > 0 {
			text := fmt.Sprintf("%s says of its own validation data, in the last row of %s: %s", r.Program.Name, path,
				strings.Join(found, ", "))
			if key := r.Program.OfAverage; key != "" && r.last != nil && r.has(key) {
				return fmt.Sprintf("%s. %s has %s: these are the figures of its average, not of the weights that SGD moved", text,
					r.last.Path, key)
			}
			if words := expected(found); words != "" {
				text += fmt.Sprintf(". If the test data is the same, %s holds the last checkpoint against it, and says what differs",
					setting.Expect.With(fmt.Sprintf("%q", words)))
			}
			return text
		}
	}
	return ""
}

// accuracy matches names of the share of right predictions.
var accuracy = regexp.MustCompile(`top_?1$|acc(uracy)?$`)

// expected returns the words of --expect for figures NAME VALUE: one loss and one accuracy at most. Other figures have other formulas.
func expected(figures []string) string {
	words := map[string]string{}
	for _, f := range figures {
		name, value, _ := strings.Cut(strings.ToLower(f), " ")
		v, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil, math.IsNaN(v), math.IsInf(v, 0):
		case strings.HasSuffix(name, "loss"):
			words["loss"] += " loss=" + value
		case !accuracy.MatchString(name) || v < 0 || v > 100:
		case v > 1:
			words["accuracy"] += " accuracy=" + value + "%"
		default:
			words["accuracy"] += " accuracy=" + value
		}
	}
	out := ""
	for _, key := range []string{"accuracy", "loss"} {
		if strings.Count(words[key], "=") == 1 { // of several nothing tells which one
			out += words[key]
		}
	}
	return strings.TrimSpace(out)
}

// in returns the figures of a file, NAME VALUE each.
func (f Figures) in(v any) (found []string) {
	items := []any{v}
	if f.Last != nil {
		items, _ = valueAt(v, f.Last...).([]any)
		if len(f.Last) == 0 {
			items, _ = v.([]any)
		}
	}
	for _, item := range slices.Backward(items) {
		row, _ := item.(map[string]any)
		for _, pattern := range f.Of {
			for name, value := range row {
				if ok, _ := filepath.Match(pattern, name); !ok { // the pattern is valid
					continue
				}
				if n := numbersOf(value); len(n) == 1 {
					found = append(found, name+" "+strconv.FormatFloat(n[0], 'g', 6, 64))
				}
			}
		}
		if len(found) > 0 {
			slices.Sort(found)
			return found
		}
	}
	return nil
}
