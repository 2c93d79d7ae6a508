package word

import (
	"slices"
	"strings"
	"testing"
)

// Only numbers within bounds, with commas between, are a list.
func TestReals(t *testing.T) {
	for s, want := range map[string][]float64{"1": {1}, "0.5, -2,1e3": {0.5, -2, 1000}, "1e-300": {1e-300}} {
		if got, err := Reals(s, -2, 1000); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "1,", "red", "nan", "1,inf", "1;2", "1 2", "1001", "-2.5", "1e999", strings.Repeat("1,", 1000) + "1"} {
		if got, err := Reals(s, -2, 1000); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
	if _, err := Reals("1,1e4", 0, 1000); err == nil || err.Error() != `"1e4": want 0 to 1000` {
		t.Error(err)
	}
}

// An error of a share has the unit of the text.
func TestShare(t *testing.T) {
	for s, want := range map[string]string{"0%": `"0%": want 1% to 99.999%`, "2": `"2": want 0.01 to 0.99999`, "99.9999 %": `"99.9999 %": want 1% to 99.999%`} {
		if v, err := Share(s, 0.01, 0.99999); err == nil || err.Error() != want || v != 0 {
			t.Errorf("%q: %v, %v, want %s", s, v, err, want)
		}
	}
	if v, err := Share("99.999%", 0.01, 0.99999); v != 0.99999 || err != nil {
		t.Error(v, err)
	}
}

func TestWhole(t *testing.T) {
	for _, s := range []string{"", "0", "10", "1e0", "0x1", "9223372036854775808", "1.0", "-1"} {
		if n, err := Integer(s, 1, 9); err == nil || n != 0 || !strings.HasSuffix(err.Error(), ": want 1 to 9") {
			t.Errorf("%q: %d, %v", s, n, err)
		}
	}
	if n, err := Integer("9", 1, 9); n != 9 || err != nil {
		t.Error(n, err)
	}
}
