package mock_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/mock"
)

func parse(t *testing.T, script string) *mock.Script {
	t.Helper()
	s, err := mock.Parse("test.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t *testing.T, m model.Model, prompt string) (*model.Response, error) {
	t.Helper()
	return m.Generate(t.Context(), &model.Request{Prompt: prompt})
}

func TestRepliesByOrderAndPattern(t *testing.T) {
	t.Parallel()
	m := mock.New(parse(t, `
replies:
  - text: first
  - match: 'count (\w+)( and (\w+))?'
    text: "{{match}}: {{1}}, {{3}}."
  - match: once
    text: only once
    repeat: 1
  - text: again {{n}}
    repeat: 2
`))
	var got []string
	for _, prompt := range []string{"count a", "count apples", "count a and b", "once", "once", "x", "y"} {
		resp, err := ask(t, m, prompt)
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, resp.Text)
	}
	want := []string{
		"first", "count apples: apples, .", "count a and b: a, b.", "only once", "again 5", "again 6",
		`invalid: script "test.yaml" has no reply left for request 7`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	m := mock.New(parse(t, `replies: [{text: '{{prompt}}|{{ hash }}|{{short}}|{{bytes}}|{{n}}|{{"a": 1}}'}]`))
	req := &model.Request{
		System: "sys", Prompt: "ask", Documents: []model.Document{{File: "f", StartLine: 1, Text: "text\n"}},
	}
	got, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	text := model.RenderAll(req)
	hash := mock.Hash(text)
	want := text + "|" + hash + "|" + hash[:12] + "|80|1|" + `{{"a": 1}}`
	if diff := cmp.Diff(want, got.Text); diff != "" {
		t.Error(diff)
	}
}

func TestJSONScripts(t *testing.T) {
	t.Parallel()
	s, err := mock.Parse("s.json", []byte("{\n\t\"window\": 10,\n\t\"replies\": [\n"+
		"\t\t{\"text\": \"a\\tb\", \"delay\": \"1ms\"}\n\t]\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := mock.New(s)
	got, err := ask(t, m, "x")
	if err != nil || got.Text != "a\tb" || m.Window() != 10 {
		t.Errorf("%+v, %v, window %d", got, err, m.Window())
	}
}

func TestBadScripts(t *testing.T) {
	t.Parallel()
	tests := []struct{ script, want string }{
		{"", "there are none"},
		{"replies: []", "line 1: replies: there are none"},
		{"replies:\n  - txt: a", `line 2: unknown field "txt"`},
		{"model: a\nmodel: b", "line 2"},
		{"replies:\n  - text: [", "line 2"},
		{"replies:\n  - text: a\n    delay: fast", `line 3: replies[0].delay: "fast" is not a duration`},
		{"replies:\n  - text: a\n    repeat: many", "line 3"},
		{"window: -1\nreplies: [{text: a}]", "line 1: window: is below 0"},
		{"replies:\n  - text: a\n  - repeat: 2", "line 3: replies[1].text: is missing"},
		{"replies:\n  - match: '('\n    text: a", "line 2: replies[0].match: error parsing regexp"},
		{"replies:\n  - text: a\n  - match: a\n    text: '{{2}}'",
			"line 4: replies[1].text: {{2}}: the pattern has 0 groups"},
		{"replies:\n  - text: '{{1}}'", "line 2: replies[0].text: {{1}} needs a pattern"},
		{"replies:\n  - text: '{{promt}}'", "line 2: replies[0].text: {{promt}} is unknown"},
		{"replies:\n  - status: 200", "line 2: replies[0].status: is not between 400 and 599"},
		{"replies:\n  - text: a\n    retry_after: 1s", "line 3: replies[0].retry_after: has no meaning"},
		{"replies:\n  - text: a\n    empty: true", "line 3: replies[0].empty"},
		{"replies:\n  - text: a\n    repeat: 0", "line 3: replies[0].repeat: is 0"},
		{"replies:\n  - size: 9999999999", "line 2: replies[0].size"},
		{"replies:\n  - text: a\n    usage: {input: -1}", "line 3: replies[0].usage: is below 0"},
		{"{\"replies\": [\n{\"text\": \"a\", \"x\": 1}]}", `line 2: unknown field "x"`},
		{"\x00", "test.yaml"},
	}
	for _, tt := range tests {
		_, err := mock.Parse("test.yaml", []byte(tt.script))
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.KindInvalid || e.Hint == "" || !strings.Contains(e.Error(), tt.want) {
			t.Errorf("script %q: error = %v, want %q", tt.script, err, tt.want)
		}
	}
}

// TestHintOfUnknownField: the hint names the field that was meant, wherever it stands.
func TestHintOfUnknownField(t *testing.T) {
	t.Parallel()
	for script, meant := range map[string]string{
		"modell: a\nreplies: [{text: a}]":        "model",
		"windows: 9\nreplies: [{text: a}]":       "window",
		"limits: 9\nreplies: [{text: a}]":        "limit",
		"reply: [{text: a}]":                     "replies",
		"replies: [{text: a, stop_reaso: stop}]": "stop_reason",
	} {
		_, err := mock.Parse("test.yaml", []byte(script))
		var e *model.Error
		if !errors.As(err, &e) || !strings.Contains(e.Error(), "unknown field") ||
			!regexp.MustCompile(`\b`+meant+`\b`).MatchString(e.Hint) {
			t.Errorf("script %q: error %v does not name %s", script, err, meant)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte("replies: [{text: from a file}]"), 0o644); err != nil {
		t.Fatal(err)
	}
	hash := mock.Hash("question")
	tests := []struct{ script, want string }{
		{file, "from a file"},
		{"echo", "question"},
		{"hash", "answer " + hash},
		{"delay=1ms", "answer " + hash},
		{"text=a, b/c.yaml", "a, b/c.yaml"},
		{"delay=1ms,text={{short}}", hash[:12]},
		{"size=5", "answe"},
		{"empty", ""},
	}
	for _, tt := range tests {
		s, err := mock.Open(tt.script)
		if err != nil {
			t.Errorf("Open(%q): %v", tt.script, err)
			continue
		}
		got, err := ask(t, mock.New(s), "question")
		if err != nil || got.Text != tt.want {
			t.Errorf("%q answers %+v, %v, want %q", tt.script, got, err, tt.want)
		}
	}
	for script, want := range map[string]string{
		"":                         "it is empty",
		"eco":                      `there is no script file "eco", and it is not a short form`,
		"size=many":                `size: "many" is not a whole number`,
		"delay=1":                  "not a duration",
		"status=99":                "status is not between",
		"empty,echo":               "empty is true, but there is an answer too",
		"text={{x}}":               "{{x}} is unknown",
		filepath.Join(file, "x"):   "read script",
		filepath.Dir(file):         "read script",
		"no/such/file":             "no such file",
		"nosuch.yaml":              "no such file",
		"hash,retry-after=1s":      "retry_after has no meaning without status",
		"cut=-1":                   "cut is below 0",
		"size=1,size=99999999999,": "size is not between",
	} {
		_, err := mock.Open(script)
		var e *model.Error
		if !errors.As(err, &e) || e.Retryable() || e.Hint == "" || !strings.Contains(e.Error(), want) {
			t.Errorf("Open(%q): error = %v, want %q", script, err, want)
		}
	}
}

// FuzzParse checks that no script makes the parser panic, that every error is
// one for people, and that a script that was accepted can be played.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"replies: [{text: a}]", "replies:\n  - match: 'a(b)'\n    text: '{{1}}{{hash}}'\n    repeat: -1\n",
		"model: m\nwindow: 5\nreplies:\n  - {status: 429, retry_after: 2s, message: no}\n  - {cut: 3, text: abcdef}\n",
		`{"replies":[{"text":"a","usage":{"input":1,"omit":true}}]}`, "replies: &a [*a]", "? a\n: b", "\t", "a: |\n b",
		"replies: [{size: 10}]",
		"replies:\n- text: !!binary aGk=\n- empty: true\n- invalid_utf8: true\n", "<<: {replies: []}", "---\n---\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		s, err := mock.Parse("fuzz", []byte(script))
		if err != nil {
			var e *model.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, "fuzz") {
				t.Errorf("error = %v", err)
			}
			return
		}
		if strings.Contains(script, "size") || strings.Contains(script, "delay") {
			return // may take long, as asked
		}
		m := mock.New(s)
		resp, err := ask(t, m, "prompt")
		if err == nil && !strings.Contains(script, "text") && len(resp.Text) > 2*len(script)+10 {
			t.Errorf("answer %q", resp.Text)
		}
		if sum := m.Ledger().Totals(); sum.Started != 1 || sum.Finished+sum.Failed != 1 {
			t.Errorf("ledger: %+v", sum)
		}
	})
}

func FuzzInline(f *testing.F) {
	for _, seed := range []string{"echo", "hash,delay=1ms", "text={{hash}}", "status=429,retry-after=1s", "cut=3,size=9",
		",", "=", "text="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, form string) {
		if _, err := mock.Inline(form); err != nil {
			var e *model.Error
			if !errors.As(err, &e) {
				t.Errorf("error = %v", err)
			}
		}
	})
}
