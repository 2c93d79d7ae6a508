package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/study/summary"
)

// A world is the working folder of commands. Before each command it is as it was at first.
type world struct {
	temporary string // another folder, for temporary files
	first     map[string]fileState
	content   map[string][]byte
	made      map[string]bool // files that the program made
	runs      int
}

// fileState says whether a file is the same as before.
type fileState struct {
	mode    fs.FileMode
	size    int64
	changed time.Time
	inode   uint64
}

// listFiles returns all files and folders.
func listFiles() (map[string]fileState, error) {
	found := map[string]fileState{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s := fileState{mode: info.Mode()}
		if !info.IsDir() { // a folder's time is that of its files
			s.size, s.changed, s.inode = info.Size(), info.ModTime(), info.Sys().(*syscall.Stat_t).Ino
		}
		found[path] = s
		return nil
	})
	return found, err
}

// newWorld makes all files in the working folder.
func newWorld(temporary string) (*world, error) {
	m := &maker{wrote: map[string]bool{}}
	m.all()
	w := &world{temporary: temporary, content: map[string][]byte{}, made: map[string]bool{}}
	var err error
	w.first, err = listFiles()
	if err := errors.Join(m.err, err); err != nil {
		return nil, err
	}
	for path, s := range w.first {
		if s.mode.IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			w.content[path] = b
			w.made[path] = !m.wrote[path]
		}
	}
	return w, nil
}

// restore removes what is new, and writes again what changed.
func (w *world) restore() error {
	now, err := listFiles()
	if err != nil {
		return err
	}
	for path, s := range now {
		if was, ok := w.first[path]; !ok || was.mode != s.mode {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(w.first)) {
		was := w.first[path]
		switch {
		case now[path] == was:
		case was.mode.IsDir():
			err = errors.Join(err, os.MkdirAll(path, 0o777))
		case was.mode.IsRegular():
			os.Remove(path)
			err = errors.Join(err, os.WriteFile(path, w.content[path], 0o666))
			info, staterr := os.Lstat(path)
			if staterr != nil {
				return staterr
			}
			w.first[path] = fileState{info.Mode(), info.Size(), info.ModTime(), info.Sys().(*syscall.Stat_t).Ino}
		default:
			err = errors.Join(err, fmt.Errorf("%s: is gone", path))
		}
	}
	return err
}

// outcome is what a command left.
type outcome struct {
	code           int
	stdout, stderr string
	files          map[string]fileState
}

func (o *outcome) succeeded() bool { return o.code == 0 || o.code == 3 }

// do runs a command. A command that computes for minutes ends the process.
func (w *world) do(args []string) (*outcome, error) {
	const patience = 100 // seconds of the processor
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return nil, err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CPU, &limit); err != nil {
		return nil, err
	}
	limit.Cur = uint64(used.Utime.Sec+used.Stime.Sec) + patience
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &limit); err != nil {
		return nil, err
	}
	w.runs++
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), append([]string{"swagwrap"}, args...), &stdout, &stderr)
	now, err := listFiles()
	return &outcome{code, stdout.String(), stderr.String(), now}, err
}

// check runs a line, and returns what is wrong with the outcome.
func (w *world) check(l *commandLine) (o *outcome, faults []string, err error) {
	if o, err = w.do(l.args()); err != nil {
		return nil, nil, err
	}
	faults = slices.Concat(printedWrong(l, o), w.unchanged(l, o), w.whole(l, o))
	left, err := os.ReadDir(w.temporary)
	for _, f := range left {
		faults = append(faults, "outputs: leaves "+f.Name()+" in the folder for temporary files")
		os.RemoveAll(filepath.Join(w.temporary, f.Name()))
	}
	if err == nil && o.succeeded() && len(faults) == 0 {
		var more []string
		if faults, err = w.next(o); err == nil {
			more, err = w.guaranteed(l, o)
			faults = append(faults, more...)
		}
	}
	return o, faults, errors.Join(err, w.restore())
}

