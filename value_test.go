package perdure_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// Values come back as they were, on both sides of each limit, also those that
// look like the store's own references.
func TestValues(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, n := range []int{0, 1, perdure.MaxInlineBytes, perdure.MaxInlineBytes + 1, perdure.MaxPayloadBytes,
		perdure.MaxPayloadBytes + 1} {
		texts = append(texts, strings.Repeat("ä", n/2)+strings.Repeat("z", n%2))
		if n > 30 {
			texts = append(texts, "\x01payload:"+strings.Repeat("q", n-9))
		}
	}
	texts = append(texts, "\x01", "\x01=", "\x01blob:", "\x01payload:"+strings.Repeat("0", 64), "\x01=\x01=x",
		"line\nline\ttab \\ ' \" $1")
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for i, text := range texts {
			checkText(t, s, i, text)
		}
		sound(t, s)
	})
}

func checkText(t *testing.T, s *perdure.Store, i int, text string) {
	t.Helper()
	ctx := t.Context()
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: text}})
	if r.root.Task.Prompt != text {
		t.Errorf("text %d: the claimed prompt differs", i)
	}
	c := begin(t, r.root, 0, "h")
	if err := r.root.SettleCall(ctx, c.ID, perdure.CallResult{Response: text, Data: data}); err != nil {
		t.Fatal(err)
	}
	if err := r.root.Complete(ctx, perdure.Result{Text: text, Data: data}); err != nil {
		t.Fatal(err)
	}
	task := readTask(t, s, r.tree.Root)
	if task.Prompt != text || task.Result != text || !bytes.Equal(task.Data, data) {
		t.Errorf("text %d of %d bytes: the task differs", i, len(text))
	}
	calls, err := s.Calls(ctx, r.tree.Root)
	if err != nil || len(calls) != 1 || calls[0].Response != text || !bytes.Equal(calls[0].Data, data) {
		t.Errorf("text %d of %d bytes: the call differs, %v", i, len(text), err)
	}
	page, err := s.Tasks(ctx, perdure.TaskFilter{Tree: r.tree.ID})
	if err != nil || len(page) != 1 || page[0].Prompt != text || page[0].Result != text {
		t.Errorf("text %d of %d bytes: the listed task differs, %v", i, len(text), err)
	}
}

// Each text is kept where its length says, once a tree.
func TestWhereValuesAre(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for _, c := range []struct{ bytes, payloads, blobs int }{
			{perdure.MaxInlineBytes, 0, 0}, {perdure.MaxInlineBytes + 1, 1, 0},
			{perdure.MaxPayloadBytes, 1, 0}, {perdure.MaxPayloadBytes + 1, 0, 1},
		} {
			text := strings.Repeat("v", c.bytes)
			tree := createTree(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: text}})
			if _, err := s.Submit(t.Context(), tree.Root, perdure.TaskSpec{Prompt: text}); err != nil {
				t.Fatal(err)
			}
			rows, err := s.Fetch(t.Context(), `SELECT (SELECT COUNT(*) FROM payload WHERE tree = t.id) AS p,
				(SELECT COUNT(*) FROM blob_ref WHERE tree = t.id) AS b FROM tree t WHERE name = '`+string(tree.ID)+`'`)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("p=%d b=%d", c.payloads, c.blobs); rows[0] != want {
				t.Errorf("%d bytes: %s, want %s", c.bytes, rows[0], want)
			}
		}
	})
}

// noise is text that compression hardly shortens.
func noise(seed uint64, size int) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	rng := rand.New(rand.NewPCG(seed, 0))
	out := make([]byte, size)
	for i := range out {
		out[i] = digits[rng.IntN(len(digits))]
	}
	return string(out)
}

// Long values are compressed in SQLite, and come back as they were; PostgreSQL compresses by
// itself. What is damaged is an error.
func TestLongValuesArePacked(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		rows := func(q string) string {
			got, err := s.Fetch(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(got, " ")
		}
		sqlite := !strings.Contains(t.Name(), "postgres")
		words := strings.Repeat("order 17 was paid by clerk 4\n", 5000)
		tree := createTree(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: words}})
		read := func() (string, error) {
			task, err := s.Task(t.Context(), tree.Root)
			return task.Prompt, err
		}
		if got, err := read(); err != nil || got != words {
			t.Errorf("it came back with %d bytes, %v", len(got), err)
		}
		want := fmt.Sprintf("packed=%d", map[bool]int{true: 1}[sqlite])
		if got := rows(`SELECT packed FROM payload`); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if !sqlite {
			return
		}
		if got := rows(`SELECT MIN(LENGTH(text)) < 1000 AS small FROM payload`); got != "small=1" {
			t.Errorf("words are not stored in less than 1,000 bytes: %s", got)
		}
		list := perdure.VarSpec{Name: "list", Value: json.RawMessage("[" + strings.Repeat("1,", 9000) + "1]")}
		if _, err := s.SetVar(t.Context(), global, list); err != nil {
			t.Fatal(err)
		}
		change(t, s, `UPDATE payload SET text = SUBSTR(text, 1, 50)`)
		_, err := read()
		wantCode(t, "read a truncated value", err, perdure.CodeDamaged)
		if !strings.Contains(err.Error(), "decompress") || !strings.Contains(perdure.HintOf(err), "verify-log") {
			t.Errorf("a truncated value: %v (%s)", err, perdure.HintOf(err))
		}
		_, err = s.AppendVar(t.Context(), global, "list", json.RawMessage("1"), perdure.Cause{})
		wantCode(t, "change a truncated value", err, perdure.CodeDamaged)
		if got := logFaults(t, s); len(got) != 2 || !strings.Contains(got[0], "the long value") {
			t.Errorf("the log's check found %q", got)
		}
		change(t, s, `UPDATE payload SET packed = 0, text = '`+words+`' WHERE tree > 0`) // as earlier versions stored it
		if got, err := read(); err != nil || got != words {
			t.Errorf("a value that is not compressed came back with %d bytes, %v", len(got), err)
		}
	})
}

