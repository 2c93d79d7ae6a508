package ort

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/file"
)

const (
	// Web is ONNX Runtime for browsers, in WebAssembly. No command computes with it.
	Web = "web"
	// WebEnv is the environment variable that names its archive, as npm packs it, where there is no network.
	WebEnv = "SWAGWRAP_ORT_WEB"

	webRelease = "onnxruntime-web@" + DeviceVersion
)

// The files of a page: the module, and what it runs.
const (
	WebModule   = "ort.wasm.bundle.min.mjs"
	WebAssembly = "ort-wasm-simd-threaded.wasm"
)

// web is the kind of [Web]. It is not among kinds, since no network runs on it here.
func web() *kind {
	return &kind{name: Web, explicit: true, hint: func(e *LibraryError) string {
		return fmt.Sprintf("%s fetches it with npm; or %s names the archive that `npm pack %s` makes on another machine, for that command",
			e.setup(), WebEnv, webRelease)
	}, libraries: packaged{"ONNX Runtime " + DeviceVersion + " for browsers, 33 MB,", "onnxruntime-web-" + DeviceVersion, webSources}}
}

// webSources has the published package, or the archive that the user names.
func webSources() []source {
	s := source{"npm", webRelease, "", []library{
		{"package/dist/" + WebAssembly, 14239897, "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2"},
		{"package/dist/" + WebModule, 73054, "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90"},
	}}
	if archive := os.Getenv(WebEnv); archive != "" {
		s.manager, s.release = ownArchive, archive
	}
	return []source{s}
}

// Computes reports whether commands can compute with the provider.
func (p Provider) Computes() bool { return p.Name != Web }

// maxWeb bounds the size of a file for browsers. Those of ONNX Runtime have up to 30 MB.
const maxWeb = 200 << 20

// WebFiles returns the files for browsers by their names, from the user's cache folder. They are the published bytes. An
// error is a [*LibraryError].
func WebFiles() (map[string][]byte, error) {
	b, dir, err := Provider{Name: Web}.cached()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for k, l := range b.sources[0].libraries {
		content, err := file.Content(b.path(dir, k), maxWeb)
		if sum := sha256.Sum256(content); err == nil && hex.EncodeToString(sum[:]) != l.sha256 {
			err = damagedError(filepath.Base(b.path(dir, k)) + " is not the published file")
		}
		if err != nil {
			return nil, b.failure(dir, err)
		}
		files[path.Base(l.member)] = content
	}
	return files, nil
}
