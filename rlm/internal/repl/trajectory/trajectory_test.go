package trajectory_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
)

// metadataLine and iterationLine are lines as the reference implementation writes them.
const (
	metadataLine = `{"type": "metadata", "timestamp": "2026-03-01T10:00:00.123456", "root_model": "m", "max_depth": 1, ` +
		`"max_iterations": 30, "backend": "openai", "backend_kwargs": {"model_name": "m"}, "environment_type": "local", ` +
		`"environment_kwargs": {}, "other_backends": null}`
	iterationLine = `{"type": "iteration", "iteration": 1, "timestamp": "2026-03-01T10:00:01", ` +
		`"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], "response": "r", ` +
		`"code_blocks": [{"code": "print(1)", "result": {"stdout": "1\n", "stderr": "", "locals": {"context": "text"}, ` +
		`"execution_time": 0.5, "rlm_calls": [{"root_model": "m", "prompt": "p", "response": "a", "usage_summary": ` +
		`{"model_usage_summaries": {"m": {"total_calls": 1, "total_input_tokens": 2, "total_output_tokens": 3}}}, ` +
		`"execution_time": 0.1}], "final_answer": null}}], "final_answer": null, "iteration_time": 1.5}`
)

// A log of the reference implementation is read.
func TestReader(t *testing.T) {
	t.Parallel()
	r := trajectory.NewReader(strings.NewReader("\ufeff" + metadataLine + "\n\n" + iterationLine))
	it, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	m := r.Metadata()
	if m == nil || *m.RootModel != "m" || m.Timestamp.Format(time.RFC3339Nano) != "2026-03-01T10:00:00.123456Z" {
		t.Errorf("metadata %+v", m)
	}
	b := it.CodeBlocks[0]
	text, ok := b.Result.Calls[0].Text()
	if b.Result.Stdout != "1\n" || !ok || text != "p" || string(b.Result.Locals["context"]) != `"text"` ||
		b.Result.Calls[0].Usage.Models["m"].OutputTokens != 3 || r.Line() != 3 || *it.IterationTime != 1.5 {
		t.Errorf("iteration %+v", it)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last line: %v", err)
	}
}

// A final answer is a text, or the pair of older logs.
func TestFinalAnswer(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{`"a <b>"`: "a <b>", `["FINAL_VAR", "b"]`: "b"} {
		line := strings.Replace(iterationLine, `"final_answer": null, "iteration_time"`,
			`"final_answer": `+raw+`, "iteration_time"`, 1)
		it, err := trajectory.NewReader(strings.NewReader(line)).Next()
		if err != nil || it.FinalAnswer.Text != want {
			t.Errorf("%s: %+v, %v", raw, it, err)
		}
	}
}

