package sqldb_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// SQLite's locks on the database and on the index of its log last as long as its
// connections. If this package opened one of these files, closing it would release them
// all, and another process could then remove a log that is in use.
func TestLocksAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "perdure.db")
	open := func() *sqldb.DB {
		db, err := sqldb.Open(t.Context(), sqldb.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return db
	}
	db := open()
	var n int64
	if err := db.QueryRow(t.Context(), `SELECT tx FROM seq`, nil, &n); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, path + "-shm"} {
		before := locksOn(t, file)
		if len(before) == 0 {
			t.Fatalf("there are no locks on %s; the test proves nothing", file)
		}
		if err := db.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		open()
		for _, lock := range before {
			if !slices.Contains(locksOn(t, file), lock) {
				t.Errorf("the lock %q on %s is gone", lock, filepath.Base(file))
			}
		}
	}
}

// locksOn lists the locks that connections of this process hold on a file, from /proc/locks,
// without those that a transaction takes for its duration: bytes 120 to 127 of the index
// (https://sqlite.org/walformat.html).
func locksOn(t *testing.T, file string) []string {
	t.Helper()
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	inode := st.Sys().(*syscall.Stat_t).Ino
	f, err := os.Open("/proc/locks")
	if err != nil {
		t.Skip("the kernel does not tell its locks")
	}
	defer f.Close()
	var found []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // 1: POSIX ADVISORY READ 12 fd:01:34 0 EOF
		if len(fields) == 8 && fields[4] == fmt.Sprint(os.Getpid()) && strings.HasSuffix(fields[5], fmt.Sprint(":", inode)) {
			if first, err := strconv.Atoi(fields[6]); err != nil || first < 120 || first > 127 {
				found = append(found, strings.Join(fields[3:], " "))
			}
		}
	}
	return found
}
