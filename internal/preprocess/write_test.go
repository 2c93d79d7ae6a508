package preprocess

import (
	"strings"
	"testing"
)

// What Config writes is read as the same settings, whatever its style.
func TestConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		spec  string
		shape []int64
		style Style
	}{
		{"none", []int64{3, 32, 32}, HuggingFace},
		{"mean=0.5 std=0.25", []int64{3, 32, 32}, HuggingFace},
		{"imagenet", []int64{3, 224, 224}, Timm}, // Hugging Face rounds the offset of a crop down
		{"imagenet", []int64{224, 224, 3}, Timm},
		{"mean=0.5 std=0.25 crop-mode=squash interpolation=bilinear", []int64{3, 32, 40}, HuggingFace},
		{"crop-mode=center crop-pct=0.9", []int64{3, 96, 96}, Timm},
		{"mean=0.5 std=0.25 crop-mode=squash", []int64{1, 28, 28}, Timm},
		{"mean=0.5 std=0.25", []int64{1, 28, 28}, Own},
		{"channels=bgr", []int64{3, 32, 32}, Own},
		{"none mean=127 std=64", []int64{3, 32, 32}, HuggingFace},
		{"none crop-mode=center crop-pct=0.9", []int64{3, 32, 32}, Own},
	} {
		var s Settings
		var err error
		if s, err = s.With(tt.spec); strings.HasPrefix(tt.spec, "none ") {
			s.Scale = 1
		}
		if err == nil {
			s, err = s.Resolve(tt.shape)
		}
		if err != nil {
			t.Fatalf("%q: %v", tt.spec, err)
		}
		js, style, err := s.Config()
		if err != nil {
			t.Fatal(err)
		}
		read, err := parse(js)
		if err != nil || !s.Equal(read, tt.shape) || style != tt.style {
			t.Errorf("%q: style %v, want %v, read as %+v, %v, want %+v", tt.spec, style, tt.style, read, err, s)
		}
	}
}
