package statedict

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// indexSuffix ends the name of an index of shards.
const indexSuffix = ".index.json"

// WriteFolder writes the state_dict into a folder as the checkpoint's folder holds it: the same files, with the same
// tensors in each, their index, and the files of configuration and tokenizer. create makes a file there.
func (w *Weights) WriteFolder(create func(name string, write func(File) error) error, origin string) error {
	if w.Form.Folder == "" {
		return ErrNoFolder
	}
	shards, total := make(map[string][]statefile.Entry), int64(0)
	inShard := make(map[[2]string]bool)
	for _, t := range w.tensors {
		name, e := filepath.Base(t.shard), w.entry(t)
		if e.Of != "" && !inShard[[2]string{name, e.Of}] {
			e.Of = "" // the tensor that it shares is in another file
		}
		inShard[[2]string{name, e.Name}] = true
		shards[name] = append(shards[name], e)
		total += e.Bytes()
	}
	write := func(name string, f func(out File) error) error {
		return create(name, func(out File) error { return w.Guarded(func() error { return f(out) }) })
	}
	for _, name := range sortedKeys(shards) {
		err := write(name, func(out File) error {
			if strings.HasSuffix(name, ".safetensors") {
				return statefile.WriteSafetensors(out, shards[name], w.file.Metadata(filepath.Join(w.Form.Folder, name)), origin)
			}
			return statefile.Write(out, strings.TrimSuffix(name, filepath.Ext(name)), shards[name], origin)
		})
		if err != nil {
			return err
		}
	}
	for _, m := range w.file.Mappings() {
		if strings.HasSuffix(m.Path, indexSuffix) {
			if err := write(filepath.Base(m.Path), func(out File) error { return writeIndex(out, m, total) }); err != nil {
				return err
			}
		}
	}
	return w.copyOthers(write)
}

// A File is a file that is being written.
type File interface {
	io.Writer
	io.WriterAt
}

// writeIndex writes the index of the shards, with their new size.
func writeIndex(out io.Writer, m *weights.Mapping, total int64) error {
	var index map[string]json.RawMessage
	if err := json.Unmarshal(m.Data, &index); err != nil {
		return fmt.Errorf("%s: %w", m.Path, err)
	}
	var about map[string]any
	if json.Unmarshal(index["metadata"], &about) != nil || about == nil {
		about = make(map[string]any)
	}
	about["total_size"] = total
	js, err := json.Marshal(about)
	if err != nil {
		return err
	}
	index["metadata"] = js
	if js, err = json.MarshalIndent(index, "", "  "); err != nil {
		return err
	}
	_, err = out.Write(append(js, '\n'))
	return err
}

// copied are the extensions of files of configuration and tokenizers. trainings are the beginnings of files about the training, which
// says nothing about new weights.
var (
	copied    = []string{".json", ".txt", ".model", ".jinja", ".py", ".yaml", ".yml", ".spm", ".bpe", ".vocab", ".tiktoken"}
	trainings = []string{"trainer_state", "training_args", "optimizer", "scheduler", "all_results", "train_results", "eval_results"}
)

// maxCopied is more than the size of any tokenizer, and maxAll than that of all files of a model beside its weights.
const (
	maxCopied = 100_000_000
	maxAll    = 400_000_000
)

// Others lists the files of the checkpoint's folder that a new folder has too. leftOut has those that it has not, each with the reason.
func (form *Form) Others() (names, leftOut []string, err error) {
	entries, err := os.ReadDir(form.Folder)
	if err != nil {
		return nil, nil, err
	}
	total := int64(0)
	for _, e := range entries {
		name := e.Name()
		if name[0] == '.' || strings.HasSuffix(name, indexSuffix) || !slices.Contains(copied, strings.ToLower(filepath.Ext(name))) ||
			slices.ContainsFunc(trainings, func(s string) bool { return strings.HasPrefix(name, s) }) {
			continue
		}
		f, info, err := file.Inside(form.Folder, name)
		switch {
		case err != nil:
		case info.Size() > maxCopied:
			err = fmt.Errorf("more than %d bytes", maxCopied)
		case total+info.Size() > maxAll:
			err = fmt.Errorf("all files together have more than %d bytes", maxAll)
		default:
			total += info.Size()
		}
		if f != nil {
			f.Close()
		}
		if err != nil {
			leftOut = append(leftOut, fmt.Sprintf("%q (%v)", name, file.Cause(err)))
			continue
		}
		names = append(names, name)
	}
	return names, leftOut, nil
}

// Config returns the config.json of the checkpoint's folder, or nil if a new folder has none.
func (form *Form) Config() ([]byte, error) {
	b, err := file.ReadInside(form.Folder, "config.json", maxCopied)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, file.ErrOutside) || errors.Is(err, file.ErrNotRegular) {
		return nil, nil
	}
	return b, err
}

func (w *Weights) copyOthers(write func(string, func(File) error) error) error {
	names, _, err := w.Others()
	if err != nil {
		return err
	}
	for _, name := range names {
		err := write(name, func(out File) error {
			in, _, err := file.Inside(w.Form.Folder, name)
			if err != nil {
				return err
			}
			defer in.Close()
			_, err = io.Copy(out, io.LimitReader(in, maxCopied))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
