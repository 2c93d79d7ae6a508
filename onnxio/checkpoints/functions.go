package checkpoints

import "math"

// The functions below are those that networks apply to a learned number before they use it. They are written out in the
// words of PyTorch.

// ofElement are functions of one element. %s stands for it.
var ofElement = []struct {
	name string
	of   func(x float64) float64
}{
	{"%s", func(x float64) float64 { return x }},
	{"-%s", func(x float64) float64 { return -x }},
	{"exp(%s)", math.Exp},
	{"exp(-%s)", func(x float64) float64 { return math.Exp(-x) }},
	{"exp(%s / 2)", func(x float64) float64 { return math.Exp(x / 2) }},
	{"exp(2 * %s)", func(x float64) float64 { return math.Exp(2 * x) }},
	{"expm1(%s)", math.Expm1},
	{"log(%s)", math.Log},
	{"log1p(%s)", math.Log1p},
	{"sigmoid(%s)", sigmoid},
	{"1 - sigmoid(%s)", func(x float64) float64 { return sigmoid(-x) }},
	{"logsigmoid(%s)", func(x float64) float64 { return -softplus(-x) }},
	{"softplus(%s)", softplus},
	{"tanh(%s)", math.Tanh},
	{"1 + tanh(%s)", func(x float64) float64 { return 1 + math.Tanh(x) }},
	{"%s ** 2", func(x float64) float64 { return x * x }},
	{"sqrt(%s)", math.Sqrt},
	{"rsqrt(%s)", func(x float64) float64 { return 1 / math.Sqrt(x) }},
	{"1 / %s", func(x float64) float64 { return 1 / x }},
	{"1 - %s", func(x float64) float64 { return 1 - x }},
	{"1 + %s", func(x float64) float64 { return 1 + x }},
	{"%s / 2", func(x float64) float64 { return x / 2 }},
	{"silu(%s)", func(x float64) float64 { return x * sigmoid(x) }},
	{"gelu(%s)", func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }},
	{"sin(%s)", math.Sin},
	{"cos(%s)", math.Cos},
}

func sigmoid(x float64) float64  { return 1 / (1 + math.Exp(-x)) }
func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// ofVector are functions of a vector that have a value for each of its elements. They write the values to dst, and return
// by how many times the rounding unit of the values a computation may be off, relative to each value, or absolutely for
// logarithms. %s stands for the vector.
var ofVector = []struct {
	name string
	of   func(dst, x []float64) (units float64)
}{
	{"softmax(%s)", func(dst, x []float64) float64 {
		_, units := logSumExp(dst, x)
		for i := range dst {
			dst[i] = math.Exp(dst[i])
		}
		return units
	}},
	{"log_softmax(%s)", func(dst, x []float64) float64 {
		_, units := logSumExp(dst, x)
		return units
	}},
	{"normalize(%s)", func(dst, x []float64) float64 {
		return shares(dst, x, func(v float64) float64 { return v * v }, math.Sqrt, 0)
	}},
	{"%s / sum(%[1]s)", func(dst, x []float64) float64 {
		return shares(dst, x, func(v float64) float64 { return v }, func(s float64) float64 { return s }, 0)
	}},
	{"relu(%s) / (sum(relu(%[1]s)) + 1e-4)", func(dst, x []float64) float64 {
		positive := make([]float64, len(x))
		for i, v := range x {
			positive[i] = math.Max(v, 0)
		}
		return shares(dst, positive, func(v float64) float64 { return v }, func(s float64) float64 { return s }, 1e-4)
	}},
}

// logSumExp writes the logarithms of softmax to dst. Their error comes from the largest difference of elements, and from the
// sum.
func logSumExp(dst, x []float64) (total, units float64) {
	most, least := math.Inf(-1), math.Inf(1)
	for _, v := range x {
		most, least = math.Max(most, v), math.Min(least, v)
	}
	for _, v := range x {
		total += math.Exp(v - most)
	}
	total = most + math.Log(total)
	for i, v := range x {
		dst[i] = v - total
	}
	return total, rounding(len(x)) + math.Min(most-least, 40)
}

// shares divides the elements by a norm of the vector.
func shares(dst, x []float64, term, norm func(float64) float64, epsilon float64) float64 {
	sum := epsilon
	for _, v := range x {
		sum += term(v)
	}
	sum = norm(sum)
	for i, v := range x {
		dst[i] = v / sum
	}
	return rounding(len(x))
}

// rounding is the number of rounding units that a sum of n numbers is off. Rounding errors are like draws, so they grow like
// √n.
func rounding(n int) float64 { return 4 + math.Sqrt(float64(n)) }

// ofWhole are functions of a vector that have one value. They also return the size of what they add up: rounding is
// relative to it.
var ofWhole = []struct {
	name string
	of   func(x []float64) (value, size float64)
}{
	{"sum(%s)", func(x []float64) (float64, float64) { return sums(x, 1) }},
	{"mean(%s)", func(x []float64) (float64, float64) { return sums(x, 1/float64(len(x))) }},
	{"norm(%s)", func(x []float64) (float64, float64) {
		value, _ := sums(squares(x), 1)
		return math.Sqrt(value), math.Sqrt(value)
	}},
	{"sum(%s ** 2)", func(x []float64) (float64, float64) { return sums(squares(x), 1) }},
	{"mean(%s ** 2)", func(x []float64) (float64, float64) { return sums(squares(x), 1/float64(len(x))) }},
	{"logsumexp(%s)", func(x []float64) (float64, float64) {
		total, _ := logSumExp(make([]float64, len(x)), x)
		return total, 1 + math.Abs(total)
	}},
	{"prod(%s)", func(x []float64) (float64, float64) {
		value := 1.0
		for _, v := range x {
			value *= v
		}
		return value, math.Abs(value)
	}},
}

func sums(x []float64, factor float64) (value, size float64) {
	for _, v := range x {
		value, size = value+v*factor, size+math.Abs(v*factor)
	}
	return value, size
}

func squares(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * v
	}
	return out
}
