package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ID identifies a snapshot: the SHA-256 of its manifest in 64 hexadecimal digits. Equal
// workspaces have equal IDs.
type ID string

// valid reports whether the text has the form of an ID, and can be the name of a file.
func (id ID) valid() bool {
	return len(id) == hex.EncodedLen(sha256.Size) && strings.Trim(string(id), "0123456789abcdef") == ""
}

// Hash is the SHA-256 of a file's content.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Kind is the kind of a path.
type Kind byte

// Kinds of a [File].
const (
	KindFile   Kind = 'f'
	KindFolder Kind = 'd'
	KindLink   Kind = 'l'
)

// File is one path of a snapshot.
type File struct {
	// Path is relative to the workspace, with slashes.
	Path string
	Kind Kind
	// Mode has the twelve bits of chmod (permissions, setuid, setgid, sticky); 0 for links.
	Mode uint32
	// Size is in bytes; only for files.
	Size int64
	// Hash is that of the content; only for files.
	Hash Hash
	// Target is the target of a link, unchanged.
	Target string
}

// LeftOut is a path that is not part of a snapshot and that a restore does not change, with
// all paths below it.
type LeftOut struct {
	// Path is relative to the workspace, with slashes.
	Path string
	Why  Reason
}

// DefaultMaxFileSize is the default of [Config].MaxFileSize, in bytes.
const DefaultMaxFileSize = 256 << 20

// Reason is why a path was left out.
type Reason byte

// Reasons of [LeftOut].
const (
	TooLarge   Reason = 'b' // larger than Config.MaxFileSize
	Special    Reason = 's' // a socket, pipe or device
	Unreadable Reason = 'u' // permissions
	BadName    Reason = 'n' // a name that cannot be restored safely
)

// String returns the reason for people.
func (r Reason) String() string {
	switch r {
	case TooLarge:
		return "too large"
	case Special:
		return "not a file, folder or link"
	case Unreadable:
		return "not readable"
	case BadName:
		return "name cannot be restored"
	}
	return "unknown"
}

// manifest is the content of a snapshot; both lists are sorted by path.
type manifest struct {
	files []File
	left  []LeftOut
}

// find returns the file at a path; nil for none.
func (m *manifest) find(p string) *File {
	i, ok := slices.BinarySearchFunc(m.files, p, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return nil
	}
	return &m.files[i]
}

const (
	manifestMagic = "perdure snapshot 1\n"
	maxPath       = 1 << 16
	maxMode       = 0o7777
)

// encode encodes a manifest, in its only form: a path is encoded as the length of the prefix
// that it shares with the path before, and the rest.
func (m *manifest) encode() []byte {
	b := make([]byte, 0, len(manifestMagic)+len(m.files)*72)
	b = append(b, manifestMagic...)
	b = binary.AppendUvarint(b, uint64(len(m.files)))
	last := ""
	for i := range m.files {
		f := &m.files[i]
		b = append(b, byte(f.Kind))
		b = appendPath(b, last, f.Path)
		last = f.Path
		switch f.Kind {
		case KindFile:
			b = binary.AppendUvarint(b, uint64(f.Mode))
			b = binary.AppendUvarint(b, uint64(f.Size)) //nolint:gosec // never negative
			b = append(b, f.Hash[:]...)
		case KindFolder:
			b = binary.AppendUvarint(b, uint64(f.Mode))
		case KindLink:
			b = binary.AppendUvarint(b, uint64(len(f.Target)))
			b = append(b, f.Target...)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(m.left)))
	last = ""
	for _, l := range m.left {
		b = append(b, byte(l.Why))
		b = appendPath(b, last, l.Path)
		last = l.Path
	}
	return b
}

func appendPath(b []byte, last, next string) []byte {
	n := 0
	for n < len(last) && n < len(next) && last[n] == next[n] {
		n++
	}
	b = binary.AppendUvarint(b, uint64(n))
	b = binary.AppendUvarint(b, uint64(len(next)-n)) //nolint:gosec // never negative
	return append(b, next[n:]...)
}

// idOf returns the ID of an encoded manifest.
func idOf(encoded []byte) ID {
	sum := sha256.Sum256(encoded)
	return ID(hex.EncodeToString(sum[:]))
}

