package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// listing is the content of the workspace.
type listing struct {
	manifest

	stamps  []settled // of files, in their order
	ignored []string  // sorted; without the contents of ignored folders
	hidden  []string  // .git and .perdure, which are not read
	temps   []string  // temporary files of an interrupted restore
	stats   Stats
}

// settled is a stamp that shows every later change, if ok.
type settled struct {
	stamp stamp
	ok    bool
	read  bool // the content was read for it
}

// scanner walks the workspace with several goroutines.
type scanner struct {
	w     *Workspace
	ctx   context.Context
	stop  context.CancelFunc
	force map[string]*File // included also if ignored
	slots chan struct{}    // limits the goroutines
	wg    sync.WaitGroup

	packMu sync.Mutex
	pack   *packWriter // nil: contents are only hashed

	mu      sync.Mutex // guards the fields below
	found   []*found
	empty   map[string]bool // folders without any entry
	listing listing
	err     error // the first one
}

type found struct {
	file File
	settled
}

// errMoved is the error of a path that changed since it was last read.
var errMoved = errors.New("it keeps changing")

const (
	// tries is the number of attempts to read a file that changes meanwhile.
	tries = 3
	// inMemory is the size up to which a file is read before it is stored.
	inMemory = 1 << 20
)

// scan lists the workspace. New contents are added to pack, if it is not nil.
func (w *Workspace) scan(ctx context.Context, op string, force map[string]*File, pack *packWriter) (*listing, error) {
	root, err := w.openRoot(op)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &scanner{w: w, ctx: ctx, stop: stop, force: force, pack: pack, empty: map[string]bool{},
		slots: make(chan struct{}, min(16, 2*runtime.GOMAXPROCS(0)))}
	s.folder(root, ".", rules{}, false)
	s.wg.Wait()
	if s.err != nil {
		return nil, s.err
	}
	return s.result(), nil
}

func (s *scanner) result() *listing {
	slices.SortFunc(s.found, func(a, b *found) int { return strings.Compare(a.file.Path, b.file.Path) })
	s.found = s.withoutHollow(s.found)
	l := &s.listing
	l.files = make([]File, len(s.found))
	l.stamps = make([]settled, len(s.found))
	for i, f := range s.found {
		l.files[i], l.stamps[i] = f.file, f.settled
		l.stats.count(&f.file)
	}
	slices.SortFunc(l.left, func(a, b LeftOut) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(l.ignored)
	slices.Sort(l.stats.Changing)
	slices.Sort(l.stats.Outside)
	slices.Sort(l.stats.WithoutGit)
	l.stats.LeftOut = l.left
	l.stats.Ignored = len(l.ignored)
	return l
}

// withoutHollow leaves out folders with entries of which none is part of the snapshot. A
// restore that removes the other files keeps such folders, and the ID must not change by
// them.
func (s *scanner) withoutHollow(list []*found) []*found {
	needed := map[string]bool{}
	last := ""
	kept := len(list)
	for i := len(list) - 1; i >= 0; i-- { // the entries of a folder come after it
		f := &list[i].file
		if f.Kind == KindFolder && !needed[f.Path] && !s.empty[f.Path] && s.force[f.Path] == nil {
			continue
		}
		if dir := path.Dir(f.Path); dir != last {
			needed[dir] = true
			last = dir
		}
		kept--
		list[kept] = list[i]
	}
	return list[kept:]
}

func (s *scanner) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.stop()
	}
}

// note changes the listing under the mutex.
func (s *scanner) note(add func(l *listing)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.listing)
}

func (s *scanner) leaveOut(p string, why Reason) {
	s.note(func(l *listing) { l.left = append(l.left, LeftOut{p, why}) })
}

func (s *scanner) add(list []found) {
	if len(list) == 0 {
		return
	}
	s.mu.Lock()
	for i := range list {
		s.found = append(s.found, &list[i])
	}
	over := len(s.found) > s.w.cfg.MaxFiles
	s.mu.Unlock()
	if over {
		s.fail(&Error{Kind: ErrLimit, Op: "read workspace", Name: path.Dir(list[0].file.Path),
			Msg:  fmt.Sprintf("the workspace has more than %d files, folders and links", s.w.cfg.MaxFiles),
			Hint: "add generated folders to .gitignore"})
	}
}

// folder lists one folder, whose rules are those of above unless it has its own. Of an
// ignored folder (inside is set) only the forced paths are included.
func (s *scanner) folder(dir *os.Root, p string, above rules, inside bool) {
	names, err := namesIn(dir)
	if err == nil {
		err = s.ctx.Err()
	}
	if err != nil {
		if p != "." && errors.Is(err, fs.ErrPermission) {
			s.leaveOut(p, Unreadable)
			return
		}
		s.fail(Wrap("read folder", p, err))
		return
	}
	if !inside {
		if above, err = s.rules(dir, p, names, above); err != nil {
			s.fail(Wrap("read folder", p, err))
			return
		}
	}
	if !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, tempPrefix) }) {
		s.mu.Lock()
		s.empty[p] = true
		s.mu.Unlock()
	}
	list := make([]found, 0, len(names))
	for _, name := range names {
		f, ok, err := s.entry(dir, path.Join(p, name), above, inside)
		if err != nil {
			s.fail(Wrap("read file", path.Join(p, name), err))
			return
		}
		if ok {
			list = append(list, f)
		}
	}
	s.add(list)
}

