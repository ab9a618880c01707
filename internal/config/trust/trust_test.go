package trust_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/config/trust"
)

func records(t *testing.T) (trust.Records, string) {
	t.Helper()
	home := t.TempDir()
	r, err := trust.Open(func(name string) string { return map[string]string{"HOME": home}[name] })
	if err != nil {
		t.Fatal(err)
	}
	return r, filepath.Join(home, ".config", "perdure", "trust")
}

func TestRecords(t *testing.T) {
	t.Parallel()
	r, folder := records(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rec, err := r.Read(dir)
	if err != nil || rec.Settings != "" || rec.Dir != dir {
		t.Fatalf("before: %+v, %v", rec, err)
	}
	rec.Settings, rec.Store = "s", "d"
	if err := r.Write(rec); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, link} {
		if got, err := r.Read(name); err != nil || got.Settings != "s" || got.Store != "d" || got.At.IsZero() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := r.Read(t.TempDir()); err != nil || got.Settings != "" {
		t.Errorf("another folder: %+v, %v", got, err)
	}
	if all, err := r.List(); err != nil || len(all) != 1 || all[0].Dir != dir {
		t.Errorf("list: %+v, %v", all, err)
	}
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info, err)
	}
	for _, want := range []bool{true, false} {
		if removed, err := r.Remove(dir); err != nil || removed != want {
			t.Errorf("removed %v, %v", removed, err)
		}
	}
}

// TestCopiedRecord: the record of one folder, copied to the name of another, trusts nothing.
func TestCopiedRecord(t *testing.T) {
	t.Parallel()
	r, folder := records(t)
	a, b := t.TempDir(), t.TempDir()
	name := func(dir string) string {
		rec, err := r.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		rec.Settings = "s"
		if err := r.Write(rec); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v", entries, err)
		}
		return filepath.Join(folder, entries[0].Name())
	}
	ofB := name(b)
	if _, err := r.Remove(b); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name(a), ofB); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.Read(b); err != nil || rec.Settings != "" {
		t.Errorf("read %+v, %v", rec, err)
	}
	if all, err := r.List(); err != nil || len(all) > 0 {
		t.Errorf("list %+v, %v", all, err)
	}
}

func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	r, folder := records(t)
	dir := t.TempDir()
	rec, err := r.Read(dir)
	if err == nil {
		err = r.Write(rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, entries[0].Name()), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.Read(dir); err == nil || rec.Settings != "" {
		t.Errorf("read %+v, %v", rec, err)
	}
}

func TestOpenWithoutHome(t *testing.T) {
	t.Parallel()
	for _, home := range []string{"", "relative"} {
		if _, err := trust.Open(func(string) string { return home }); err == nil {
			t.Errorf("%q is accepted", home)
		}
	}
}

// TestStoreID: a file with the same content at the same path is another store.
func TestStoreID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := func() string {
		got, err := trust.StoreID(dir)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := id(); got != "" {
		t.Errorf("without a store: %q", got)
	}
	db := filepath.Join(dir, "perdure.db")
	put := func(name string) {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(db)
	first := id()
	put(db) // written, not replaced
	if got := id(); got != first || got == "" {
		t.Errorf("after a write %q, before %q", got, first)
	}
	put(db + ".new")
	if err := os.Rename(db+".new", db); err != nil {
		t.Fatal(err)
	}
	if got := id(); got == first {
		t.Errorf("the file was replaced, the ID is still %q", got)
	}
}
