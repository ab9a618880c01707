package workspace

import (
	"io/fs"
	"time"
)

// stamp is the metadata of a file that changes with every change of its content: programs
// cannot set the change time back.
type stamp struct {
	dev, ino          uint64
	size              int64
	modified, changed int64 // nanoseconds since 1970
}

// settledStamp returns the stamp of a file if every later change gives another one. A file
// that changed just before it was read could change again within the same tick of the file
// system's clock. A file system with whole seconds, as times without a fraction show, or
// with a clock that is ahead, is not relied on.
func settledStamp(info fs.FileInfo, read time.Time) (stamp, bool) {
	const tick = int64(2 * time.Second)
	s, ok := sysStamp(info)
	if !ok || read.UnixNano()-s.changed < tick || read.UnixNano()-s.modified < tick {
		return stamp{}, false
	}
	return s, s.changed%1e9 != 0 && s.modified%1e9 != 0
}

// sameState reports whether the metadata of a file show no change between two reads of them.
func sameState(a, b fs.FileInfo) bool {
	if a.Mode() != b.Mode() || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) {
		return false
	}
	sa, okA := sysStamp(a)
	sb, okB := sysStamp(b)
	return okA == okB && sa == sb
}
