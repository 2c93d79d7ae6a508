package flags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/swag"
)

// card is the model card of a command line; file.json is a configuration.
func card(t *testing.T, before swag.Card, args ...string) (card swag.Card, err error) {
	t.Helper()
	var options open.CardOptions
	if _, err = Card(&options).Parse(args); err == nil {
		card, err = options.Change(before)
	}
	return card, err
}

// Flags override the file or the preset, and these the earlier ones.
func TestCard(t *testing.T) {
	t.Cleanup(file.Forget)
	config := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(config, []byte(`{"image": {"input_size": [4, 4]}, "mean": [0.1], "std": [0.25]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	before := swag.Card{Preprocess: []byte(`{"mean":[0.5],"std":[0.5]}`)}
	for _, tc := range []struct {
		args string
		want string // the settings, or a part of the error
	}{
		{"", `{"mean":[0.5],"std":[0.5]}`},
		{"--preprocess mean=0.25;layout=NHWC;channels=bgr", `{"channels":"bgr","layout":"nhwc","mean":[0.25],"std":[0.5]}`},
		{"--preprocess " + config, `{"image":{"crop_mode":"","input_size":[4,4],"interpolation":"bilinear"},"mean":[0.1],"std":[0.25]}`},
		{"--preprocess " + config + ";std=1", `{"image":{"crop_mode":"","input_size":[4,4],"interpolation":"bilinear"},"mean":[0.1],"std":[1]}`},
		{"--preprocess input-size=8x6", `{"image":{"crop_mode":"center","input_size":[8,6],"interpolation":"bilinear"},"mean":[0.5],"std":[0.5]}`},
		{"--preprocess input-size=8x6;resize-size=9", `{"image":{"crop_mode":"center","input_size":[8,6],"resize_size":[9,9],"interpolation":"bilinear"},"mean":[0.5],"std":[0.5]}`},
		{"--preprocess input-size=8x6;crop-pct=0.875;interpolation=bicubic;crop-mode=squash", `"crop_mode":"squash","input_size":[8,6],"crop_pct":0.875,"interpolation":"bicubic"`},
		{"--preprocess imagenet;crop-pct=1", `"crop_pct":1,`},

		{"--preprocess imagnet", "--preprocess: preset "},
		{"--preprocess mean", "mean: "},
		{"--preprocess men=1", `--preprocess: "men": want one of mean`},
		{"--preprocess gone.json", "gone.json: "},
		{"--preprocess input-size=8y6", `input-size: "8y6": want 1 to 1048576, or HEIGHTxWIDTH`},
		{"--preprocess resize-size=0", `resize-size: "0": want 1 to`},
		{"--preprocess crop-pct=-1", `crop-pct: "-1": want 0.001 to 1000`},
		{"--preprocess interpolation=sharp", "interpolation: "},
		{"--preprocess crop-mode=round", "crop-mode: "},
		{"--preprocess mean=red", `mean: "red": want -1000000 to 1000000`},
		{"--preprocess std=0", `std: "0": want 1e-06 to 1000000`},
		{"--preprocess channels=cmyk", `channels "cmyk", want rgb, bgr or grey`},
		{"--preprocess layout=hcwn", `layout "hcwn", want nchw or nhwc`},
		{"--task guess", `--task "guess": want one of `},
		{"--class-names gone", "gone: "},
		{"--augment RandAugment()", "RandAugment"},
	} {
		got, err := card(t, before, strings.Fields(tc.args)...)
		if strings.Contains(tc.want, `{`) || strings.HasPrefix(tc.want, `"`) {
			if err != nil || !strings.Contains(string(got.Preprocess), tc.want) {
				t.Errorf("%s: %s, %v, want %s", tc.args, got.Preprocess, err, tc.want)
			}
			continue
		}
		if code := console.ExitCode(t.Context(), err); code != 64 && code != 65 || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %s", tc.args, err, tc.want)
		}
	}
	if _, err := card(t, swag.Card{Preprocess: []byte(`{`)}); err == nil {
		t.Error("a broken card is taken")
	}
	if OnCard("task") != "--task TASK" || OnCard("members") != "" {
		t.Error("the card's flags are not known")
	}
}
