package ort

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/weights"
)

// InstallOpenVINO is [Install] for the ONNX Runtime with the OpenVINO provider. It extracts only the libraries of the
// pinned wheel and checks the SHA-256 of each.
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
	if p.damage(dir, true) == nil {
		return path, nil
	}
	if err := writable(dir); err != nil {
		return fail("cannot be written: ", cacheError{err})
	}
	work, err := tempfile.Folder()
	if err != nil {
		return path, err
	}
	defer tempfile.Remove(work)
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

// appendOpenVINO makes OpenVINO compute the nodes of a session that it supports.
func (r *Runtime) appendOpenVINO(so *binding.SessionOptions, opts Options) error {
	callers := max(1, opts.Callers)
	config, err := json.Marshal(map[string]any{"CPU": map[string]any{
		"INFERENCE_PRECISION_HINT": cmp.Or(opts.Provider.Precision, F32),
		"INFERENCE_NUM_THREADS":    callers * cmp.Or(opts.Threads, runtime.GOMAXPROCS(0)),
		"NUM_STREAMS":              callers, // with one stream, concurrent runs wait for each other
	}})
	if err == nil {
		err = so.AppendExecutionProviderOpenVINO(map[string]string{"device_type": "CPU", "load_config": string(config)})
	}
	if err != nil {
		return &LibraryError{Path: r.path, Reason: "has no provider openvino: " + shorten(err.Error()), Err: err, Provider: OpenVINO}
	}
	return nil
}

// holdOpenVINO loads OpenVINO's plugin and keeps it until the process ends. The plugin installs a signal stack on the
// thread that loads it. When the last session closes, any thread may unmap that stack, and Go's next signal to the
// loading thread then crashes the process. So a session stays open, and the loading thread ends here.
func (r *Runtime) holdOpenVINO() error {
	if r.openVINO != nil {
		return nil
	}
	done := make(chan error)
	go weights.Guarded(func() (err error) {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		r.openVINO, err = r.NewSession(tiny, Options{Threads: 1, Provider: Provider{Name: OpenVINO}, onThisThread: true})
		done <- err
		return nil
	})()
	if err := <-done; err != nil {
		return &LibraryError{Path: r.path, Reason: "OpenVINO: " + err.Error(), Err: err, Provider: OpenVINO}
	}
	return nil
}

// openVINOFolder returns the folder where InstallOpenVINO puts the libraries.
func openVINOFolder() (string, error) {
	if _, ok := openVINOPins[platform()]; !ok {
		return "", &LibraryError{Reason: "OpenVINO: no pinned libraries for " + platform(), Provider: OpenVINO}
	}
	return cacheFolder("onnxruntime-openvino-" + OpenVINOVersion)
}

// in returns the path of the library in a folder.
func (l library) in(dir string) string { return filepath.Join(dir, path.Base(l.member)) }

// path returns the path of the library to open.
func (p wheelPin) path(dir string) string { return p.libraries[len(p.libraries)-1].in(dir) }

// errNone reports that no library of a wheel is installed.
var errNone = errors.New("not installed")

// damage returns an error unless all libraries are whole: see the function verify.
func (p wheelPin) damage(dir string, fresh bool) error {
	for _, lib := range p.libraries {
		err := verify(lib.in(dir), fresh, lib.sha256)
		if errors.Is(err, fs.ErrNotExist) {
			return errNone
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findOpenVINO is [Provider.Find] for OpenVINO.
func findOpenVINO(explicit string, fresh bool) (Library, error) {
	l := Library{explicit, "--ort-lib"}
	err := error(nil)
	if explicit == "" {
		var dir string
		if dir, err = openVINOFolder(); err != nil {
			return l, err
		}
		p := openVINOPins[platform()]
		l = Library{p.path(dir), "swagwrap setup --provider openvino"}
		err = p.damage(dir, fresh)
	} else if err = checkRegular(explicit); err != nil {
		err = fmt.Errorf("named by --ort-lib: %w", err)
	}
	if err != nil {
		return l, &LibraryError{Path: l.Path, Reason: reason(err), Err: err, Provider: OpenVINO}
	}
	return l, nil
}
