package statefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pieces of the metadata of a distributed checkpoint.

func object(class string, state ...string) string {
	return name("torch.distributed.checkpoint.metadata", class) + ")\x81" + items(state...) + "b"
}

func size(n ...int64) string { return call(name("torch", "Size"), nums(n...)) }

// box is a chunk of a tensor.
func box(at, extent string) string {
	return object("ChunkStorageMetadata", str("offsets"), at, str("sizes"), extent)
}

func listed(shape string, boxes ...string) string {
	return object("TensorStorageMetadata", str("properties"), "N", str("size"), shape, str("chunks"), "]("+strings.Join(boxes, "")+"e")
}

// tensorAt is an entry of the storage data: where the part of a tensor at an offset is.
func tensorAt(tensor, offset, file, from, length string) string {
	return object("MetadataIndex", str("fqn"), str(tensor), str("offset"), offset, str("index"), num(0)) +
		object("_StorageInfo", str("relative_path"), file, str("offset"), from, str("length"), length)
}

// A folder of two files that hold two floats each.
type assembled struct{ tensors, places, planner string }

var part0, part1 = str("__0_0.distcp"), str("__1_0.distcp")

func goodFolder() assembled {
	n := num(int64(len(zipped(weight))))
	return assembled{
		str("w") + listed(size(4), box(size(0), size(2)), box(size(2), size(2))),
		tensorAt("w", size(0), part0, num(0), n) + tensorAt("w", size(2), part1, num(0), n),
		"}",
	}
}

func (a assembled) pickle() string {
	return "\x80\x02" + object("Metadata", str("state_dict_metadata"), items(a.tensors), str("storage_data"), items(a.places), str("planner_data"), a.planner) + "."
}

// write writes the folder.
func (a assembled) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for file, data := range map[string][]byte{metadataName: []byte(a.pickle()), "__0_0.distcp": zipped(weight), "__1_0.distcp": zipped(weight)} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// useFolder opens the folder, and reads all that it has.
func useFolder(dir string) error {
	f, err := Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, sd := range f.StateDicts() {
		if sd.Err() != nil {
			return sd.Err()
		}
		for _, x := range sd.All() {
			x.Bytes()
		}
	}
	return nil
}

