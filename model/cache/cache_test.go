package cache_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/cache"
)

// counting answers with the number of the request.
type counting struct {
	asked atomic.Int64
	fail  bool
}

func (m *counting) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	n := m.asked.Add(1)
	if m.fail {
		return nil, &model.Error{Kind: model.KindUnavailable, Msg: "down"}
	}
	cost := int64(1500)
	return &model.Response{
		Text: fmt.Sprintf("%s %d", req.Prompt, n), Tries: 2, StopReason: "stop", Model: "real", CostMicros: &cost,
		Usage:     model.Usage{InputTokens: 1000, OutputTokens: 20, CachedTokens: 3},
		Citations: []model.Citation{{File: "f", StartLine: 1, EndLine: 2, Text: "t"}}, Notes: []string{"odd"},
	}, nil
}

func open(t testing.TB, dir string) *cache.Cache {
	t.Helper()
	c, err := cache.New(cache.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close) // before the folder goes
	return c
}

func ask(t testing.TB, m model.Model, prompt string) *model.Response {
	t.Helper()
	resp, err := m.Generate(t.Context(), &model.Request{Prompt: prompt})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestHit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	inner := &counting{}
	c := open(t, dir)
	m := c.Attach(inner, "openai:x", "")
	first := ask(t, m, "p")
	if first.Cached || first.Text != "p 1" {
		t.Errorf("first answer %+v", first)
	}
	var heard string
	c.Close()
	// Another process, later.
	m = open(t, dir).Attach(inner, "openai:x", "")
	got, err := m.Generate(t.Context(), &model.Request{Prompt: "p", OnText: func(s string) { heard += s }})
	if err != nil {
		t.Fatal(err)
	}
	var free int64
	want := &model.Response{
		Text: "p 1", StopReason: "stop", Model: "real", Asked: "openai:x", CostMicros: &free, Cached: true,
		Separated: true,
		Citations: []model.Citation{{File: "f", StartLine: 1, EndLine: 2, Text: "t"}},
		Notes:     []string{"odd", "answered from the cache; this saved 1000 input and 20 output tokens"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if heard != "p 1" || inner.asked.Load() != 1 {
		t.Errorf("heard %q, %d requests sent", heard, inner.asked.Load())
	}
}

// An entry that was made with another secret, or with none, is a miss, and so is every entry
// without a secret that can be read.
func TestSecret(t *testing.T) {
	t.Parallel()
	inner, dir := &counting{}, t.TempDir()
	for i, c := range []struct {
		secret string
		err    error
		asked  int64
	}{
		{"", nil, 1}, {"", nil, 1}, {"mine", nil, 2}, {"mine", nil, 2}, {"theirs", nil, 3}, {"mine", nil, 4}, {"", nil, 5},
		{"", errors.New("no secret"), 6}, {"", errors.New("no secret"), 7}, {"", nil, 7},
	} {
		kept, err := cache.New(cache.Config{Dir: dir, Secret: func() ([]byte, error) { return []byte(c.secret), c.err }})
		if err != nil {
			t.Fatal(err)
		}
		ask(t, kept.Attach(inner, "a", ""), "p")
		kept.Close()
		if n := inner.asked.Load(); n != c.asked {
			t.Errorf("%d requests after run %d, want %d", n, i, c.asked)
		}
	}
}

// What may make another answer makes another entry.
func TestMiss(t *testing.T) {
	t.Parallel()
	inner := &counting{}
	c := open(t, t.TempDir())
	warm := 0.7
	requests := []*model.Request{
		{Prompt: "p"}, {Prompt: "q"}, {Prompt: "p", System: "s"}, {Prompt: "p", Temperature: &warm},
		{Prompt: "p", MaxOutputTokens: 5}, {Prompt: "p", Sample: 1}, {Prompt: "p", Sample: 2},
		{Prompt: "p", Documents: []model.Document{{File: "f", StartLine: 1, Text: "x"}}},
	}
	models := []model.Model{c.Attach(inner, "a", ""), c.Attach(inner, "b", ""),
		c.Attach(inner, "a", "http://localhost/v1")}
	seen := make(map[string]bool)
	for range 2 {
		for _, m := range models {
			for _, req := range requests {
				resp, err := m.Generate(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				seen[resp.Text] = true
			}
		}
	}
	if want := len(models) * len(requests); len(seen) != want || inner.asked.Load() != int64(want) {
		t.Errorf("%d answers, %d requests, want %d", len(seen), inner.asked.Load(), want)
	}
}

func TestFailuresAreNotKept(t *testing.T) {
	t.Parallel()
	inner := &counting{fail: true}
	c := open(t, t.TempDir())
	m := c.Attach(inner, "a", "")
	for range 2 {
		if _, err := m.Generate(t.Context(), &model.Request{}); err == nil {
			t.Error("no error")
		}
	}
	if all, err := c.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Generate(ended, &model.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}

// An entry that is not what was written, in whatever way, is a miss, goes, and
// is written anew.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(data []byte) []byte{
		"empty":          func([]byte) []byte { return nil },
		"half":           func(data []byte) []byte { return data[:len(data)/2] },
		"one bit":        func(data []byte) []byte { data[len(data)-10] ^= 1; return data },
		"checksum":       func(data []byte) []byte { data[0] ^= 1; return data },
		"something else": func([]byte) []byte { return []byte("hello\nworld") },
		"longer":         func(data []byte) []byte { return append(data, ' ') },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			inner := &counting{}
			c := open(t, dir)
			m := c.Attach(inner, "a", "")
			ask(t, m, "p")
			c.Close()
			files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
			data, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(files[0], damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if s, err := c.Stats(t.Context()); err != nil || s.Damaged != 1 {
				t.Errorf("%+v, %v", s, err)
			}
			if got := ask(t, m, "p"); got.Cached || got.Text != "p 2" {
				t.Errorf("answer %+v", got)
			}
			c.Close()
			if got := ask(t, m, "p"); !got.Cached || got.Text != "p 2" {
				t.Errorf("answer %+v", got)
			}
		})
	}
}

// An entry under the name of another is not its answer.
func TestMovedEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inner := &counting{}
	c := open(t, dir)
	m := c.Attach(inner, "a", "")
	ask(t, m, "p")
	c.Close()
	first, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	ask(t, m, "q")
	c.Close()
	both, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, other := range both {
		if other != first[0] {
			if err := os.Rename(first[0], other); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := ask(t, m, "q"); got.Text != "q 3" {
		t.Errorf("answer %q", got.Text)
	}
}

// A folder that cannot be written fails no call.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inner := &counting{}
	c := open(t, filepath.Join(file, "cache"))
	m := c.Attach(inner, "a", "")
	for range 2 {
		ask(t, m, "p")
		c.Close()
	}
	if inner.asked.Load() != 2 {
		t.Errorf("%d requests", inner.asked.Load())
	}
	if _, err := cache.New(cache.Config{}); err == nil {
		t.Error("a cache without a folder was opened")
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inner := &counting{}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			c := open(t, dir)
			defer c.Close()
			m := c.Attach(inner, "a", "")
			prompt := fmt.Sprint(i % 5)
			if got := ask(t, m, prompt); !strings.HasPrefix(got.Text, prompt+" ") {
				t.Errorf("%q answered %q", prompt, got.Text)
			}
		})
	}
	wg.Wait()
	s, err := open(t, dir).Stats(t.Context())
	if err != nil || s.Entries != 5 || s.Damaged != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// fill makes three entries of two models, used an hour apart, the first longest
