package calibrate

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// Confidences of tokens are counted in cells of equal width in log-odds, because those of large vocabularies are small. The
// ends are the confidences 4e-6 and 1 − 4e-6. A cell is at most 0.0004 wide, and 0.15 % of a small confidence.
const (
	tokenCells = 1 << 14
	mostOdds   = 12.5
)

func tokenCell(p float64) int {
	odds := min(max(math.Log(p/(1-p)), -mostOdds), mostOdds)
	return cellAt((odds+mostOdds)/(2*mostOdds), tokenCells)
}

func tokenEdge(cell int) float64 {
	return 1 / (1 + math.Exp(mostOdds*(1-2*float64(cell)/tokenCells)))
}

// TokenSums holds what the tokens of a text add to the figures of a language model, whose vocabulary may have any size. It
// counts each token that is predicted from those before it.
type TokenSums struct {
	Positions, Right  int64
	NLL               float64 // Σ −log p(token), nats
	Brier             float64 // Σ Σ_c (p_c − [token = c])²
	Entropy           float64 // Σ −Σ_c p_c·log p_c, nats
	Characters, Bytes int64   // the length of the text; 0 if it is not known

	// confidence has the cells that count a token, by the place of the cell. One text has few of them. confidence is nil
	// if nothing was counted, and after Brief.
	confidence map[int]confidenceCell
}

// Add adds a token of the given lengths, to unit too if it is not nil, but without cells. entropy is that of all its
// probabilities, in nats.
func (s *TokenSums) Add(token Judged, entropy float64, characters, bytes int, unit *TokenSums) {
	one := &TokenSums{Positions: 1, NLL: token.NLL, Brier: token.Brier, Entropy: entropy}
	one.Characters, one.Bytes = int64(characters), int64(bytes)
	if token.Correct {
		one.Right = 1
	}
	s.Merge(one)
	if unit != nil {
		unit.Merge(one)
	}
	s.count(tokenCell(token.Confidence), confidenceCell{1, one.Right, token.Confidence})
}

// count adds predictions to a cell.
func (s *TokenSums) count(cell int, o confidenceCell) {
	if s.confidence == nil {
		s.confidence = map[int]confidenceCell{}
	}
	c := s.confidence[cell]
	c.add(o)
	s.confidence[cell] = c
}

// Merge adds the tokens of o.
func (s *TokenSums) Merge(o *TokenSums) {
	s.Positions, s.Right, s.Characters, s.Bytes = s.Positions+o.Positions, s.Right+o.Right, s.Characters+o.Characters, s.Bytes+o.Bytes
	s.NLL, s.Brier, s.Entropy = s.NLL+o.NLL, s.Brier+o.Brier, s.Entropy+o.Entropy
	for cell, c := range o.confidence {
		s.count(cell, c)
	}
}

// Brief returns the sums without cells, as [ClassSums.Brief] does.
func (s *TokenSums) Brief() *TokenSums {
	brief := *s
	brief.confidence = nil
	return &brief
}

// cells returns all cells in their order, also the empty ones.
func (s *TokenSums) cells() []confidenceCell {
	out := make([]confidenceCell, tokenCells)
	for cell, c := range s.confidence {
		out[cell] = c
	}
	return out
}

// Perplexity returns exp of the mean of −log p(token).
func (s *TokenSums) Perplexity() float64 { return math.Exp(s.NLL / float64(s.Positions)) }

// Bits returns the code length of the text, Σ −log₂ p(token), for each of n tokens, characters or bytes. It is NaN for 0.
func (s *TokenSums) Bits(n int64) float64 {
	if n == 0 {
		return math.NaN()
	}
	return s.NLL / math.Ln2 / float64(n)
}

// ECE returns the calibration error of the most probable token, as [ClassSums.ECE] does.
func (s *TokenSums) ECE(bins int) float64 { return binnedECE(s.Reliability(bins)) }

// SmoothECE is like [ClassSums.SmoothECE].
func (s *TokenSums) SmoothECE() float64 { return smoothCellECE(s.cells()) }

// Reliability returns bins of equal mass, as [ClassSums.Reliability] does.
func (s *TokenSums) Reliability(bins int) []ReliabilityBin {
	return equalMassCells(s.cells(), bins, tokenEdge)
}

// Append appends the sums to b, for [ParseTokenSums].
func (s *TokenSums) Append(b []byte) []byte {
	for _, n := range []int64{s.Positions, s.Right, s.Characters, s.Bytes} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = appendFloat(appendFloat(appendFloat(b, s.NLL), s.Brier), s.Entropy)
	n := tokenCells
	if s.confidence == nil {
		n = 0
	}
	return appendCells(b, n, func(yield func(int, confidenceCell) bool) {
		for _, cell := range slices.Sorted(maps.Keys(s.confidence)) {
			if !yield(cell, s.confidence[cell]) {
				return
			}
		}
	})
}

// ParseTokenSums is the inverse of [TokenSums.Append].
func ParseTokenSums(b []byte) (*TokenSums, error) {
	r, s := &sumsReader{b: b}, &TokenSums{}
	for _, n := range []*int64{&s.Positions, &s.Right, &s.Characters, &s.Bytes} {
		*n = int64(r.count(math.MaxInt64))
	}
	s.NLL, s.Brier, s.Entropy = r.float(), r.float(), r.float()
	r.cells(tokenCells, s.count)
	if r.bad || len(r.b) > 0 {
		return nil, errDamaged
	}
	return s, nil
}
