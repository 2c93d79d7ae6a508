package dataset

// Carried is data whose examples continue each other: the windows of rows of a text. Example i is row i%Rows() of
// window i/Rows(). Example i+Rows() continues example i, so a network with states takes those of example i for it.
type Carried interface {
	Dataset
	// Rows returns the examples of one window, at least 1. Len is a multiple of it.
	Rows() int
	// Past returns the number of tokens behind the states before example i. It is 0 where they are zero: in the first
	// window, or where a document starts.
	Past(i int) int
}
