package calibrate

import "math"

const (
	// cells is the number of cells of equal width that confidences are counted in. The error of an ECE from cells is
	// below 1e-5 of predictions like those of trained networks.
	cells = 4096
	// classBins is the number of bins of equal width for the probability of one class.
	classBins = 20
)

// confidenceCell counts the predictions with nearly the same confidence.
type confidenceCell struct {
	Count, Right int64
	Sum          float64 // the sum of the confidences
}

func (c *confidenceCell) add(o confidenceCell) {
	c.Count, c.Right, c.Sum = c.Count+o.Count, c.Right+o.Right, c.Sum+o.Sum
}

// ClassSums holds what positions add to all figures of classes that exclude each other.
type ClassSums struct {
	Classes   int
	Positions int64
	NLL       float64 // Σ −log p(true class), nats
	Brier     float64 // Σ Σ_c (p_c − [y = c])²

	// confidence has [cells] cells of all positions, and border those of positions beside another class. Both are nil
	// if nothing was counted, or after Brief. class has [classBins] bins of each class.
	confidence, border, class []confidenceCell
	// confusion is Classes×Classes: row is the true class, column the predicted one. An example has few of these pairs, and pairs takes
	// the place of the matrix until it is longer.
	confusion []int64
	pairs     []pair
}

// pair counts positions with the same true and predicted class. at is its place in a confusion matrix.
type pair struct {
	at int
	n  int64
}

// NewClassSums returns sums of no positions.
func NewClassSums(classes int) *ClassSums { return &ClassSums{Classes: classes} }

// Reset returns to sums of no positions. It keeps the memory.
func (s *ClassSums) Reset() {
	for _, all := range [][]confidenceCell{s.confidence, s.border, s.class} {
		clear(all)
	}
	clear(s.confusion)
	s.pairs, s.Positions, s.NLL, s.Brier = s.pairs[:0], 0, 0, 0
}

// count adds n positions to a pair.
func (s *ClassSums) count(at int, n int64) {
	if s.confusion != nil {
		s.confusion[at] += n
		return
	}
	if s.pairs = append(s.pairs, pair{at, n}); len(s.pairs) > s.Classes*s.Classes {
		s.confusion, s.pairs = s.matrix(), nil
	}
}

func (s *ClassSums) matrix() []int64 {
	out := make([]int64, s.Classes*s.Classes)
	s.eachPair(func(at int, n int64) { out[at] += n })
	return out
}

// Add adds a position with the probabilities p of all classes and a label in [0, Classes). border says that the position
// lies beside another class. The predicted class is the first of the most probable ones.
func (s *ClassSums) Add(p []float64, label int, border bool) {
	if s.confidence == nil { // the first position
		s.confidence, s.border = make([]confidenceCell, cells), make([]confidenceCell, cells)
		s.class = make([]confidenceCell, s.Classes*classBins)
	}
	top := 0
	for c, v := range p {
		miss := v
		bin := &s.class[c*classBins+WidthBin(v, classBins)]
		bin.Count++
		bin.Sum += v
		if c == label {
			bin.Right++
			miss = 1 - v
		}
		s.Brier += float64(miss * miss)
		if v > p[top] {
			top = c
		}
	}
	s.Positions++
	s.NLL -= math.Log(p[label])
	s.count(label*s.Classes+top, 1)
	one := confidenceCell{1, 0, p[top]}
	if top == label {
		one.Right = 1
	}
	k := cellAt(p[top], cells)
	s.confidence[k].add(one)
	if border {
		s.border[k].add(one)
	}
}

// cellAt returns the cell of a value in [0, 1], among n of equal width.
func cellAt(v float64, n int) int { return min(int(v*float64(n)), n-1) }

// Merge adds the positions of o.
func (s *ClassSums) Merge(o *ClassSums) {
	s.Positions, s.NLL, s.Brier = s.Positions+o.Positions, s.NLL+o.NLL, s.Brier+o.Brier
	o.eachPair(s.count)
	mergeCells(&s.confidence, o.confidence)
	mergeCells(&s.border, o.border)
	mergeCells(&s.class, o.class)
}

