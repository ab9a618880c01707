package e2e

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure"
)

// Every kind of damaged store is distinguished from a valid one, a missing one and an
// empty one; it is not changed, and no command hangs.

// storeFiles are the files of a store's database, by their ending.
type storeFiles map[string][]byte

func readStore(t *testing.T, dir string) storeFiles {
	t.Helper()
	files := make(storeFiles)
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, "perdure.db"+suffix))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err == nil {
			files[suffix] = data
		}
	}
	return files
}

// put makes a place with these files in its store, as a process that was killed
// left them.
func (f storeFiles) put(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	p.good("run", "x", "--model", "mock:text=before")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := filepath.Join(p.dir, ".perdure", "perdure.db"+suffix)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if data, ok := f[suffix]; ok {
			p.write(filepath.Join(".perdure", "perdure.db"+suffix), string(data))
		}
	}
	return p
}

func (f storeFiles) clone() storeFiles {
	c := make(storeFiles)
	for suffix, data := range f {
		c[suffix] = bytes.Clone(data)
	}
	return c
}

// closedStore are the files of a store that no process has open.
func closedStore(t *testing.T) storeFiles {
	t.Helper()
	p := newPlace(t)
	for i := range 3 {
		p.write(fmt.Sprintf("in/%d", i), "text")
	}
	p.good("batch", "in/*", "Say {file}", "--model", "mock:text=fine")
	p.run("run", "x", "--model", "mock:status=500", "--call-retries", "0", "--max-attempts", "1")
	return readStore(t, filepath.Join(p.dir, ".perdure"))
}

// killedStore are the files that a killed process leaves: most is in the log.
func killedStore(t *testing.T) storeFiles {
	t.Helper()
	dir := t.TempDir()
	s, err := perdure.Open(t.Context(), perdure.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p"}}); err !=
			nil {
			t.Fatal(err)
		}
	}
	files := readStore(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(files["-wal"]) < 100_000 {
		t.Fatalf("the log has %d bytes: the test is of no use", len(files["-wal"]))
	}
	return files
}

func TestDamagedStore(t *testing.T) {
	t.Parallel()
	closed, killed := closedStore(t), killedStore(t)
	if p := killed.put(t); bytes.Count([]byte(p.good("status")), []byte("tree-")) != 10 {
		t.Fatal("the store of a killed process is not whole: the test proves nothing")
	}
	random := rand.NewChaCha8([32]byte{})
	garbage := make([]byte, len(closed[""]))
	_, _ = random.Read(garbage)
	for name, c := range map[string]struct {
		files  storeFiles
		damage func(f storeFiles)
	}{
		"random bytes":     {closed, func(f storeFiles) { f[""] = garbage }},
		"first byte":       {closed, func(f storeFiles) { f[""][0] ^= 1 }},
		"cut in a page":    {closed, func(f storeFiles) { f[""] = f[""][:len(f[""])/2+100] }},
		"cut at a page":    {closed, func(f storeFiles) { f[""] = f[""][:8192] }},
		"some bytes left":  {closed, func(f storeFiles) { f[""] = f[""][:50] }},
		"nothing left":     {closed, func(f storeFiles) { f[""] = nil }},
		"only the log":     {killed, func(f storeFiles) { delete(f, "") }},
		"empty, and a log": {killed, func(f storeFiles) { f[""] = nil }},
		"log of garbage":   {killed, func(f storeFiles) { f["-wal"] = garbage }},
		"log with a hole":  {killed, func(f storeFiles) { clear(f["-wal"][20_000:21_000]) }},
		"log without head": {killed, func(f storeFiles) { clear(f["-wal"][:32]) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := c.files.clone()
			c.damage(f)
			p := f.put(t)
			for _, args := range [][]string{{"status"}, {"run", "x", "--model", "mock:text=x"}, {"resume"}, {"serve"}} {
				p.bad(1, `open store: .*damaged`, args...)
			}
			if status, stdout, _ := p.run("doctor"); status != 1 || !bytes.Contains([]byte(stdout), []byte("✗ store")) {
				t.Errorf("doctor: status %d\n%s", status, stdout)
			}
			after := readStore(t, filepath.Join(p.dir, ".perdure"))
			for suffix, data := range f {
				if !bytes.Equal(after[suffix], data) {
					t.Errorf("perdure.db%s was changed", suffix)
				}
			}
		})
	}
}

// TestDamagedPages: the doctor finds every lost page, and a command works or reports
// that the store is damaged.
func TestDamagedPages(t *testing.T) {
	t.Parallel()
	const page = 4096
	closed := closedStore(t)
	pages := len(closed[""]) / page
	for n := 1; n < pages; n += 6 {
		t.Run(fmt.Sprintf("page %d of %d", n+1, pages), func(t *testing.T) {
			t.Parallel()
			f := closed.clone()
			clear(f[""][n*page : (n+1)*page])
			p := f.put(t)
			if status, stdout, _ := p.run("doctor"); status != 1 || !bytes.Contains([]byte(stdout), []byte("✗ store")) {
				t.Errorf("doctor: status %d\n%s", status, stdout)
			}
			for _, args := range [][]string{{"status"}, {"run", "x", "--model", "mock:text=x"}, {"resume"}} {
				status, _, stderr := p.run(args...)
				if status == 0 {
					continue
				}
				if err := toldOnce(stderr, "damaged"); status != 1 || err != nil {
					t.Errorf("%s: status %d, %v\n%s", args[0], status, err, stderr)
				}
			}
		})
	}
}

// TestOtherStores: a store of a newer version, and databases that are not
// stores, are left as they are.
func TestOtherStores(t *testing.T) {
	t.Parallel()
	closed := closedStore(t)
	for name, c := range map[string]struct {
		status             int
		statement, pattern string
	}{
		"newer": {7, "UPDATE migration SET min_reader = 99, min_writer = 99",
			"store was written by a newer version: .*schema 99"},
		"newer to write": {7, "INSERT INTO migration VALUES (99, 'later', '', 0, 1, 99)",
			"store was written by a newer version"},
		"without migrations": {1, "DROP TABLE migration", "has tables, but not those of a store"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := closed.put(t)
			db, err := sql.Open("sqlite", filepath.Join(p.dir, ".perdure", "perdure.db"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = db.ExecContext(t.Context(), c.statement)
			if err = errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			before := readStore(t, filepath.Join(p.dir, ".perdure"))
			for _, args := range [][]string{{"status"}, {"run", "x"}, {"resume"}} {
				p.bad(c.status, c.pattern, args...)
			}
			if after := readStore(t, filepath.Join(p.dir, ".perdure")); !bytes.Equal(before[""], after[""]) {
				t.Error("the store was changed")
			}
		})
	}
}
