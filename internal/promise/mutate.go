package promise

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Mutate changes up to three values in a JSON text. Tests write the result into a file and repair its checksum. A text that
// is not JSON is returned unchanged.
func Mutate(r *rand.Rand, js []byte) []byte {
	var tree any
	if json.Unmarshal(js, &tree) != nil {
		return js
	}
	for range 1 + r.IntN(3) {
		tree = mutate(r, tree)
	}
	out, err := json.Marshal(tree)
	if err != nil {
		return js
	}
	return out
}

// mutate changes one value of a tree, at any depth.
func mutate(r *rand.Rand, tree any) any {
	const deeper = 0.85
	switch v := tree.(type) {
	case map[string]any:
		if len(v) == 0 || r.Float64() > deeper {
			break
		}
		key := pick(r, v)
		switch r.IntN(8) {
		case 0:
			delete(v, key)
		case 1:
			v[key] = v[pick(r, v)]
		default:
			v[key] = mutate(r, v[key])
		}
		return v
	case []any:
		if len(v) == 0 || r.Float64() > deeper {
			break
		}
		at := r.IntN(len(v))
		switch r.IntN(8) {
		case 0:
			return append(v[:at:at], v[at+1:]...)
		case 1:
			return append(v, v[at])
		default:
			v[at] = mutate(r, v[at])
		}
		return v
	case float64:
		if r.IntN(2) == 0 {
			return v + float64(r.IntN(5)-2)
		}
	}
	return strange(r)
}

// pick returns a key.
func pick(r *rand.Rand, m map[string]any) string {
	keys := slices.Sorted(maps.Keys(m)) // one seed gives one result
	return keys[r.IntN(len(keys))]
}

// strange returns a value that a reader may not expect.
func strange(r *rand.Rand) any {
	all := []any{nil, true, "", "%s%d%n", "\x1b[2J\x00\n", strings.Repeat("x", 5000), []any{}, map[string]any{}, 0, -1, 1, 2, 0.5, 1 << 20, 1 << 24, 1 << 31, 1 << 40,
		int64(1) << 62, -(int64(1) << 62), 1e300, -1e300, []any{nil}, []any{-1}, []any{0}, []any{1 << 24, 1 << 24, 1 << 24}, "classes", "labels", "regression", "binary"}
	if r.IntN(20) == 0 { // 10,000 to 200,000 elements
		list := make([]any, 10_000*(1+r.IntN(20)))
		for i := range list {
			list[i] = map[string]any{}
		}
		return list
	}
	return all[r.IntN(len(all))]
}
