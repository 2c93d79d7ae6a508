package checkpoints

import (
	"slices"
	"strings"
)

// Fills returns the tensor of the graph that a tensor of the state_dict fills, by its name without wrappers' prefixes. The
// graph may hold the transpose. ok is false for a tensor that is not in the graph. A tensor that is tied to another one
// fills what that one fills.
func (r *Recipe) Fills(short string) (into string, transposed, ok bool) {
	if of, alias := r.Aliases[short]; alias {
		short = of
	}
	for _, s := range r.Tensors {
		if s.from() != short {
			continue
		}
		if !s.Transposed {
			return s.Tensor, false, true
		}
		into, transposed, ok = s.Tensor, true, true // another place may hold it as it is
	}
	return into, transposed, ok
}

// under reports whether all tensors that fill the graph have names that begin with a part, such as "ema_model".
func (r *Recipe) under(part string) bool {
	return len(r.Tensors) > 0 && !slices.ContainsFunc(r.Tensors, func(s Source) bool { return !strings.HasPrefix(s.from(), part+".") })
}
