package e2e

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/storage/heads"
	"github.com/perdure/perdure/internal/testing/schematest"
)

// intactLog requires that the log of a store matches its chains and its heads.
func intactLog(t *testing.T, s *perdure.Store) {
	t.Helper()
	r, err := s.VerifyLog(t.Context())
	if err != nil || !r.Intact {
		t.Errorf("the log is not intact: %+v, %v", r, err)
	}
}

// headsFolder is where the programs that tests start record the heads of logs.
func headsFolder() string { return heads.Folder(os.Getenv) }

// forge changes the database as a program does that has the user's rights.
func (w *workplace) forge(statements ...string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.dir, ".perdure", "perdure.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	for _, q := range statements {
		if _, err := db.ExecContext(w.t.Context(), q); err != nil {
			w.t.Fatalf("%s: %v", q, err)
		}
	}
}

// swap replaces the folder of the store by a copy.
func (w *workplace) swap(from string) {
	w.t.Helper()
	dir := filepath.Join(w.dir, ".perdure")
	if err := os.RemoveAll(dir); err != nil {
		w.t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workplace) saved() string {
	w.t.Helper()
	to := filepath.Join(w.t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(filepath.Join(w.dir, ".perdure"))); err != nil {
		w.t.Fatal(err)
	}
	return to
}

// verified runs verify-log and returns its status and faults, "kind detail" each.
func (w *workplace) verified() (status int, faults string) {
	w.t.Helper()
	out, errs, status := w.try("perdure verify-log --json")
	if err := schematest.Published(w.t, "log-report").ValidateJSON([]byte(out)); err != nil {
		w.t.Errorf("%v\n%s%s", err, out, errs)
	}
	var r perdure.LogReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, t := range r.Trees {
		for _, f := range t.Faults {
			all = append(all, f.Kind+" "+f.Detail)
		}
	}
	return status, strings.Join(all, "; ")
}

// An agent that changes the log, the baseline, an iteration, the answer to a gate, the
// false alarms or the state of its loop is found out by verify-log, which names what was
// changed; so is a database that was replaced by an earlier copy.
func TestSecurityForgedLog(t *testing.T) {
	t.Parallel()
	w := newFalsePlace(t)
	if status, faults := w.verified(); status != 0 || faults != "" {
		t.Fatalf("an untouched store, status %d: %s", status, faults)
	}
	early := w.saved()
	const rest = `perdure loop answer whitelist --reason moved && perdure loop resume && perdure gc`
	if out, errs, status := w.try(rest); status != 0 {
		t.Fatalf("resume ended with %d: %s%s", status, out, errs)
	}
	if status, faults := w.verified(); status != 0 || faults != "" {
		t.Fatalf("after gc and resume, status %d: %s", status, faults)
	}
	whole := w.saved()
	for _, c := range []struct{ name, statement, want string }{
		{"event changed", `UPDATE event SET data = '{"answer":"continue"}' WHERE seq = 9`,
			"event_changed event 9 was changed"},
		{"event deleted", `DELETE FROM event WHERE seq = 9`, "event_missing 1 event is missing before event 10"},
		{"event inserted", `INSERT INTO event (seq, at, tree, task, kind, data) SELECT seq + 100000, at, tree, task, kind, data
			FROM event WHERE seq = 9`, "event_inserted event 100009 was inserted"},
		{"events exchanged", `UPDATE event SET kind = (SELECT kind FROM event e WHERE e.seq = 13 - event.seq)
			WHERE seq IN (5, 8)`,
			"event_changed event 5 was changed"},
		{"answer to a gate", `UPDATE gate SET answer = 'continue'`, "row_changed gate 1 was changed"},
		{"baseline", `UPDATE iteration SET data = '{}' WHERE number = 0`, "row_changed iteration 0 was changed"},
		{"result of an iteration", `UPDATE iteration SET status = 'kept', quality = 100 WHERE number = 1`,
			"row_changed iteration 1 was changed"},
		{"choice of an iteration", `UPDATE brief SET regressions = 0, kinds = '' WHERE number = 1`,
			"row_changed iteration 1 was changed"},
		{"iteration removed", `DELETE FROM iteration WHERE number = 1`, "row_changed iteration 1 was removed"},
		{"false alarm", `INSERT INTO false_alarm SELECT tree, '0123456789abcdef', 1, 'reg-001-1', 'x', 'user', '', 1
			FROM loop`, "row_changed false alarms was changed"},
		{"state of the loop", `UPDATE loop SET state = '{}'`, "row_changed loop was changed"},
		{"configuration of the loop", `UPDATE loop SET config = '{}'`, "row_changed loop was changed"},
		{"control request", `UPDATE loop SET wish = 'resume'`, "row_changed control request was inserted"},
		{"index of the events", `DELETE FROM event_block`, "row_changed the index of events from 0 on was changed"},
		{"index moved", `UPDATE event_block SET block = block + 1000`, "row_changed the index of events from 0 on was changed"},
		{"tree", `DELETE FROM tree`, "tree_missing the tree was removed"},
	} {
		w.swap(whole)
		w.forge(c.statement)
		if status, faults := w.verified(); status != 1 || !strings.Contains(faults, c.want) {
			t.Errorf("%s: status %d, found %q, want %q", c.name, status, faults, c.want)
		}
	}
	w.swap(early)
	if status, faults := w.verified(); status != 1 || !strings.Contains(faults, "log_shorter the log ends with") {
		t.Errorf("an earlier copy of the store: status %d, found %q", status, faults)
	}
	out, errs, status := w.try("perdure verify-log; perdure doctor | grep ' log '")
	if status != 0 || !strings.Contains(out, "log_shorter") || !strings.Contains(errs, "changed outside of perdure") ||
		!strings.Contains(out, "2 chains changed") {
		t.Errorf("the text: status %d\n%s%s", status, out, errs)
	}
}

// The configuration of its loop that an agent changes during its turn is found, although the loop
// writes the row again afterwards.
func TestSecurityForgedConfiguration(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	begun := w.dir + ".begun"
	w.sh("mkfifo " + begun)
	w.write("agent.sh", "echo turn > "+begun+"\ncat "+begun+" > /dev/null\necho pass > tests/b\n")
	cmd := w.command(loopRun)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if at, err := os.ReadFile(begun); err != nil || string(at) != "turn\n" {
		t.Errorf("the agent has not begun: %q, %v", at, err)
	}
	w.forge(`UPDATE loop SET config = (SELECT replace(config, 'sh check.sh', 'true') FROM tree WHERE id = loop.tree)`)
	if err := os.WriteFile(begun, []byte("go on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the loop ended with %v", err)
	}
	if status, faults := w.verified(); status != 1 || faults != "row_changed loop was changed outside of perdure" {
		t.Errorf("status %d: %s", status, faults)
	}
}

// A control request that an agent writes into the database in its turn is not carried out: the
// turn and the loop go on, and the request is removed with an event.
func TestSecurityForgedRequest(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"abort", "revert", "pause", "pause_now", "resume"} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			w := newLoopPlace(t)
			begun := w.dir + ".begun"
			w.sh("mkfifo " + begun)
			w.write("agent.sh", `echo turn > `+begun+`
until perdure events --json | grep -q loop.request_refused; do sleep 0.1; done
echo pass > tests/b
`)
			cmd := w.command(loopRun + " --timeout 60s; status=$?; echo end > " + begun + "; exit $status")
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if at, err := os.ReadFile(begun); err != nil || string(at) != "turn\n" {
				t.Errorf("the agent has not begun: %q, %v", at, err)
			}
			w.forge(`UPDATE loop SET wish = '` + request + `'`)
			if at, err := os.ReadFile(begun); err != nil || string(at) != "end\n" {
				t.Errorf("the agent began again: %q, %v", at, err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the loop ended with %v: %s", err, out.String())
			}
			w.completedLoop(1)
			if n := strings.Count(w.sh("perdure events --json"), "loop.request_refused"); n != 1 {
				t.Errorf("%d refusals are logged", n)
			}
		})
	}
}

