package programs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// Bounds of the search below a folder. The names of the folder itself do not count.
const (
	maxLevels = 6
	maxNames  = 5000
)

// A Folder lists what a folder holds, and what the folders below it hold as far as the bounds allow. Hidden names are left out.
// Links to folders are not followed, and below the folder itself links to files neither.
type Folder struct {
	Dir    string
	States []string // files and folders of one checkpoint each, which may hold weights
	Graphs []string // ONNX files that swagwrap did not export
	Others []string // further files
	Cut    bool     // there may be more below than the bounds allow

	known  []string // files that need no look inside
	opened map[string]*statefile.File
	errs   map[string]error
}

// besides are beginnings of the names of files that trainers save together with a checkpoint's weights.
var besides = []string{"optimizer", "scheduler", "rng_state", "training_args", "scaler", "random_states"}

// List looks into a folder. It does not look into known files, which the command opens anyway.
func List(dir string, known []string) (*Folder, error) { return list(dir, known, maxLevels) }

// ListFlat is [List] without the folders below.
func ListFlat(dir string, known []string) (*Folder, error) { return list(dir, known, 0) }

func list(dir string, known []string, levels int) (*Folder, error) {
	f := &Folder{Dir: dir, known: known, opened: map[string]*statefile.File{}, errs: map[string]error{}}
	whole := map[string]bool{dir: statefile.IsFolder(dir)} // folders that are one checkpoint
	seen, level := 0, []string{dir}
	for depth := 0; depth <= levels && len(level) > 0; depth++ {
		var below []string
		for _, d := range level {
			entries, err := os.ReadDir(d)
			if err != nil && d == dir {
				return nil, err
			}
			if seen += len(entries); depth > 0 && seen > maxNames || err != nil {
				f.Cut, below = true, nil
				break
			}
			for _, e := range entries {
				switch path := filepath.Join(d, e.Name()); {
				case e.Name()[0] == '.':
				case e.IsDir():
					below, whole[path] = append(below, path), statefile.IsFolder(path)
				default:
					f.add(path, e.Type(), depth, whole[d])
				}
			}
		}
		if depth == 0 {
			seen = 0
		}
		level = below
	}
	f.Cut = f.Cut || levels > 0 && len(level) > 0
	f.addWhole(whole)
	return f, nil
}

// add files one entry that is no folder. part says that its folder is one checkpoint.
func (f *Folder) add(path string, mode os.FileMode, depth int, part bool) {
	name := filepath.Base(path)
	known := slices.Contains(f.known, path)
	switch {
	case mode&^os.ModeSymlink != 0, mode != 0 && depth > 0:
	case strings.EqualFold(filepath.Ext(name), ".onnx"):
		if known || !kind.Exported(path) {
			f.Graphs = append(f.Graphs, path)
		}
	case slices.ContainsFunc(besides, func(s string) bool { return strings.HasPrefix(name, s) }):
	case !part && strings.EqualFold(filepath.Ext(name), ".zip") && statefile.IsTabNet(path):
		f.States = append(f.States, path)
	case part || !statefile.Named(name) || depth > 0 && !statefile.Is(path):
		f.Others = append(f.Others, path)
	case known || !kind.IsTensors(path):
		f.States = append(f.States, path)
	}
}

// addWhole adds the folders that are one checkpoint. The weights that a trainer leaves beside the folders of its checkpoints are those of
// the last or the best one.
func (f *Folder) addWhole(whole map[string]bool) {
	for d, is := range whole {
		if !is {
			continue
		}
		children := 0
		for c, too := range whole {
			if too && c != d && filepath.Dir(c) == d && (d == f.Dir || moments.MatchString(filepath.Base(c))) {
				children++
			}
		}
		if children == 0 {
			f.States = append(f.States, d)
		}
	}
	slices.Sort(f.States)
	f.States = slices.DeleteFunc(f.States, func(path string) bool { // parts of a larger checkpoint
		for d := filepath.Dir(path); len(d) > len(f.Dir); d = filepath.Dir(d) {
			if slices.Contains(f.States, d) {
				return true
			}
		}
		return path != f.Dir && slices.Contains(f.States, f.Dir) && filepath.Dir(path) == f.Dir
	})
}

// moments matches names of folders that say a moment of training and nothing else: epoch_7, checkpoint-500, epoch=3-step=60. Other numbers
// are those of runs.
var moments = regexp.MustCompile(`(?i)^(.*[^a-z])?((global_?)?(epoch|step|iter(ation)?|update|checkpoints?|ckpt)[-_=+. ]*\d[-_=+.:\d]*)+$`)

// Open opens a file of weights once. [Folder.Take] hands it on.
func (f *Folder) Open(path string) (*statefile.File, error) {
	if _, tried := f.errs[path]; !tried {
		s, err := statefile.Open(path)
		if err == nil {
			s.Release()
			f.opened[path] = s
		}
		f.errs[path] = err
	}
	return f.opened[path], f.errs[path]
}

// Take returns the files that were opened. The caller closes them.
func (f *Folder) Take() map[string]*statefile.File {
	out := f.opened
	f.opened, f.errs = map[string]*statefile.File{}, map[string]error{}
	return out
}

// Close closes the files that nobody took.
func (f *Folder) Close() {
	for _, s := range f.Take() {
		s.Close()
	}
}

// Short returns a path below the folder without the folder.
func (f *Folder) Short(path string) string {
	if short, err := filepath.Rel(f.Dir, path); err == nil {
		return short
	}
	return path
}

// Notes says where the chosen checkpoints are, and what else there is.
func (f *Folder) Notes(c *Choice) (notes []string) {
	const most = 4
	say := func(format string, args ...any) { notes = append(notes, f.Dir+": "+fmt.Sprintf(format, args...)) }
	if len(c.Over) > 0 {
		notes = append(notes, fmt.Sprintf("%s: passed over, since %s: %s", c.Place, c.Why, strings.Join(c.Over, ", ")))
	}
	if c.Place != f.Dir {
		say("the checkpoints are in %s: %d of them", c.Place, len(c.Paths))
	}
	var others []string
	for _, o := range c.Others {
		if len(o.Paths) == 1 {
			others = append(others, f.Short(o.Paths[0]))
		} else {
			others = append(others, fmt.Sprintf("%s (%d files)", f.Short(o.Place), len(o.Paths)))
		}
	}
	if len(others) > 0 {
		say("left out, since they are no checkpoints of that set: %s", report.Some(others, most))
	}
	var empty []string
	for _, path := range c.Empty {
		empty = append(empty, f.Short(path))
	}
	if len(empty) > 0 {
		say("left out, since they hold no weights: %s", report.Some(empty, most))
	}
	return notes
}

// String says what was found, for the user whose folder has no checkpoints.
func (f *Folder) String() string {
	const most = 8
	suffixes := map[string]int{}
	for _, path := range f.Others {
		suffixes[strings.ToLower(filepath.Ext(path))]++
	}
	var parts []string
	for suffix, n := range suffixes {
		parts = append(parts, fmt.Sprintf("%d %s", n, cmp.Or(suffix, "without a suffix")))
	}
	slices.Sort(parts)
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], "others")
	}
	if len(parts) == 0 {
		return "no files"
	}
	return "files: " + strings.Join(parts, ", ")
}
