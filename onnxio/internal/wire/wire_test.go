package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"google.golang.org/protobuf/encoding/protowire"
)

// A message grows, and only its length prefix and that of what is around it
// change.
func Example() {
	inner := AppendString(nil, 1, "weights")
	file := ContentOf(AppendBytes(AppendVarint(nil, 1, 8), 7, inner))

	s := NewScanner(file)
	root := &Message{Length: -1, Body: Span{0, file.Size}}
	var graph *Message
	err := s.Fields(root.Body, func(f Field) (err error) {
		if f.Num == 7 {
			graph, err = s.Enter(f, root)
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	end := Span{graph.Body.End, graph.Body.End}
	edited, _ := ApplyInMessages(file, []Splice{{At: end, With: AppendString(nil, 2, "more"), In: graph}})
	fmt.Printf("%q\n%q\n", file.All(), edited.All())
	// Output:
	// "\b\b:\t\n\aweights"
	// "\b\b:\x0f\n\aweights\x12\x04more"
}

// everything is a message with a field of every wire type.
func everything() []byte {
	b := AppendVarint(nil, 1, 1<<40)
	b = AppendFloat(b, 2, 1.5)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 3, protowire.Fixed64Type), 7)
	b = AppendString(b, 4, "text")
	b = protowire.AppendGroup(protowire.AppendTag(b, 5, protowire.StartGroupType), 5, AppendVarint(nil, 1, 3))
	return AppendBytes(b, 6, protowire.AppendVarint(protowire.AppendVarint(nil, 300), 2))
}

func TestFields(t *testing.T) {
	data := everything()
	s := NewScanner(ContentOf(data))
	var numbers []int
	var values []uint64
	at := 0
	err := s.Fields(Span{0, len(data)}, func(f Field) error {
		if f.Tag != at || f.Span().Start != at {
			t.Errorf("field %d begins at %d, want %d", f.Num, f.Tag, at)
		}
		at = f.Body.End
		numbers = append(numbers, int(f.Num))
		switch f.Num {
		case 4:
			if text, err := s.String(f); err != nil || text != "text" {
				t.Errorf("string %q, %v", text, err)
			}
		case 1, 6:
			return s.Varints(f, func(v uint64) error {
				values = append(values, v)
				return nil
			})
		}
		return nil
	})
	if err != nil || at != len(data) || !slices.Equal(numbers, []int{1, 2, 3, 4, 5, 6}) || !slices.Equal(values, []uint64{1 << 40, 300, 2}) {
		t.Errorf("fields %v, integers %v, up to byte %d: %v", numbers, values, at, err)
	}
	for n := range data {
		cut := NewScanner(ContentOf(data[:n]))
		fields := 0
		err := cut.Fields(Span{0, n}, func(Field) error { fields++; return nil })
		if err == nil && fields == 6 {
			t.Errorf("cut to %d bytes, all fields are there", n)
		}
	}
}

func TestRefusedFields(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"length beyond the end": {[]byte{0x22, 5, 'a'}, "byte 1: field 4: the file ends in the middle"},
		"not UTF-8":             {AppendBytes(nil, 4, []byte{0xff}), "field 4: not UTF-8"},
		"an integer":            {AppendVarint(nil, 4, 1), "field 4 has wire type 0, want 2"},
	} {
		s := NewScanner(ContentOf(c.data))
		err := s.Fields(Span{0, len(c.data)}, func(f Field) error {
			_, err := s.String(f)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	s := NewScanner(Content{})
	var err error
	for n := 0; err == nil && n <= keepBase/ItemCost; n++ {
		err = s.Keep(ItemCost)
	}
	if err == nil {
		t.Error("an empty file may hold any number of items")
	}
}

// The bytes of a hole are not at hand, but those around it are.
func TestHoles(t *testing.T) {
	var c Content
	c.Add(AppendPrefix(AppendString(nil, 1, "before"), 2, 1000))
	c.AddHole("w", 1000)
	c.Add(AppendString(nil, 3, "after"))
	s := NewScanner(c)
	var names []string
	err := s.Fields(Span{0, c.Size}, func(f Field) error {
		if f.Num == 2 {
			if _, err := s.Bytes(f); err == nil || f.Body.Len() != 1000 {
				t.Errorf("the hole of %d bytes is read: %v", f.Body.Len(), err)
			}
			return nil
		}
		name, err := s.String(f)
		names = append(names, name)
		return err
	})
	if err != nil || !slices.Equal(names, []string{"before", "after"}) || c.All() != nil {
		t.Errorf("names %q, %v", names, err)
	}
}

// Splices apply in any order, and overlapping ones are refused.
func TestApply(t *testing.T) {
	data := []byte("0123456789")
	got, overlap := Apply(ContentOf(data), []Splice{{At: Span{8, 9}, With: []byte("eight")}, {At: Span{2, 4}, Elements: []byte("-"), Hole: "w", Bytes: 3}})
	var b bytes.Buffer
	for _, p := range got.Parts {
		if p.IsHole() {
			b.WriteString(strings.Repeat(p.Tensor, p.Len()))
		}
		b.Write(p.Data)
	}
	if overlap != nil || b.String() != "01-www4567eight9" || got.Size != b.Len() {
		t.Errorf("%q of %d bytes, %v", b.String(), got.Size, overlap)
	}
	if _, overlap := Apply(ContentOf(data), []Splice{{At: Span{2, 5}}, {At: Span{4, 6}}}); overlap == nil || overlap.At.Start != 4 {
		t.Errorf("overlap %v", overlap)
	}
}

// FuzzFields: no file makes the walk panic, or leave the file.
func FuzzFields(f *testing.F) {
	f.Add(everything())
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewScanner(ContentOf(data))
		end := 0
		var err error
		reliability.Heap(t, len(data), func() {
			err = s.Fields(Span{0, len(data)}, func(f Field) error {
				if f.Tag != end || f.Body.Start < f.Tag || f.Body.End > len(data) || f.Body.Len() < 0 {
					t.Fatalf("field %+v after byte %d of %d", f, end, len(data))
				}
				end = f.Body.End
				_, err := s.String(f)
				return errors.Join(err, s.Varints(f, func(uint64) error { return nil }))
			})
		})
		if err == nil && end != len(data) {
			t.Fatalf("the fields end at byte %d of %d", end, len(data))
		}
	})
}