// next runs the commands that a command printed to run next, as far as the user need not name files.
func (w *world) next(o *outcome) ([]string, error) {
	_, lines, found := strings.Cut("\n"+o.stderr, "\nnext: ")
	if !found {
		return nil, nil
	}
	for text := range strings.Lines(lines) {
		words := shellWords(strings.TrimSpace(text))
		if words[0] != "swagwrap" || slices.ContainsFunc(words, placeholder.MatchString) {
			break
		}
		p, err := w.do(words[1:])
		if err != nil {
			return nil, err
		}
		if words[1] == "calibrate" && strings.Contains(p.stderr, " is not determined, ") { // the labels of these few rows are chance
			break
		}
		if !p.succeeded() {
			return []string{fmt.Sprintf("next: %s: %s", strings.TrimSpace(text), p.stderr)}, nil
		}
	}
	return nil, nil
}

// placeholder is a word such as VAL or NEW-DATA, which stands for a file of the user's.
var placeholder = regexp.MustCompile(`^[A-Z][A-Z-]+$`)

// codes are the documented exit codes of commands that nobody interrupts.
var exitCodes = []int{0, 3, 4, 64, 65, 69, 75}

var (
	rawWords   = regexp.MustCompile(`panic|goroutine |runtime error|%!|<nil>|0x[0-9a-f]{6,}|strconv\.|reflect\.|&\{|map\[`)
	notNumbers = regexp.MustCompile(`\bNaN\b|[+-]Inf\b`)
)

// printedWrong checks the exit code and the messages.
func printedWrong(l *commandLine, o *outcome) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if !slices.Contains(exitCodes, o.code) || o.code == 4 && l.command != "merge" {
		fault("exit: code %d", o.code)
	}
	if o.code == 69 && !l.has("ort-lib") && !l.has("provider") && !l.has("web") && l.command != "setup" {
		fault("exit: code 69, and the line names no ONNX Runtime")
	}
	wrong := 0
	for text := range strings.Lines(o.stderr) {
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "error:") {
			wrong++
		} else if wrong > 0 && !strings.HasPrefix(text, "hint: ") {
			fault("message: %q behind the error", text)
		}
	}
	if failed := o.code != 0; failed && wrong != 1 || !failed && wrong > 0 {
		fault("message: %d errors with exit code %d", wrong, o.code)
	}
	if m := rawWords.FindString(o.stdout + o.stderr); m != "" {
		fault("message: has %q", m)
	}
	if m := notNumbers.FindString(o.stderr); m != "" && !notNumbers.MatchString(strings.ToUpper(l.String())) && !strings.Contains(l.String(), "nan") && !strings.Contains(l.String(), "inf") {
		fault("message: has %q", m)
	}
	if o.code == 0 && l.has("quiet") && o.stderr != "" {
		fault("message: --quiet, and yet %q", strings.SplitN(o.stderr, "\n", 2)[0])
	}
	if !o.succeeded() && o.stdout != "" && l.command != "settle" && l.command != "doctor" && l.command != "inspect" {
		fault("outputs: fails, and yet prints %q", strings.SplitN(o.stdout, "\n", 2)[0])
	}
	return faults
}

// inFolders reports whether a path is one of the folders, or lies in one.
func inFolders(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
}

// mayMake returns the files that a line may make, the folders that it may fill, and those of them that it may fill though it fails.
func (l *commandLine) mayMake() (files, folders, kept []string) {
	files, folders = l.outputsOf()
	for _, f := range slices.Clone(files) {
		files = append(files, f+summary.Suffix, f+".data")
	}
	if i, n, ok := strings.Cut(l.value("part"), "/"); ok && l.command == "score" {
		index, _ := strconv.Atoi(i)
		of, _ := strconv.Atoi(n)
		files = append(files, records.PartName(filepath.Clean(l.value("output")), index, of))
	}
	if store := l.value("store"); store != "" {
		kept = append(kept, filepath.Clean(store))
	}
	return files, folders, kept
}

