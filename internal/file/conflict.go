package file

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Conflict is the error of a file that is read, and would be written too.
type Conflict struct{ Path string } // of the output

func (c *Conflict) Error() string { return c.Path + ": is an input of this command too" }

// Files are known by where they are on disk, whatever their names are.
type identity struct{ device, number uint64 }

func identify(info fs.FileInfo) identity {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(s.Dev), uint64(s.Ino)}
}

// known are the inputs and outputs of this process. There are few: images, of
// which there may be millions, are held against the outputs when they are listed.
var known = struct {
	sync.RWMutex
	inputs  map[identity]bool
	outputs map[string]identity // by path: of the files that they replace
}{inputs: make(map[identity]bool), outputs: make(map[string]identity)}

// Input notes that this process reads the file at path, now or later. It fails
// with a [*Conflict] if that is an output. A file that is not there is not noted.
func Input(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return note(info)
}

// Opened is Input for a file that is open.
func Opened(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return note(info)
}

func note(info fs.FileInfo) error {
	known.Lock()
	known.inputs[identify(info)] = true
	known.Unlock()
	return Listed(info)
}

// Listed fails with a [*Conflict] if the file is an output. Unlike Input it forgets
// the file, which is then safe only from outputs that were announced before.
func Listed(info fs.FileInfo) error {
	known.RLock()
	defer known.RUnlock()
	if len(known.outputs) > 0 {
		id := identify(info)
		for path, of := range known.outputs {
			if of == id {
				return &Conflict{path}
			}
		}
	}
	return nil
}

// Output announces that this process will put a file in the place of the one at
// path, if there is one. It fails with a [*Conflict] if that is an input.
func Output(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	id := identify(info)
	known.Lock()
	defer known.Unlock()
	if known.inputs[id] {
		return &Conflict{path}
	}
	known.outputs[path] = id
	return nil
}

// Written ends what Output began: the file at path is another now.
func Written(path string) {
	known.Lock()
	defer known.Unlock()
	delete(known.outputs, path)
}

// Forget forgets all inputs and outputs. A process that does one thing after the
// other calls it between them.
func Forget() {
	known.Lock()
	defer known.Unlock()
	clear(known.inputs)
	clear(known.outputs)
}