func namesIn(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// rules returns the rules in a folder with the given names.
func (s *scanner) rules(dir *os.Root, p string, names []string, above rules) (rules, error) {
	r := above
	if p == "." || slices.Contains(names, ".git") {
		byGit, err := s.w.askGit(s.ctx, p)
		if err != nil {
			return r, err
		}
		r = rules{byGit: byGit}
		if byGit == nil && slices.Contains(names, ".git") {
			s.note(func(l *listing) { l.stats.WithoutGit = append(l.stats.WithoutGit, p) })
		}
		if byGit == nil {
			r.patterns = ParsePatterns(p, ruleFile(dir, ".git/info/exclude"))
		}
	}
	if r.byGit == nil && slices.Contains(names, ".gitignore") {
		r.patterns = slices.Concat(r.patterns, ParsePatterns(p, ruleFile(dir, ".gitignore")))
	}
	return r, nil
}

// ruleFile returns the content of a file of patterns; nil if git would not read it.
func ruleFile(dir *os.Root, name string) []byte {
	const limit = 4 << 20
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil
	}
	data, err := dir.ReadFile(name)
	if err != nil {
		return nil
	}
	return data
}

// entry reads one name of a folder; ok is false if it is not part of the snapshot.
func (s *scanner) entry(dir *os.Root, p string, r rules, inside bool) (f found, ok bool, err error) {
	name := path.Base(p)
	if reserved(name) || p == s.w.store {
		s.note(func(l *listing) {
			if strings.HasPrefix(name, tempPrefix) {
				l.temps = append(l.temps, p)
				return
			}
			l.hidden = append(l.hidden, p)
		})
		return found{}, false, nil
	}
	if !validName(name) || len(p) > maxPath {
		s.leaveOut(p, BadName)
		return found{}, false, nil
	}
	for range tries {
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return found{}, false, nil
		}
		if errors.Is(err, fs.ErrPermission) { // a folder that may be listed but not searched
			s.leaveOut(p, Unreadable)
			return found{}, false, nil
		}
		if err != nil {
			return found{}, false, err
		}
		outside := !inside && s.w.isOutside(p, info.IsDir())
		ignored := inside || outside || r.ignores(p, info.IsDir())
		if ignored && s.force[p] == nil {
			if !inside {
				s.note(func(l *listing) { l.ignored = append(l.ignored, p) })
			}
			if outside {
				s.note(func(l *listing) { l.stats.Outside = append(l.stats.Outside, p) })
			}
			return found{}, false, nil
		}
		f, ok, err = s.kind(dir, p, info, func(sub *os.Root) { s.sub(sub, p, r, ignored) })
		if !errors.Is(err, errMoved) {
			return f, ok, err
		}
	}
	s.note(func(l *listing) { l.stats.Changing = append(l.stats.Changing, p) })
	return f, ok, nil
}

// kind reads the file, folder (with enter) or link that Lstat found. It returns errMoved if
// the path has changed since.
func (s *scanner) kind(dir *os.Root, p string, info fs.FileInfo, enter func(*os.Root)) (found, bool, error) {
	name := path.Base(p)
	f := found{file: File{Path: p, Mode: chmodBits(info.Mode())}}
	switch {
	case info.Mode().IsRegular():
		f.file.Kind = KindFile
		if info.Size() > s.w.cfg.MaxFileSize {
			s.leaveOut(p, TooLarge)
			return f, false, nil
		}
		return s.file(dir, f, info)
	case info.IsDir():
		sub, err := dir.OpenRoot(name)
		if errors.Is(err, fs.ErrPermission) {
			s.leaveOut(p, Unreadable)
			return f, false, nil
		}
		if err != nil {
			return f, false, moved(dir, name, info, err)
		}
		now, err := sub.Stat(".")
		if err != nil || !os.SameFile(now, info) {
			_ = sub.Close()
			return f, false, errMoved
		}
		f.file.Kind = KindFolder
		enter(sub)
		return f, true, nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		f.file.Kind, f.file.Mode, f.file.Target = KindLink, 0, target
		return f, err == nil, moved(dir, name, info, err)
	}
	s.leaveOut(p, Special)
	return f, false, nil
}

// moved returns errMoved if the path has changed since Lstat returned info, else err.
func moved(dir *os.Root, name string, info fs.FileInfo, err error) error {
	if err == nil {
		return nil
	}
	now, statErr := dir.Lstat(name)
	if statErr != nil || !os.SameFile(now, info) || now.Mode().Type() != info.Mode().Type() {
		return errMoved
	}
	return err
}

