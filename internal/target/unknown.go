package target

import "github.com/swagwrap/swagwrap/internal/setting"

// torch is the class that PyTorch's losses ignore.
const torch = -100

// NoClass reports whether a stored number stands for a class that is not known: −1 as in files of this program and of many data
// sets, or −100 as in PyTorch.
func NoClass(v float64) bool { return v == Unknown || v == torch }

// Signs finds files whose labels are only −1 and 1. Then −1 may be a class, as in LIBSVM and CelebA, or no label. The zero value has
// seen no label.
type Signs struct{ minus, plus, other bool }

// Add notes a label.
func (s *Signs) Add(v float64) {
	switch v {
	case -1:
		s.minus = true
	case 1:
		s.plus = true
	case torch:
	default:
		s.other = s.other || v == v
	}
}

// Err returns a [SignsError] if all labels are −1 and 1, and both occur.
func (s *Signs) Err() error {
	if s.minus && s.plus && !s.other {
		return &SignsError{}
	}
	return nil
}

// A SignsError is the error for labels that are only −1 and 1.
type SignsError struct{}

func (*SignsError) Error() string {
	return "all labels are −1 or 1: −1 may be a class of its own, or no label"
}

// Hint says what to save instead.
func (*SignsError) Hint() string {
	return "if −1 is class 0, save (labels + 1) // 2, or name the classes -1 and 1: " + setting.Fit.With(setting.ClassNames.With("FILE")) +
		"\nif −1 is no label, save NaN or an empty cell there, or -100 among whole numbers"
}
