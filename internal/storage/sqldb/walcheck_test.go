package sqldb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// writtenLog returns the log of a store with some transactions in it, each of
// one statement, and where its frames begin.
func writtenLog(tb testing.TB) (log []byte, frames []int) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "perdure.db")
	db, err := Open(tb.Context(), Config{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	for range 8 {
		tx, err := db.Begin(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		for range 3 {
			if _, err := db.conn.ExecContext(tb.Context(), "UPDATE seq SET tx = tx + 1"); err != nil {
				tb.Fatal(err)
			}
		}
		if err := tx.Commit(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	log, err = os.ReadFile(path + "-wal")
	if err = errors.Join(err, db.Close()); err != nil {
		tb.Fatal(err)
	}
	size := int(binary.BigEndian.Uint32(log[8:]))
	for at := walHeader; at+walFrameHeader+size <= len(log); at += walFrameHeader + size {
		frames = append(frames, at)
	}
	return log, frames
}

func sound(tb testing.TB, log []byte) bool {
	tb.Helper()
	ok, err := soundLog(bytes.NewReader(log))
	if err != nil {
		tb.Fatal(err)
	}
	return ok
}

func commits(log []byte, frame int) bool { return binary.BigEndian.Uint32(log[frame+4:]) != 0 }

func TestSoundLog(t *testing.T) {
	t.Parallel()
	log, frames := writtenLog(t)
	if len(frames) < 10 || !sound(t, log) {
		t.Fatalf("a log of %d frames as SQLite wrote it is taken for damaged", len(frames))
	}
	// A process died while it wrote the last transaction.
	for end := range len(log) {
		if end%1999 == 0 && !sound(t, log[:end]) {
			t.Fatalf("a log cut after %d bytes is taken for damaged", end)
		}
	}
	last := len(frames) - 1
	for last > 0 && !commits(log, frames[last-1]) {
		last--
	}
	for _, at := range frames[last:] {
		torn := slices.Clone(log)
		clear(torn[at : at+100])
		if !sound(t, torn) {
			t.Error("a torn last transaction is taken for damage")
		}
	}
}

func TestDamagedLog(t *testing.T) {
	t.Parallel()
	log, frames := writtenLog(t)
	behind := 0 // transactions behind a frame
	for i, at := range slices.Backward(frames) {
		for _, off := range []int{0, 9, 17, walFrameHeader + 1, walFrameHeader + 4000} {
			bad := slices.Clone(log)
			bad[at+off] ^= 0x10
			if sound(t, bad) == (behind >= 2) && off != 17 {
				t.Errorf("frame %d with byte %d changed and %d transactions behind it: sound is %v", i, off, behind, behind < 2)
			}
		}
		if commits(log, at) {
			behind++
		}
	}
	for at := range walHeader - 1 {
		if 4 <= at && at < 8 || 12 <= at && at < 16 {
			continue // told by the checksum as well
		}
		bad := slices.Clone(log)
		bad[at] ^= 0x40
		if sound(t, bad) {
			t.Errorf("byte %d of the header is changed and nothing is noticed", at)
		}
	}
}

// TestBegunAnew: frames left from before the log restarted are not damage.
func TestBegunAnew(t *testing.T) {
	t.Parallel()
	old, _ := writtenLog(t)
	log, frames := writtenLog(t)
	keep := frames[5]
	mixed := append(slices.Clone(log[:keep]), old[keep:]...)
	if !sound(t, mixed) {
		t.Error("frames of an older log are taken for damage")
	}
}

// TestOpenRefusesDamagedLog: SQLite would drop transactions without an error.
func TestOpenRefusesDamagedLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a", "perdure.db"), filepath.Join(dir, "b", "perdure.db")
	for _, path := range []string{from, to} {
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open(t.Context(), Config{Path: from})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		tx, err := db.Begin(t.Context())
		if err == nil {
			_, err = tx.Exec(t.Context(), "UPDATE seq SET tx = tx + 1")
			err = errors.Join(err, tx.Commit(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range []string{"", "-wal"} { // as after kill -9
		raw, err := os.ReadFile(from + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix != "" {
			raw[walHeader+walFrameHeader+100]++
		}
		if err := os.WriteFile(to+suffix, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(to + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Path: to}); !errors.Is(err, ErrDamaged) {
		t.Errorf("Open returned %v, want that the store is damaged", err)
	}
	if after, err := os.ReadFile(to + "-wal"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the log was changed (%v)", err)
	}
}

func FuzzSoundLog(f *testing.F) {
	log, frames := writtenLog(f)
	f.Add(log[:frames[3]])
	f.Add(log[:walHeader])
	f.Add([]byte{})
	f.Add(log[:frames[1]+5])
	f.Fuzz(func(t *testing.T, log []byte) {
		if ok, err := soundLog(bytes.NewReader(log)); err != nil || !ok && len(log) <= walHeader {
			t.Errorf("a log of %d bytes: sound is %v, error %v", len(log), ok, err)
		}
	})
}

func BenchmarkSoundLog(b *testing.B) {
	log, _ := writtenLog(b)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		sound(b, log)
	}
}
