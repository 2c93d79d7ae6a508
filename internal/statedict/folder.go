package statedict

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// indexSuffix ends the name of an index of shards.
const indexSuffix = ".index.json"

// WriteFolder writes the state_dict into a folder as the checkpoint's folder holds it: the same files, with the same
// tensors in each, their index, and the files of configuration and tokenizer. create makes a file there.
func (w *Weights) WriteFolder(create func(name string, write func(File) error) error, origin string) error {
	if w.Form.Folder == "" {
		return ErrNoFolder
	}
	shards, total := make(map[string][]torch.Entry), int64(0)
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
				return torch.WriteSafetensors(out, shards[name], w.file.Metadata(filepath.Join(w.Form.Folder, name)), origin)
			}
			return torch.Write(out, strings.TrimSuffix(name, filepath.Ext(name)), shards[name], origin)
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

// copied are the endings of files of configuration and tokenizers. trainings are the beginnings of files about the training, which
// says nothing about new weights.
var (
	copied    = []string{".json", ".txt", ".model", ".jinja", ".py", ".yaml", ".yml", ".spm", ".bpe", ".vocab", ".tiktoken"}
	trainings = []string{"trainer_state", "training_args", "optimizer", "scheduler", "all_results", "train_results", "eval_results"}
)

// maxCopied is more than the size of any tokenizer.
const maxCopied = 100_000_000

// Others lists the files of the checkpoint's folder that a new folder has too.
func (form *Form) Others() (names []string, err error) {
	entries, err := os.ReadDir(form.Folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		info, err := os.Stat(filepath.Join(form.Folder, name)) // the hub's cache consists of links
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxCopied || name[0] == '.' || strings.HasSuffix(name, indexSuffix) {
			continue
		}
		if slices.Contains(copied, strings.ToLower(filepath.Ext(name))) && !slices.ContainsFunc(trainings, func(s string) bool { return strings.HasPrefix(name, s) }) {
			names = append(names, name)
		}
	}
	return names, nil
}

// copyOthers copies those files.
func (w *Weights) copyOthers(write func(string, func(File) error) error) error {
	names, err := w.Others()
	if err != nil {
		return err
	}
	for _, name := range names {
		err := write(name, func(out File) error {
			in, _, err := file.Regular(filepath.Join(w.Form.Folder, name))
			if err != nil {
				return err
			}
			defer in.Close()
			_, err = io.Copy(out, in)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
