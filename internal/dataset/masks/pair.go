package masks

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// extensions are the formats of masks.
var extensions = append(picture.NumberExtensions(), ".npy")

// others are formats that do not keep the numbers of pixels. A file with such a name is no mask, and errors name it.
var others = picture.LossyExtensions()

// names finds masks by the names of pictures. The key of a mask is its path below the folder, without its extension.
type names struct {
	dir     string
	files   map[string]string   // by key
	tails   map[string][]string // at most two keys that end in a path
	bases   []string            // the last elements of all keys, sorted
	wrong   map[string]string   // files in formats of others, by the last element of their keys
	affixes                     // what the names of masks have beside those of their pictures
}

// list lists the masks in a folder.
func list(dir string) (*names, error) {
	paths, err := listing.Files(dir, slices.Concat(extensions, others))
	if err != nil {
		return nil, err
	}
	n := &names{dir: dir, files: map[string]string{}, tails: map[string][]string{}, wrong: map[string]string{}}
	for _, at := range paths {
		rel, err := filepath.Rel(dir, at)
		if err != nil {
			return nil, err
		}
		key := stem(filepath.ToSlash(rel))
		if base(key) == "" { // a hidden file, .png
			continue
		}
		if slices.Contains(others, strings.ToLower(filepath.Ext(rel))) {
			n.wrong[base(key)] = at
			continue
		}
		if other := n.files[key]; other != "" {
			return nil, fmt.Errorf("%s: %s is a mask of the same picture", at, other)
		}
		n.files[key] = at
		n.bases = append(n.bases, base(key))
		for tail := range tails(key) {
			if few := n.tails[tail]; len(few) < 2 {
				n.tails[tail] = append(few, key)
			}
		}
	}
	if len(n.files) == 0 {
		return nil, fmt.Errorf("%s: a folder without masks (%s)", dir, strings.Join(extensions, " "))
	}
	slices.Sort(n.bases)
	n.bases = slices.Compact(n.bases)
	return n, nil
}

// stem removes the extension.
func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// base returns what remains behind the last slash, which may be nothing.
func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// tails yields a path and what remains behind each of its slashes, the longest first.
func tails(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for more := true; more && yield(name); {
			_, name, more = strings.Cut(name, "/")
		}
	}
}

// of returns the names that the mask of a picture may have. The whole name of the picture counts too: a.jpg.png.
func (n *names) of(picture string) []string {
	return []string{picture, n.mask(stem(picture))}
}

// below returns the mask whose key is the longest end of the picture's path, or "".
func (n *names) below(picture string) string {
	for _, name := range n.of(picture) {
		for tail := range tails(name) {
			if n.files[tail] != "" {
				return tail
			}
		}
	}
	return ""
}

// elsewhere returns the masks, at most two, whose paths share the longest end with that of the picture.
func (n *names) elsewhere(picture string) []string {
	for _, name := range n.of(picture) {
		for tail := range tails(name) {
			if keys := n.tails[tail]; keys != nil {
				return keys
			}
		}
	}
	return nil
}

// findAffixes finds what the names of masks have beside those of their pictures. There is nothing if one of the masks has the name
// of a picture.
func (n *names) findAffixes(pictures []string) error {
	if slices.ContainsFunc(pictures, func(p string) bool { return n.has(base(p)) || n.has(base(stem(p))) }) {
		return nil
	}
	var stems []string
	of := ""
	for _, p := range pictures {
		if name := base(stem(p)); name != "" {
			stems = append(stems, name)
			of = cmp.Or(of, p)
		}
	}
	fit := n.suffixes(stems)
	if len(fit) == 0 {
		fit = n.replaced(stems)
	}
	if len(fit) == 0 {
		return nil
	}
	// The mask of ab.jpg also begins with the name of a.jpg. Its suffix is longer: b_mask ends in _mask.
	n.affixes = slices.MinFunc(fit, func(a, b affixes) int { return len(a.suffix) - len(b.suffix) })
	for _, a := range fit {
		if a.start != n.start || !strings.HasSuffix(a.suffix, n.suffix) {
			return fmt.Errorf("%s: both %s and %s may be the mask of %s: want a folder with one of the kinds", n.dir,
				n.first(n.mask(stems[0])), n.first(a.mask(stems[0])), of)
		}
	}
	return nil
}

