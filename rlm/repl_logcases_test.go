package rlm_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// logCase reads a log that the reference implementation wrote.
func logCase(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "logs", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// replayCase runs the code of a log again.
func replayCase(t *testing.T, log string, contexts ...string) rlm.LogReplay {
	t.Helper()
	r, err := (&rlm.LogReplayer{Contexts: contexts}).Replay(t.Context(), strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The code of each log of the reference implementation does again what it did there, by its rules: what a
// block that raised had bound is gone, and so on.
func TestLogsOfTheReferenceReplayWithoutDifferences(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join("testdata", "logs", "*.jsonl"))
	if err != nil || len(names) < 15 {
		t.Fatalf("%d logs, %v", len(names), err)
	}
	for _, name := range names {
		name := strings.TrimSuffix(filepath.Base(name), ".jsonl")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replayCase(t, logCase(t, name))
			for i := range r.Differences {
				t.Errorf("line %d: %s", r.Differences[i].Line, r.Differences[i].String())
			}
			if runs := 1 + strings.Count(name, "two-"); len(r.Runs) != runs || r.Blocks == 0 || r.TornLine != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A log that was changed differs, and the difference shows both and names its run.
func TestChangedLogsDiffer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, old, new, want string }{
		{"names", `"stdout": "1 [1, 9]\n"`, `"stdout": "2 [1, 9]\n"`, `(recorded "2 [1, 9]", new "1 [1, 9]")`},
		{"names", `\nNameError: name 'c' is not defined`, ``,
			"(recorded no exception, new NameError: name 'c' is not defined)"},
		{"errors", `"stderr": "Error: x\n"`, `"stderr": "\nTypeError: x"`, "(recorded TypeError: x, new no exception)"},
		{"errors", `\nKeyError: 'k'`, `\nIndexError: 'k'`, "raised another exception (recorded IndexError: 'k', new KeyError"},
		{"answers", `"final_answer": "forty"`, `"final_answer": "fifty"`, `(recorded "fifty", new "forty")`},
		{"two-runs", `"stdout": "11\n"`, `"stdout": "12\n"`, `the output differs`},
		{"calls", `"response": "answer(4)"`, `"response": "answer(5)"`, `the output differs (recorded`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := strings.Replace(logCase(t, tt.name), tt.old, tt.new, 1)
			if log == logCase(t, tt.name) {
				t.Fatalf("the log does not have %s", tt.old)
			}
			r := replayCase(t, log)
			found := false
			var all strings.Builder
			for i := range r.Differences {
				all.WriteString(r.Differences[i].String() + "\n")
				found = found || strings.Contains(r.Differences[i].String(), tt.want)
			}
			if !found {
				t.Errorf("%s\nhave no %s", all.String(), tt.want)
			}
		})
	}
}

// A log without its context is replayed with a given one, and refused without it if the code reads it.
func TestReplayWithAGivenContext(t *testing.T) {
	t.Parallel()
	log := strings.NewReplacer(`"context_0": "text", "context": "text", `, "", `"context_0": "text", "context": `+
		`"text", `, "").Replace(referenceLog)
	if strings.Contains(log, `"context"`) {
		t.Fatal(log)
	}
	if r := replayCase(t, log, "text"); len(r.Differences) > 0 || r.WithoutContext {
		t.Errorf("%+v", r)
	}
	list := strings.NewReplacer(`"content": "s"`, `"content": "Your context is a list of 2 parts"`, "n = len(context)",
		"n = 2 * len(context)").Replace(log)
	if r := replayCase(t, list, `["te", "xt"]`); len(r.Differences) > 0 {
		t.Errorf("a list: %+v", r)
	}
	if r := replayCase(t, log, "other"); len(r.Differences) == 0 {
		t.Error("another context does not differ")
	}
	for contexts, want := range map[string]string{"": "reads the context, which the log does not have",
		"a b c": "3 contexts were given, and the log has 1 runs"} {
		_, err := (&rlm.LogReplayer{Contexts: strings.Fields(contexts)}).Replay(t.Context(), strings.NewReader(log))
		if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", contexts, err)
		}
	}
}

// A compressed log of two runs becomes two records with lines of their own, and one whose end is missing a
// record of what is before it.
func TestImportOfSeveralRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	log := logCase(t, "two-runs")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write([]byte(log[:len(log)-200]))
	b.ok(err)
	b.ok(w.Close())
	list, err := (&rlm.LogImport{Store: b.store, Log: &zipped}).Import(t.Context())
	b.ok(err)
	if len(list) != 2 || list[0].Line != 2 || list[1].Line != 4 || list[0].Turns != 2 || list[1].Turns != 1 ||
		!strings.Contains(notes(&list[1]), "5: the line is cut off, and was left out") {
		t.Fatalf("%+v", list)
	}
	lines := strings.SplitAfter(log, "\n")
	if got := b.logOf(list[0].Tree, false); got != lines[0]+lines[1]+lines[2] {
		t.Errorf("the first run has the log %s", got)
	}
	if got := b.logOf(list[1].Tree, false); !strings.HasPrefix(got, lines[0]+lines[3]) || strings.Contains(got, lines[2]) {
		t.Errorf("the second run has the log %s", got)
	}
	for i, answer := range []string{"1", ""} {
		tree, err := b.store.Tree(t.Context(), list[i].Tree)
		b.ok(err)
		root, err := b.store.Task(t.Context(), tree.Root)
		b.ok(err)
		if root.Result != answer || tree.Kind != perdure.KindRecord {
			t.Errorf("run %d has the answer %q", i+1, root.Result)
		}
		replayed, err := b.exec.Replay(t.Context(), list[i].Tree)
		if err != nil || len(replayed.Differences) > 0 {
			t.Errorf("run %d: %+v, %v", i+1, replayed, err)
		}
	}
	again, err := (&rlm.LogImport{Store: b.store, Log: strings.NewReader(log)}).Import(t.Context())
	b.ok(err)
	if !again[0].Present || again[0].Tree != list[0].Tree || again[1].Present {
		t.Errorf("the whole log: %+v", again)
	}
	if same := b.record(logCase(t, "two-questions")); same.Turns != 4 {
		t.Errorf("two questions to one REPL: %+v", same)
	}
	b.sound()
}
