package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/config"
	loopconfig "github.com/perdure/perdure/loop/config"
)

// project creates a folder with a settings file and returns the folder.
func project(t testing.TB, file string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, config.FolderName), 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, config.FolderName, config.FileName)
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := config.Config{
		Model: "builtin:extract", Concurrency: 8, MaxDepth: 3, MaxChildren: 10, MaxNodes: 10000, MaxAttempts: 3,
		SearchAbove: 60, ReplPython: "python3",
		CallTimeout: 300 * time.Second, CallRetries: 5, Patience: 5 * time.Minute, MaxWait: 30 * time.Minute,
		StructuredOutput: true, PromptCaching: true, NativeTools: true,
		RetentionCompleted: 7 * 24 * time.Hour, RetentionFailed: 30 * 24 * time.Hour,
		RetentionCheckpoints: 10, RetentionHandoffs: 30 * 24 * time.Hour, HandoffWarnPercent: 75, HandoffStopPercent: 90,
		Loop: config.Loop{Approver: "terminal", Permission: "edits",
			MaxIterations: 10, Timeout: time.Hour, IdleTimeout: 10 * time.Minute,
			CheckTimeout: 30 * time.Minute, ContextWindow: 200_000, Detection: "standard", SnapshotRisky: "all",
			Sealed: "completion", Reinforcement: "MINIMAL", StandardFrom: 3, AggressiveFrom: 5, PlateauPercent: 5,
			Enabled: true, MaxRetries: 3, AutoEscalateCritical: true, BestOutput: true, QualityThreshold: 70,
			DetectionBudget: 500 * time.Millisecond, OverheadPercent: 10, MutationPercent: 20, HeldOutGap: 20,
			LoopMetrics: config.LoopMetrics{Coverage: "auto", Types: "auto", Lint: "auto", CoverageThreshold: 2,
				SensitiveThreshold: 0.5,
				SensitivePaths:     strings.Join(loopconfig.SensitiveWords(), ",")}},
		DrainTimeout: 30 * time.Second, LogLevel: "info", LogFormat: "text",
	}
	if diff := cmp.Diff(want, config.Default()); diff != "" {
		t.Errorf("defaults differ (-want +got):\n%s", diff)
	}
	l, err := config.Load(config.Sources{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("load nothing: %v", err)
	}
	if diff := cmp.Diff(want, l.Config); diff != "" {
		t.Errorf("loaded defaults differ (-want +got):\n%s", diff)
	}
	if l.Exists || l.File != "" {
		t.Errorf("exists %v, file %q; there is neither", l.Exists, l.File)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	dir := project(t, `# settings
model: openai:gpt-5
sub_model: "mock:a b.yaml"
base_url: http://localhost:8080/v1
concurrency: 3
chunk_tokens: 2000
call_timeout: 1m30s
budget_usd: 2.5
budget_tokens: 1000000
retention:
  completed: 1d12h
retention.failed: 90d
listen: '[::1]:7433'
log_level: debug
`)
	l, err := config.Load(config.Sources{Dir: dir})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	want := config.Default()
	want.Model, want.SubModel, want.BaseURL = "openai:gpt-5", "mock:a b.yaml", "http://localhost:8080/v1"
	want.Concurrency, want.ChunkTokens, want.CallTimeout = 3, 2000, 90*time.Second
	want.BudgetUSD, want.BudgetTokens = 2.5, 1_000_000
	want.RetentionCompleted, want.RetentionFailed = 36*time.Hour, 90*24*time.Hour
	want.Listen, want.LogLevel = "[::1]:7433", "debug"
	if diff := cmp.Diff(want, l.Config); diff != "" {
		t.Errorf("configuration differs (-want +got):\n%s", diff)
	}
	if want := filepath.Join(dir, ".perdure", "config.yaml"); l.File != want {
		t.Errorf("file %q, want %q", l.File, want)
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	dir := project(t, "concurrency: 2\nmax_depth: 2\nmodel: file:m\nretention: {failed: 3d}\n")
	l, err := config.Load(config.Sources{
		Dir: dir,
		Environ: []string{"PERDURE_CONCURRENCY=3", "PERDURE_MAX_DEPTH=1", "PERDURE_LOG_LEVEL=",
			"PERDURE_RETENTION_FAILED=4d", "OTHER=x"},
		Flags: map[string]string{"concurrency": "4"},
	})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	file := filepath.Join(dir, ".perdure", "config.yaml")
	want := map[string]config.Setting{
		"concurrency":      {Value: 4, Origin: "flag", Where: "--concurrency"},
		"max_depth":        {Value: 1, Origin: "env", Where: "PERDURE_MAX_DEPTH"},
		"model":            {Value: "file:m", Origin: "file", Where: file + ":3"},
		"retention.failed": {Value: "4d", Origin: "env", Where: "PERDURE_RETENTION_FAILED"},
		"log_level":        {Value: "info", Origin: "default"},
	}
	for _, got := range l.Effective() {
		w, ok := want[got.Key]
		if !ok {
			continue
		}
		delete(want, got.Key)
		w.Key, got.Text = got.Key, ""
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", got.Key, diff)
		}
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
		want []string // after the file's name, in order
	}{
		{"unknown key", "model: x\nconcurency: 3\n", []string{`:2: unknown key "concurency"; did you mean "concurrency"?`}},
		{"unknown key, nothing near", "zzz: 3\n", []string{`:1: unknown key "zzz"; ` + "`perdure config keys` lists the keys"}},
		{"unknown key of a long section", "loop:\n  zzz: 3\n",
			[]string{`:2: unknown key "loop.zzz"; ` + "`perdure config keys` lists the keys"}},
		{"unknown key of a short section", "handoff:\n  zzz: 3\n",
			[]string{`:2: unknown key "handoff.zzz"; the keys of handoff are warn_percent, stop_percent`}},
		{"unknown key of an agent", "agents:\n  a:\n    zzz: 3\n", []string{`:3: unknown key "agents.a.zzz"; the keys of agents.a are `}},
		{"unknown key of a section", "retention:\n  compleet: 3d\n",
			[]string{`:2: unknown key "retention.compleet"; did you mean "retention.completed"?`}},
		{"text for a number", "max_depth: deep\n", []string{`:1: max_depth: "deep" is not a whole number`}},
		{"quoted number", "\nmax_depth: \"3\"\n", []string{`:2: max_depth: is text; write 3 without quotes`}},
		{"fraction for a whole number", "max_depth: 1.5\n", []string{`:1: max_depth: "1.5" is not a whole number`}},
		{"truth for a number", "max_depth: true\n", []string{`:1: max_depth: "true" is not a whole number`}},
		{"number for a text", "model: 4\n", []string{`:1: model: is not text; write "4"`}},
		{"truth for a text", "model: yes\nsub_model: true\n", []string{`:2: sub_model: is not text; write "true"`}},
		{"no value", "model:\n", []string{`:1: model: has no value; delete the line for the default`}},
		{"list", "model: [a, b]\n", []string{`:1: model: is one value, not a list or section`}},
		{"value for a section", "retention: 3d\n", []string{`:1: retention has no keys`}},
		{"section for a value", "model:\n  name: x\n", []string{`:1: model: is one value, not a list or section`}},
		{"alias", "model: &a x\nsub_model: *a\n", []string{`:1:8: an anchor (&) is not allowed here`}},
		{"merge key", "<<: {model: x}\n", []string{`:1: unknown key <<`}},
		{"duration without a unit", "call_timeout: 300\n",
			[]string{`:1: call_timeout: "300" is not a duration`}},
		{"duration of nothing", "call_timeout: 0s\n", []string{`:1: call_timeout: 0s is not`}},
		{"range", "max_depth: 6\n", []string{`:1: max_depth: 6 is not between 0 and 5`}},
		{"range with a zero", "chunk_tokens: 5\n",
			[]string{`:1: chunk_tokens: 5 is not between 100 and 100000000, or 0`}},
		{"too large", "max_nodes: 99999999999999999999\n",
			[]string{`:1: max_nodes: "99999999999999999999" is not a whole number`}},
		{"money of nothing", "budget_usd: 0\n",
			[]string{`:1: budget_usd: 0 is not a limit; write none`}},
		{"money of less than nothing", "budget_usd: -0.0\n",
			[]string{`:1: budget_usd: -0.0 is not a limit; write none`}},
		{"calls of nothing", "budget_calls: 0\nbudget_tokens: 0\n",
			[]string{`:1: budget_calls: 0 is not`, `:2: budget_tokens: 0 is not`}},
		{"neither true nor false", "cache: perhaps\n", []string{`:1: cache: "perhaps" is neither true nor false`}},
		{"number for a truth", "cache: 1\n", []string{`:1: cache: "1" is neither true nor false`}},
		{"negative money", "budget_usd: -1\n", []string{`:1: budget_usd: -1 is not`}},
		{"no number", "budget_usd: .nan\n", []string{`:1: budget_usd: ".nan" is not a number`}},
		{"word of a list", "log_level: wran\n",
			[]string{`:1: log_level: "wran" is not one of debug, info, warn, error; did you mean "warn"?`}},
		{"address", "listen: 7433\nlog_format: text\n", []string{`:1: listen: is not text; write "7433"`}},
		{"address without a port", "listen: localhost\n",
			[]string{`:1: listen: "localhost" is not an address`}},
		{"port", "listen: localhost:99999\n",
			[]string{`:1: listen: the port of "localhost:99999" is not a number up to 65535`}},
		{"url", "base_url: localhost:80\n", []string{`:1: base_url: the value is not a URL`}},
		{"store", "store: /tmp/x.db\n", []string{`:1: store: the value is not a URL`}},
		{"secret", "openai_api_key: sk-1\n",
			[]string{`:1: openai_api_key: secrets are not allowed`}},
		{"secret in camel case", "apiKey: sk-1\n", []string{`:1: apiKey: secrets are not allowed`}},
		{"token", "token: abc\n", []string{`:1: token: secrets are not allowed`}},
		{"not a secret", "budget_token: 3\n", []string{`:1: budget_token: secrets`}},
		{"password", "store: postgres://me:geheim@host/db\n",
			[]string{`:1: store: contains a password, which is not allowed in a file; set PERDURE_STORE`}},
		{"password as a parameter", "store: postgres://me@host/db?password=geheim\n",
			[]string{`:1: store: contains a password`}},
		{"twice", "model: a\nmodel: b\n", []string{`:2: mapping key "model" already defined at [1:1]`}},
		{"twice in two forms", "retention: {failed: 1d}\nretention.failed: 2d\n",
			[]string{`:2: retention.failed: already set in line 1`}},
		{"syntax", "model: a\nsub_model: [b\n", []string{`:2: `}},
		{"tab", "retention:\n\tfailed: 1d\n", []string{`:2: found character '	'`}},
		{"list at the top", "- model\n", []string{`:1: the file has no keys`}},
		{"two documents", "model: a\n---\nmodel: b\n", []string{`:3: a second document`}},
		{"not UTF-8", "model: a\nstore: \xff\n", []string{`: line 2 is not valid UTF-8`}},
		{"NUL", "model: a\x00\n", []string{`: holds a NUL byte; it is not text`}},
		{"control character", "model: \"a\\nb\"\n", []string{`:1: model: contains a control character`}},
		{"deep", strings.Repeat("[", 5000), []string{`: nested too deeply`}},
		{"deep without brackets", strings.Repeat("- ", 5000), []string{`: nested too deeply`}},
		{"large", strings.Repeat("# x\n", 20000), []string{`: larger than 65536 bytes`}},
		{"several at once", "modle: x\nmax_depth: 9\nconcurrency: a\n",
			[]string{`:1: unknown key "modle"`, `:3: concurrency: "a"`, `:2: max_depth: 9 is not`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, test.file)
			_, err := config.Load(config.Sources{Dir: dir})
			if !errors.Is(err, perdure.ErrInvalid) {
				t.Fatalf("error %v, want one of code invalid", err)
			}
			if strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "sk-1") {
				t.Errorf("the error shows a secret: %v", err)
			}
			file := filepath.Join(dir, ".perdure", "config.yaml")
			got := strings.Split(strings.TrimPrefix(err.Error(), "read configuration: "), "\n")
			if len(got) != len(test.want) {
				t.Fatalf("%d problems, want %d:\n%s", len(got), len(test.want), strings.Join(got, "\n"))
			}
			for i, want := range test.want {
				if !strings.HasPrefix(got[i], file+want) {
					t.Errorf("problem %d:\n got %s\nwant %s", i, got[i], file+want)
				}
			}
		})
	}
}

