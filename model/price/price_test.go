package price_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/model/price"
)

func rate(t *testing.T, table *price.Table, name, baseURL string) price.Rate {
	t.Helper()
	r, err := table.Rate(name, baseURL)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// file writes prices and returns the table over them.
func file(t *testing.T, text string) *price.Table {
	t.Helper()
	name := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return price.New(price.Config{File: name})
}

// The date of the table is a constant next to the version it belongs to.
func TestTableIsDated(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "charm.land/catwalk "+price.TableVersion+"\n") {
		t.Errorf("go.mod has another version of the table than %s: write its date, too", price.TableVersion)
	}
	r := rate(t, price.New(price.Config{}), "openai:gpt-4o", "")
	if !strings.Contains(r.Source, price.TableDate) {
		t.Errorf("source %q does not tell the date %s", r.Source, price.TableDate)
	}
}

// What the built-in table says, the misleading names of its cached prices read
// rightly.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	table := price.New(price.Config{})
	tests := []struct {
		name, base                 string
		in, out, cacheRead, writes float64
		window                     int
	}{
		{"anthropic:claude-sonnet-4-6", "", 3, 15, 0.3, 3.75, 0},
		{"anthropic:claude-haiku-4-5-20251001", "", 1, 5, 0.1, 1.25, 0},
		{"anthropic:claude-haiku-4-5", "", 1, 5, 0.1, 1.25, 0}, // the name without the date
		{"anthropic:claude-sonnet-4-6", "https://api.anthropic.com/", 3, 15, 0.3, 3.75, 0},
		{"openai:gpt-4o", "", 2.5, 10, 1.25, 2.5, 128_000},
		{"openai:gpt-4o-2024-08-06", "", 2.5, 10, 1.25, 2.5, 128_000},
		{"openai:gpt-4o", "https://api.openai.com/v1/", 2.5, 10, 1.25, 2.5, 128_000},
		{"openai:gpt-5.6-sol", "", 5, 30, 0.5, 6.25, 1_050_000}, // both prices stand there
		{"openai:gpt-5.5", "", 5, 30, 0.5, 5, 1_050_000},        // the read price stands in the place of the write price
		{"openai:gpt-5.1", "", 1.25, 10, 0.125, 1.25, 400_000},  // it stands in both
		{"openai:gpt-5.5-pro", "", 30, 180, 30, 30, 1_050_000},  // none stands there: never nothing
		{"openai:qwen/qwen3-32b", "https://api.groq.com/openai/v1", 0.29, 0.59, 0.29, 0.29, 0},
	}
	for _, tt := range tests {
		r := rate(t, table, tt.name, tt.base)
		if !r.Known || r.Input != tt.in || r.Output != tt.out || r.CacheRead != tt.cacheRead || r.CacheWrite != tt.writes {
			t.Errorf("%s at %q: %+v, want %v, %v, %v, %v", tt.name, tt.base, r, tt.in, tt.out, tt.cacheRead, tt.writes)
		}
		if tt.window != 0 && r.Window != tt.window || r.Window < 1000 || r.MaxOutput < 1000 {
			t.Errorf("%s: window %d, answer %d", tt.name, r.Window, r.MaxOutput)
		}
	}
}

// No entry of the table makes cached tokens free, or dearer to read than plain
// ones.
func TestUnknownIsUnknown(t *testing.T) {
	t.Parallel()
	table := price.New(price.Config{})
	for _, at := range [][2]string{
		{"openai:no-such-model", ""}, {"anthropic:claude", ""}, {"exec:cat", ""},
		{"openai:gpt-4o", "http://127.0.0.1:11434/v1"}, // another model of the same name
		{"openai:gpt-4o", "https://proxy.example.com/v1"},
		{"openai:gpt-4o-2024-05-13", ""}, // the one snapshot with a price of its own
		{"openai:claude-sonnet-4-6", ""}, {"openai:gpt-4o", "https://api.githubcopilot.com"},
		{"", ""}, {"openai:", ""},
	} {
		r := rate(t, table, at[0], at[1])
		if micros, known := r.Price(model.Usage{InputTokens: 1e6}); known || micros != 0 {
			t.Errorf("%q at %q: %d, %t, want an unknown price", at[0], at[1], micros, known)
		}
	}
	for _, name := range []string{"builtin:extract", "mock:echo"} {
		r := rate(t, table, name, "")
		if micros, known := r.Price(model.Usage{InputTokens: 1e6}); !known || micros != 0 {
			t.Errorf("%s costs %d, %t, want nothing", name, micros, known)
		}
	}
}