// unchanged checks that what was there is there, but for outputs of earlier runs that the line may replace.
func (w *world) unchanged(l *commandLine, o *outcome) (faults []string) {
	files, folders, kept := l.mayMake()
	replaces := l.has("force") || l.has("resume") || l.has("part")
	var inputs []string
	for _, g := range l.words {
		if _, isOutput := lookup(outputFlags, l.command, g.flag); !isOutput && g.value != "" {
			inputs = append(inputs, filepath.Clean(g.value[strings.LastIndex(g.value, "=")+1:]))
		}
	}
	for _, a := range l.arguments {
		inputs = append(inputs, filepath.Clean(a))
	}
	for _, path := range slices.Sorted(maps.Keys(w.first)) {
		was, now := w.first[path], o.files[path]
		if was == now || was.mode.IsDir() && now.mode.IsDir() {
			continue
		}
		what := "is changed"
		if now.mode == 0 && now.inode == 0 {
			what = "is gone"
		}
		switch may := slices.Contains(files, path) || inFolders(folders, path); {
		case w.made[path] && inFolders(kept, path):
		case inFolders(inputs, path):
			faults = append(faults, "inputs: "+path+", an input, "+what)
		case !w.made[path]:
			faults = append(faults, "inputs: "+path+", which the program did not make, "+what)
		case !o.succeeded():
			faults = append(faults, "inputs: the command fails, and "+path+" "+what)
		case !may || !replaces:
			faults = append(faults, "inputs: "+path+" "+what)
		}
	}
	return faults
}

// whole checks that all outputs are there, or none.
func (w *world) whole(l *commandLine, o *outcome) (faults []string) {
	files, folders, kept := l.mayMake()
	partial := l.value("output") + ".partial"
	for _, path := range slices.Sorted(maps.Keys(o.files)) {
		_, was := w.first[path]
		switch may := slices.Contains(files, path) || inFolders(folders, path); {
		case was || inFolders(kept, path):
		case o.files[path].mode.IsDir() && slices.ContainsFunc(append(files, folders...), func(f string) bool { return inFolders([]string{path}, f) }) && o.succeeded(): // a folder above
		case path == partial && strings.Contains(o.stderr, partial+" keeps"):
		case !o.succeeded():
			faults = append(faults, "outputs: the command fails and leaves "+path)
		case !may:
			faults = append(faults, "outputs: leaves "+path)
		}
	}
	if !o.succeeded() {
		return faults
	}
	files, folders = l.mustMake()
	for _, path := range files {
		switch s, ok := o.files[path]; {
		case !ok || !s.mode.IsRegular() || s.size == 0:
			faults = append(faults, "outputs: done, without "+path)
		case l.has("force") && s == w.first[path]:
			faults = append(faults, "outputs: done, and "+path+" is the old one")
		}
	}
	for _, folder := range folders {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(o.files)), func(path string) bool { return strings.HasPrefix(path, folder+"/") }) {
			faults = append(faults, "outputs: done, with nothing in "+folder)
		}
	}
	return faults
}

// mustMake returns the files that a line makes if it succeeds, and the folders that then have something in them.
func (l *commandLine) mustMake() (files, folders []string) {
	switch {
	case l.has("estimate"):
		return nil, nil
	case l.has("part") && l.command != "score": // it fills the store
		return nil, nil
	}
	files, folders = l.outputsOf()
	if store := l.value("store"); store != "" { // it has nothing if no network was run
		folders = slices.DeleteFunc(folders, func(folder string) bool { return folder == filepath.Clean(store) })
	}
	output := filepath.Clean(l.value("output"))
	for i, f := range files {
		if f != output || l.command != "score" && l.command != "merge" {
			continue
		}
		if l.has("part") {
			made, _, _ := l.mayMake()
			files[i] = made[len(made)-1]
		} else {
			files = append(files, f+summary.Suffix)
		}
	}
	return files, folders
}

// shellWords splits what console.Shell puts together, as a shell does.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quoted, begun := false, false
	for i := 0; i < len(line); i++ {
		switch ch := line[i]; {
		case ch == '\'':
			quoted, begun = !quoted, true
		case ch == '\\' && !quoted:
			i++
			word.WriteByte(line[i])
		case ch == ' ' && !quoted:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(ch)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

func TestShellWords(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{{"swagwrap", "fit", "-o", "p.safetensors"}, {"a b", "", "it's", `back\slash`, "--x=$HOME *", "'"}, {"one"}} {
		if got := shellWords(console.Shell(words...)); !slices.Equal(got, words) {
			t.Errorf("%q, want %q", got, words)
		}
	}
}