// What neither database can hold, or is longer than the limits, is refused.
func TestInvalidValues(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{})
		c := begin(t, r.root, 0, "h")
		before := dump(t, s)
		for name, text := range map[string]string{"not UTF-8": "\xff", "NUL": "\x00"} {
			wantCode(t, "result "+name, r.root.Complete(ctx, perdure.Result{Text: text}), perdure.CodeInvalid)
			wantCode(t, "response "+name, r.root.SettleCall(ctx, c.ID, perdure.CallResult{Response: text}), perdure.CodeInvalid)
			wantCode(t, "output "+name, r.root.AppendOutput(ctx, text), perdure.CodeInvalid)
			_, err := r.root.Fail(ctx, perdure.Failure{Kind: text})
			wantCode(t, "kind "+name, err, perdure.CodeInvalid)
			_, _, err = r.root.BeginCall(ctx, perdure.CallSpec{Model: text, RequestHash: "h"})
			wantCode(t, "model "+name, err, perdure.CodeInvalid)
		}
		for _, data := range []string{"[]", "null", "{", `{"a":"` + "\xff" + `"}`} {
			wantCode(t, "data "+data, r.root.Complete(ctx, perdure.Result{Data: json.RawMessage(data)}), perdure.CodeInvalid)
		}
		wantCode(t, "result too long",
			r.root.Complete(ctx, perdure.Result{Text: strings.Repeat("x", perdure.MaxResultBytes+1)}), perdure.CodeInvalid)
		wantCode(t, "output too long", r.root.AppendOutput(ctx, strings.Repeat("x", perdure.MaxPayloadBytes+1)),
			perdure.CodeInvalid)
		wantCode(t, "negative usage", r.root.SettleCall(ctx, c.ID, perdure.CallResult{InputTokens: -1}), perdure.CodeInvalid)
		if diff := cmp.Diff(before, dump(t, s)); diff != "" {
			t.Errorf("a refusal changed:\n%s", diff)
		}
		// A failure always ends the attempt: its message is made to fit.
		fail(t, r.root, perdure.Failure{Message: "\xff\x00" + strings.Repeat("ü", perdure.MaxErrorBytes)})
		got := readTask(t, s, r.tree.Root).Error.Message
		if len(got) > perdure.MaxErrorBytes || !strings.HasPrefix(got, "\uFFFD\uFFFDü") {
			t.Errorf("the message has %d bytes and begins with %q", len(got), got[:8])
		}
	})
}

// What a task streamed comes back in order.
func TestOutput(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		var want strings.Builder
		for i := range 20 {
			part := fmt.Sprint("part ", i, "\n")
			want.WriteString(part)
			if err := r.root.AppendOutput(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
		if got := readTask(t, s, r.tree.Root).Output; got != want.String() {
			t.Errorf("output %q", got)
		}
	})
}

// Blobs of all sizes around the size of a chunk come back, from any place, and
// one content is kept once.
func TestBlobs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		for _, size := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3<<20 + 5} {
			content := make([]byte, size)
			for i := range content {
				content[i] = byte(i * 7 / 3)
			}
			ref, err := s.PutBlob(ctx, bytes.NewReader(content))
			if err != nil || ref.Size != int64(size) {
				t.Fatalf("put %d bytes: %+v, %v", size, ref, err)
			}
			again, err := s.PutBlob(ctx, bytes.NewReader(content))
			if err != nil || again != ref {
				t.Errorf("put again: %+v, %v", again, err)
			}
			b, err := s.OpenBlob(ctx, ref.Hash)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes: read %d, %v", size, len(got), err)
			}
			part := make([]byte, 10)
			if size > 1<<20 {
				if n, err := b.ReadAt(part, 1<<20-5); n < 6 || !bytes.Equal(part[:n], content[1<<20-5:][:n]) || n < 10 && err != io.EOF { //nolint:errorlint // readers compare it themselves
					t.Errorf("%d bytes: read %d across a piece, %v", size, n, err)
				}
			}
			if n, err := b.ReadAt(part, int64(size)); n != 0 || err != io.EOF { //nolint:errorlint // readers compare it themselves
				t.Errorf("%d bytes: read %d behind the end, %v", size, n, err)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		_, err := s.OpenBlob(ctx, strings.Repeat("0", 64))
		wantCode(t, "unknown blob", err, perdure.CodeNotFound)
		_, err = s.PutBlob(ctx, io.MultiReader(strings.NewReader("half"), brokenReader{}))
		if err == nil {
			t.Error("put of a broken stream succeeded")
		}
	})
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
