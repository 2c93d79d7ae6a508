package ort

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/weights"
)

// openVINO is Intel's provider.
func openVINO() *kind {
	return &kind{
		name:     OpenVINO,
		own:      "OpenVINOExecutionProvider",
		oldest:   OpenVINOVersion,
		low:      []string{BF16},
		explicit: true,
		compiles: true,
		fuses:    true,
		libraries: packaged{"ONNX Runtime " + OpenVINOVersion + " with OpenVINO, 80 MB,", "onnxruntime-openvino-" + OpenVINOVersion,
			func() []source {
				return openVINOPins[platform()]
			}},
		hint: (*LibraryError).hintOpenVINO,
		hold: func(r *Runtime, _ Provider) error { return r.holdOpenVINO() },
		add:  (*Runtime).appendOpenVINO,
	}
}

// hintOpenVINO says what to do about OpenVINO if it cannot be used.
func (e *LibraryError) hintOpenVINO() string {
	switch _, pinned := openVINOPins[platform()]; {
	case errors.Is(e.Err, errNoNode):
		return onCPU() + " runs it"
	case !pinned:
		return "leave " + setting.Provider.String() + " out: OpenVINO is offered for linux/amd64"
	}
	return fmt.Sprintf("%s fetches ONNX Runtime %s with OpenVINO with pip; or %s", e.setup(), OpenVINOVersion, e.otherLibrary())
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
		return Provider{Name: OpenVINO}.unusable(r.path, "OpenVINO: "+err.Error(), err)
	}
	return nil
}