// ago.
func fill(t *testing.T, dir string) *cache.Cache {
	t.Helper()
	c := open(t, dir)
	for i, name := range []string{"a", "b", "a"} {
		ask(t, c.Attach(&counting{}, name, ""), fmt.Sprint("prompt ", i))
	}
	all, err := c.List(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, e := range all {
		data, err := os.ReadFile(filepath.Join(dir, e.Key+".json"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := cache.Decode(data, e.Key)
		var n int
		_, _ = fmt.Sscanf(text, "prompt %d", &n)
		used := time.Now().Add(time.Duration(n-3) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, e.Key+".json"), used, used); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestListAndStats(t *testing.T) {
	t.Parallel()
	c := fill(t, t.TempDir())
	all, err := c.List(t.Context())
	if err != nil || len(all) != 3 || all[0].Model != "a" || all[1].Model != "b" || all[0].UsedAt.Before(all[2].UsedAt) {
		t.Errorf("%+v, %v", all, err)
	}
	if e := all[0]; e.InputTokens != 1000 || e.OutputTokens != 20 || e.CostUSD == nil || *e.CostUSD != 0.0015 ||
		time.Since(e.CreatedAt) > time.Minute {
		t.Errorf("%+v", e)
	}
	s, err := c.Stats(t.Context())
	if err != nil || s.Entries != 3 || s.InputTokens != 3000 || s.OutputTokens != 60 || s.CostUSD == nil ||
		*s.CostUSD < 0.0044 || *s.CostUSD > 0.0046 ||
		!s.OldestUse.Equal(all[2].UsedAt) || len(s.Models) != 2 || s.Models[0].Model != "a" || s.Models[0].Entries != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	none := open(t, filepath.Join(t.TempDir(), "none"))
	if s, err := none.Stats(t.Context()); err != nil || s.Entries != 0 || s.OldestUse != nil {
		t.Errorf("of nothing: %+v, %v", s, err)
	}
}

func TestEvict(t *testing.T) {
	t.Parallel()
	size := func(n int64) *int64 { return &n }
	for name, tt := range map[string]struct {
		sel  cache.Selection
		want int
	}{
		"nothing":           {cache.Selection{}, 0},
		"all":               {cache.Selection{All: true}, 3},
		"dry":               {cache.Selection{All: true, DryRun: true}, 3},
		"model":             {cache.Selection{Model: "a"}, 2},
		"another model":     {cache.Selection{Model: "c"}, 0},
		"unused":            {cache.Selection{Unused: 90 * time.Minute}, 2},
		"unused of a model": {cache.Selection{Unused: 90 * time.Minute, Model: "b"}, 1},
		"keep none":         {cache.Selection{KeepBytes: size(0)}, 3},
		"keep two":          {cache.Selection{KeepBytes: size(1200)}, 1},
		"keep all":          {cache.Selection{KeepBytes: size(1 << 20)}, 0},
		"an invalid key":    {cache.Selection{Key: "x"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fill(t, t.TempDir())
			before, err := c.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if before[0].Bytes < 300 || before[0].Bytes > 600 {
				t.Fatalf("entries have %d bytes; the sizes of this test do not fit", before[0].Bytes)
			}
			got, err := c.Evict(t.Context(), tt.sel)
			if err != nil || got.Entries != tt.want || len(got.Keys) != tt.want {
				t.Fatalf("%+v, %v, want %d", got, err, tt.want)
			}
			after, err := c.List(t.Context())
			left := 3 - tt.want
			if tt.sel.DryRun {
				left = 3
			}
			if err != nil || len(after) != left {
				t.Errorf("%d left, %v, want %d", len(after), err, left)
			}
			if name == "keep two" && got.Keys[0] != before[2].Key {
				t.Error("it was not the one used longest ago that went")
			}
		})
	}
	dir := t.TempDir()
	c := fill(t, dir)
	all, _ := c.List(t.Context())
	stale := filepath.Join(dir, ".writing-1")
	old := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.WriteFile(stale, nil, 0o600), os.Chtimes(stale, old, old)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Evict(t.Context(), cache.Selection{Key: all[0].Key[:12]}); err != nil || got.Entries != 1 ||
		got.Keys[0] != all[0].Key {
		t.Errorf("by key: %+v, %v", got, err)
	}
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Error("what a dead writer left is still there")
	}
}

// FuzzDecode checks that nothing but what was written is an entry.
func FuzzDecode(f *testing.F) {
	key := strings.Repeat("ab", 32)
	f.Add([]byte("hello\nworld"))
	f.Add([]byte("\n{}"))
	f.Add([]byte(`ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb` + "\na"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, err := cache.Decode(data, key); err == nil {
			t.Errorf("%q is the entry of %q", data, text)
		}
	})
}

// Many answers of one cache at once: no call waits for the disk, and all are
// there in the end.
func TestWrittenBehind(t *testing.T) {
	t.Parallel()
	c := open(t, t.TempDir())
	inner := &counting{}
	m := c.Attach(inner, "a", "")
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			prompt := fmt.Sprint(i)
			first := ask(t, m, prompt)
			if again := ask(t, m, prompt); !again.Cached || again.Text != first.Text {
				t.Errorf("answer %+v after %+v", again, first)
			}
		})
	}
	wg.Wait()
	all, err := c.List(t.Context())
	if err != nil || len(all) != 300 || inner.asked.Load() != 300 {
		t.Errorf("%d entries, %v, %d requests", len(all), err, inner.asked.Load())
	}
}

// What the cache adds to a call: a hit instead of a request, or a miss, whose
// answer is written while the next calls run.
func BenchmarkCall(b *testing.B) {
	request := func(prompt string) *model.Request {
		return &model.Request{Prompt: prompt,
			Documents: []model.Document{{File: "f", StartLine: 1, Text: strings.Repeat("some text\n", 3000)}}}
	}
	b.Run("hit", func(b *testing.B) {
		m := open(b, b.TempDir()).Attach(&counting{}, "a", "")
		for b.Loop() {
			if _, err := m.Generate(b.Context(), request("p")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("miss", func(b *testing.B) {
		c := open(b, b.TempDir())
		m := c.Attach(&counting{}, "a", "")
		n := 0
		for b.Loop() {
			if n++; n%32 == 0 {
				b.StopTimer()
				c.Close()
				b.StartTimer()
			}
			if _, err := m.Generate(b.Context(), request(fmt.Sprint(n))); err != nil {
				b.Fatal(err)
			}
		}
	})
}