func (n *names) has(name string) bool { return n.tails[name] != nil }

// suffixes returns what masks may have behind the whole name of a picture.
func (n *names) suffixes(stems []string) (fit []affixes) {
	for _, name := range stems {
		if len(fit) == 0 {
			fit = n.behind(name)
		} else if some := slices.DeleteFunc(slices.Clone(fit), func(a affixes) bool { return !n.has(a.mask(name)) }); len(some) > 0 {
			fit = some
		}
		if len(fit) == 1 {
			break
		}
	}
	return fit
}

// first returns the file of the first mask with this name.
func (n *names) first(name string) string { return n.files[n.tails[name][0]] }

// behind returns what the names of masks have behind a name. A digit belongs to another picture: 10 is no mask of 1.
func (n *names) behind(name string) (fit []affixes) {
	at, _ := slices.BinarySearch(n.bases, name)
	for _, longer := range n.bases[at:] {
		rest, ok := strings.CutPrefix(longer, name)
		if !ok {
			break
		}
		if rest != "" && !isDigit(rest[0]) {
			fit = append(fit, affixes{suffix: rest})
		}
	}
	return fit
}

// pair returns the file of each picture's mask.
func (m *masks) pair() ([]string, error) {
	n, err := list(m.dir)
	if err != nil {
		return nil, err
	}
	pictures, keys := make([]string, m.Len), make([]string, m.Len)
	for i := range pictures {
		e, err := m.Open(i)
		if err != nil {
			return nil, err
		}
		pictures[i] = filepath.ToSlash(e.Path())
	}
	if err := n.findAffixes(pictures); err != nil {
		return nil, err
	}
	found := false
	for i, p := range pictures {
		keys[i] = n.below(p)
		found = found || keys[i] != ""
	}
	if !found { // the masks lie in other folders than the pictures
		for i, p := range pictures {
			some := n.elsewhere(p)
			if len(some) > 1 {
				return nil, fmt.Errorf("%s: both %s and %s may be its mask: want masks in folders with the names of those of the pictures",
					p, n.files[some[0]], n.files[some[1]])
			}
			keys[i] = strings.Join(some, "")
		}
	}
	if err := n.check(pictures, keys, m.Whole); err != nil {
		return nil, err
	}
	for i, key := range keys {
		keys[i] = n.files[key]
	}
	return keys, nil
}

// check fails if a picture has no mask, or a mask has two pictures. If the pictures are whole folders, it fails if a mask
// has no picture.
func (n *names) check(pictures, keys []string, whole bool) error {
	used, missing := map[string]int{}, []string(nil)
	for i, key := range keys {
		if key == "" {
			missing = append(missing, pictures[i])
			continue
		}
		if j, twice := used[key]; twice && pictures[i] != pictures[j] {
			return fmt.Errorf("%s: would be the mask of two pictures: %s and %s", n.files[key], pictures[j], pictures[i])
		}
		used[key] = i
	}
	if missing != nil {
		return fmt.Errorf("%s: %d of %d pictures have no mask: %s%s", n.dir, len(missing), len(pictures), first(missing), n.why(missing[0]))
	}
	if extra := len(n.files) - len(used); whole && extra > 0 {
		var list []string
		for _, key := range slices.Sorted(maps.Keys(n.files)) {
			if _, ok := used[key]; !ok {
				list = append(list, n.files[key])
			}
		}
		return fmt.Errorf("%s: %d masks have no picture: %s", n.dir, extra, first(list))
	}
	return nil
}

// why returns the likely cause why a picture has no mask, or "".
func (n *names) why(picture string) string {
	if at := n.wrong[base(n.mask(stem(picture)))]; at != "" {
		return fmt.Sprintf(". %s does not keep the numbers of pixels: want %s", at, strings.Join(extensions, " "))
	}
	if some := n.elsewhere(picture); some != nil {
		return fmt.Sprintf(". %s lies in another folder than %s", n.files[some[0]], picture)
	}
	return ""
}

// first lists the first names of several.
func first(names []string) string {
	const shown = 5
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
