package rlm_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/rlm"
)

// record imports a log.
func (b *bench) record(log string) rlm.LogRecord {
	b.Helper()
	r, err := (&rlm.LogImport{Store: b.store, Log: strings.NewReader(log)}).Import(b.Context())
	b.ok(err)
	if len(r) != 1 {
		b.Fatalf("%d records", len(r))
	}
	return r[0]
}

// notes returns the notes in lines.
func notes(r *rlm.LogRecord) string {
	var b strings.Builder
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "%d: %s\n", n.Line, n.Message)
	}
	return b.String()
}

// The log of a run becomes a record with its answer, its sub-calls and its turns, and is exported
// as it was imported.
func TestImportOfALog(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, counting)
	b := newBench(t, m)
	tree := b.launch("How many a are there?", b.put(file{"a.txt", strings.Repeat("banana and ", 10)}),
		replConfig("openai:m"))
	b.finish(tree.ID, 4)
	log := b.logOf(tree.ID, false)
	other := newBench(t, m)
	r := other.record(log)
	if r.Tree != tree.ID || r.Present || r.Turns != 3 || r.SubCalls != 11 || r.Tasks != 12 {
		t.Errorf("imported %+v", r)
	}
	want := "2: the messages to the model are in the log only\n1: the context is in the log only\n" +
		"1: the values of 3 variables are in the log only, the names in the turns\n"
	if diff := cmp.Diff(want, notes(&r)); diff != "" {
		t.Error(diff)
	}
	got, err := other.store.Tree(t.Context(), r.Tree)
	other.ok(err)
	root, err := other.store.Task(t.Context(), got.Root)
	other.ok(err)
	if got.Kind != perdure.KindRecord || root.State != perdure.Completed || root.Result != "33" ||
		root.Prompt != "How many a are there?" {
		t.Errorf("the root is %s with %q: %q", root.State, root.Result, root.Prompt)
	}
	before, err := rlm.TreeTurns(t.Context(), b.store, tree.ID, 0)
	b.ok(err)
	after, err := rlm.TreeTurns(t.Context(), other.store, r.Tree, 0)
	other.ok(err)
	for i := range before[0].Turns {
		x, y := &before[0].Turns[i], &after[0].Turns[i]
		if x.State != y.State || x.SubCalls != y.SubCalls || len(x.Blocks) != len(y.Blocks) ||
			y.Usage.Calls != x.Usage.Calls {
			t.Errorf("turn %d was %+v and is %+v", i+1, x, y)
		}
		for k := range x.Blocks {
			p, q := x.Blocks[k], y.Blocks[k]
			if p.Code != q.Code || p.Final != q.Final || p.Failure != q.Failure || p.SubCalls != q.SubCalls ||
				p.OutputBytes != q.OutputBytes || cmp.Diff(p.Variables, q.Variables) != "" {
				t.Errorf("block %d of turn %d was %+v and is %+v", k+1, i+1, p, q)
			}
		}
	}
	if again := other.logOf(r.Tree, false); again != log {
		t.Error("the exported log is another one")
	}
	if short := other.logOf(r.Tree, true); short != b.logOf(tree.ID, true) {
		t.Error("the exported log without the context is another one")
	}
	if again := other.record(log); !again.Present || again.Tree != r.Tree || again.Tasks != 0 {
		t.Errorf("a second import: %+v", again)
	}
	replayed, err := other.exec.Replay(t.Context(), r.Tree)
	if err != nil || replayed.Blocks != 3 || len(replayed.Differences) > 0 {
		t.Errorf("replay of the record: %+v, %v", replayed, err)
	}
	other.sound()
	if same := b.record(log); same.Tree == tree.ID || same.Tasks != 12 {
		t.Errorf("import next to the run itself: %+v", same)
	}
}

