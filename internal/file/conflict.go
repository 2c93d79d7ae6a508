package file

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Conflict reports that a command would overwrite one of its own inputs.
type Conflict struct{ Path string } // path of the output

func (c *Conflict) Error() string { return c.Path + ": is an input of this command too" }

// identity identifies a file on disk, whatever its names are.
type identity struct{ device, number uint64 }

func identify(info fs.FileInfo) identity {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(s.Dev), uint64(s.Ino)}
}

// known holds the inputs and outputs of this process. Images are not held here, because there may be millions. They
// are compared with the outputs when they are listed.
var known = struct {
	sync.RWMutex
	inputs  map[identity]bool
	outputs map[string]identity // the existing files that outputs replace, by path
}{inputs: make(map[identity]bool), outputs: make(map[string]identity)}

// Input records that this process reads the file at path. It fails with a [*Conflict] if the file is an output. A
// file that does not exist is not recorded.
func Input(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return note(info)
}

// Opened is Input for an open file.
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

// Listed fails with a [*Conflict] if the file is an output. Unlike Input it does not record the file, so an output
// that is announced later is not compared with it.
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

// Output announces that this process will replace the file at path, if it exists. It fails with a [*Conflict] if the
// file is an input.
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

// Written ends what Output began: the file at path is a new one now.
func Written(path string) {
	known.Lock()
	defer known.Unlock()
	delete(known.outputs, path)
}

// Forget forgets all inputs and outputs. A process that runs several commands calls it between them.
func Forget() {
	known.Lock()
	defer known.Unlock()
	clear(known.inputs)
	clear(known.outputs)
}
