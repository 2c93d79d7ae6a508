package predictions

import (
	"bytes"
	"io"
	"os"
)

// spoolBytes is what a section keeps in memory before it goes to the file.
const spoolBytes = 1 << 18

// spool is a file without a name for sections that grow at the same time. It is
// made when one is too large for memory.
type spool struct {
	dir  string
	file *os.File
	end  int64
}

// section is bytes that are read when all are there.
type section struct {
	spool   *spool
	pending []byte
	parts   []io.Reader // of the file
}

// grown is called when bytes were appended to pending.
func (s *section) grown() error {
	if len(s.pending) < spoolBytes {
		return nil
	}
	if err := s.spool.open(); err != nil {
		return err
	}
	if _, err := s.spool.file.WriteAt(s.pending, s.spool.end); err != nil {
		return err
	}
	s.parts = append(s.parts, io.NewSectionReader(s.spool.file, s.spool.end, int64(len(s.pending))))
	s.spool.end += int64(len(s.pending))
	s.pending = s.pending[:0]
	return nil
}

// reader reads all of the section, once.
func (s *section) reader() io.Reader {
	return io.MultiReader(append(s.parts, bytes.NewReader(s.pending))...)
}

// open makes the file, and removes its name: whatever ends the process, nothing
// is left behind.
func (s *spool) open() (err error) {
	if s.file != nil {
		return nil
	}
	if s.file, err = os.CreateTemp(s.dir, ".swagwrap-*.spool"); err != nil {
		return err
	}
	return os.Remove(s.file.Name())
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close() // has no name any more
	}
}
