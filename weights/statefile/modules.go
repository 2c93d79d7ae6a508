package statefile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/weights"
)

// modulesFile is what the Checkpointer of SpeechBrain writes beside the files of a checkpoint, one for each module.
const modulesFile = "CKPT.yaml"

var _ = register(format{in: func(dir string) string {
	path := filepath.Join(dir, modulesFile)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}, read: (*File).readModules})

// readModules joins the files of a folder that hold a module each. Names begin with that of the file: classifier.w.weight.
func (f *File) readModules(path string, _ []byte) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	all := &StateDict{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".ckpt")
		part := filepath.Join(filepath.Dir(path), e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		if n, isText := number(part); isText {
			if name == "counter" {
				f.Epoch = n
			}
			continue
		}
		if isOther(name) || !Is(part) {
			continue // the optimizer
		}
		sd, err := f.openPart(part)
		if HoldsNothing(err) {
			continue // counters of a normalizer
		} else if err != nil {
			return err
		}
		if all.err == nil {
			all.err = sd.err
		}
		for _, t := range sd.all {
			c := *t
			c.Name, c.Short = name+"."+t.Name, name+"."+t.Name
			all.place(&c)
		}
	}
	f.dicts = all.orNone(path)
	return nil
}

// openPart opens one of several files, and returns the state_dict at its top.
func (f *File) openPart(path string) (*StateDict, error) {
	m, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	f.mappings = append(f.mappings, m)
	part := &File{Path: path}
	if err := part.done(part.parse(path, m.Data)); err != nil {
		return nil, err
	}
	if part.dicts[0].Key != "" {
		return nil, part.nothing()
	}
	return part.dicts[0], nil
}

// number reads a file that is a text. Its number is −1 if it is none.
func number(path string) (n int64, isText bool) {
	const most = 1000
	b, err := file.Read(path, most)
	if err != nil || strings.ContainsFunc(string(b), func(r rune) bool { return r < '\t' || r == '\uFFFD' }) {
		return -1, false
	}
	if n, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err != nil {
		n = -1
	}
	return n, true
}
