package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/perdure/perdure/handoff"
)

// A snapshot is a file with the folded first entries of a ledger, so that a command
// need not read thousands of them. It only saves time: without the file, or with one
// that is damaged or of another program or of other entries, all entries are read.
// It is written without a sync.

// snapshotEvery is the number of entries after which a new snapshot is written.
const snapshotEvery = 32

// kept is the content of a snapshot.
type kept struct {
	Handoff int64
	Version int64
	// Source, Kind and Time are those of the last entry, to compare it.
	Source, Kind string
	Time         int64
	Ledger       handoff.Ledger
}

func (k *kept) of(e *Entry) bool {
	return k.Version == e.Number && k.Source == e.Source && k.Kind == e.Kind && k.Time == e.Time.UnixMicro()
}

func (r *Recorder) snapshotFile(id ID) string {
	return filepath.Join(r.Snapshots, id.String()+".fold")
}

// fold folds the entries of the ledger, beginning with a snapshot if there is one.
func (r *Recorder) fold(ctx context.Context, v *View, from *kept) error {
	v.folder = r.newFolder(v)
	after, read := int64(0), 0
	if from != nil {
		after = from.Version - 1 // its last entry is read to compare it
		v.folder.begin(from.Ledger)
	}
	var last Entry
	err := r.each(ctx, v, after, func(e *Entry) error {
		last = *e
		if read++; from == nil || read > 1 {
			return v.folder.entry(e)
		}
		if !from.of(e) {
			return errOther
		}
		return nil
	})
	if errors.Is(err, errOther) {
		return r.fold(ctx, v, nil)
	}
	if err == nil && read > snapshotEvery {
		r.keep(v, &last)
	}
	v.folder.notes = nil
	return err
}

var errOther = errors.New("a snapshot of other entries")

// restore returns the snapshot of the ledger, nil if there is no usable one.
func (r *Recorder) restore(v *View) *kept {
	if r.Snapshots == "" || v.Handoff.Version < snapshotEvery {
		return nil
	}
	raw, err := os.ReadFile(r.snapshotFile(v.Handoff.ID))
	if err != nil {
		return nil
	}
	var k kept
	if !unpack(raw, r.fingerprint(v), &k) || k.Handoff != int64(v.Handoff.ID) || k.Version > v.Handoff.Version ||
		k.Version < 1 {
		return nil
	}
	return &k
}

// keep writes a snapshot of the entries up to the last one.
func (r *Recorder) keep(v *View, last *Entry) {
	if r.Snapshots == "" {
		return
	}
	raw, err := pack(r.fingerprint(v), &kept{Handoff: int64(v.Handoff.ID), Version: last.Number, Source: last.Source,
		Kind: last.Kind, Time: last.Time.UnixMicro(), Ledger: v.folder.Ledger})
	if err != nil || os.MkdirAll(r.Snapshots, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(r.Snapshots, ".fold")
	if err != nil {
		return
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), r.snapshotFile(v.Handoff.ID))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// fingerprint is different if the same entries would fold to another ledger: for
// another task or by another program. A change of the format, or of what an op does to
// a ledger, must increment its number.
func (r *Recorder) fingerprint(v *View) []byte {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "3 %q %q %q\n", v.Task.ID, r.Place, v.Task.Description)
	describe(h, reflect.TypeFor[kept]())
	return h.Sum(nil)
}

func describe(w interface{ Write(p []byte) (int, error) }, t reflect.Type) {
	_, _ = fmt.Fprintf(w, "%s %s;", t.String(), t.Kind())
	switch t.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() {
				_, _ = fmt.Fprintf(w, "%s:", f.Name)
				describe(w, f.Type)
			}
		}
	case reflect.Slice, reflect.Pointer, reflect.Map:
		describe(w, t.Elem())
	}
}

// pack returns a snapshot: its hash, the fingerprint, the content.
func pack(mark []byte, k *kept) ([]byte, error) {
	body := bytes.NewBuffer(slices.Clone(mark))
	err := gob.NewEncoder(body).Encode(k)
	sum := sha256.Sum256(body.Bytes())
	return append(sum[:], body.Bytes()...), err
}

// unpack reads a snapshot and reports whether it is undamaged and has the fingerprint.
func unpack(raw, mark []byte, k *kept) bool {
	if len(raw) < 2*sha256.Size {
		return false
	}
	sum, body := sha256.Sum256(raw[sha256.Size:]), raw[sha256.Size:]
	return bytes.Equal(sum[:], raw[:sha256.Size]) && bytes.Equal(body[:sha256.Size], mark) &&
		gob.NewDecoder(bytes.NewReader(body[sha256.Size:])).Decode(k) == nil
}