// sub lists a subfolder, in another goroutine if the limit allows one.
func (s *scanner) sub(dir *os.Root, p string, r rules, inside bool) {
	select {
	case s.slots <- struct{}{}:
		s.wg.Go(func() {
			defer func() { <-s.slots }()
			defer dir.Close()
			s.folder(dir, p, r, inside)
		})
	default:
		defer dir.Close()
		s.folder(dir, p, r, inside)
	}
}

// file finds the hash of a file: from the cache, or by reading it.
func (s *scanner) file(dir *os.Root, f found, info fs.FileInfo) (found, bool, error) {
	if at, ok := sysStamp(info); ok {
		if e, known := s.w.known[f.file.Path]; known && e.stamp == at && s.stored(e.hash) {
			f.file.Size, f.file.Hash, f.settled = info.Size(), e.hash, settled{at, true, false}
			return f, true, nil
		}
	}
	file, err := dir.OpenFile(path.Base(f.file.Path), openFlags, 0)
	if errors.Is(err, fs.ErrPermission) {
		s.leaveOut(f.file.Path, Unreadable)
		return f, false, nil
	}
	if err != nil {
		return f, false, moved(dir, path.Base(f.file.Path), info, err)
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return f, false, err
	}
	if !os.SameFile(before, info) || !before.Mode().IsRegular() || before.Size() > s.w.cfg.MaxFileSize {
		return f, false, errMoved
	}
	started := s.w.cfg.now()
	if err := s.read(file, before.Size(), &f.file); err != nil {
		return f, false, err
	}
	after, err := file.Stat()
	if err != nil {
		return f, false, err
	}
	f.read = true
	s.note(func(l *listing) { l.stats.Read++; l.stats.ReadBytes += f.file.Size })
	if !sameState(before, after) || f.file.Size != after.Size() {
		return f, true, errMoved
	}
	f.stamp, f.ok = settledStamp(before, started)
	return f, true, nil
}

func (s *scanner) stored(h Hash) bool {
	if s.pack == nil {
		return true
	}
	_, ok := s.pack.c.index[h] // not changed during a walk
	return ok
}

// read sets the size and the hash of the content of a file, at most size bytes, and stores
// the content.
func (s *scanner) read(file *os.File, size int64, f *File) (err error) {
	if size > inMemory && s.pack != nil {
		s.packMu.Lock()
		defer s.packMu.Unlock()
		f.Size, f.Hash, err = s.pack.stream(io.LimitReader(&untilDone{s.ctx, file}, size))
		return err
	}
	if size > inMemory {
		sum := sha256.New()
		f.Size, err = io.Copy(sum, io.LimitReader(&untilDone{s.ctx, file}, size))
		f.Hash = Hash(sum.Sum(nil))
		return err
	}
	data := make([]byte, size)
	n, err := io.ReadFull(file, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	f.Size, f.Hash = int64(n), sha256.Sum256(data[:n])
	if s.pack == nil {
		return nil
	}
	s.packMu.Lock()
	defer s.packMu.Unlock()
	return s.pack.add(f.Hash, data[:n])
}

// untilDone ends a long read when ctx does.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read reads on unless the context has ended.
func (u *untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// modeBits are the mode bits that are not permissions, as Unix and Go number them.
var modeBits = [...]struct {
	unix uint32
	mode fs.FileMode
}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}}

// chmodBits returns the bits of a mode that chmod sets, as Unix numbers them.
func chmodBits(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for _, b := range modeBits {
		if m&b.mode != 0 {
			bits |= b.unix
		}
	}
	return bits
}

// FileMode returns the bits of Mode as Go numbers them.
func (f *File) FileMode() fs.FileMode {
	m := fs.FileMode(f.Mode).Perm()
	for _, b := range modeBits {
		if f.Mode&b.unix != 0 {
			m |= b.mode
		}
	}
	return m
}

// Stats describes a snapshot and how it was taken.
type Stats struct {
	// Files, Folders and Links count the paths of the snapshot; Bytes is the size of its
	// files.
	Files, Folders, Links int
	Bytes                 int64
	// Read counts the files that were read, ReadBytes their bytes. Of an unchanged workspace
	// no file is read.
	Read      int
	ReadBytes int64
	// Stored counts the new contents, StoredBytes their bytes.
	Stored      int
	StoredBytes int64
	// Ignored counts the files and folders that git ignores. Outside are those that exist of
	// the paths of [Workspace.Exclude].
	Ignored int
	Outside []string
	// WithoutGit are the repositories ("." for the workspace) that git could not read: files
	// that it tracks although a pattern ignores them are then not part of the snapshot.
	WithoutGit []string
	// LeftOut are the other paths that are not part of the snapshot.
	LeftOut []LeftOut
	// Changing are the paths that changed during every attempt to read them: their content
	// in the snapshot may be a mixture.
	Changing []string
}

func (s *Stats) count(f *File) {
	switch f.Kind {
	case KindFile:
		s.Files++
		s.Bytes += f.Size
	case KindFolder:
		s.Folders++
	case KindLink:
		s.Links++
	}
}
