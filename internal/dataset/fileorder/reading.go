package fileorder

import (
	"bytes"
	"encoding/binary"
	"path"
	"strings"
)

// A reading of names gives each a key. The keys are compared as text.
type reading struct {
	name string
	key  func(name string) string
}

var (
	asText       = reading{"as text", func(name string) string { return name }}
	wholeNumbers = reading{"by whole numbers", integerKey}
	decimals     = reading{"by decimal and negative numbers", decimal}
)

// readings returns the ways in which names can be read: first as text, then by whole numbers, then by others.
func readings(names []string) []reading {
	all := []reading{asText, wholeNumbers, decimals}
	if cut, ok := hexadecimal(names); ok {
		all = append(all, reading{"by hexadecimal numbers", func(name string) string {
			digits := strings.TrimLeft(strings.ToLower(stem(name)[cut:]), "0")
			return string(length(digits)) + digits
		}})
	}
	return all
}

// Numbers returns the whole numbers in a name, as a key to compare.
func Numbers(name string) string {
	var key []byte
	for at := 0; at < len(name); at++ {
		if isDigit(name[at]) {
			end := run(name, at)
			key = append(append(key, strings.TrimLeft(name[at:end], "0")...), ' ')
			at = end
		}
	}
	return string(key)
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// length encodes the number of digits, so that a longer number comes later.
func length(digits string) []byte { return binary.BigEndian.AppendUint32(nil, uint32(len(digits))) }

// run returns the end of the digits that begin at an index.
func run(name string, at int) int {
	for at < len(name) && isDigit(name[at]) {
		at++
	}
	return at
}

// integerKey returns the key for whole numbers. A number stands where its first digit would stand among other characters.
func integerKey(name string) string {
	var key []byte
	for at := 0; at < len(name); {
		if !isDigit(name[at]) {
			key = append(key, name[at])
			at++
			continue
		}
		end := run(name, at)
		digits := strings.TrimLeft(name[at:end], "0")
		key = append(append(append(key, '0'), length(digits)...), digits...)
		at = end
	}
	return string(key)
}

// decimal returns the key for numbers with decimals and a sign. A dot separates decimals only between two numbers: 1.2.3 is a
// version, or a date. A minus is a sign only where a word could begin, and not behind a letter or a digit, as in a-1.
func decimal(name string) string {
	var key []byte
	for at := 0; at < len(name); {
		minus := name[at] == '-' && at+1 < len(name) && isDigit(name[at+1]) && (at == 0 || strings.IndexByte("/_=", name[at-1]) >= 0)
		if !isDigit(name[at]) && !minus {
			key = append(key, name[at])
			at++
			continue
		}
		if minus {
			at++
		}
		end := run(name, at)
		digits, fraction := strings.TrimLeft(name[at:end], "0"), ""
		dotted := at >= 2 && name[at-1] == '.' && isDigit(name[at-2])
		if last := end + 1; !dotted && last < len(name) && name[end] == '.' && isDigit(name[last]) {
			if last = run(name, last); last+1 >= len(name) || name[last] != '.' || !isDigit(name[last+1]) {
				fraction, end = strings.TrimRight(name[end+1:last], "0"), last
			} else { // a version: all its numbers are whole
				for last+1 < len(name) && name[last] == '.' && isDigit(name[last+1]) {
					last = run(name, last+1)
				}
				key = append(key, '0', 1)
				key = append(key, integerKey(name[at:last])...)
				at = last
				continue
			}
		}
		size := append(append(length(digits), digits...), fraction...)
		if minus && len(digits)+len(fraction) > 0 {
			for i := range size {
				size[i] = ^size[i]
			}
			key = append(append(append(key, '0', 0), size...), 0xff)
		} else {
			key = append(append(append(key, '0', 1), size...), 0)
		}
		at = end
	}
	return string(key)
}

// stem returns a name without its extension.
func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// hexadecimal reports whether all names have hexadecimal digits behind what they have in common, and both letters and digits
// occur. cut is the length of the common beginning.
func hexadecimal(names []string) (cut int, ok bool) {
	if len(names) == 0 {
		return 0, false
	}
	common := stem(names[0])
	for _, name := range names {
		for name = stem(name); !strings.HasPrefix(name, common); {
			common = common[:len(common)-1]
		}
	}
	const hex = "0123456789abcdefABCDEF"
	common = strings.TrimRight(common, hex)
	letters, digits := false, false
	for _, name := range names {
		rest := stem(name)[len(common):]
		if rest == "" || strings.Trim(rest, hex) != "" {
			return 0, false
		}
		letters = letters || strings.ContainsAny(rest, hex[10:])
		digits = digits || bytes.ContainsAny([]byte(rest), hex[:10])
	}
	return len(common), letters && digits
}
