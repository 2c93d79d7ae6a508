package inputs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/maruel/natural"
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// IsOurs reports whether this program wrote the file, such as a posterior or an ensemble. It does not register the file
// as an input.
func IsOurs(path string) bool {
	_, metadata := begin(path)
	return ours[metadata["kind"]] != ""
}

// Models returns the arguments, and replaces each folder by its checkpoints, in natural order. These are ONNX files.
// They are PyTorch files with --template, or if there are no ONNX files. Hidden files, and subfolders that are not
// checkpoints, are left out.
func (a *Env) Models(c *cli.Context, args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		if info, err := os.Stat(arg); err != nil || !info.IsDir() {
			paths = append(paths, arg) // opening the path reports the error
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

// besides are prefixes of the files that trainers save together with a checkpoint's weights.
var besides = []string{"optimizer", "scheduler", "rng_state", "training_args", "scaler", "random_states"}

// inFolder returns the checkpoints in a folder, and the similar files that were left out. A trainer's folder holds
// checkpoints as subfolders. It may also hold the weights of the last one directly.
func inFolder(dir string, template bool) (found, over []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, flags.BadInput(err)
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
			return nil, nil, flags.BadInput(err)
		}
		return nil, nil, flags.BadInput(fmt.Errorf("%s: a folder without checkpoints", dir), "its subfolders are not searched: name the files, or the folder that holds them")
	}
	slices.SortFunc(found, natural.Compare)
	return found, over, nil
}

// numbered splits the files by whether the distinguishing part of their names contains a number. It does so only if
// several have one. Training scripts save the last or best checkpoint a second time under a name without a number.
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
