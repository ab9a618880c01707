package workspace

import (
	"io/fs"
	"time"
)

// stamp is what the file system says of a file that changes with every change
// of its content: programs cannot set the change time back.
type stamp struct {
	dev, ino          uint64
	size              int64
	modified, changed int64 // nanoseconds since 1970
}

// settledStamp returns the stamp of a file if it can be relied on: a change
// after this moment gives another one. A file that changed just before it was
// read could change again within the same tick of the file system's clock, and
// a file system that counts whole seconds, as times without a fraction show, or
// whose clock is ahead, is not trusted at all.
func settledStamp(info fs.FileInfo, read time.Time) (stamp, bool) {
	const tick = int64(2 * time.Second)
	s, ok := sysStamp(info)
	if !ok || read.UnixNano()-s.changed < tick || read.UnixNano()-s.modified < tick {
		return stamp{}, false
	}
	return s, s.changed%1e9 != 0 && s.modified%1e9 != 0
}

// sameState tells whether two looks at one open or named file show no change
// between them, as far as the file system tells.
func sameState(a, b fs.FileInfo) bool {
	if a.Mode() != b.Mode() || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) {
		return false
	}
	sa, okA := sysStamp(a)
	sb, okB := sysStamp(b)
	return okA == okB && sa == sb
}