// A log of another program is imported, with notes on what has no place.
func TestImportOfALogOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	r := b.record(referenceLog)
	if r.Turns != 2 || r.SubCalls != 1 || r.Tasks != 2 {
		t.Errorf("imported %+v", r)
	}
	if got := b.logOf(r.Tree, false); got != referenceLog {
		t.Error("the exported log is another one")
	}
	tasks := b.tasks(r.Tree)
	if tasks[0].Result != "yes" || tasks[1].Prompt != "p 4" || tasks[1].Result != "yes" || tasks[1].Agent != "m" ||
		tasks[0].Prompt != "(the log has no prompt)" {
		t.Errorf("tasks %+v", tasks)
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"an unknown member", `"prompt": "p 4"`, `"cached": true, "prompt": "p 4"`,
			"3: the member code_blocks.result.rlm_calls.cached has no place"},
		{"messages as a prompt", `"prompt": "p 4"`, `"prompt": [{"role": "user", "content": "p 4"}]`,
			"3: prompts that are no text are stored as JSON"},
		{"no answer", `"final_answer": "yes", "iteration_time"`, `"final_answer": null, "iteration_time"`,
			"3: the log has no answer: the root is queued"},
		{"a NUL", `"prompt": "p 4"`, `"prompt": "p\u0000 4"`, "3: the prompt of a sub-call: NUL was replaced"},
		{"a NUL in the settings", `"backend": "openai"`, `"backend": "open\u0000ai"`, "1: the settings are in the log only"},
		{"an empty prompt", `"prompt": "p 4"`, `"prompt": ""`, "2: the messages"},
	} {
		log := strings.Replace(referenceLog, tt.old, tt.new, 1)
		r := b.record(log)
		if !strings.Contains(notes(&r), tt.want) {
			t.Errorf("%s: notes\n%s", tt.name, notes(&r))
		}
		if got := b.logOf(r.Tree, false); got != log {
			t.Errorf("%s: the exported log is another one", tt.name)
		}
	}
	b.sound()
	failed := strings.Replace(referenceLog, `"stdout": "4 True\n", "stderr": ""`,
		`"stdout": "", "stderr": "Traceback\n  x\nNameError: name 'n' is not defined"`, 1)
	failed = strings.Replace(failed, `"response": "yes", `, `"response": "", "error": "no model", `, 1)
	r = b.record(failed)
	list, err := rlm.TreeTurns(t.Context(), b.store, r.Tree, 0)
	b.ok(err)
	if x := list[0].Turns[0]; x.State != perdure.Failed || x.Blocks[0].Failure != "NameError: name 'n' is not defined" {
		t.Errorf("the turn of a block that raised is %+v", x)
	}
	if call := b.tasks(r.Tree)[1]; call.State != perdure.Failed || call.Error.Message != "no model" {
		t.Errorf("the failed sub-call is %+v", call)
	}
}

// Notes say of themselves whether something was corrected, and differences name the turn of the
// record, also if the log has several questions.
func TestImportOfALogWithTwoCorrections(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	call := `{"root_model": "m", "prompt": "a\u0000", "response": "r", "execution_time": 0.1}`
	log := strings.Replace(referenceLog, `"rlm_calls": []`, `"rlm_calls": [`+call+`, {"x": 1,`+call[1:]+"]", 1)
	log = strings.Replace(log, `"prompt": "p 4"`, `"prompt": "p\u0000 4"`, 1)
	log = strings.Replace(log, `"iteration": 2`, `"iteration": 1`, 1)
	log = strings.Replace(log, `"text", "n": 4, "a"`, `"text", "context_1": "more", "n": 4, "a"`, 1)
	r := b.record(log)
	if !strings.Contains(notes(&r), "3: another question to the same REPL begins") {
		t.Errorf("notes\n%s", notes(&r))
	}
	for _, n := range r.Notes {
		if n.Corrected != strings.Contains(n.Message, "NUL was replaced") {
			t.Errorf("%+v", n)
		}
	}
	replayed, err := b.exec.Replay(t.Context(), r.Tree)
	b.ok(err)
	if len(replayed.Differences) == 0 {
		t.Error("no block differs")
	}
	for i, d := range replayed.Differences {
		if d.Turn != i+1 {
			t.Errorf("%+v", d)
		}
	}
}

// What is not imported leaves nothing.
func TestImportOfALogRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for log, want := range map[string]string{"": "no iterations", "{}": "line 1: this is JSON",
		referenceLog + "x": "line 4: "} {
		_, err := (&rlm.LogImport{Store: b.store, Log: strings.NewReader(log)}).Import(t.Context())
		if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", log, err)
		}
	}
	r, err := (&rlm.LogImport{Store: b.store, Log: strings.NewReader(referenceLog), DryRun: true}).Import(t.Context())
	if err != nil || r[0].Tree != "" || r[0].Turns != 2 || r[0].Tasks != 2 {
		t.Errorf("dry run: %+v, %v", r, err)
	}
	corrected := strings.Replace(referenceLog, "p 4", `p \u0000`, 1)
	r, err = (&rlm.LogImport{Store: b.store, Log: strings.NewReader(corrected), Strict: true}).Import(t.Context())
	if err != nil || !r[0].Refused || r[0].Tree != "" {
		t.Errorf("strict: %+v, %v", r, err)
	}
	list, err := b.store.Trees(t.Context(), perdure.TreeFilter{})
	if err != nil || len(list) > 0 {
		t.Errorf("there are trees: %+v, %v", list, err)
	}
}

