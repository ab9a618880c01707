package hook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/loop/hook"
)

func openLog(t *testing.T, cfg hook.LogConfig) *hook.Log {
	t.Helper()
	log, err := hook.OpenLog(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

func appendTo(t *testing.T, log *hook.Log, records ...hook.Record) {
	t.Helper()
	for _, r := range records {
		if err := log.Append(r); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll reads a log with what was put aside of it.
func readAll(t *testing.T, path string) (records []hook.Record, skipped int) {
	t.Helper()
	skipped, err := hook.ReadLogFile(path, func(r hook.Record) bool {
		records = append(records, r)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return records, skipped
}

// wantLog checks that a log holds exactly these records.
func wantLog(t *testing.T, path string, want ...hook.Record) {
	t.Helper()
	got, skipped := readAll(t, path)
	if diff := cmp.Diff(want, got); diff != "" || skipped != 0 {
		t.Errorf("%d lines skipped, %s", skipped, diff)
	}
}

func TestLogKeepsRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "loops", "fix", "hook-log.jsonl")
	log := openLog(t, hook.LogConfig{Path: path})
	fault := numbered("b", 3)
	fault.Verdict, fault.Kind, fault.Duration = "", hook.KindHTTP, 0
	fault.Fault = &hook.RecordedFault{Kind: hook.FaultStatus, Message: "http://x answers 500 <&>", Detail: "two\nlines"}
	want := []hook.Record{numbered("a", 1), numbered("a", 2), fault}
	appendTo(t, log, want...)
	if err := log.Sync(); err != nil {
		t.Error(err)
	}
	wantLog(t, path, want...)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	wantLine := `{"timestamp":"2026-02-02T21:10:05.000000Z","hook_name":"post_iteration",` +
		`"loop_id":"fix-tests-a1b2c3d4","iteration":1,` +
		`"handler":"a","kind":"builtin","duration_ms":12.5,"verdict":"WARN"}`
	if string(first) != wantLine {
		t.Errorf("line %s\nwant %s", first, wantLine)
	}
	for range 2 {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(log.Append(fault), log.Sync()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestLogIsOwnedByItsUser(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook-log.jsonl")
	openLog(t, hook.LogConfig{Path: path})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := hook.OpenLog(hook.LogConfig{Path: t.TempDir()}); err == nil {
		t.Error("a folder is taken for a log")
	}
}

// What cannot be written as it is does not cost the line.
func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook-log.jsonl")
	log := openLog(t, hook.LogConfig{Path: path})
	awful := strings.Repeat("\x01\xff\"", 100_000)
	r := hook.Record{
		Time: time.Now(), Hook: hook.Name(awful), LoopID: awful, Handler: awful, Kind: hook.Kind(awful), Verdict: "MAYBE",
		Iteration:    -1,
		Fault:        &hook.RecordedFault{Kind: hook.FaultKind(awful), Message: awful, Detail: awful},
		StateChanges: map[string]any{"a": awful},
	}
	appendTo(t, log, r)
	r.StateChanges = map[string]any{"f": func() {}}
	appendTo(t, log, r)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	for _, line := range lines {
		if len(line) >= hook.MaxLineBytes || !json.Valid(line) || !bytes.Contains(line, []byte(`"iteration":0,`)) {
			t.Errorf("%d bytes: %.200s", len(line), line)
		}
	}
	if len(lines) != 2 || !bytes.Contains(lines[0], []byte(`"state_changes":{"omitted_bytes":`)) ||
		!bytes.Contains(lines[1], []byte(`"state_changes":{"omitted":"not JSON"}`)) {
		t.Errorf("%d lines: %.3000s", len(lines), text)
	}
}

// Wherever a crash cuts the log off, the whole lines before are read, and those
// that come later too.
func TestTornLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "hook-log.jsonl")
	log := openLog(t, hook.LogConfig{Path: path})
	before := []hook.Record{numbered("a", 1), numbered("a", 3)}
	appendTo(t, log, before...)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(dir, "torn.jsonl")
	for n := range len(text) + 1 {
		if err := os.WriteFile(torn, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		log := openLog(t, hook.LogConfig{Path: torn})
		appendTo(t, log, numbered("b", 5))
		whole := bytes.Count(text[:n], []byte("\n"))
		var want []hook.Record
		want = append(want, before[:whole]...)
		half := n > 0 && text[n-1] != '\n'
		if n > 0 && n+1 <= len(text) && text[n] == '\n' { // only the end of the line is missing
			want, half = append(want, before[whole]), false
		}
		want = append(want, numbered("b", 5))
		got, skipped := readAll(t, torn)
		if diff := cmp.Diff(want, got); diff != "" || (skipped == 1) != half {
			t.Fatalf("cut off after %d bytes: %d skipped, %s", n, skipped, diff)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// steps replaces the log's record of putting it aside by what matters of it.
func steps(records []hook.Record) (numbers []int, aside int) {
	for _, r := range records {
		if r.Hook == hook.LogRotated {
			aside++
			continue
		}
		numbers = append(numbers, r.Iteration)
	}
	return numbers, aside
}

func TestLogIsPutAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "hook-log.jsonl")
	log := openLog(t, hook.LogConfig{Path: path, MaxBytes: 1000})
	for i := range 100 {
		appendTo(t, log, numbered("a", 2*i+1))
		if info, err := os.Stat(path); err != nil || info.Size() > 1500 {
			t.Fatalf("after %d lines: %v, %v", i, info.Size(), err)
		}
	}
	records, skipped := readAll(t, path)
	numbers, aside := steps(records)
	if skipped != 0 || aside != 2 || len(numbers) < 6 || numbers[len(numbers)-1] != 199 {
		t.Fatalf("%d skipped, %d times put aside, %v", skipped, aside, numbers)
	}
	for i := range numbers[1:] {
		if numbers[i+1] != numbers[i]+2 {
			t.Errorf("a gap in %v", numbers)
		}
	}
	var told hook.Record
	if _, err := hook.ReadLogFile(path, func(r hook.Record) bool { told = r; return r.Hook != hook.LogRotated }); err !=
		nil {
		t.Fatal(err)
	}
	if told.StateChanges["earlier_lines"] != "hook-log.1.jsonl" {
		t.Errorf("the first line says %+v", told)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 2 {
		t.Errorf("files: %v, %v", names, err)
	}
}

// If the log cannot be rotated it keeps growing, with a warning now and then.
func TestLogThatCannotBePutAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "hook-log.1.jsonl", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "hook-log.jsonl")
	log := openLog(t, hook.LogConfig{Path: path, MaxBytes: 1000})
	told := 0
	for i := range 20 {
		if err := log.Append(numbered("a", 2*i+1)); err != nil {
			told++
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := 0
	skipped, err := hook.ReadLog(f, func(hook.Record) bool { lines++; return true })
	if err != nil || skipped != 0 || lines != 20 || told < 2 || told > 6 {
		t.Errorf("%d lines, %d skipped, %v; told %d times", lines, skipped, err, told)
	}
}

// A log that is removed or replaced is begun anew.
func TestLogFollowsItsPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook-log.jsonl")
	log := openLog(t, hook.LogConfig{Path: path})
	appendTo(t, log, numbered("a", 1))
	if err := os.Remove(path); err != nil {
		t.Skipf("an open file cannot be removed here: %v", err)
	}
	appendTo(t, log, numbered("a", 3))
	wantLog(t, path, numbered("a", 3))
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"timestamp":`), 0o600); err != nil {
		t.Fatal(err)
	}
	appendTo(t, log, numbered("a", 5))
	if got, skipped := readAll(t, path); skipped != 1 || len(got) != 1 || got[0].Iteration != 5 {
		t.Errorf("%d skipped, %+v", skipped, got)
	}
}

func TestLogConcurrently(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook-log.jsonl")
	var wg sync.WaitGroup
	const each = 50
	for _, name := range []string{"a", "b", "c", "d"} {
		log := openLog(t, hook.LogConfig{Path: path}) // as if each were a process
		for _, first := range []int{0, each} {
			wg.Go(func() {
				for i := range each {
					if err := log.Append(numbered(name, first+i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	records, skipped := readAll(t, path)
	seen := make(map[string]int)
	for _, r := range records {
		seen[r.Handler]++
	}
	if diff := cmp.Diff(map[string]int{"a": 2 * each, "b": 2 * each, "c": 2 * each, "d": 2 * each}, seen); diff != "" ||
		skipped != 0 {
		t.Errorf("%d skipped, %s", skipped, diff)
	}
}

func TestReadLogTolerates(t *testing.T) {
	t.Parallel()
	text := strings.Join([]string{
		``, ` `, `{"timestamp":"2026-02-02T21:10:05Z","hook_name":"pre_iteration","iteration":null,"verdict":null,` +
			`"state_changes":null,"agents_invoked":["x"]}`,
		`{"timestamp":"2026-02-02T22:10:05.1234567+01:00","hook_name":"of_another","error":"it broke","duration_ms":1e3}` +
			"\r",
		`{"timestamp":"2026-02-02T21:10:05Z"}`, `{"hook_name":"on_error"}`, `{"timestamp":"now","hook_name":"on_error"}`,
		`[]`, `null`, `x`,
		`{"timestamp":"2026-02-02T21:10:05Z","hook_name":"on_error","verdict":"MAYBE"}`,
		`{"timestamp":"2026-02-02T21:10:05Z","hook_name":"on_error","duration_ms":-1}`,
		`{"timestamp":"2026-02-02T21:10:05Z","hook_name":"on_error","state_changes":{"a":"` +
			strings.Repeat("x", hook.MaxLineBytes) + `"}}`,
		`{"timestamp":"2026-02-02T21:10:05Z","hook_name":"on_error","error":{"kind":"exit","message":"exit status 1"}}`,
	}, "\n")
	var got []hook.Record
	skipped, err := hook.ReadLog(strings.NewReader(text), func(r hook.Record) bool { got = append(got, r); return true })
	at := time.Date(2026, 2, 2, 21, 10, 5, 0, time.UTC)
	want := []hook.Record{
		{Time: at, Hook: hook.PreIteration},
		{Time: at.Add(123456 * time.Microsecond), Hook: "of_another", Duration: time.Second,
			Fault: &hook.RecordedFault{Message: "it broke"}},
		{Time: at, Hook: hook.OnError, Fault: &hook.RecordedFault{Kind: hook.FaultExit, Message: "exit status 1"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || skipped != 9 {
		t.Errorf("%d skipped, %v, %s", skipped, err, diff)
	}
	// The end of a line that is too long is not a line of its own.
	long := strings.Repeat(" ", hook.MaxLineBytes) + `{"timestamp":"2026-02-02T21:10:05Z","hook_name":"on_error"}`
	skipped, err = hook.ReadLog(strings.NewReader(long), func(r hook.Record) bool { t.Errorf("read %+v", r); return true })
	if skipped != 1 || err != nil {
		t.Errorf("%d skipped, %v", skipped, err)
	}
	n := 0
	if _, err := hook.ReadLog(strings.NewReader(text), func(hook.Record) bool { n++; return n < 2 }); err != nil ||
		n != 2 {
		t.Errorf("stopped after %d, %v", n, err)
	}
	wantLog(t, filepath.Join(t.TempDir(), "missing"))
	if _, err := hook.ReadLogFile(t.TempDir(), nil); err == nil {
		t.Error("a folder was read")
	}
}

// The runner writes what it tells, and goes on without its log.
func TestRunnerLogs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook-log.jsonl")
	log := openLog(t, hook.LogConfig{Path: path})
	var told []hook.Record
	var warned []hook.Warning
	r := newRunner(t, hook.Config{
		Log: log, Handlers: []hook.Registration{at(hook.OnError, "a", answers(full("x"))),
			at(hook.OnError, "b", failing()[hook.FaultPanic])},
		Observe: func(n hook.Notice) {
			if n.Warning != nil {
				warned = append(warned, *n.Warning)
				return
			}
			told = append(told, *n.Record)
		},
	})
	if _, err := r.Run(t.Context(), message(hook.OnError, nil)); err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || warned != nil || told[0].StateChanges["seen"] != "x" {
		t.Fatalf("%+v, %+v", told, warned)
	}
	wantLog(t, path, told...)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := r.Run(t.Context(), message(hook.OnError, nil))
	r.EndIteration("l", 5, time.Minute)
	if err != nil || got.Verdict != hook.Warn || len(warned) != 3 || warned[0].Kind != hook.WarnLog ||
		warned[2].Kind != hook.WarnLog {
		t.Errorf("%+v, %v, %+v", got, err, warned)
	}
}