// An agent that changes prompts, results or calls of a run, the answer for a task at its
// gate, variables or a handoff ledger is found out, and the row is named.
func TestSecurityForgedRows(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.write("model.sh", "cat > prompt; exit 1\n")
	if out, errs, status := w.try(`perdure var set limit 10 && perdure handoff start T --contract US-003.verificationContract ` +
		`--pending one && perdure handoff step one --created src/App.tsx && perdure run first --model mock:hash && ` +
		`{ perdure run second --model 'exec:sh model.sh,exec:sh model.sh' --call-retries 0 --max-attempts 1; ` +
		`perdure answer $(perdure status --json | grep -o 'tree-[0-9a-f]*' | head -1) manual --text written; } && perdure gc`); status != 0 {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	if status, faults := w.verified(); status != 0 || faults != "" {
		t.Fatalf("an untouched store, status %d: %s", status, faults)
	}
	whole := w.saved()
	for _, c := range []struct{ name, statement, want string }{
		{"prompt", `UPDATE task SET prompt = 'another' WHERE id = 1`, "row_changed prompt of task-0001 was changed"},
		{"result", `UPDATE task_end SET result = 'another' WHERE id = 1`, "row_changed result of task-0001 was changed"},
		{"call", `UPDATE call SET response = 'another' WHERE id = 1`, "row_changed call-0001 was changed"},
		{"call of another request", `UPDATE call SET request_hash = 'another' WHERE id = 1`,
			"row_changed call-0001 was changed"},
		{"variable", `UPDATE variable SET value = '11' WHERE name = 'limit'`, `row_changed variable "limit" of state-`},
		{"text of an answer", `UPDATE gate_task SET text = 'another'`, "row_changed gate answer of task-0"},
		{"ledger", `UPDATE handoff SET agent = 'another'`, "row_changed handoff ledger "},
		{"entry of a ledger", `UPDATE handoff_entry SET data = '{}' WHERE number = 1`, "row_changed entry 1 of handoff ledger "},
		{"entry added", `INSERT INTO handoff_entry SELECT handoff, number + 100, kind, data, source, at FROM handoff_entry
			WHERE number = 1`, "row_changed entry 101 of handoff ledger "},
	} {
		w.swap(whole)
		w.forge(c.statement)
		if status, faults := w.verified(); status != 1 || !strings.Contains(faults, c.want) {
			t.Errorf("%s: status %d, found %q, want %q", c.name, status, faults, c.want)
		}
	}
}