func TestPrice(t *testing.T) {
	t.Parallel()
	r := price.Rate{Known: true, Input: 2, Output: 10, CacheRead: 0.5, CacheWrite: 3}
	tests := []struct {
		usage model.Usage
		want  int64
	}{
		{model.Usage{}, 0},
		{model.Usage{InputTokens: 1_000_000}, 2_000_000},
		{model.Usage{OutputTokens: 3}, 30},
		{model.Usage{InputTokens: 100, CachedTokens: 40, CacheWriteTokens: 20, OutputTokens: 7}, 40*2 + 20 + 60 + 70},
		{model.Usage{InputTokens: 10, CachedTokens: 20}, 10}, // more cached than there are: nothing below 0
		{model.Usage{InputTokens: 1 << 62}, math.MaxInt64 / 4},
	}
	for _, tt := range tests {
		if got, known := r.Price(tt.usage); !known || got != tt.want {
			t.Errorf("%+v costs %d, %t, want %d", tt.usage, got, known, tt.want)
		}
	}
	small := price.Rate{Known: true, Input: 0.15, Output: 0.6}
	if got, _ := small.Price(model.Usage{InputTokens: 7, OutputTokens: 8}); got != 6 { // 5.85
		t.Errorf("costs %d, want 6", got)
	}
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	table := file(t, `
date: 2026-11-01
models:
  openai:gpt-4o: {input: 1, output: 2}
  openai:gpt-5: {context_window: 50_000}
  openai:local*: {input: 0, output: 0, context_window: 8192, max_output: 1000}
  openai:local-big: {input: 0.5, output: 0.5, cache_read: 0.1, cache_write: 0.7}
  exec:ollama run llama3: {input: 0, output: 0}
  mock:echo: {input: 3, output: 4}
`)
	tests := []struct {
		name, base string
		want       price.Rate
	}{
		{"openai:gpt-4o", "", price.Rate{Known: true, Input: 1, Output: 2, CacheRead: 1, CacheWrite: 1, Window: 128_000,
			MaxOutput: 8192}},
		{"openai:gpt-4o", "http://localhost:1/v1", price.Rate{Known: true, Input: 1, Output: 2, CacheRead: 1, CacheWrite: 1}},
		{"openai:gpt-5", "", price.Rate{Known: true, Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 1.25,
			Window: 50_000, MaxOutput: 128_000}},
		{"openai:local-small", "http://localhost:1/v1", price.Rate{Known: true, Window: 8192, MaxOutput: 1000}},
		{"openai:local-big", "http://localhost:1/v1", price.Rate{Known: true, Input: 0.5, Output: 0.5, CacheRead: 0.1,
			CacheWrite: 0.7}},
		{"exec:ollama run llama3", "", price.Rate{Known: true}},
		{"mock:echo", "", price.Rate{Known: true, Input: 3, Output: 4, CacheRead: 3, CacheWrite: 3}},
	}
	for _, tt := range tests {
		got := rate(t, table, tt.name, tt.base)
		if !strings.Contains(got.Source, "prices.yaml:") || !strings.Contains(got.Source, "2026-11-01") {
			t.Errorf("%s: source %q", tt.name, got.Source)
		}
		got.Source = ""
		if got != tt.want {
			t.Errorf("%s at %q: %+v, want %+v", tt.name, tt.base, got, tt.want)
		}
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"modles:\n", `p.yaml:1: unknown key "modles"; did you mean "models"?`},
		{"models:\n  openai:gpt-4o:\n    inptu: 1\n", `p.yaml:3: unknown key "inptu"; did you mean "input"?`},
		{"models:\n  openai:gpt-4o:\n    zzz: 1\n", `p.yaml:3: unknown key "zzz"; the keys are input, output`},
		{"models:\n  openai:gpt-4o: {input: 1}\n", "p.yaml:2: openai:gpt-4o: output is missing"},
		{"models:\n  openai:gpt-4o: {output: 1}\n", "p.yaml:2: openai:gpt-4o: input is missing"},
		{"models:\n  opnai:gpt-4o: {input: 1, output: 1}\n",
			`p.yaml:2: models: "opnai:gpt-4o" is not the name of a model; did you mean "openai:gpt-4o"?`},
		{"models:\n  gpt-4o: {input: 1, output: 1}\n", `for example "openai:gpt-4o"`},
		{"models:\n  openai:a:\n    input: -1\n    output: 1\n", "p.yaml:3: input: -1 is not between 0 and"},
		{"models:\n  openai:a:\n    input: cheap\n    output: 1\n", `p.yaml:3: input: "cheap" is not a number`},
		{"models:\n  openai:a:\n    input: \"1\"\n    output: 1\n", `p.yaml:3: input: "1" is not a number`},
		{"models:\n  openai:a:\n    input: 2000000\n    output: 1\n", "p.yaml:3: input: 2000000 is not between"},
		{"models:\n  openai:a:\n    input: .nan\n    output: 1\n", "is not a number"},
		{"models:\n  openai:a:\n    context_window: 0\n", "p.yaml:3: context_window: 0 is not a whole number of tokens"},
		{"models:\n  openai:a:\n    context_window: 1.5\n", "p.yaml:3: context_window: 1.5 is not a whole number"},
		{"models:\n  openai:a: {input: 1, output: 1}\n  openai:a: {input: 2, output: 2}\n", "p.yaml:3"},
		{"models: [1]\n", "p.yaml:1: models is not a mapping"},
		{"models:\n  openai:a: 5\n", "p.yaml:2: openai:a is not a mapping"},
		{"date: yesterday\n", `p.yaml:1: date: "yesterday" is not a day`},
		{"date: 2026-11-01\n---\nmodels:\n", "a second document"},
		{"models:\n  openai:a: {input: 1\n", "p.yaml:"},
		{"\xff", "UTF-8"},
		{strings.Repeat("[", 200), "nested too deeply"},
		{strings.Repeat(" ", 2<<20), "larger than"},
	}
	for _, tt := range tests {
		err := price.ParseFile("p.yaml", []byte(tt.text))
		var e *price.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60q: error = %v, want %q", tt.text, err, tt.want)
		}
	}
	for _, fine := range []string{"", "models:\n", "# nothing\n", "models: {}", "date: 2026-11-01\n"} {
		if err := price.ParseFile("p.yaml", []byte(fine)); err != nil {
			t.Errorf("%q: %v", fine, err)
		}
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "none.yaml")
	_, err := price.New(price.Config{File: name}).Rate("openai:gpt-4o", "")
	var e *price.Error
	if !errors.As(err, &e) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error = %v", err)
	}
	r := rate(t, price.New(price.Config{File: name, Optional: true}), "openai:gpt-4o", "")
	if !r.Known {
		t.Error("a file that need not be there hides the built-in table")
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	script, err := mock.Parse("s", []byte("{window: 5000, replies: [{text: a, repeat: -1, usage: {input: 10, output: "+
		"5}}]}"))
	if err != nil {
		t.Fatal(err)
	}
	inner := mock.New(script)
	m := price.Attach(inner, "openai:x", price.Rate{Known: true, Input: 1, Output: 2})
	resp, err := m.Generate(t.Context(), &model.Request{Prompt: "p"})
	if err != nil || resp.Asked != "openai:x" || resp.CostMicros == nil || *resp.CostMicros != 20 {
		t.Errorf("%+v, %v", resp, err)
	}
	if w, ok := model.AsWindower(m); !ok || w.Window() != 5000 {
		t.Error("the model's own window is lost")
	}
	if p, ok := model.AsPricer(m); !ok {
		t.Error("the price is not found")
	} else if micros, known := p.Price(model.Usage{OutputTokens: 1}); !known || micros != 2 {
		t.Errorf("price %d, %t", micros, known)
	}
	m = price.Attach(inner, "openai:y", price.Rate{Window: 77})
	resp, err = m.Generate(t.Context(), &model.Request{Prompt: "p"})
	if err != nil || resp.CostMicros != nil {
		t.Errorf("%+v, %v, want no cost", resp, err)
	}
	if w, ok := model.AsWindower(m); !ok || w.Window() != 77 {
		t.Error("the rate's window is lost")
	}
}

