package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A Program is a training program. A new one is a file of this package that registers it. What none knows goes the general way.
type Program struct {
	Name string
	// Keys are at the top of its checkpoints, all of them, and Files are near the checkpoints. One of the two shows the program.
	Keys  []string
	Files []string
	// Preprocess returns the preprocessing that a value near the checkpoints says, as words of --preprocess, or "".
	Preprocess func(v map[string]any) string
	// Settings are files with the values of Preprocess and Classes.
	Settings []string
	// Classes is the key of the names of classes in Settings and in the checkpoints.
	Classes []string
	// Figures says where the program writes what it measured on its own validation data.
	Figures []Figures
}

// Figures is a file with what a program measured, and the columns or keys of what it measured.
type Figures struct {
	File string
	Last []string // keys down to a list, whose last item with a figure counts, or nil
	Of   []string // patterns of the names
}

var programs []*Program

func register(p Program) *Program {
	programs = append(programs, &p)
	return &p
}

// A Run is a set of checkpoints and what lies near it.
type Run struct {
	Program *Program // or nil
	last    *statefile.File
	dirs    []string // the nearest first
}

// Near returns what lies near checkpoints, up to one folder above top. last is the last checkpoint, or nil for a model.
func Near(paths []string, top string, last *statefile.File) *Run {
	r := &Run{last: last}
	if len(paths) == 0 {
		return r
	}
	path := filepath.Clean(paths[len(paths)-1])
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		r.dirs = append(r.dirs, path)
	}
	for d := filepath.Dir(path); ; d = filepath.Dir(d) {
		r.dirs = append(r.dirs, d)
		within, err := filepath.Rel(filepath.Clean(top), d)
		if err != nil || strings.HasPrefix(within, "..") || len(r.dirs) > maxLevels+2 || d == filepath.Dir(d) {
			break
		}
	}
	for _, p := range programs {
		if r.is(p) {
			r.Program = p
			break
		}
	}
	return r
}

// is reports whether a program left the run.
func (r *Run) is(p *Program) bool {
	if r.last != nil && len(p.Keys) > 0 && !slices.ContainsFunc(p.Keys, func(key string) bool { return !r.has(key) }) {
		return true
	}
	return len(p.Files) > 0 && !slices.ContainsFunc(p.Files, func(name string) bool { return r.find(name) == "" })
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
	for _, dir := range r.dirs {
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
	if r.last != nil {
		f(r.last.Values, r.last.Path)
	}
}

// Preprocess returns the words of preprocessing that the program's settings say, and the file.
func (r *Run) Preprocess() (words, from string) {
	r.settings(func(v map[string]any, file string) bool {
		if r.Program.Preprocess != nil {
			words, from = r.Program.Preprocess(v), file
		}
		return words != ""
	})
	return words, from
}

// Classes returns the names of classes that the program's settings, the checkpoints or the metadata of the exported graph say, and where.
func (r *Run) Classes(metadata map[string]string) (names []string, from string) {
	if text := metadata["names"]; text != "" { // as ultralytics exports it: a dict in Python's words
		if names = namesOf(pythonDict(text)); names != nil {
			return names, "names in the metadata of the graph"
		}
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

// Pad returns the pad token of the network, and the file that says it. ok is false if none does.
func (r *Run) Pad() (token int64, from string, ok bool) {
	for _, dir := range r.dirs {
		path := filepath.Join(dir, "config.json")
		if n := numbersOf(valueAt(readJSON(path), "pad_token_id")); len(n) == 1 && n[0] >= 0 && n[0] == float64(int64(n[0])) {
			return int64(n[0]), path, true
		}
	}
	return 0, "", false
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
			return fmt.Sprintf("%s says of its own validation data, in the last row of %s: %s", r.Program.Name, path,
				strings.Join(found, ", "))
		}
	}
	return ""
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
