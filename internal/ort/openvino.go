package ort

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/swagwrap/swagwrap/internal/unfinished"
	"github.com/swagwrap/swagwrap/weights"
)

// InstallOpenVINO is [Install] for the ONNX Runtime that has the provider OpenVINO: it
// takes the libraries of the pinned wheel, each by its SHA-256, and nothing else.
func InstallOpenVINO(ctx context.Context, progress func(string)) (path string, err error) {
	dir, err := openVINOFolder()
	if err != nil {
		return "", err
	}
	return installWheel(ctx, dir, openVINOPins[platform()], progress)
}

func installWheel(ctx context.Context, dir string, p wheelPin, progress func(string)) (path string, err error) {
	path = p.path(dir)
	fail := func(what string, err error) (string, error) {
		return path, &LibraryError{Path: path, Reason: what + reason(err), Err: err, Provider: OpenVINO}
	}
	if p.damage(dir) == nil {
		return path, nil
	}
	if err := writable(dir); err != nil {
		return fail("cannot be written: ", cacheError{err})
	}
	work, err := unfinished.Folder()
	if err != nil {
		return path, err
	}
	defer unfinished.Remove(work)
	progress(fmt.Sprintf("fetching ONNX Runtime %s with OpenVINO, 80 MB, with pip", OpenVINOVersion))
	wheel, err := pipWheel(ctx, work, openVINOPackage+"=="+OpenVINOVersion, p.wheelTag)
	for _, lib := range p.libraries {
		if err == nil {
			err = extract(wheel, lib, lib.in(dir))
		}
	}
	switch {
	case ctx.Err() != nil:
		return path, ctx.Err()
	case err != nil:
		return fail("could not be fetched: pip: ", err)
	}
	progress("installed " + path)
	return path, nil
}

// appendOpenVINO lets OpenVINO take the nodes of a session that it can.
func (r *Runtime) appendOpenVINO(so *binding.SessionOptions, opts Options) error {
	callers := max(1, opts.Callers)
	config, err := json.Marshal(map[string]any{"CPU": map[string]any{
		"INFERENCE_PRECISION_HINT": cmp.Or(opts.Provider.Precision, F32),
		"INFERENCE_NUM_THREADS":    callers * cmp.Or(opts.Threads, runtime.GOMAXPROCS(0)),
		"NUM_STREAMS":              callers, // with one, runs at the same time wait for each other
	}})
	if err == nil {
		err = so.AppendExecutionProviderOpenVINO(map[string]string{"device_type": "CPU", "load_config": string(config)})
	}
	if err != nil {
		return &LibraryError{Path: r.path, Reason: "has no provider openvino: " + shorten(err.Error()), Err: err, Provider: OpenVINO}
	}
	return nil
}

// holdOpenVINO loads OpenVINO's plugin for good, or fails. The plugin gives the thread that
// loads it another stack for signals, which it unmaps when the last session goes, from
// whatever thread: the next signal that Go sends the first thread would end the process.
// So that thread ends here, and a session stays.
func (r *Runtime) holdOpenVINO() error {
	if r.openVINO != nil {
		return nil
	}
	done := make(chan error)
	go weights.Guarded(func() (err error) {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		r.openVINO, err = r.NewSession(tiny, Options{Threads: 1, Provider: Provider{Name: OpenVINO}, onThisThread: true})
		done <- err
		return nil
	})()
	if err := <-done; err != nil {
		return &LibraryError{Path: r.path, Reason: "OpenVINO: " + err.Error(), Err: err, Provider: OpenVINO}
	}
	return nil
}

// openVINOFolder is where InstallOpenVINO puts the libraries.
func openVINOFolder() (string, error) {
	if _, ok := openVINOPins[platform()]; !ok {
		return "", &LibraryError{Reason: "OpenVINO: no pinned libraries for " + platform(), Provider: OpenVINO}
	}
	return cacheFolder("onnxruntime-openvino-" + OpenVINOVersion)
}

// in is the library's place in a folder.
func (l library) in(dir string) string { return filepath.Join(dir, path.Base(l.member)) }

// path is that of the library to open.
func (p wheelPin) path(dir string) string { return p.libraries[len(p.libraries)-1].in(dir) }

// errNone says that nothing of a wheel is there.
var errNone = errors.New("not installed")

// sizes fails if a library is missing, or of another size than it should be.
func (p wheelPin) sizes(dir string) error {
	for _, lib := range p.libraries {
		switch info, err := os.Stat(lib.in(dir)); {
		case errors.Is(err, fs.ErrNotExist):
			return errNone
		case err != nil:
			return err
		case info.Size() != lib.size:
			return fmt.Errorf("damaged: %s has %d bytes, want %d", filepath.Base(lib.member), info.Size(), lib.size)
		}
	}
	return nil
}

// damage is sizes, and reads them all.
func (p wheelPin) damage(dir string) error {
	if err := p.sizes(dir); err != nil {
		return err
	}
	for _, lib := range p.libraries {
		if sum, err := fileSHA256(lib.in(dir)); err != nil || sum != lib.sha256 {
			return errors.Join(err, fmt.Errorf("damaged: %s has SHA-256 %s, want %s", filepath.Base(lib.member), sum, lib.sha256))
		}
	}
	return nil
}

// findOpenVINO is [Provider.Find] for OpenVINO.
func findOpenVINO(explicit string) (Library, error) {
	l := Library{explicit, "--ort-lib"}
	err := error(nil)
	if explicit == "" {
		var dir string
		if dir, err = openVINOFolder(); err != nil {
			return l, err
		}
		p := openVINOPins[platform()]
		l = Library{p.path(dir), "swagwrap setup --provider openvino"}
		err = p.sizes(dir)
	} else if err = checkRegular(explicit); err != nil {
		err = fmt.Errorf("named by --ort-lib: %w", err)
	}
	if err != nil {
		return l, &LibraryError{Path: l.Path, Reason: reason(err), Err: err, Provider: OpenVINO}
	}
	return l, nil
}