// FuzzFile checks that no file makes the parser panic and that every error has
// the file's name.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"date: 2026-11-01\nmodels:\n  openai:gpt-4o: {input: 1, output: 2, cache_read: 0.1}\n",
		"models:\n  exec:a*:\n    context_window: 1\n",
		"models: &a\n  openai:x: *a\n", "models:\n  ? openai:x\n  : {input: 1}\n", "models: !!map {}\n", "- - -\n",
		"a: |\n b", "models:\n  openai:x: {<<: {input: 1}}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var e *price.Error
		if err := price.ParseFile("fuzz", []byte(text)); err != nil &&
			(!errors.As(err, &e) || !strings.HasPrefix(err.Error(), "fuzz")) {
			t.Errorf("error = %v", err)
		}
	})
}

// What pricing adds to a call.
func BenchmarkPricedCall(b *testing.B) {
	script, err := mock.Parse("s", []byte("replies: [{text: a, repeat: -1}]"))
	if err != nil {
		b.Fatal(err)
	}
	r, err := price.New(price.Config{}).Rate("openai:gpt-4o", "")
	if err != nil {
		b.Fatal(err)
	}
	inner := mock.New(script)
	for name, m := range map[string]model.Model{"plain": inner, "priced": price.Attach(inner, "openai:gpt-4o", r)} {
		b.Run(name, func(b *testing.B) {
			req := &model.Request{Prompt: "p"}
			for b.Loop() {
				if _, err := m.Generate(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the first question costs that needs the built-in table.
func BenchmarkFirstRate(b *testing.B) {
	for b.Loop() {
		if _, err := price.New(price.Config{}).Rate("openai:gpt-4o", ""); err != nil {
			b.Fatal(err)
		}
	}
}
