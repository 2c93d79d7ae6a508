package averages

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// words are what programs call averages of weights. ESPnet writes ave, fairseq and WeNet avg, NeMo EMA, torch.optim.swa_utils SWA.
var words = []string{"ave", "avg", "average", "averaged", "ema", "swa"}

// Word returns the word of a name that says average, as the name has it, or "".
func Word(name string) string {
	for _, w := range Words(name) {
		if slices.Contains(words, strings.ToLower(w)) {
			return w
		}
	}
	return ""
}

// Words returns the words of a name. Letters that change from small to capital, digits and other characters end a word.
func Words(name string) (out []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, string(word))
		}
		word = nil
	}
	for _, r := range name {
		if !unicode.IsLetter(r) || unicode.IsUpper(r) && len(word) > 0 && unicode.IsLower(word[len(word)-1]) {
			end()
		}
		if unicode.IsLetter(r) {
			word = append(word, r)
		}
	}
	end()
	return out
}

// Names returns the word of each checkpoint's name that says average, or "". Files of the same name in several folders are called by
// their folders, too, as far as these differ.
func Names(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names) {
		names = withoutCommon(paths)
	}
	for i, name := range names {
		names[i] = Word(name)
	}
	return names
}

// withoutCommon returns the paths without the folders at their beginning that all have in common.
func withoutCommon(paths []string) []string {
	out := slices.Clone(paths)
	for {
		first, _, more := strings.Cut(out[0], "/")
		if !more || slices.ContainsFunc(out, func(path string) bool { return !strings.HasPrefix(path, first+"/") }) {
			return out
		}
		for i := range out {
			out[i] = out[i][len(first)+1:]
		}
	}
}

// Smoother compares pairs of files from the same moments of training. a and b have the places of the files, in the order of training.
// It returns the place of the smoother ones, a or b, if their steps are so much shorter that they are moving averages of the others, or
// nil. Two runs of SGD have steps of about the same length.
func Smoother(values [][]float32, a, b []int) []int {
	const least, ratio = 3, 2. // pairs, and squares of steps
	if len(a) < least || len(a) != len(b) {
		return nil
	}
	var sums [2]float64
	shorter := [2]int{}
	for k := 1; k < len(a); k++ {
		x, y := squaredStep(values[a[k-1]], values[a[k]]), squaredStep(values[b[k-1]], values[b[k]])
		sums[0], sums[1] = sums[0]+x, sums[1]+y
		if x < y {
			shorter[0]++
		} else if y < x {
			shorter[1]++
		}
	}
	switch steps := len(a) - 1; {
	case ratio*sums[0] < sums[1] && shorter[0] == steps:
		return a
	case ratio*sums[1] < sums[0] && shorter[1] == steps:
		return b
	}
	return nil
}

func squaredStep(from, to []float32) (sum float64) {
	for i, v := range from {
		d := float64(to[i]) - float64(v)
		sum += d * d
	}
	return sum
}