func mergeCells(to *[]confidenceCell, from []confidenceCell) {
	if *to == nil && from != nil {
		*to = make([]confidenceCell, len(from))
	}
	for i, c := range from {
		(*to)[i].add(c)
	}
}

// eachPair calls f with the number of positions of each pair of a true and a predicted class that occurs. Pairs may come again.
func (s *ClassSums) eachPair(f func(at int, n int64)) {
	for at, n := range s.confusion {
		if n != 0 {
			f(at, n)
		}
	}
	for _, p := range s.pairs {
		f(p.at, p.n)
	}
}

// Brief returns the sums without cells: what intervals of all figures but calibration errors need.
func (s *ClassSums) Brief() *ClassSums {
	out := &ClassSums{Classes: s.Classes, Positions: s.Positions, NLL: s.NLL, Brier: s.Brier}
	s.eachPair(func(at int, n int64) { out.pairs = append(out.pairs, pair{at, n}) })
	return out
}

// MeanNLL returns the mean of −log p(true class) over the positions, in nats.
func (s *ClassSums) MeanNLL() float64 { return s.NLL / float64(s.Positions) }

// MeanBrier returns the mean over the positions of the squared distance to the one-hot label.
func (s *ClassSums) MeanBrier() float64 { return s.Brier / float64(s.Positions) }

// Right returns the number of positions whose predicted class is the true one.
func (s *ClassSums) Right() (right int64) {
	s.eachPair(func(at int, n int64) {
		if at%(s.Classes+1) == 0 { // on the diagonal
			right += n
		}
	})
	return right
}

// Accuracy returns the share of positions whose predicted class is the true one.
func (s *ClassSums) Accuracy() float64 { return float64(s.Right()) / float64(s.Positions) }

// byClass returns a figure of each class, computed from the numbers of its true positives, labels and predictions.
func (s *ClassSums) byClass(figure func(right, labelled, predicted float64) float64) []float64 {
	counts := make([][3]float64, s.Classes)
	s.eachPair(func(at int, n int64) {
		label, prediction := at/s.Classes, at%s.Classes
		if label == prediction {
			counts[label][0] += float64(n)
		}
		counts[label][1] += float64(n)
		counts[prediction][2] += float64(n)
	})
	out := make([]float64, s.Classes)
	for c, k := range counts {
		out[c] = figure(k[0], k[1], k[2])
	}
	return out
}

// IoU returns TP / (TP + FP + FN) of each class over all positions. It is NaN for a class that occurs neither in labels nor
// in predictions.
func (s *ClassSums) IoU() []float64 {
	return s.byClass(func(right, labelled, predicted float64) float64 { return right / (labelled + predicted - right) })
}

// Dice returns 2 TP / (2 TP + FP + FN) of each class, or NaN as [ClassSums.IoU].
func (s *ClassSums) Dice() []float64 {
	return s.byClass(func(right, labelled, predicted float64) float64 { return 2 * right / (labelled + predicted) })
}

// Shares returns the share of positions with each true class.
func (s *ClassSums) Shares() []float64 {
	return s.byClass(func(_, labelled, _ float64) float64 { return labelled / float64(s.Positions) })
}

// MeanIoU returns the mean of the IoU over the classes that have one, as torchmetrics' JaccardIndex does with
// average="macro".
func (s *ClassSums) MeanIoU() float64 { return meanKnown(s.IoU()) }

// MeanDice is like MeanIoU for [ClassSums.Dice].
func (s *ClassSums) MeanDice() float64 { return meanKnown(s.Dice()) }

// meanKnown returns the mean of the figures that are not NaN.
func meanKnown(figures []float64) float64 {
	total, n := 0.0, 0.0
	for _, v := range figures {
		if v == v {
			total, n = total+v, n+1
		}
	}
	return total / n
}

// Reliability returns bins of equal mass: see [EqualMass].
func (s *ClassSums) Reliability(bins int) []ReliabilityBin {
	return equalMassCells(s.confidence, bins, cellEdge)
}

