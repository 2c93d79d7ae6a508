package maps

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
)

// Names gives the maps of each picture a name of their own.
type Names struct {
	roots []string // folders that were given; the names of their pictures begin with them
	level level
}

// A level says how much of a picture's name its maps keep. A whole data set has one level, the first at which no two
// pictures share a name.
type level int

const (
	short     level = iota // b/a.png in the folder b: a
	extension              // a.png
	whole                  // b/a.png
	levels
)

// NewNames finds names for the maps of n pictures. name returns a picture's name: its path, or the array and row. roots are
// the folders among the inputs. It fails if no level gives two pictures different names.
func NewNames(n int, name func(i int) string, roots []string) (*Names, error) {
	names := &Names{}
	for _, root := range roots {
		names.roots = append(names.roots, filepath.Clean(root)+string(filepath.Separator))
	}
	var first, second string
	for ; names.level < levels; names.level++ {
		var shared bool
		if first, second, shared = names.shared(n, name); !shared {
			return names, nil
		}
	}
	return nil, fmt.Errorf("%s and %s would have maps of the same name", first, second)
}

// shared returns two pictures with maps of the same name. The same picture may be there twice. A map's name may end with
// that of a column: a.confidence belongs to the picture a, so the picture a.confidence.png is in its way.
func (s *Names) shared(n int, name func(i int) string) (first, second string, found bool) {
	seen := make(map[uint64]int, n) // picture by the hash of its maps' name; names would take much memory
	for i := range n {
		key := hash(s.Stem(name(i)))
		if k, taken := seen[key]; taken && name(k) != name(i) {
			return name(k), name(i), true
		}
		seen[key] = i
	}
	for i := range n {
		stem := s.Stem(name(i))
		at := strings.LastIndexByte(stem, '.')
		if at < 0 || strings.Trim(stem[at+1:], "abcdefghijklmnopqrstuvwxyz_") != "" {
			continue
		}
		if k, taken := seen[hash(stem[:at])]; taken {
			return name(k), name(i), true
		}
	}
	return "", "", false
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// Stem returns the beginning of the names of a picture's maps. It is a path with slashes that stays below its folder.
func (s *Names) Stem(name string) string {
	row := ""
	if i := strings.LastIndex(name, "["); i >= 0 && strings.HasSuffix(name, "]") { // row of an array
		name, row = name[:i], "-"+name[i+1:len(name)-1]
	}
	name = filepath.Clean(name)
	if s.level < whole && row != "" {
		name = filepath.Base(name)
	} else if s.level < whole {
		name = s.belowRoot(name)
	}
	parts := slices.DeleteFunc(strings.Split(filepath.ToSlash(name), "/"), func(p string) bool { return p == ".." || p == "" })
	name = strings.Join(parts, "/")
	if ext := filepath.Ext(name); s.level == short && ext != filepath.Base(name) {
		name = strings.TrimSuffix(name, ext)
	}
	return name + row
}

func (s *Names) belowRoot(name string) string {
	for _, root := range s.roots {
		if rest, ok := strings.CutPrefix(name, root); ok {
			return rest
		}
	}
	return name
}