func TestProblemsOfAllSources(t *testing.T) {
	t.Parallel()
	dir := project(t, "max_depth: x\n")
	_, err := config.Load(config.Sources{
		Dir:     dir,
		Environ: []string{"PERDURE_CONCURRENCY=0", "PERDURE_STORE=host=db password=geheim"},
		Flags:   map[string]string{"max_nodes": "-1", "retention.failed": "soon", "modle": "x"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"config.yaml:1: max_depth: ",
		"PERDURE_CONCURRENCY: concurrency: 0 is not between 1 and 4096",
		"PERDURE_STORE: store: the value is not a URL",
		"--max-nodes: -1 is not",
		`--retention-failed: "soon" is not a duration`,
		`flag for unknown key "modle"; did you mean "model"?`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "geheim") {
		t.Errorf("the error shows a secret: %v", err)
	}
}

func TestSecretsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	const dsn = "postgres://me:geheim@host/db?sslpassword=geheim"
	l, err := config.Load(config.Sources{Dir: t.TempDir(), Environ: []string{"PERDURE_STORE=" + dsn}})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if l.Store != dsn {
		t.Errorf("store %q, want %q", l.Store, dsn)
	}
	listed, err := json.Marshal(l.Effective())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(listed), l.YAML()} {
		if strings.Contains(text, "geheim") || !strings.Contains(text, "postgres://me:xxxxx@host/db") {
			t.Errorf("the password is not hidden, or more than it:\n%s", text)
		}
	}
}

