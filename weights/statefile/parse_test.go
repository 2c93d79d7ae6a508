package statefile

// Parse is [Open] for the bytes of one file in memory; path is for messages.
func Parse(path string, data []byte) (*File, error) {
	f := &File{Path: path, Epoch: -1, Step: -1}
	if err := f.done(f.parse(path, data)); err != nil {
		return nil, err
	}
	return f, nil
}
