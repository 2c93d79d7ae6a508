package statefile

import "fmt"

// maxValues bounds the plain values that [File.Values] keeps.
const maxValues = 2000

// plainValues returns what a file says at its top besides tensors, as JSON can hold it. Objects give their attributes. What is no plain
// value is left out. Nothing is executed.
func plainValues(root any) map[string]any {
	left := maxValues
	out, _ := plainParts(root, &left, 0).(map[string]any)
	return out
}

func plainParts(v any, left *int, depth int) any {
	const deepest = 4
	pairs := entries(v)
	if n, ok := v.(*node); ok && pairs == nil { // no dict, also not an ordered one
		if pairs = moduleAttributes(v); pairs == nil {
			pairs = attributes(n)
		}
	}
	if len(pairs) == 0 || depth > deepest {
		if value, ok := plain(v, left); ok {
			return value
		}
		return nil
	}
	out := map[string]any{}
	for _, e := range pairs {
		key, ok := e.key.(text)
		if n, number := integer(e.key); number {
			key, ok = text(fmt.Sprint(n)), true
		}
		if n, isNode := e.value.(*node); isNode && rebuildName(n) != "" {
			continue // a tensor
		}
		if *left--; !ok || *left < 0 || len(key) > 1000 {
			continue
		}
		if value := plainParts(e.value, left, depth+1); value != nil {
			out[string(key)] = value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
