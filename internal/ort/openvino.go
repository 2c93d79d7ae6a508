package ort

import (
	"cmp"
	"encoding/json"
	"runtime"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/swagwrap/swagwrap/weights"
)

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
