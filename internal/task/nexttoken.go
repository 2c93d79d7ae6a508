package task

// NextToken is the name of the task of language models. Its classes are those of the task "classes", with a vocabulary
// that may be large. So its figures need no table of all pairs of classes, and no list of classes.
const NextToken = "next-token"

func newNextToken(s OutputSpec) (Task, bool, error) {
	if s.Axis != -1 { // one answer for a text, or pixels
		return nil, false, nil
	}
	t, ok, err := newClasses(s)
	if err == nil {
		t.About().Name = NextToken
	}
	return t, ok, err
}