// decodeManifest parses the output of encode and nothing else: a manifest that it accepts
// encodes to the same bytes, is sorted, and has no path that leads out of the workspace,
// through a link, or into .git or .perdure.
func decodeManifest(data []byte) (*manifest, error) {
	rest, ok := bytes.CutPrefix(data, []byte(manifestMagic))
	if !ok {
		return nil, errors.New("not a manifest of this version")
	}
	d := &decoder{rest: rest}
	m := &manifest{}
	folders := map[string]bool{".": true}
	last := ""
	for n := d.uvarint(uint64(len(rest))); n > 0 && d.err == nil; n-- {
		f := d.file(last)
		if d.err == nil && !folders[path.Dir(f.Path)] {
			d.fail("path %q is not in a folder of the manifest", f.Path)
		}
		if f.Kind == KindFolder {
			folders[f.Path] = true
		}
		last = f.Path
		m.files = append(m.files, f)
	}
	last = ""
	for n := d.uvarint(uint64(len(rest))); n > 0 && d.err == nil; n-- {
		l := LeftOut{Why: Reason(d.byte())}
		if !strings.ContainsRune("bsun", rune(l.Why)) {
			d.fail("reason %q", rune(l.Why))
		}
		l.Path = d.path(last, l.Why != BadName)
		last = l.Path
		m.left = append(m.left, l)
	}
	if d.err == nil && len(d.rest) > 0 {
		d.fail("%d bytes after the end", len(d.rest))
	}
	if d.err != nil {
		return nil, d.err
	}
	return m, nil
}

// decoder reads values from rest until the first error.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	d.rest = nil
}

func (d *decoder) byte() byte {
	b := d.bytes(1)
	if b == nil {
		return 0
	}
	return b[0]
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail("cut short")
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// uvarint reads a number up to limit in its shortest form.
func (d *decoder) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > limit || n > 1 && d.rest[n-1] == 0 {
		d.fail("invalid number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) file(last string) File {
	f := File{Kind: Kind(d.byte())}
	f.Path = d.path(last, true)
	switch f.Kind {
	case KindFile:
		f.Mode = uint32(d.uvarint(maxMode)) //nolint:gosec // limited
		f.Size = int64(d.uvarint(1 << 62))  //nolint:gosec // limited
		copy(f.Hash[:], d.bytes(uint64(len(f.Hash))))
	case KindFolder:
		f.Mode = uint32(d.uvarint(maxMode)) //nolint:gosec // limited
	case KindLink:
		f.Target = string(d.bytes(d.uvarint(maxPath)))
		if f.Target == "" || strings.ContainsRune(f.Target, 0) {
			d.fail("target of link %q", f.Path)
		}
	default:
		d.fail("kind %q", rune(f.Kind))
	}
	return f
}

func (d *decoder) path(last string, restorable bool) string {
	n := d.uvarint(uint64(len(last)))
	tail := d.bytes(d.uvarint(maxPath))
	if d.err != nil {
		return ""
	}
	p := last[:n] + string(tail)
	switch {
	case n < uint64(len(last)) && len(tail) > 0 && tail[0] == last[n]:
		d.fail("path %q in a longer form", p)
	case p <= last:
		d.fail("path %q out of order", p)
	case len(p) > maxPath || restorable && !validPath(p):
		d.fail("path %q cannot be in a workspace", p)
	}
	return p
}

// validPath reports whether a path can be part of a snapshot.
func validPath(p string) bool {
	if p == "" || path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return !validName(part) })
}

// validName reports whether a name in a folder of the workspace can be part of a snapshot: it
// is not one of git, perdure or a temporary file, and is the same as a path and as a name.
func validName(name string) bool {
	return name != "" && name != "." && len(name) <= 4096 && !reserved(name) && filepath.IsLocal(name) &&
		filepath.Base(name) == name
}

// tempPrefix begins the names of temporary files of a restore.
const tempPrefix = ".perdure-tmp-"

// reserved reports whether a name is never read. Some file systems ignore case.
func reserved(name string) bool {
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, ".perdure") || strings.HasPrefix(name, tempPrefix)
}
