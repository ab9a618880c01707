package walk

import (
	"cmp"
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"time"
)

// errChanged is the error of a file that was written to while it was read.
var errChanged = errors.New("the file changed while it was read")

// unsureFor is the time after a change in which the modification time of a file may not
// show another change, on any file system.
const unsureFor = 2 * time.Second

// steady reads a file at the length that it had when it was opened. At the end it fails
// with errChanged unless the file still begins with the content read: a file that only
// grew, as logs do, has not changed.
type steady struct {
	f      *os.File
	opened fs.FileInfo
	unsure bool // the file's time may not show a change
	limit  io.Reader
	seed   maphash.Seed
	hash   maphash.Hash
	size   int64
}

func newSteady(f *os.File, opened fs.FileInfo) *steady {
	s := &steady{f: f, opened: opened, limit: io.LimitReader(f, opened.Size()), seed: maphash.MakeSeed()}
	s.unsure = time.Since(opened.ModTime()) < unsureFor
	s.hash.SetSeed(s.seed)
	return s
}

// Read reads on, and checks the content before it returns the end.
func (s *steady) Read(p []byte) (int, error) {
	n, err := s.limit.Read(p)
	_, _ = s.hash.Write(p[:n]) // never fails
	s.size += int64(n)
	if err == io.EOF { //nolint:errorlint // a wrapped EOF is not the end
		err = cmp.Or(s.check(), err)
	}
	return n, err
}

// check returns errChanged if the file no longer begins with the content read. Its time
// alone does not suffice: a file that grew has another one.
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
	n, err := io.Copy(&again, io.NewSectionReader(s.f, 0, s.size))
	if err != nil {
		return err
	}
	if n < s.size || again.Sum64() != s.hash.Sum64() {
		return errChanged
	}
	return nil
}
