package fileorder

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A sequence of names is in doubt if another reading gives another order.
func TestDiffers(t *testing.T) {
	for _, tt := range []struct {
		order Order
		by    By
		names string
		want  string // the two names, or ""
	}{
		{Unsaid, Sorted, "0.png 1.png 10.png 2.png", "10.png|2.png"},
		{Unsaid, Sorted, "0.png 1.png 2.png", ""},
		{Unsaid, Sorted, "00.png 01.png 10.png", ""},
		{Unsaid, Sorted, "a.png b.png c.png", ""},
		{Unsaid, Sorted, "a10 a2 b1", "a10|a2"},
		{Unsaid, Sorted, "2024-01-02 2024-01-10 2024-02-01", ""},
		{Unsaid, Sorted, "2024-1-10 2024-1-2", "2024-1-10|2024-1-2"},
		{Unsaid, Sorted, "0.25.png 0.5.png", "0.25.png|0.5.png"},
		{Unsaid, Sorted, "1.25.png 1.50.png", ""},
		{Unsaid, Sorted, "v1.2.3 v1.2.4 v1.3.0", ""},
		{Unsaid, Sorted, "-1.png -2.png", "-1.png|-2.png"},
		{Unsaid, Sorted, "t_-1 t_-2", "t_-1|t_-2"},
		{Unsaid, Sorted, "img-1 img-2", ""},
		{Unsaid, Sorted, "01.png 1.png", "01.png|1.png"},
		{Unsaid, Sorted, "000a.png 000f.png 0010.png 001a.png", "0010.png|001a.png"},
		{Unsaid, Sorted, "0 1 10 a", "10|a"},
		{Unsaid, Sorted, "IMG_1.png img_1.png img_2.png", ""},
		{Unsaid, Sorted, "٢.png ٣.png", ""},
		{Text, Sorted, "0.png 1.png 10.png 2.png", ""},
		{Given, Sorted, "0.png 1.png 10.png 2.png", "10.png|2.png"},
		{Number, Sorted, "1.png 2.png 10.png", ""},
		{Number, Sorted, "0.5.png 0.25.png", "0.5.png|0.25.png"},
		{Number, Sorted, "01.png 1.png 2.png", "01.png|1.png"},
		{Number, Sorted, "0 1 10 a", "10|a"},
		{Unsaid, Archived, "1.png 2.png 10.png", ""},
		{Unsaid, Archived, "1.png 10.png 2.png", "10.png|2.png"},
		{Unsaid, Archived, "03.png 01.png 02.png", "03.png|01.png"},
		{Given, Archived, "03.png 01.png 02.png", ""},
		{Unsaid, Typed, "03.png 01.png 02.png", ""},
		{Unsaid, Typed, "1.png 10.png 2.png", "10.png|2.png"},
	} {
		names := strings.Fields(tt.names)
		got := ""
		if d := tt.order.Differs(names, tt.by); d != nil {
			got = names[d.At] + "|" + names[d.Other]
		}
		if got != tt.want {
			t.Errorf("order %q, %q: %q, want %q", tt.order, tt.names, got, tt.want)
		}
	}
}

// Numbers of any length are compared, and names with the same numbers as text.
func TestSort(t *testing.T) {
	names := strings.Fields("b1 a10 a2 a02 a x18446744073709551616 x2 a2b a-1")
	Sort(Number, names, func(s string) string { return s })
	if got, want := fmt.Sprint(names), "[a a-1 a02 a2 a2b a10 b1 x2 x18446744073709551616]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !slices.IsSortedFunc(names, Number.Compare) {
		t.Error("Compare has another order than Sort")
	}
}

// FuzzDiffers: no names make a panic, and names in a single order are in no doubt.
func FuzzDiffers(f *testing.F) {
	f.Add("1.png 10.png 2.png", "")
	f.Add("-0.5 v1.2.3.4. .-1", "number")
	f.Fuzz(func(t *testing.T, text, order string) {
		names := strings.Fields(text)
		o := Order(order)
		Sort(o, names, func(s string) string { return s })
		d := o.Differs(names, Sorted)
		if d != nil && names[d.At] == names[d.Other] {
			t.Errorf("%q: %+v", names, d)
		}
	})
}
