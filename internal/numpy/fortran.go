package numpy

// reordered reports whether the elements of an array are stored in Fortran order, and that differs from C order.
func (h header) reordered() bool {
	long := 0
	for _, d := range h.shape {
		if d > 1 {
			long++
		}
	}
	return h.fortran && long > 1
}

// rowMajor returns the elements of an array in C order, as all arrays have them. pandas and MATLAB save arrays in Fortran
// order, in which the first index changes fastest.
func (h header) rowMajor(data []byte) []byte {
	if !h.reordered() || len(data) == 0 {
		return data
	}
	size := h.dtype.Size
	strides, stride := make([]int, len(h.shape)), size
	for k, d := range h.shape {
		strides[k], stride = stride, stride*d
	}
	out := make([]byte, len(data))
	index, from := make([]int, len(h.shape)), 0
	for to := 0; to < len(out); to += size {
		copy(out[to:to+size], data[from:from+size])
		for k := len(index) - 1; k >= 0; k-- { // the next element in C order
			index[k]++
			from += strides[k]
			if index[k] < h.shape[k] {
				break
			}
			from -= index[k] * strides[k]
			index[k] = 0
		}
	}
	return out
}