// A log with more sub-calls than one transaction takes is imported whole, and an import that was
// interrupted between two is completed by the next.
func TestImportOfALongLog(t *testing.T) {
	t.Parallel()
	var calls []string
	for i := range 2500 {
		calls = append(calls, fmt.Sprintf(`{"root_model":"m","prompt":"p %d","response":"r","execution_time":0.1}`, i))
	}
	long := strings.Replace(referenceLog, `"rlm_calls": []`, `"rlm_calls": [`+strings.Join(calls, ",")+"]", 1)
	b := newBench(t, nil)
	r := b.record(long)
	tasks := b.tasks(r.Tree)
	if r.Tasks != 2502 || len(tasks) != 2502 || tasks[2501].Position != 2500 || tasks[2501].Prompt != "p 4" {
		t.Errorf("imported %d tasks, and there are %d", r.Tasks, len(tasks))
	}
	list, err := rlm.TreeTurns(t.Context(), b.store, r.Tree, 0)
	b.ok(err)
	if list[0].Turns[0].SubCalls != 2500 || list[0].Turns[1].SubCalls != 1 {
		t.Errorf("%d and %d sub-calls", list[0].Turns[0].SubCalls, list[0].Turns[1].SubCalls)
	}
	if again := b.record(long); again.Tasks != 0 || len(b.tasks(r.Tree)) != 2502 {
		t.Errorf("a second import: %+v", again)
	}
	other := newBench(t, nil)
	sum := sha256.Sum256([]byte(long))
	made, err := other.store.ImportTrees(t.Context(), []perdure.TreeRecord{{Key: "rlm-log:" + hex.EncodeToString(sum[:]),
		Tasks: []perdure.TaskRecord{{Task: perdure.Task{Prompt: "What?", State: perdure.Completed}}}}})
	other.ok(err)
	if r := other.record(long); !r.Present || r.Tree != made[0].ID || r.Tasks != 2501 || len(other.tasks(r.Tree)) != 2502 {
		t.Errorf("an import after an interrupted one: %+v", r)
	}
}

// Whatever is a log can be imported, has turns, and is exported as it was.
func FuzzImportLog(f *testing.F) {
	f.Add(referenceLog)
	f.Add(strings.Replace(referenceLog, `"prompt": "p 4"`, `"prompt": [{"a": "\u0000"}]`, 1))
	f.Add(strings.Replace(referenceLog, "2026-03-01T10:00:03", "0001-01-01T00:00:00", 1))
	f.Add(strings.Replace(referenceLog, `{"model_usage_summaries": {}}`, `{"model_usage_summaries": {"m": {"total_calls": `+
		`9223372036854775807, "total_input_tokens": -1, "total_cost": 1e300}}}`, 1))
	f.Add(strings.Replace(referenceLog, `"execution_time": 0.1}]`, `"execution_time": 1e300, "error": ""}]`, 1))
	store := testdb.Open(f, perdure.Config{Dir: f.TempDir()})
	f.Fuzz(func(t *testing.T, log string) {
		r, err := (&rlm.LogImport{Store: store, Log: strings.NewReader(log)}).Import(t.Context())
		if err != nil {
			if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), "line") {
				t.Errorf("%v", err)
			}
			return
		}
		if len(r) > 1 || r[0].Turns == 0 {
			return
		}
		list, err := rlm.TreeTurns(t.Context(), store, r[0].Tree, 0)
		if err != nil || len(list) != 1 || len(list[0].Turns) != r[0].Turns {
			t.Errorf("turns %+v, %v", list, err)
		}
		var out bytes.Buffer
		if err := (&rlm.Log{Store: store, Tree: r[0].Tree}).Write(t.Context(), &out); err != nil || utf8.ValidString(log) &&
			out.String() != log {
			t.Errorf("%q became %q, %v", log, out.String(), err)
		}
	})
}
