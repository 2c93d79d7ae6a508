package corrupt

// List returns where each token of a damaged list of n tokens comes from: its place in the list, or −1 for any token of the
// data. The first and the last token stay, because many networks mark the ends of a text there.
func (c Corruption) List(n, severity int, seed uint64) []int {
	return c.token(n, sizes[severity-1], &random{seed: seed})
}

// dropTokens leaves out a share of the tokens.
func dropTokens(n int, share float64, r *random) (from []int) {
	for i := range n {
		if r.uniform() >= share || i == 0 || i == n-1 {
			from = append(from, i)
		}
	}
	return from
}

// replaceTokens replaces a share of the tokens, as typing errors do.
func replaceTokens(n int, share float64, r *random) (from []int) {
	for i := range n {
		if r.uniform() < share && i > 0 && i < n-1 {
			i = -1
		}
		from = append(from, i)
	}
	return from
}

// swapTokens exchanges a share of the tokens with the next one.
func swapTokens(n int, share float64, r *random) (from []int) {
	for i := range n {
		from = append(from, i)
	}
	for i := 1; i+2 < n; i++ {
		if r.uniform() < share {
			from[i], from[i+1] = from[i+1], from[i]
			i++
		}
	}
	return from
}
