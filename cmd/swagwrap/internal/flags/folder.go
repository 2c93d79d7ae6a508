package flags

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/maruel/natural"
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// maxHeader is more than the header of a posterior or ensemble takes.
const maxHeader = 16 << 20

// IsOurs tells a posterior or ensemble from models and checkpoints. It looks at the
// header alone, and does not make the file an input.
func IsOurs(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a named pipe must not wait for a writer
	if err != nil {
		return false // the reader that expects a model says why
	}
	defer f.Close()
	var length [8]byte
	if _, err := io.ReadFull(f, length[:]); err != nil {
		return false
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return false
	}
	header, err := io.ReadAll(io.LimitReader(f, int64(n)))
	return err == nil && bytes.Contains(header, []byte(`"kind":"swagwrap.`))
}

// Models returns the arguments, and in place of a folder the checkpoints in it, in
// natural order: ONNX files, or PyTorch's with a template or where there are no
// others. Hidden files are left out, and subfolders that are no checkpoints.
func (a *Env) Models(c *cli.Context, args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		if info, err := os.Stat(arg); err != nil || !info.IsDir() {
			paths = append(paths, arg) // what cannot be read is said where it is opened
			continue
		}
		found, over, err := inFolder(arg, c.IsSet("template"))
		if err != nil {
			return nil, err
		}
		if len(over) > 0 {
			a.Logf(c, "%s: passed over, since others have a number in their names and these have none: %s", arg, strings.Join(over, ", "))
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// besides are what trainers save beside the weights of a checkpoint, by what the
// names begin with.
var besides = []string{"optimizer", "scheduler", "rng_state", "training_args", "scaler", "random_states"}

// inFolder returns the checkpoints in a folder, and the files that were passed over
// though they look like some. One of a trainer's holds them as subfolders, and may hold
// the last one's weights itself.
func inFolder(dir string, template bool) (found, over []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, BadInput(err)
	}
	var onnx, files, folders []string
	for _, e := range entries {
		name := e.Name()
		path := filepath.Join(dir, name)
		suffix := strings.ToLower(filepath.Ext(name))
		switch {
		case name[0] == '.':
		case e.IsDir():
			if torch.IsFolder(path) {
				folders = append(folders, path)
			}
		case suffix == ".onnx":
			onnx = append(onnx, path)
		case slices.ContainsFunc(besides, func(s string) bool { return strings.HasPrefix(name, s) }) || IsOurs(path):
		case slices.Contains(checkpoints.Suffixes, suffix):
			files = append(files, path)
		}
	}
	switch {
	case len(folders) > 0:
		files = folders
	case torch.IsFolder(dir):
		files = []string{dir}
	}
	found = onnx
	if template && len(files) > 0 || len(onnx) == 0 {
		found, over = numbered(files)
	}
	if len(found) == 0 {
		var refused *torch.Error
		if _, err := torch.Open(dir); errors.As(err, &refused) && refused.Hint != "" {
			return nil, nil, BadInput(err)
		}
		return nil, nil, BadInput(fmt.Errorf("%s: a folder without checkpoints", dir), "its subfolders are not searched: name the files, or the folder that holds them")
	}
	slices.SortFunc(found, natural.Compare)
	return found, over, nil
}

// numbered returns the files with a number in what tells their names apart, and the
// others, where there are several with one: training scripts save the last or best
// checkpoint under such a name once more.
func numbered(paths []string) (with, without []string) {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	prefix, suffix := common(names)
	for i, path := range paths {
		if strings.ContainsAny(names[i][len(prefix):len(names[i])-len(suffix)], "0123456789") {
			with = append(with, path)
		} else {
			without = append(without, names[i])
		}
	}
	if len(with) < 2 {
		return paths, nil
	}
	return with, without
}
