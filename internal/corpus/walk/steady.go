package walk

import (
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"time"
)

// errChanged tells that a file was written to while it was read.
var errChanged = errors.New("the file changed while it was read")

// unsureFor is how long after a change the time of a file may not yet show
// another one, on any file system.
const unsureFor = 2 * time.Second

// steady reads a file as long as it was when it was opened. At the end it fails
// with errChanged unless what was read is what the file holds: what only grew
// meanwhile, as logs do, has not changed.
type steady struct {
	f      *os.File
	opened fs.FileInfo
	unsure bool // changes may not be seen by the file's time
	limit  io.Reader
	seed   maphash.Seed
	hash   maphash.Hash
	size   int64
	buf    []byte
}

func newSteady(f *os.File, opened fs.FileInfo) *steady {
	s := &steady{f: f, opened: opened, limit: io.LimitReader(f, opened.Size()), seed: maphash.MakeSeed()}
	s.unsure = time.Since(opened.ModTime()) < unsureFor
	s.hash.SetSeed(s.seed)
	return s
}

// Read reads on; the end is checked before it is told.
func (s *steady) Read(p []byte) (int, error) {
	n, err := s.limit.Read(p)
	_, _ = s.hash.Write(p[:n]) // never fails
	s.size += int64(n)
	if err == io.EOF { //nolint:errorlint // a wrapped EOF is not the end
		if checkErr := s.check(); checkErr != nil {
			err = checkErr
		}
	}
	return n, err
}

// check tells whether the file still holds what was read. Its time alone does
// not tell: a file that grew has another one.
func (s *steady) check() error {
	now, err := s.f.Stat()
	if err != nil {
		return err
	}
	same := now.Size() == s.opened.Size() && now.ModTime().Equal(s.opened.ModTime())
	if same && !s.unsure && s.size == s.opened.Size() {
		return nil
	}
	if now.Size() < s.size || s.size < s.opened.Size() && now.Size() != s.size {
		return errChanged
	}
	var again maphash.Hash
	again.SetSeed(s.seed)
	if s.buf == nil {
		s.buf = make([]byte, 64<<10)
	}
	n, err := io.CopyBuffer(&again, io.NewSectionReader(s.f, 0, s.size), s.buf)
	if err != nil {
		return err
	}
	if n < s.size || again.Sum64() != s.hash.Sum64() {
		return errChanged
	}
	return nil
}
