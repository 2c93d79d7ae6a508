package ort

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	binding "github.com/yalue/onnxruntime_go"
)

// The places in the table are those of the C header that the binding brings.
func TestTable(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		t.Fatal(err)
	}
	header, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "onnxruntime_c_api.h"))
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(header), "struct OrtApi {")
	body, _, _ = strings.Cut(body, "\n};")
	body = regexp.MustCompile(`//[^\n]*`).ReplaceAllString(body, "")
	body = regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(body, "")
	places := map[string]int{}
	for i, m := range regexp.MustCompile(`ORT_API2_STATUS\(\s*(\w+)|ORT_CLASS_RELEASE2?\(\s*(\w+)|\(ORT_API_CALL\s*\*\s*(\w+)\)`).FindAllStringSubmatch(body, -1) {
		name := m[1] + m[3]
		if m[2] != "" {
			name = "Release" + m[2]
		}
		places[name] = i
	}
	for name, place := range map[string]int{
		"GetErrorMessage": 2, "CreateTensorWithDataAsOrtValue": 49, "GetTensorMutableData": 51, "GetTensorElementType": 60, "GetDimensionsCount": 61, "GetDimensions": 62,
		"GetTensorTypeAndShape": 65, "CreateMemoryInfo": 68, "AllocatorFree": 76, "GetAllocatorWithDefaultOptions": 78, "ReleaseStatus": 93, "ReleaseMemoryInfo": 94,
		"ReleaseValue": 96, "ReleaseTensorTypeAndShapeInfo": 99, "GetAvailableProviders": 125, "ReleaseAvailableProviders": 126, "RunWithBinding": 133, "CreateIoBinding": 134,
		"ReleaseIoBinding": 135, "BindInput": 136, "BindOutputToDevice": 138, "GetBoundOutputValues": 140,
	} {
		if got, ok := places[name]; !ok || got != place {
			t.Errorf("%s is at %d, want %d", name, got, place)
		}
	}
}

// The binding keeps ONNX Runtime's handles where handles looks for them.
func TestHandles(t *testing.T) {
	for _, c := range []struct {
		of    reflect.Type
		first string
	}{
		{reflect.TypeFor[binding.DynamicAdvancedSession](), "s"},
		{reflect.TypeFor[binding.AdvancedSession](), "ortSession"},
		{reflect.TypeFor[binding.RunOptions](), "o"},
	} {
		if f := c.of.Field(0); f.Name != c.first || f.Type.Kind() != reflect.Pointer {
			t.Errorf("%v begins with %s %v, want a pointer %s", c.of, f.Name, f.Type, c.first)
		}
	}
}
