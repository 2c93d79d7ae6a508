package webpage

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/webpage/inputs"
)

// source is the page as git has it, which is without what make page adds.
func source(t *testing.T) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{}
	entries, err := fs.ReadDir(embedded, "page")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := fs.ReadFile(embedded, "page/"+e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(built, e.Name()) {
			all["page/"+e.Name()] = &fstest.MapFile{Data: content}
		}
	}
	return all
}

// A page has all files that its own files name, and names reach it as data.
func TestFiles(t *testing.T) {
	p := Page{Title: "</script>", Names: []string{"<b>&</b>"}, Network: inputs.Network{Inputs: []inputs.Input{{Name: "x", Type: "float32", Shape: []int64{1}, Columns: []string{"a"}}}}}
	from := source(t)
	if _, err := p.files(from); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("without WebAssembly: %v", err)
	}
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	gz.Write([]byte("code"))
	gz.Close()
	from["page/inputs.wasm.gz"], from["page/wasm_exec.js"] = &fstest.MapFile{Data: packed.Bytes()}, &fstest.MapFile{Data: []byte("loader")}
	files, err := p.files(from)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(files["inputs.wasm"]); got != "code" {
		t.Errorf("unpacked: %q", got)
	}
	if want := []string{"index.html", "inputs.wasm", "page.css", "page.js", "page.json", "wasm_exec.js", "worker.js"}; !slices.Equal(slices.Sorted(maps.Keys(files)), want) {
		t.Errorf("%q, want %q", slices.Sorted(maps.Keys(files)), want)
	}
	var back Page
	if err := json.Unmarshal(files["page.json"], &back); err != nil || back.Title != p.Title || back.Names[0] != p.Names[0] {
		t.Errorf("%+v, %v", back, err)
	}
	if bytes.Contains(files["page.json"], []byte("<b>")) {
		t.Error("markup in page.json")
	}
	for _, name := range []string{"page.js", "worker.js"} {
		if bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://[^lw]`).Find(files[name]); bad != nil {
			t.Errorf("%s has %q", name, bad)
		}
	}
	policy := string(files["index.html"])
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "'unsafe-inline'") || strings.Contains(policy, "'unsafe-eval'") || strings.Contains(policy, "<style") || strings.Contains(policy, "style=") {
		t.Error("the policy of the page is not strict")
	}
	p.Network.Inputs[0].Columns = nil
	if _, err := p.files(from); err == nil {
		t.Error("a network without columns was accepted")
	}
}

func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		spec  string
		bytes bool
		want  string
	}{
		{"imagenet input-size=224", false, "A picture is resized (bilinear) until it covers 256×256 pixels, in its proportions. The middle of it is cut out: 224×224 pixels. Values are divided by 255, less 0.485, 0.456, 0.406, divided by 0.229, 0.224, 0.225."},
		{"input-size=20x30 crop-mode=squash interpolation=bicubic channels=grey", false, "A picture is resized to 30×20 pixels (bicubic), without keeping its proportions. Colours become grey. Values are divided by 255."},
		{"input-size=8 crop-mode=none channels=bgr", true, "A picture must have 8×8 pixels. It is not resized. The network takes blue, green, red. The network takes the pixels, 0 to 255. Alpha is dropped, and Exif orientation is not applied, as in training with torchvision."},
		{"input-size=8 crop-mode=squash orientation=apply mean=127.5 std=127.5", false, "A picture is resized to 8×8 pixels (bilinear), without keeping its proportions. Values stay 0 to 255, less 127.5, divided by 127.5. Alpha is dropped, and pictures are turned as their Exif orientation says."},
		{"input-size=8 crop-mode=squash orientation=ignore", true, "A picture is resized to 8×8 pixels (bilinear), without keeping its proportions. The network takes the pixels, 0 to 255. Alpha is dropped, and no picture is turned as its orientation says."},
	} {
		s, err := preprocess.Settings{}.With(tt.spec)
		if err == nil {
			s, err = s.Resolve([]int64{-1, -1, -1})
		}
		if err != nil {
			t.Fatal(tt.spec, err)
		}
		if got := strings.Join(Steps(s, tt.bytes), " "); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.spec, got, tt.want)
		}
	}
}