// Metadata of strangers: places outside of the folder, parts that overlap, miss or are too large, and code.
func TestAttackDistributed(t *testing.T) {
	t.Parallel()
	n, huge := int64(len(zipped(weight))), int64(1)<<62
	length := num(n)
	sentinel := filepath.Join(t.TempDir(), "pwned")
	code := call(name("posix", "system"), str("touch '"+sentinel+"'"))
	change := func(f func(a *assembled)) assembled { a := goodFolder(); f(&a); return a }
	file := func(s string) assembled {
		return change(func(a *assembled) {
			a.places = tensorAt("w", size(0), str(s), num(0), length) + tensorAt("w", size(2), part1, num(0), length)
		})
	}
	boxes := func(shape string, b ...string) assembled {
		return change(func(a *assembled) { a.tensors = str("w") + listed(shape, b...) })
	}
	from := func(from, length string) assembled {
		return change(func(a *assembled) {
			a.places = tensorAt("w", size(0), part0, from, length) + tensorAt("w", size(2), part1, num(0), num(n))
		})
	}
	two := func(planner string) assembled {
		return change(func(a *assembled) {
			a.tensors = str("w") + listed(size(2), box(size(0), size(2))) + str("v") + listed(size(2), box(size(0), size(2)))
			a.places = tensorAt("w", size(0), part0, num(0), length) + tensorAt("v", size(0), part1, num(0), length)
			a.planner = planner
		})
	}
	planned := func(s string) assembled { return change(func(a *assembled) { a.planner = s }) }
	path := func(steps ...string) string { return group(steps...) }
	const elsewhere, outside = "want one in the same folder", "outside of the shape"
	for _, tt := range []struct {
		what string
		of   assembled
		want string // "" for a folder that can be read
	}{
		{"nothing", goodFolder(), ""},
		{"the folder above", file("../__0_0.distcp"), elsewhere},
		{"a way around", file("x/../__0_0.distcp"), elsewhere},
		{"an absolute path", file("/dev/stdin"), elsewhere},
		{"the folder", file("."), elsewhere},
		{"no name", file(""), elsewhere},
		{"a zero in the name", file("__0_0.distcp\x00.txt"), elsewhere},
		{"a command for the terminal", file("\x1b[2Jx"), elsewhere},
		{"a line in the name", file("__0_0.distcp\nerror: x"), elsewhere},
		{"a path of Windows", file(`C:\x`), elsewhere},
		{"a place twice", boxes(size(4), box(size(0), size(2)), box(size(0), size(2))), "share bytes"},
		{"places that overlap", change(func(a *assembled) {
			a.tensors = str("w") + listed(size(3), box(size(0), size(2)), box(size(1), size(2)))
			a.places = tensorAt("w", size(0), part0, num(0), length) + tensorAt("w", size(1), part1, num(0), length)
		}), "share elements"},
		{"a gap", change(func(a *assembled) {
			a.tensors = str("w") + listed(size(5), box(size(0), size(2)), box(size(3), size(2)))
			a.places = tensorAt("w", size(0), part0, num(0), length) + tensorAt("w", size(3), part1, num(0), length)
		}), "its parts have 4 elements, want 5"},
		{"a part without a place", boxes(size(6), box(size(0), size(2)), box(size(2), size(2)), box(size(4), size(2))), "3 parts, and the places of 2"},
		{"a place without a part", boxes(size(4), box(size(0), size(2))), "1 parts, and the places of 2"},
		{"a part outside", boxes(size(4), box(size(0), size(2)), box(size(3), size(2))), outside},
		{"a part before", boxes(size(4), box(size(-2), size(2)), box(size(2), size(2))), outside},
		{"a shape too large", boxes(size(huge, 4), box(size(0), size(2)), box(size(2), size(2))), "shape"},
		{"a large shape", boxes(size(huge/8), box(size(0), size(huge/8)), box(size(2), size(2))), "has the shape [2], want"},
		{"a large shape of nothing", boxes(size(0, huge), box(size(0, 0), size(0, huge)), box(size(0, 0), size(0, huge))), "is in no file"},
		{"an end beyond all numbers", from(num(huge), num(huge)), "truncated"},
		{"a start beyond all numbers", from(num(1<<63-1), length), "truncated"},
		{"a start before the file", from(num(-1), length), "truncated"},
		{"nothing of a file", from(num(0), num(0)), "not a readable zip file"},
		{"one part for two", change(func(a *assembled) {
			a.places = tensorAt("w", size(0), part0, num(0), length) + tensorAt("w", size(2), part0, num(0), length)
		}), "its parts share bytes"},
		{"code", assembled{goodFolder().tensors, goodFolder().places, code}, "want a dict"},
		{"code as a shape", boxes(code, box(size(0), size(2)), box(size(2), size(2))), outside},
		{"code as a list of tensors", assembled{code, goodFolder().places, "}"}, "not the metadata of a distributed checkpoint"},
		{"code as a step", planned(items(str("w"), path(code, str("w")))), "step an object of posix.system"},
		{"a tensor in a tensor", two(items(str("w"), path(str("model")), str("v"), path(str("model"), str("v")))), "two entries at one place"},
		{"a tensor around a tensor", two(items(str("w"), path(str("model"), str("w")), str("v"), path(str("model")))), "two entries at one place"},
		{"two tensors at one place", two(items(str("w"), path(str("x")), str("v"), path(str("x")))), "two entries at one place"},
		{"two tensors", two("}"), ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			err := useFolder(tt.of.write(t))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\x00\x1b\n") {
				t.Errorf("%q would reach the terminal", err)
			}
		})
	}
	if _, err := os.Stat(sentinel); err == nil {
		t.Error("a command was run")
	}
}

// Links are followed, as in the cache of the Hub, but only to files that end.
func TestAttackDistributedLinks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ what, file, to, want string }{
		{"a good file", "__0_0.distcp", "copy", ""},
		{"a device", "__0_0.distcp", os.DevNull, "not a regular file"},
		{"a folder", "__0_0.distcp", os.TempDir(), "not a regular file"},
		{"itself", "__0_0.distcp", "__0_0.distcp", "symbolic links"},
		{"another file", "__0_0.distcp", metadataName, "not a readable zip file"},
		{"metadata on a device", metadataName, os.DevNull, "without .metadata"},
		{"metadata in another file", metadataName, "__0_0.distcp", "not the metadata of a distributed checkpoint"},
	} {
		dir := goodFolder().write(t)
		if err := os.Rename(filepath.Join(dir, tt.file), filepath.Join(dir, "copy")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(tt.to, filepath.Join(dir, tt.file)); err != nil {
			t.Fatal(err)
		}
		if err := useFolder(dir); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("a link to %s: %v, want %q", tt.what, err, tt.want)
		}
	}
}
