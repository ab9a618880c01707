package perdure_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// stored makes a store with a tree in it, closed, and returns its folder.
func stored(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := perdure.Open(t.Context(), perdure.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	createTree(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: strings.Repeat("p", perdure.MaxInlineBytes)}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A store that is not whole is never taken for an empty one: opening it fails,
// tells what can be done, and changes no file.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, name string, content []byte) {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, damage := range map[string]func(t *testing.T, db string){
		"other content": func(t *testing.T, db string) { write(t, db, []byte("this is not a database at all")) },
		"zeros":         func(t *testing.T, db string) { write(t, db, make([]byte, 8192)) },
		"a few bytes":   func(t *testing.T, db string) { write(t, db, []byte("SQLite for")) },
		"nothing":       func(t *testing.T, db string) { write(t, db, nil) },
		"half": func(t *testing.T, db string) {
			st, err := os.Stat(db)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(db, st.Size()/2); err != nil {
				t.Fatal(err)
			}
		},
		"header only": func(t *testing.T, db string) {
			if err := os.Truncate(db, 100); err != nil {
				t.Fatal(err)
			}
		},
		"broken first page": func(t *testing.T, db string) {
			content, err := os.ReadFile(db)
			if err != nil {
				t.Fatal(err)
			}
			for i := 100; i < 4096; i++ {
				content[i] = 0xa5
			}
			write(t, db, content)
		},
		"gone": func(t *testing.T, db string) {
			if err := os.Remove(db); err != nil {
				t.Fatal(err)
			}
		},
		"gone but its log": func(t *testing.T, db string) {
			write(t, db+"-wal", []byte("frames"))
			if err := os.Remove(db); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(filepath.Dir(db), "sessions")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := stored(t)
			db := filepath.Join(dir, "perdure.db")
			damage(t, db)
			before, _ := os.ReadFile(db)
			s, err := perdure.Open(t.Context(), perdure.Config{Dir: dir})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			wantCode(t, "open", err, perdure.CodeDamaged)
			if perdure.HintOf(err) == "" {
				t.Error("there is no hint")
			}
			if after, _ := os.ReadFile(db); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

// A store of a newer program is opened as long as it can be used, and refused
// when it cannot.
func TestNewerStore(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s := testdb.Open(t, cfg)
		insert := func(number, reader, writer string) {
			err := s.Change(t.Context(), `INSERT INTO migration (number, name, hash, applied_at, min_reader, min_writer)
				VALUES (`+number+`, 'later', 'x', 0, `+reader+`, `+writer+`)`)
			if err != nil {
				t.Fatal(err)
			}
		}
		insert("9001", "1", "1")
		createTree(t, testdb.Open(t, cfg), perdure.TreeSpec{})
		insert("9002", "1", "9002")
		other, err := perdure.Open(t.Context(), cfg)
		if err == nil {
			other.Close()
		}
		wantCode(t, "open a store of a newer version", err, perdure.CodeUnavailable)
		if err == nil || !strings.Contains(err.Error(), "newer") || perdure.HintOf(err) == "" {
			t.Errorf("%v, hint %q", err, perdure.HintOf(err))
		}
	})
}

// A folder that cannot be written is refused with a hint, whether it is empty
// or has a store.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T) string{
		"empty": func(t *testing.T) string { return t.TempDir() },
		"store": stored,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := prepare(t)
			lock(t, dir)
			cmd := another(t, "open", perdure.Config{Dir: dir})
			unprivileged(t, cmd)
			cmd.Stderr = nil
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			code, rest, _ := strings.Cut(string(out), "|")
			hint, text, _ := strings.Cut(rest, "|")
			if perdure.Code(code) != perdure.CodeUnavailable || !strings.Contains(hint, "permission") {
				t.Errorf("%s: %s hint %q", code, text, hint)
			}
		})
	}
}

// lock makes a folder and all in it read-only.
func lock(t *testing.T, dir string) {
	t.Helper()
	var names []string
	err := filepath.Walk(dir, func(name string, _ os.FileInfo, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o444)
		if st.IsDir() {
			mode = 0o555
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(name, 0o700) }) // so that it can be removed
	}
}

// The same store opened at once by many, for the first time.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		const openers = 6
		errs := make(chan error, openers)
		ids := make(chan perdure.TaskID, openers)
		for range openers {
			go func() {
				s, err := perdure.Open(t.Context(), cfg)
				if err != nil {
					errs <- err
					return
				}
				tree, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run"})
				ids <- tree.Root
				if closeErr := s.Close(); err == nil {
					err = closeErr
				}
				errs <- err
			}()
		}
		for range openers {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		seen := make(map[perdure.TaskID]bool)
		for range len(ids) {
			seen[<-ids] = true
		}
		if len(seen) != openers {
			t.Errorf("%d different tasks, want %d", len(seen), openers)
		}
		sound(t, testdb.Open(t, cfg))
	})
}

