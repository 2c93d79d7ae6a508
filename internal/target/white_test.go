package target

import (
	"strings"
	"testing"
)

// 255 is class 1 where there are two classes, and where 1 does not occur.
func TestWhite(t *testing.T) {
	ignored := 255
	for name, tt := range map[string]struct {
		classes int
		ignore  *int
		labels  []int64
		want    []int
		rule    bool
		err     string
	}{
		"0 and 255":            {2, nil, []int64{0, 255, 255, 0}, []int{0, 1, 1, 0}, true, ""},
		"0 and 1":              {2, nil, []int64{0, 1, 0}, []int{0, 1, 0}, false, ""},
		"0 alone":              {2, nil, []int64{0, 0}, []int{0, 0}, false, ""},
		"0, 255 and unknown":   {2, nil, []int64{-1, 255, -100}, []int{-1, 1, -1}, true, ""},
		"1 and then 255":       {2, nil, []int64{1, 0, 255}, nil, false, "label 255, and other labels are 1"},
		"255 and then 1":       {2, nil, []int64{255, 1}, nil, false, "label 1, and other labels are 255"},
		"255 ignored":          {2, &ignored, []int64{0, 255, 1}, []int{0, -1, 1}, false, ""},
		"several classes":      {3, nil, []int64{0, 255}, []int{0, 255}, false, ""},
		"nobody knows":         {0, nil, []int64{0, 255}, []int{0, 255}, false, ""},
		"another number of it": {2, nil, []int64{0, 254}, []int{0, 254}, false, ""},
	} {
		p := Positions{Width: 1, Classes: tt.classes, Ignore: tt.ignore, White: &White{}}
		var err error
		for i, v := range tt.labels {
			var got int
			if got, err = p.Class(v, true); err != nil {
				break
			}
			if tt.want != nil && got != tt.want[i] {
				t.Errorf("%s: label %d is class %d, want %d", name, v, got, tt.want[i])
			}
		}
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		}
		if err == nil && (p.White.Rule() != "") != tt.rule {
			t.Errorf("%s: rule %q", name, p.White.Rule())
		}
	}
}
