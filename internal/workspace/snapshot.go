package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// ignoredSuffix ends the name of the list of paths that were ignored when a snapshot was
// last taken. The list is not part of the snapshot, whose ID would otherwise change with
// every build.
const ignoredSuffix = ".ignored"

// Snapshot takes a snapshot of the workspace. When it returns, the snapshot is durable;
// after an error or a crash there is none. Equal workspaces have the same ID.
//
// The error of a missing workspace matches ErrGone, that of a full disk ErrDiskFull, that of
// too many files or too much data ErrLimit.
func (w *Workspace) Snapshot(ctx context.Context) (id ID, stats Stats, err error) {
	err = w.exclusive(ctx, func() error {
		l, taken, err := w.take(ctx, "take snapshot", nil)
		if err == nil {
			id, stats = taken, l.stats
		}
		return err
	})
	return id, stats, Wrap("take snapshot", w.cfg.Root, err)
}

// take lists the workspace and stores the snapshot.
func (w *Workspace) take(ctx context.Context, op string, force map[string]*File) (*listing, ID, error) {
	pack := w.contents.writer(max(0, w.cfg.MaxBytes-w.contents.total()))
	defer pack.abort()
	l, err := w.scan(ctx, op, force, pack)
	if err != nil {
		return nil, "", err
	}
	l.stats.Stored, l.stats.StoredBytes = len(pack.added), pack.offset
	failpoint.Hit("workspace.snapshot.scanned")
	if err := pack.publish(); err != nil {
		return nil, "", err
	}
	failpoint.Hit("workspace.snapshot.before_manifest")
	id, err := w.publish(l)
	if err != nil {
		return nil, "", err
	}
	failpoint.Hit("workspace.snapshot.after_manifest")
	w.copyOut()
	w.learn(l)
	return l, id, nil
}

// publish writes the manifest under its name.
func (w *Workspace) publish(l *listing) (ID, error) {
	encoded := l.encode()
	id := idOf(encoded)
	path := w.manifestPath(id)
	ignored := []byte(strings.Join(l.ignored, "\x00"))
	if err := writeChanged(path+ignoredSuffix, ignored); err != nil {
		return "", err
	}
	if err := writeChanged(path, encoded); err != nil {
		return "", err
	}
	// Sweep uses the time at which the snapshot was last taken.
	now := w.cfg.now()
	return id, os.Chtimes(path, now, now)
}

// writeChanged replaces a file unless it has the data already.
func writeChanged(path string, data []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, data) {
		return nil
	}
	return atomicfile.WriteFile(path, data, 0o600)
}

func (w *Workspace) manifestPath(id ID) string {
	return filepath.Join(w.cfg.Dir, manifestsName, string(id))
}

// learn updates the stat cache, with which unchanged files are not read again. Its file is
// written only if many entries changed: another process reads the few missing files again.
func (w *Workspace) learn(l *listing) {
	const part = 50 // of the files
	n := 0
	for i, s := range l.stamps {
		if !s.ok {
			continue
		}
		n++
		if s.read {
			w.known[l.files[i].Path] = cached{s.stamp, l.files[i].Hash}
			w.unsaved++
		}
	}
	if w.unsaved <= n/part && len(w.known) <= n+n/part {
		return
	}
	known := make(map[string]cached, n)
	for i, s := range l.stamps {
		if s.ok {
			known[l.files[i].Path] = cached{s.stamp, l.files[i].Hash}
		}
	}
	w.known, w.unsaved = known, 0
	if err := w.saveCache(); err != nil {
		w.cfg.Logger.Warn("stat cache cannot be written; files are read again", "error", err)
	}
}

// load reads a manifest and checks it.
func (w *Workspace) load(op string, id ID) (*manifest, error) {
	if !id.valid() {
		return nil, &Error{Kind: ErrNotFound, Op: op, Name: string(id), Msg: "an ID has 64 hexadecimal digits"}
	}
	data, err := os.ReadFile(w.manifestPath(id))
	if errors.Is(err, fs.ErrNotExist) && w.cfg.Copy != "" {
		data, err = os.ReadFile(filepath.Join(w.cfg.Copy, manifestsName, string(id)))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Kind: ErrNotFound, Op: op, Name: string(id), Hint: "retention may have removed it"}
	}
	if err != nil {
		return nil, err
	}
	if idOf(data) != id {
		return nil, &Error{Kind: ErrDamaged, Op: op, Name: string(id), Msg: "the manifest does not match its hash"}
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, &Error{Kind: ErrDamaged, Op: op, Name: string(id), Err: err}
	}
	return m, nil
}

// wasIgnored returns the paths that were ignored when the snapshot was last taken.
func (w *Workspace) wasIgnored(id ID) (map[string]bool, error) {
	data, err := os.ReadFile(w.manifestPath(id) + ignoredSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	set := map[string]bool{}
	for p := range strings.SplitSeq(string(data), "\x00") {
		set[p] = true
	}
	delete(set, "")
	return set, nil
}

// Files returns the paths of a snapshot, and those left out of it, each sorted. The lists
// are shared and must not be changed.
func (w *Workspace) Files(ctx context.Context, id ID) ([]File, []LeftOut, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	m, err := w.recall("read snapshot", id)
	if err != nil {
		return nil, nil, Wrap("read snapshot", string(id), err)
	}
	return m.files, m.left, nil
}

// ReadFile returns the content of a file of a snapshot, checked against its hash. The error
// of a path that is not a file of it matches ErrNotFound.
func (w *Workspace) ReadFile(ctx context.Context, id ID, path string) ([]byte, error) {
	var content []byte
	err := w.ReadFiles(ctx, id, []string{path}, func(_ File, data []byte) error {
		content = data
		return nil
	})
	return content, err
}

// ReadFiles calls each with the files of a snapshot at the paths and their contents, one
// after the other, until it returns an error. each must not call methods of the workspace.
// For many files this is much cheaper than ReadFile. One content at a time is in memory.
func (w *Workspace) ReadFiles(ctx context.Context, id ID, paths []string,
	each func(f File, content []byte) error) error {
	const op = "read file of snapshot"
	err := w.exclusive(ctx, func() (err error) {
		m, err := w.recall(op, id)
		if err != nil {
			return err
		}
		packs := &packReader{c: w.contents}
		defer func() { err = errors.Join(err, packs.close()) }()
		for _, p := range paths {
			f := m.find(p)
			if f == nil || f.Kind != KindFile {
				return &Error{Kind: ErrNotFound, Op: op, Name: p, Msg: "it has no such file"}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			data, err := packs.read(f.Hash)
			if err != nil {
				return err
			}
			if err := each(*f, data); err != nil {
				return err
			}
		}
		return nil
	})
	return Wrap(op, string(id), err)
}