func TestOpenNothing(t *testing.T) {
	t.Parallel()
	_, err := perdure.Open(t.Context(), perdure.Config{})
	wantCode(t, "open without a place", err, perdure.CodeInvalid)
	s := testdb.Open(t, perdure.Config{Dir: filepath.Join(t.TempDir(), "a", "b")})
	if _, err := os.Stat(filepath.Join(s.Dir(), ".gitignore")); err != nil {
		t.Error(err)
	}
	_, err = s.OpenSession(t.Context(), "")
	wantCode(t, "session without a kind", err, perdure.CodeInvalid)
}

// Check finds what must not be; each rule is broken once.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	for kind, statement := range map[string]string{
		"running_without_lease": `UPDATE task_hot SET session = NULL WHERE id = 1`,
		"lease_without_running": `UPDATE task_hot SET session = 1 WHERE id = 2`,
		"ready_not_queued":      `UPDATE task_hot SET ready_at = 1 WHERE id = 1`,
		"stuck_queued":          `UPDATE task_hot SET ready_at = NULL WHERE id = 2`,
		"stuck_waiting":         `UPDATE task_hot SET state = 3, ready_at = NULL WHERE id = 3`,
		"open_children":         `UPDATE task_hot SET pending = 7 WHERE id = 1`,
		"task_without_rows":     `DELETE FROM task_hot WHERE id = 3`,
		"parent_missing":        `UPDATE task SET parent = 99 WHERE id = 3`,
		"terminal_over_living":  `UPDATE task_hot SET state = 6, session = NULL WHERE id = 1`,
		"tree_state":            `UPDATE tree_stat SET state = 4`,
		"tree_counters":         `UPDATE tree_stat SET queued = queued + 1`,
		"session_counters":      `UPDATE tree_stat SET held = '5=1'`,
		"open_calls":            `UPDATE tree_stat SET open_tokens = 1`,
		"usage_counters":        `UPDATE tree_stat SET calls = 9`,
		"settled_twice": `INSERT INTO call SELECT id + 10, tree, task, attempt, position, fence, state, model, request_hash,
			open_tokens, open_cost_micros, response, data, error_kind, error, tries, input_tokens, output_tokens, cached_tokens,
			estimated, cost_micros, started_at, ended_at FROM call`,
		"result_missing":  `DELETE FROM task_end`,
		"event_numbers":   `UPDATE event SET seq = seq + 1000 WHERE seq = 2`,
		"event_blocks":    `DELETE FROM event_block`,
		"task_numbers":    `UPDATE task SET id = id + 1000 WHERE id = 3`,
		"payload_missing": `DELETE FROM payload`,
		"state_counters":  `UPDATE state SET variables = 7`,
		"state_rows":      `UPDATE variable_past SET dead = born`,
		"state_numbers":   `UPDATE mutation SET id = id + 1000`,
		"blob_missing":    `UPDATE blob_ref SET hash = '` + strings.Repeat("0", 64) + `'`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, s *perdure.Store) {
				r := leased(t, s, perdure.TreeSpec{})
				if _, err := s.Submit(t.Context(), r.tree.Root,
					perdure.TaskSpec{Prompt: strings.Repeat("p", perdure.MaxInlineBytes+1)},
					perdure.TaskSpec{Prompt: strings.Repeat("b", perdure.MaxPayloadBytes+1)},
					perdure.TaskSpec{Priority: 1}); err != nil {
					t.Fatal(err)
				}
				done := claimOne(t, r.ss)
				c := begin(t, done, 0, "h")
				if err := done.SettleCall(t.Context(), c.ID, perdure.CallResult{}); err != nil {
					t.Fatal(err)
				}
				complete(t, done, "x")
				setVar(t, s, global, "a", "1")
				setVar(t, s, global, "a", "2")
				sound(t, s)
				if err := s.Change(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
				problems, err := s.Check(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range problems {
					if p.Kind == kind && p.Detail != "" {
						return
					}
				}
				t.Errorf("check finds only %v", problems)
			})
		})
	}
}

// Check finds damage of the database file itself.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	dir := stored(t)
	path := filepath.Join(dir, "perdure.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(delete)")
	if err != nil {
		t.Fatal(err)
	}
	var page int64
	if err := db.QueryRowContext(t.Context(), `SELECT rootpage FROM sqlite_master WHERE name = 'task_children'`).Scan(
		&page); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 90), page*4096-90); err != nil {
		t.Fatal(err)
	}
	problems, err := testdb.Open(t, perdure.Config{Dir: dir}).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) == 0 || problems[0].Kind != "database" {
		t.Errorf("check finds %v", problems)
	}
}

// Creating is called once, while the file of the database is empty.
func TestOpenCreating(t *testing.T) {
	t.Parallel()
	cfg := perdure.Config{Dir: t.TempDir()}
	sizes := []int64{}
	cfg.Creating = func() {
		if st, err := os.Stat(filepath.Join(cfg.Dir, "perdure.db")); err == nil {
			sizes = append(sizes, st.Size())
		}
	}
	for range 2 {
		s, err := perdure.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(sizes) != 1 || sizes[0] != 0 {
		t.Errorf("called with files of %d bytes", sizes)
	}
}