// cellEdge returns the lower end of a cell.
func cellEdge(cell int) float64 { return float64(cell) / cells }

// ECE returns the expected calibration error in bins of equal mass. It is that of [ECE], up to the width of
// the cells.
func (s *ClassSums) ECE(bins int) float64 {
	return binnedECE(equalMassCells(s.confidence, bins, cellEdge))
}

// SmoothECE returns the smooth calibration error of the most probable class: [BinnedSmoothECE] of the cells.
func (s *ClassSums) SmoothECE() float64 { return smoothCellECE(s.confidence) }

func smoothCellECE(cells []confidenceCell) float64 {
	var bins []ReliabilityBin
	for _, c := range cells {
		if n := float64(c.Count); n > 0 {
			bins = append(bins, ReliabilityBin{Count: int(c.Count), Confidence: c.Sum / n, Accuracy: float64(c.Right) / n})
		}
	}
	return BinnedSmoothECE(bins)
}

// BorderECE is the ECE of the positions beside another class, and InsideECE that of the others.
func (s *ClassSums) BorderECE(bins int) float64 {
	return binnedECE(equalMassCells(s.border, bins, cellEdge))
}

// InsideECE is the ECE of the positions that are not beside another class.
func (s *ClassSums) InsideECE(bins int) float64 {
	inside := make([]confidenceCell, len(s.confidence))
	for i, c := range s.confidence {
		b := s.border[i]
		inside[i] = confidenceCell{c.Count - b.Count, c.Right - b.Right, c.Sum - b.Sum}
	}
	return binnedECE(equalMassCells(inside, bins, cellEdge))
}

// ClassECE returns the calibration error of the probability of each class, over all positions, in 20 bins of equal width.
func (s *ClassSums) ClassECE() []float64 {
	out := make([]float64, s.Classes)
	for c := range out {
		if s.class == nil {
			out[c] = math.NaN()
			continue
		}
		off := 0.0
		for _, b := range s.class[c*classBins:][:classBins] {
			off += math.Abs(b.Sum - float64(b.Right))
		}
		out[c] = off / float64(s.Positions)
	}
	return out
}

// ClasswiseECE returns the mean of [ClassSums.ClassECE] over all classes (Kull et al. 2019).
func (s *ClassSums) ClasswiseECE() float64 { return meanKnown(s.ClassECE()) }

// equalMassCells puts n predictions into bins of n/B each, in order of their confidence. A cut within a cell divides its counts
// in proportion, since nothing is known of the order in a cell. cellEdge returns the lower end of a cell.
func equalMassCells(all []confidenceCell, bins int, cellEdge func(cell int) float64) []ReliabilityBin {
	n := 0.0
	for _, c := range all {
		n += float64(c.Count)
	}
	var out []ReliabilityBin
	next, used := 0, 0.0 // used is how much of the next cell is in bins already
	for b := range bins {
		left := math.Floor(float64(b+1)*n/float64(bins)) - math.Floor(float64(b)*n/float64(bins))
		bin, right := ReliabilityBin{Lower: 1}, 0.0
		for left > 0 && next < len(all) {
			c := all[next]
			have := float64(c.Count) - used
			if have <= 0 {
				next, used = next+1, 0
				continue
			}
			take := min(have, left)
			share := take / float64(c.Count)
			bin.Count += int(take)
			bin.Confidence += share * c.Sum
			right += share * float64(c.Right)
			bin.Lower, bin.Upper = min(bin.Lower, cellEdge(next)), max(bin.Upper, cellEdge(next+1))
			left, used = left-take, used+take
		}
		if bin.Count > 0 {
			bin.Confidence /= float64(bin.Count)
			bin.Accuracy = right / float64(bin.Count)
			out = append(out, bin)
		}
	}
	return out
}

func binnedECE(bins []ReliabilityBin) float64 {
	off, n := 0.0, 0.0
	for _, b := range bins {
		off += float64(b.Count) * math.Abs(b.Confidence-b.Accuracy)
		n += float64(b.Count)
	}
	return off / n
}
