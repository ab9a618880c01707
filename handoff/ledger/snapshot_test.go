package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
)

// counting counts the entries that are read.
type counting struct {
	ledger.Ledgers
	read int
}

func (c *counting) HandoffEntries(ctx context.Context, id ledger.ID, after int64, limit int) (
	[]ledger.Entry, error) {
	entries, err := c.Ledgers.HandoffEntries(ctx, id, after, limit)
	c.read += len(entries)
	return entries, err
}

// long is a bench with a long ledger and a snapshot of most of it.
func long(t *testing.T) (b *bench, count *counting, file string) {
	t.Helper()
	b = newBench(t)
	count = &counting{Ledgers: b.store}
	b.Ledgers, b.Snapshots = count, filepath.Join(b.dir, "snapshots")
	b.write(t, "a.go", "package a")
	var ops []ledger.Op
	for i := range 3 * ledger.SnapshotEvery {
		ops = append(ops, ledger.Op{Kind: ledger.OpStep, Text: fmt.Sprint(i), Created: []string{"a.go"}, Current: "next"})
	}
	u := b.apply(t, append(ops, ledger.Op{Kind: ledger.OpDecide, Text: "d", Because: "w"})...)
	b.look(t)
	return b, count, filepath.Join(b.Snapshots, u.Handoff.ID.String()+".fold")
}

// The snapshot of a long ledger spares reading it, and gives the same.
func TestSnapshotSparesReading(t *testing.T) {
	t.Parallel()
	b, count, file := long(t)
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	b.apply(t, step("after"))
	count.read = 0
	got := b.look(t)
	if count.read != 2 {
		t.Errorf("%d entries are read of %d", count.read, got.Handoff.Version)
	}
	b.Snapshots = ""
	if diff := cmp.Diff(b.look(t).Ledger, got.Ledger); diff != "" {
		t.Errorf("without the snapshot and with it:\n%s", diff)
	}
	b.Snapshots = filepath.Dir(file)
	for range 2 * ledger.SnapshotEvery {
		b.apply(t, step("more"))
	}
	if count.read = 0; len(b.look(t).Ledger.CompletedSteps) != 5*ledger.SnapshotEvery+1 ||
		count.read > ledger.SnapshotEvery+1 {
		t.Errorf("%d entries are read later", count.read)
	}
	b.apply(t, ledger.Op{Kind: ledger.OpDone})
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("after the end: %v", err)
	}
}

// A snapshot that is not whole, or of other entries or surroundings, is not used.
func TestSnapshotIsOnlyAHint(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, b *bench, raw []byte) []byte{
		"gone":    func(*testing.T, *bench, []byte) []byte { return nil },
		"cut":     func(_ *testing.T, _ *bench, raw []byte) []byte { return raw[:len(raw)/2] },
		"flipped": func(_ *testing.T, _ *bench, raw []byte) []byte { raw[len(raw)/2] ^= 1; return raw },
		"another ledger": func(t *testing.T, b *bench, raw []byte) []byte {
			t.Helper()
			b.apply(t, ledger.Op{Kind: ledger.OpDone})
			ops := []ledger.Op{begin()}
			for range 4 * ledger.SnapshotEvery {
				ops = append(ops, step("other"))
			}
			b.Snapshots = ""
			b.apply(t, ops...)
			return raw
		},
		"a folder that cannot be made": func(t *testing.T, b *bench, _ []byte) []byte {
			t.Helper()
			b.write(t, "in-the-way", "")
			b.Snapshots = filepath.Join(b.dir, "in-the-way")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, file := long(t)
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			raw = spoil(t, b, raw)
			for _, name := range []string{file, filepath.Join(filepath.Dir(file), b.look(t).Handoff.ID.String()+".fold")} {
				_ = os.Remove(name)
				if raw != nil {
					if err := os.WriteFile(name, raw, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			if b.Snapshots == "" {
				b.Snapshots = filepath.Dir(file)
			}
			got := b.look(t).Ledger
			b.Snapshots = ""
			if diff := cmp.Diff(b.look(t).Ledger, got); diff != "" {
				t.Errorf("without the snapshot and with it:\n%s", diff)
			}
		})
	}
}

// filled sets every field of a value, so that a field that is forgotten shows.
func filled(v reflect.Value, depth int) {
	switch v.Kind() { //nolint:exhaustive // the others fail in the test
	case reflect.String:
		v.SetString(fmt.Sprint("text ", depth))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(-1 - depth))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`{"a": 1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(v.Index(0), depth+1)
		filled(v.Index(1), depth+2)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		filled(key, depth+1)
		filled(value, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 2, 28, 10, depth, 0, 7000, time.FixedZone("", 7200))))
			return
		}
		for i := range v.NumField() {
			filled(v.Field(i), depth+1)
		}
	}
}

// Every field of a ledger is in a snapshot, those too that are added one day.
func TestSnapshotHasEveryField(t *testing.T) {
	t.Parallel()
	var l handoff.Ledger
	for range 2 { // the empty one first
		raw, err := ledger.EncodeLedger(&l)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := ledger.DecodeLedger(raw)
		if diff := cmp.Diff(l, got); diff != "" || !ok {
			t.Errorf("%v\n%s", ok, diff)
		}
		filled(reflect.ValueOf(&l).Elem(), 0)
	}
}

func FuzzSnapshot(f *testing.F) {
	var l handoff.Ledger
	empty, err := ledger.EncodeLedger(&l)
	if err != nil {
		f.Fatal(err)
	}
	filled(reflect.ValueOf(&l).Elem(), 0)
	full, err := ledger.EncodeLedger(&l)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(empty)
	f.Add(full)
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, ok := ledger.DecodeLedger(raw)
		if !ok {
			return
		}
		again, err := ledger.EncodeLedger(&l)
		if err != nil {
			t.Fatal(err)
		}
		twice, ok := ledger.DecodeLedger(again)
		if diff := cmp.Diff(l, twice); diff != "" || !ok {
			t.Errorf("%v\n%s", ok, diff)
		}
	})
}
