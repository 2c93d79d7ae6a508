package masks

import (
	"slices"
	"strings"
)

// affixes are what the name of a mask has instead of what the names of all pictures have. Cityscapes has _gtFine_labelIds for
// _leftImg8bit, and others have mask_1 for img_1.
type affixes struct {
	pictureStart, pictureSuffix string
	start, suffix               string
}

// mask returns the name of the mask of a picture. Both have no extension.
func (a affixes) mask(picture string) string {
	name := base(picture)
	core, ok := strings.CutPrefix(name, a.pictureStart)
	if ok {
		core, ok = strings.CutSuffix(core, a.pictureSuffix)
	}
	if !ok {
		core = name
	}
	return strings.TrimSuffix(picture, name) + a.start + core + a.suffix
}

// maskWords are the words that names of masks have where names of pictures have others.
var maskWords = []string{"mask", "label", "seg", "gt", "anno", "target", "truth", "manual"}

// replace reports whether masks may have b where pictures have a: nothing, the same, or a word for masks. Any other word may name
// other pictures: val_1 is no mask of train_1.
func replace(a, b string) bool { return b == "" || b == a || meansMask(b) }

func meansMask(word string) bool {
	word = strings.ToLower(word)
	return slices.ContainsFunc(maskWords, func(w string) bool { return strings.Contains(word, w) })
}

// replaced returns the affixes with which each picture has a mask, where those of the pictures are not in the names of the masks.
func (n *names) replaced(stems []string) (fit []affixes) {
	if len(stems) == 0 {
		return nil
	}
	start, suffix := common(stems)
	core := strings.TrimSuffix(strings.TrimPrefix(stems[0], start), suffix)
	if core == "" {
		return nil
	}
	for _, b := range n.bases {
		for at := 0; ; at++ {
			next := strings.Index(b[at:], core)
			if next < 0 {
				break
			}
			at += next
			a := affixes{start, suffix, b[:at], b[at+len(core):]}
			if separate(b, at) && separate(b, at+len(core)) && replace(start, a.start) && replace(suffix, a.suffix) &&
				(meansMask(a.start) || meansMask(a.suffix)) && !slices.Contains(fit, a) {
				fit = append(fit, a)
			}
		}
	}
	return slices.DeleteFunc(fit, func(a affixes) bool {
		return slices.ContainsFunc(stems, func(s string) bool { return !n.has(a.mask(s)) })
	})
}

// common returns the words with which all names start and end. Numbers do not belong to the start, and words of digits alone not to
// the suffix: they say which picture it is.
func common(names []string) (start, suffix string) {
	start, suffix = names[0], names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, start) {
			start = start[:len(start)-1]
		}
		for !strings.HasSuffix(name, suffix) {
			suffix = suffix[1:]
		}
	}
	if at := strings.IndexAny(start, "0123456789"); at >= 0 {
		start = start[:at]
	}
	for start != "" && slices.ContainsFunc(names, func(s string) bool { return len(s) == len(start) || !separate(s, len(start)) }) {
		start = start[:len(start)-1]
	}
	starts := func(name string) bool { // a word of the suffix
		at := len(name) - len(suffix)
		return at > len(start) && (isSeparator(name[at]) || isDigit(name[at-1]) && !isDigit(name[at]))
	}
	for suffix != "" && slices.ContainsFunc(names, func(s string) bool { return !starts(s) }) {
		suffix = suffix[1:]
	}
	for at, end := len(suffix)-1, len(suffix); at >= 0; at-- {
		if !isSeparator(suffix[at]) {
			continue
		}
		if at+1 < end && strings.Trim(suffix[at+1:end], "0123456789") == "" {
			return start, suffix[end:]
		}
		end = at
	}
	return start, suffix
}

// separate reports whether a word begins or ends at an index.
func separate(name string, at int) bool {
	if at == 0 || at == len(name) {
		return true
	}
	before, behind := name[at-1], name[at]
	return isSeparator(before) || isSeparator(behind) || isDigit(before) != isDigit(behind)
}

func isSeparator(b byte) bool { return strings.IndexByte("_-. ", b) >= 0 }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
