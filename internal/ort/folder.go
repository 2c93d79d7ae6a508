package ort

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/onnxio"
)

// mostInMemory is the largest size in bytes of a model with data files that can also run from memory. ONNX Runtime holds
// several copies of such a model while it loads it.
const mostInMemory = 64 << 20

// free is replaced in tests.
var free = tempfile.Free

// NewFilledSession is NewSession for a model that has not been assembled yet. A model with data files is written to a
// temporary folder, and ONNX Runtime maps the files from there. So the session needs hardly more memory than a run
// touches. The folder is removed before NewFilledSession returns, because mapped files need no name. If ctx ends, the
// writing stops. Without room for the files, a model that is not very large runs from memory.
func (r *Runtime) NewFilledSession(ctx context.Context, f onnxio.Filled, opts Options) (*Session, error) {
	if opts.Provider.Feeds() {
		if s, err := r.feed(ctx, f, opts); !errors.Is(err, onnxio.ErrNotParameterized) {
			return s, err
		}
	}
	if opts.Provider.Precision == F16 {
		half, err := f.Half()
		if err != nil {
			return nil, err
		}
		f = half
	}
	sig, err := f.Template.Signature()
	if err != nil {
		return nil, err
	}
	if len(f.Template.Files()) == 1 {
		return r.fromMemory(ctx, f, sig, opts)
	}
	size := f.Template.Size()
	if size <= mostInMemory && free() < 2*size { // the other half is for others
		return r.fromMemory(ctx, f, sig, opts)
	}
	s, err := r.fromFolder(ctx, f, sig, opts)
	if _, full := errors.AsType[*tempfile.TempError](err); full && size <= mostInMemory {
		return r.fromMemory(ctx, f, sig, opts)
	}
	return s, err
}

// fromMemory makes a session of a model in memory. Constants are folded as for the same model in files.
func (r *Runtime) fromMemory(ctx context.Context, f onnxio.Filled, sig onnxio.Signature, opts Options) (*Session, error) {
	whole, err := f.OneFile()
	if err != nil {
		return nil, err
	}
	model, err := whole.Template.Render(f.Layout, f.Parameters, f.Statistics)
	if err != nil {
		return nil, err
	}
	return r.load(ctx, model, sig, "", f.Template.Size(), opts)
}

// fromFolder makes a session of a model in a temporary folder.
func (r *Runtime) fromFolder(ctx context.Context, f onnxio.Filled, sig onnxio.Signature, opts Options) (*Session, error) {
	dir, err := tempfile.Folder()
	if err != nil {
		return nil, err
	}
	defer tempfile.Remove(dir)
	model, err := writeFolder(ctx, dir, f)
	if err != nil {
		return nil, err
	}
	return r.load(ctx, model, sig, dir, f.Template.Size(), opts)
}

// writeFolder writes the data files of the model to dir and returns the model.
func writeFolder(ctx context.Context, dir string, f onnxio.Filled) (model []byte, err error) {
	root, err := os.OpenRoot(dir) // the file names come from a posterior, which is untrusted
	if err != nil {
		return nil, tempfile.Temp(err)
	}
	defer root.Close()
	var main bytes.Buffer
	var files []*os.File
	defer func() {
		for _, file := range files {
			err = cmp.Or(err, tempfile.Temp(file.Close()))
		}
		if err != nil {
			model, err = nil, fmt.Errorf("temporary copy of a model of %d bytes: %w", f.Template.Size(), err)
		}
	}()
	name := f.Template.Files()[0]
	err = f.Template.Write(name, func(file string) (io.Writer, error) {
		if file == name {
			return &main, nil
		}
		if err := root.MkdirAll(path.Dir(file), 0o700); err != nil {
			return nil, tempfile.Temp(err)
		}
		out, err := root.Create(file)
		if err != nil {
			return nil, tempfile.Temp(err)
		}
		files = append(files, out)
		return until{ctx.Err, out}, nil
	}, f.Layout, f.Parameters, f.Statistics)
	return main.Bytes(), err
}

// until is a temporary file whose writes fail as soon as ended returns an error.
type until struct {
	ended func() error
	file  *os.File
}

func (u until) Write(p []byte) (int, error) {
	if err := u.ended(); err != nil {
		return 0, err
	}
	n, err := u.file.Write(p)
	return n, tempfile.Temp(err)
}

// A sharedError reports that another user can change what runs.
type sharedError string

func (e sharedError) Error() string { return string(e) }

// private returns a [sharedError] if another user than root and this one owns the file, or can write to it. For a folder
// of another user it is a [cacheError]: Install cannot repair it.
func private(f *os.File) error {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return err
	}
	acl, _ := unix.Fgetxattr(int(f.Fd()), "system.posix_acl_access", nil) // its rights are in the group's bits
	me := uint32(os.Geteuid())
	why := shared(s.Uid, s.Gid, fs.FileMode(s.Mode), me, acl > 0)
	if why == "" {
		return nil
	}
	err := error(sharedError(f.Name() + " " + why))
	if s.Uid != 0 && s.Uid != me && s.Mode&unix.S_IFMT == unix.S_IFDIR {
		return cacheError{err}
	}
	return err
}

// shared returns the reason why another user than root and me can write to a file, or "". Many systems give each user a
// group of the same name, and let it write to new files. That group counts as the user, and root's group as root.
func shared(owner, group uint32, mode fs.FileMode, me uint32, acl bool) string {
	switch {
	case owner != 0 && me == 0:
		return fmt.Sprintf("belongs to user %d, want root", owner)
	case owner != 0 && owner != me:
		return fmt.Sprintf("belongs to user %d, want user %d or root", owner, me)
	case mode&0o002 != 0:
		return "can be written by every user"
	case mode&0o020 != 0 && (acl || group != 0 && !ownGroup(group, me)):
		return fmt.Sprintf("can be written by group %d", group)
	}
	return ""
}

// ownGroup reports whether a group has the name of the user.
func ownGroup(group, me uint32) bool {
	u, err1 := user.LookupId(strconv.FormatUint(uint64(me), 10))
	g, err2 := user.LookupGroupId(strconv.FormatUint(uint64(group), 10))
	return err1 == nil && err2 == nil && u.Username == g.Name
}

// restrict takes the right to write to a folder from all but its owner, if this user may do that.
func restrict(dir string) {
	if info, err := os.Stat(dir); err == nil && info.Mode()&0o022 != 0 {
		os.Chmod(dir, info.Mode()&^0o022) // if it fails, verify says so
	}
}