// A line that is not of the format is refused with its number and what is wrong.
func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, log, want string }{
		{"a list", iterationLine + "\n[1]", "line 2: the line has the type array"},
		{"no type", iterationLine + "\n" + `{"iteration": 1}`, "line 2: type is missing"},
		{"another type", iterationLine + "\n" + `{"type": "event"}`, "line 2: type \"event\" is neither"},
		{"a gap", iterationLine + "\n" + strings.Replace(iterationLine, `"iteration": 1`, `"iteration": 3`, 1),
			"line 2: iteration 3 follows 1"},
		{"no response", strings.Replace(iterationLine, `"response": "r", `, "", 1), "line 1: response is missing"},
		{"a number as output", strings.Replace(iterationLine, `"stdout": "1\n"`, `"stdout": 1`, 1),
			"line 1: code_blocks.result.stdout has the type number"},
		{"no output", strings.Replace(iterationLine, `"stdout": "1\n", `, "", 1), "line 1: code block 1: stdout is missing"},
		{"NaN as a number of an iteration", strings.Replace(iterationLine, `"iteration": 1`, `"iteration": NaN`, 1),
			"line 1: iteration has the type number"},
		{"a time", strings.Replace(iterationLine, "2026-03-01T10:00:01", "today", 1), "line 1: timestamp is not"},
		{"a triple", strings.Replace(iterationLine, `"final_answer": null`, `"final_answer": ["a", "b", "c"]`, 1),
			"line 1: final_answer is neither"},
		{"cut off", iterationLine[:100], "line 1: the line is cut off, and no iteration is before it"},
		{"cut off within", iterationLine[:100] + "\n" + iterationLine, "line 1: "},
		{"broken at its end", iterationLine + "\n" + `{"type": "iteration", bad}`, "line 2: invalid character 'b'"},
		{"no UTF-8", iterationLine + "\n" + strings.Replace(iterationLine, `"r"`, "\"\xff\"", 1) + "\n\n", "line 2: not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := trajectory.NewReader(strings.NewReader(tt.log))
			var err error
			for err == nil {
				_, err = r.Next()
			}
			if _, ok := errors.AsType[*trajectory.LineError](err); !ok || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// An iteration without a time has that of the line before it.
func TestReaderOfLogsWithoutTimes(t *testing.T) {
	t.Parallel()
	plain := strings.Replace(iterationLine, `"timestamp": "2026-03-01T10:00:01", `, "", 1)
	second := strings.Replace(plain, `"iteration": 1`, `"iteration": 2`, 1)
	for name, tt := range map[string]struct{ log, want string }{
		"of the metadata":         {metadataLine + "\n" + plain, "2026-03-01T10:00:00"},
		"of the iteration before": {iterationLine + "\n" + second, "2026-03-01T10:00:01"},
		"none":                    {plain + "\n" + second, "1970-01-01T00:00:00"},
		"its own":                 {metadataLine + "\n" + iterationLine, "2026-03-01T10:00:01"},
	} {
		r, last := trajectory.NewReader(strings.NewReader(tt.log)), trajectory.Time{}
		for {
			it, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			last = it.Timestamp
		}
		if got := last.Format("2006-01-02T15:04:05"); got != tt.want {
			t.Errorf("%s: the time is %s, want %s", name, got, tt.want)
		}
	}
}

// The writer sets type and number, and writes no null where the viewer reads lists and numbers.
func TestWriter(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w, err := trajectory.NewWriter(&b, &trajectory.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := w.Write(&trajectory.Iteration{CodeBlocks: []trajectory.CodeBlock{{Code: "a < b", Result: trajectory.Result{
			Calls: []trajectory.Call{{Prompt: json.RawMessage(`"p"`)}}}}, {}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "a < b") || !strings.Contains(lines[2], `"iteration":2`) {
		t.Errorf("lines %q", lines)
	}
	for _, null := range []string{`"prompt":null`, `"locals":null`, `"execution_time":null`, `"rlm_calls":null`} {
		if strings.Contains(lines[1], null) {
			t.Errorf("%s in %s", null, lines[1])
		}
	}
}

// Members that are not read are found with their path, in all places.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	if got := trajectory.Unknown([]byte(iterationLine)); len(got) > 0 {
		t.Errorf("in a known line: %q", got)
	}
	if got := trajectory.Unknown([]byte(metadataLine)); len(got) > 0 {
		t.Errorf("in known settings: %q", got)
	}
	line := strings.NewReplacer(`"role"`, `"name": "n", "role"`, `"code"`, `"lang": 1, "code"`, `"stdout"`,
		`"images": [], "stdout"`, `"root_model"`, `"cached": {"role": 1}, "root_model"`, `"response": "r"`,
		`"response": "r", "extra": null`).Replace(iterationLine)
	want := []string{"code_blocks.lang", "code_blocks.result.images", "code_blocks.result.rlm_calls.cached", "extra",
		"prompt.name"}
	if diff := cmp.Diff(want, trajectory.Unknown([]byte(line))); diff != "" {
		t.Error(diff)
	}
}

// Any line has its unknown members found, without a panic.
func FuzzUnknown(f *testing.F) {
	f.Add([]byte(iterationLine))
	f.Add([]byte(`[[{"type":"metadata","prompt":[{}]}]]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, name := range trajectory.Unknown(line) {
			if !json.Valid(line) {
				t.Errorf("%q was found in what is no JSON: %q", name, line)
			}
		}
	})
}

// What is read can be written, and reads the same again.
func FuzzReader(f *testing.F) {
	f.Add(metadataLine + "\n" + iterationLine + "\n")
	f.Add(iterationLine)
	f.Add(strings.Replace(iterationLine, `"final_answer": null}`, `"final_answer": ["a", "b"]}`, 1))
	f.Add(strings.Replace(iterationLine, `"text"`, `[NaN, -Infinity, "NaN", -0e0]`, 1) + "\n" + iterationLine[:100])
	f.Add("\ufeff[{\"sessionId\": 1}]")
	f.Add("\x1f\x8b\x08")
	f.Fuzz(func(t *testing.T, log string) {
		first, m := readAll(t, log)
		if len(first) == 0 {
			return
		}
		var b bytes.Buffer
		if m == nil {
			m = new(trajectory.Metadata)
		}
		w, err := trajectory.NewWriter(&b, m)
		for i := 0; err == nil && i < len(first); i++ {
			err = w.Write(first[i])
		}
		if err != nil {
			t.Fatal(err)
		}
		second, _ := readAll(t, b.String())
		var c bytes.Buffer
		if w, err = trajectory.NewWriter(&c, m); err != nil {
			t.Fatal(err)
		}
		for _, it := range second {
			if err := w.Write(it); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(b.String(), c.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// readAll reads the iterations up to the end or to the first error.
func readAll(t *testing.T, log string) (list []*trajectory.Iteration, m *trajectory.Metadata) {
	t.Helper()
	r := trajectory.NewReader(strings.NewReader(log))
	for {
		it, err := r.Next()
		if err != nil {
			if bad, ok := errors.AsType[*trajectory.LineError](err); ok && bad.Line < 1 {
				t.Errorf("no line: %v", err)
			}
			return list, r.Metadata()
		}
		list = append(list, it)
	}
}