// Variables that perdure sets for programs are no misspelled settings, wherever they are set.
func TestOwnVariablesAreKnown(t *testing.T) {
	t.Parallel()
	set := regexp.MustCompile(`"(PERDURE_[A-Z_]+)=?[%"]`)
	names := make(map[string]bool)
	for _, pattern := range []string{"../../loop/*.go", "../../loop/*/*.go", "../../rlm/*.go", "../../model/*/*.go",
		"../../agent/*/*.go", "../notify/*.go", "../cli/*/*.go", "../../handoff/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range set.FindAllStringSubmatch(string(text), -1) {
				names[m[1]] = names[m[1]] || !strings.HasSuffix(file, "_test.go")
			}
		}
	}
	if !names["PERDURE_FENCE"] || !names["PERDURE_LOOP"] {
		t.Fatalf("not found: %v", names)
	}
	for name, used := range names {
		l, err := config.Load(config.Sources{Dir: t.TempDir(), Environ: []string{name + "=1"}})
		if used && err == nil && len(l.Warnings) > 0 {
			t.Errorf("%s: %s", name, l.Warnings)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	l, err := config.Load(config.Sources{
		Dir:     t.TempDir(),
		Environ: []string{"PERDURE_MODLE=x", "PERDURE_SESSION=s", "PERDURE_TASK=task-0001", "PERDURE_REQUIRE=postgres"},
	})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "PERDURE_MODLE; did you mean PERDURE_MODEL?") {
		t.Errorf("warnings %q, want one that names PERDURE_MODLE and PERDURE_MODEL", l.Warnings)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	l, err := config.Load(config.Sources{Dir: t.TempDir(), Flags: map[string]string{"budget_usd": "0.5"}})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	got, err := json.Marshal(l.Effective())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"key":"model","value":"builtin:extract","origin":"default"}`,
		`{"key":"concurrency","value":8,"origin":"default"}`,
		`{"key":"call_timeout","value":"5m","origin":"default"}`,
		`{"key":"budget_usd","value":0.5,"origin":"flag","where":"--budget-usd"}`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("missing %s in\n%s", want, got)
		}
	}
}

// The template changes nothing, and every line of it is valid without its comment sign.
func TestTemplate(t *testing.T) {
	t.Parallel()
	l, err := config.Load(config.Sources{Dir: project(t, config.Template())})
	if err != nil {
		t.Fatalf("load the template: %v", err)
	}
	if diff := cmp.Diff(config.Default(), l.Config); diff != "" {
		t.Errorf("the template changes the defaults:\n%s", diff)
	}
	var active strings.Builder
	keys := config.Keys()
	for line := range strings.Lines(config.Template()) {
		for _, k := range keys {
			if strings.HasPrefix(line, "# "+k.Name+": ") {
				active.WriteString(strings.TrimPrefix(line, "# "))
			}
		}
	}
	if got := strings.Count(active.String(), "\n"); got != len(keys) {
		t.Fatalf("the template has %d keys, want %d", got, len(keys))
	}
	l, err = config.Load(config.Sources{Dir: project(t, active.String())})
	if err != nil {
		t.Fatalf("load the template's keys: %v", err)
	}
	if diff := cmp.Diff(config.Default(), l.Config); diff != "" {
		t.Errorf("the template's values are not the defaults:\n%s", diff)
	}
	for _, s := range l.Effective() {
		if s.Origin != config.OriginFile {
			t.Errorf("%s comes from %s, want the file", s.Key, s.Origin)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := project(t, "concurrency: 5\n")
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(config.Sources{Dir: deep})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if want := filepath.Join(dir, ".perdure"); l.Dir != want || !l.Exists || l.Concurrency != 5 {
		t.Errorf("dir %q, exists %v, concurrency %d; want %q with its file", l.Dir, l.Exists, l.Concurrency, want)
	}
	if _, err := config.Find("a/b"); err == nil {
		t.Error("a relative start is accepted")
	}
	if err := os.WriteFile(filepath.Join(deep, ".perdure"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(config.Sources{Dir: deep}); !errors.Is(err, perdure.ErrInvalid) {
		t.Errorf("error %v for a file called .perdure, want one of code invalid", err)
	}
}

func TestFolderVariable(t *testing.T) {
	t.Parallel()
	dir := project(t, "concurrency: 5\n")
	for _, test := range []struct {
		name, value, want string
		exists            bool
	}{
		{"absolute", filepath.Join(dir, ".perdure"), filepath.Join(dir, ".perdure"), true},
		{"relative", ".perdure", filepath.Join(dir, ".perdure"), true},
		{"not there yet", "x/state", filepath.Join(dir, "x", "state"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, err := config.Load(config.Sources{Dir: dir, Environ: []string{"PERDURE_DIR=" + test.value}})
			if err != nil {
				t.Fatalf("load: %v", err)
			}
			if l.Dir != test.want || l.Exists != test.exists {
				t.Errorf("dir %q, exists %v; want %q, %v", l.Dir, l.Exists, test.want, test.exists)
			}
			if f := l.Folder(); f.Origin != config.OriginEnv || f.Where != "PERDURE_DIR" {
				t.Errorf("folder is told to come from %s %s", f.Origin, f.Where)
			}
		})
	}
	_, err := config.Load(config.Sources{Dir: dir, Environ: []string{"PERDURE_DIR=.perdure/config.yaml"}})
	if !errors.Is(err, perdure.ErrInvalid) {
		t.Errorf("error %v for a file as PERDURE_DIR, want one of code invalid", err)
	}
}

// Loaded settings are written and loaded again unchanged.
func FuzzFile(f *testing.F) {
	f.Add("model: openai:x\nretention: {failed: 3d}\n")
	f.Add(config.Template())
	f.Add("sub_model: \"a: b # c\"\nbudget_usd: 0.125\nlisten: '[::]:80'\n")
	f.Add("model: \"\\u00e9 \\\"q\\\" \\\\ {}\"\nsocket: |-\n  x\n")
	f.Add("sub_model: yes\nsocket: 'null'\ncall_timeout: 1d0.5h\n")
	f.Add("? a\n: b\n")
	f.Add("{[<<: *x&y!!str\n---\n...")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := config.Load(config.Sources{Dir: project(t, text)})
		if err != nil {
			return
		}
		written := first.YAML()
		second, err := config.Load(config.Sources{Dir: project(t, written)})
		if err != nil {
			t.Fatalf("what was written does not load: %v\n%s", err, written)
		}
		if diff := cmp.Diff(first.Config, second.Config); diff != "" {
			t.Errorf("written and read back, it differs (-before +after):\n%s\n%s", diff, written)
		}
	})
}

func BenchmarkLoadWithoutFile(b *testing.B) {
	src := config.Sources{Dir: b.TempDir(), Environ: os.Environ()}
	for b.Loop() {
		if _, err := config.Load(src); err != nil {
			b.Fatal(err)
		}
	}
}

// A budget of none means no limit in every source and overrides weaker sources.
func TestNoLimit(t *testing.T) {
	t.Parallel()
	dir := project(t, "budget_usd: 2.5\nbudget_calls: none\ncache: true\n")
	l, err := config.Load(config.Sources{Dir: dir, Flags: map[string]string{"budget_usd": "none"}})
	if err != nil {
		t.Fatal(err)
	}
	if l.BudgetUSD != 0 || l.BudgetCalls != 0 || !l.Cache {
		t.Errorf("configuration %+v", l.Config)
	}
	for _, s := range l.Effective() {
		if strings.HasPrefix(s.Key, "budget_") && (s.Value != nil || s.Text != "none") {
			t.Errorf("%s is %v, %q", s.Key, s.Value, s.Text)
		}
		if s.Key == "cache" && s.Value != true {
			t.Errorf("cache is %v", s.Value)
		}
	}
	if text := l.YAML(); !strings.Contains(text, "budget_usd: none #") || !strings.Contains(text, "cache: true #") {
		t.Errorf("as YAML:\n%s", text)
	}
	_, err = config.Load(config.Sources{Dir: t.TempDir(), Flags: map[string]string{"budget_usd": "0"}})
	if err == nil || !strings.Contains(err.Error(), "--budget-usd: 0 is not a limit; write none") {
		t.Errorf("error = %v", err)
	}
}
