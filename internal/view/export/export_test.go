package export_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/internal/view/export"
)

func TestMain(m *testing.M) {
	testenv.Set()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/perdure/perdure/internal/testing/testdb.startServer"))
}

// contentOf are the files of the test's context.
func contentOf() map[string]string {
	return map[string]string{
		"a.txt": "one\ntwo\u2028 <script>\n", "empty.txt": "", "raw.bin": "\xff\xfe\x00",
		"large.txt": strings.Repeat("a line of the large file, with ünïcode\n", 60_000),
	}
}

func putContext(t *testing.T, s *perdure.Store) perdure.Context {
	t.Helper()
	var text bytes.Buffer
	b := pack.NewBuilder(&text, pack.Limits{})
	for _, name := range []string{"a.txt", "empty.txt", "raw.bin", "large.txt"} {
		if err := b.Add(name, strings.NewReader(contentOf()[name])); err != nil {
			t.Fatal(err)
		}
	}
	b.Skip("image.png", "binary", "it is not text")
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	spec := perdure.ContextSpec{Files: 4, Bytes: m.Bytes, Tokens: m.Tokens()}
	if spec.Pack, err = s.PutBlob(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	if spec.Manifest, err = s.PutBlob(t.Context(), bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	c, err := s.PutContext(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// finished is a tree that ended: a root over children with a call each.
func finished(t *testing.T, s *perdure.Store) perdure.TreeID {
	t.Helper()
	ctx := t.Context()
	c := putContext(t, s)
	tree, err := s.CreateTree(ctx, perdure.TreeSpec{
		Kind: "run", Config: json.RawMessage(`{"model":"mock:m"}`), Contexts: []string{c.ID},
		Root: perdure.TaskSpec{Prompt: "the <root>", Context: perdure.ContextRef{Type: "full", Source: c.ID}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(ctx, tree.Root, perdure.TaskSpec{Prompt: strings.Repeat("long ", 4000)},
		perdure.TaskSpec{Prompt: "b"}); err != nil {
		t.Fatal(err)
	}
	session, err := s.OpenSession(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(t.Context()) }) // the store closes it too
	for {
		leases, err := session.Claim(ctx, perdure.ClaimRequest{Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(leases) == 0 {
			return tree.ID
		}
		l := leases[0]
		call, _, err := l.BeginCall(ctx, perdure.CallSpec{Model: "mock:m", RequestHash: "h"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.SettleCall(ctx, call.ID, perdure.CallResult{Response: "r", Tries: 1, InputTokens: 3}); err != nil {
			t.Fatal(err)
		}
		if err := l.AppendOutput(ctx, "streamed"); err != nil {
			t.Fatal(err)
		}
		if err := l.Complete(ctx, perdure.Result{Text: "done " + l.Task.ID.String()}); err != nil {
			t.Fatal(err)
		}
	}
}

// line is a line of an export, as far as the test looks at it.
type line struct {
	Type   string           `json:"type"`
	Name   string           `json:"name"`
	Text   *string          `json:"text"`
	Base64 *string          `json:"base64"`
	Task   *perdure.Task    `json:"task"`
	Call   *perdure.Call    `json:"call"`
	Event  *perdure.Event   `json:"event"`
	Counts map[string]int64 `json:"counts"`
	SHA256 string           `json:"sha256"`
}

func read(t *testing.T, raw []byte) []line {
	t.Helper()
	var lines []line
	in := bufio.NewScanner(bytes.NewReader(raw))
	in.Buffer(nil, 8<<20)
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatalf("line %d: %v", len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestExport(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		id := finished(t, s)
		var out, again bytes.Buffer
		for _, w := range []*bytes.Buffer{&out, &again} {
			if err := export.Write(t.Context(), s, w, export.Config{Tree: id}); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Error("two exports of a tree that ended differ")
		}
		lines := read(t, out.Bytes())
		checkEnd(t, out.Bytes(), lines)
		var order []string
		files := make(map[string]string)
		name := ""
		for i := range lines {
			l := &lines[i]
			if len(order) == 0 || order[len(order)-1] != l.Type {
				order = append(order, l.Type)
			}
			switch {
			case l.Type == "file":
				name = l.Name
				files[name] = ""
			case l.Text != nil:
				files[name] += *l.Text
			case l.Base64 != nil:
				piece, err := base64.StdEncoding.DecodeString(*l.Base64)
				if err != nil {
					t.Fatal(err)
				}
				files[name] += string(piece)
			}
		}
		want := []string{"manifest", "tree", "context", "file", "content", "file", "content", "file", "content",
			"task", "call", "task", "call", "task", "call", "event", "end"}
		// An empty file has no content: its line is followed directly by the next one's.
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("order differs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(contentOf(), files); diff != "" {
			t.Error("the files are not what they were")
		}
		checkTasks(t, s, lines)
	})
}

// checkEnd holds the last line against all before it.
func checkEnd(t *testing.T, raw []byte, lines []line) {
	t.Helper()
	last := lines[len(lines)-1]
	cut := bytes.LastIndexByte(raw[:len(raw)-1], '\n') + 1
	sum := sha256.Sum256(raw[:cut])
	if last.Type != "end" || last.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("last line is %+v", last)
	}
	counted := make(map[string]int64)
	for _, l := range lines[:len(lines)-1] {
		counted[l.Type]++
	}
	if diff := cmp.Diff(counted, last.Counts); diff != "" {
		t.Errorf("counts differ (-lines +end):\n%s", diff)
	}
}

// checkTasks holds the tasks, calls and events against the store.
func checkTasks(t *testing.T, s *perdure.Store, lines []line) {
	t.Helper()
	for _, l := range lines {
		switch {
		case l.Task != nil:
			want, err := s.Task(t.Context(), l.Task.ID)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(l.Task)
			if !bytes.Equal(a, b) || l.Task.Result == "" || l.Task.Output != "streamed" {
				t.Errorf("task %s is %s, want %s", l.Task.ID, b, a)
			}
		case l.Call != nil && (l.Call.Response != "r" || l.Call.InputTokens != 3):
			t.Errorf("call is %+v", l.Call)
		}
	}
}

func TestExportWithoutContext(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	id := finished(t, s)
	var out bytes.Buffer
	if err := export.Write(t.Context(), s, &out, export.Config{Tree: id, WithoutContext: true}); err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, l := range read(t, out.Bytes()) {
		if l.Type == "content" {
			t.Fatal("text of a file is there")
		}
		if l.Type == "file" {
			files++
		}
	}
	if files != 4 {
		t.Errorf("%d files, want 4", files)
	}
}

// full fails after some bytes.
type full struct{ room int }

var errFull = errors.New("no space")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestExportStopsWithItsWriter(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	id := finished(t, s)
	for _, room := range []int{0, 500, 2000, 2_400_000} {
		if err := export.Write(t.Context(), s, &full{room}, export.Config{Tree: id}); !errors.Is(err, errFull) {
			t.Errorf("with room for %d bytes: %v", room, err)
		}
	}
	err := export.Write(t.Context(), s, &full{1 << 30}, export.Config{Tree: "tree-00000000"})
	if !errors.Is(err, perdure.ErrNotFound) {
		t.Errorf("unknown tree: %v", err)
	}
}
