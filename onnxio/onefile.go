package onnxio

// OneFile returns the model with all elements in one file, which can be rendered in memory. A model that is in one file
// already does not change.
func (f Filled) OneFile() (Filled, error) {
	t := f.Template
	if len(t.files) == 1 {
		return f, nil
	}
	t.join.Do(func() {
		m, err := t.Model(t.files[0].name, f.Layout)
		if t.wholeErr = err; err == nil {
			e := m.Edit()
			e.move = moveIn
			t.whole, t.wholeErr = e.Template(f.Layout)
		}
	})
	f.Template = t.whole
	return f, t.wholeErr
}
