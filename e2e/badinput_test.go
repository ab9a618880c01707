package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/model/mock"
)

// These tests run the program with bad input. Each expects the exit status of its
// kind, one error with a hint, no other output, and no lost data.

// place is a folder in which commands run inside the test's process.
type place struct {
	t   *testing.T
	dir string
	env []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	return &place{t: t, dir: dir, env: []string{"PERDURE_DIR=" + filepath.Join(dir, ".perdure")}}
}

// write makes a file of the folder.
func (p *place) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// run runs a command and returns what it printed.
func (p *place) run(args ...string) (status int, stdout, stderr string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience) // for what hangs
	defer cancel()
	return p.runIn(ctx, args...)
}

func (p *place) runIn(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Main(ctx, env.Process{Stdout: &out, Stderr: &err, Args: args, Environ: append([]string{
		"XDG_CONFIG_HOME=" + os.Getenv("XDG_CONFIG_HOME")}, p.env...), Cwd: p.dir})
	return status, out.String(), err.String()
}

// good runs a command that must succeed.
func (p *place) good(args ...string) (stdout string) {
	p.t.Helper()
	status, stdout, stderr := p.run(args...)
	if status != 0 {
		p.t.Errorf("perdure %s: status %d\n%s", strings.Join(args, " "), status, stderr)
	}
	return stdout
}

// bad runs a command that must fail with a status, and one error that matches a
// pattern.
func (p *place) bad(status int, pattern string, args ...string) (stderr string) {
	p.t.Helper()
	got, stdout, stderr := p.run(args...)
	name := "perdure " + strings.Join(args, " ")
	if got != status {
		p.t.Errorf("%s: status %d, want %d\n%s%s", name, got, status, stdout, stderr)
	}
	if err := toldOnce(stderr, pattern); err != nil {
		p.t.Errorf("%s: %v:\n%s", name, err, stderr)
	}
	return stderr
}

// toldOnce checks what is printed about an error.
func toldOnce(stderr, pattern string) error {
	errors := regexp.MustCompile(`(?m)^perdure: error: .*$`).FindAllString(stderr, -1)
	switch {
	case len(errors) != 1:
		return fmt.Errorf("%d errors are told, want one", len(errors))
	case !regexp.MustCompile(pattern).MatchString(errors[0]):
		return fmt.Errorf("the error does not match %q", pattern)
	case strings.Count(stderr, "\nperdure: hint: ") != 1:
		return fmt.Errorf("there is not one hint")
	case strings.Contains(stderr, "level="):
		return fmt.Errorf("a log is printed")
	case strings.Contains(stderr, "goroutine "):
		return fmt.Errorf("it panics")
	}
	return nil
}

func TestBadModels(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("file", "no program")
	for _, c := range []struct {
		status         int
		model, pattern string
		more           []string
	}{
		{2, "bultin:extract", `unknown model "bultin:extract"`, nil},
		{2, "gpt-4o", `unknown model "gpt-4o"`, nil},
		{2, ":x", `unknown model ":x"`, nil},
		{2, "exec:", `unknown model "exec:"`, nil},
		{2, "exec:sh -c 'unclosed", `single quote without its end`, nil},
		{7, "exec:./file", `permission denied`, nil},
		{7, "exec:/", `is a directory`, nil},
		{7, "exec:no-such-program-here", `no-such-program-here`, nil},
		{2, "mock:none.yaml", `none.yaml`, nil},
		{7, "openai:x", `no API key for https://api.openai.com/v1`, nil},
		{7, "openai:x", `no API key for https://example.com/v1`, []string{"--base-url", "https://example.com/v1"}},
		{2, "openai:x", `base_url: it contains a password`, []string{"--base-url", "https://me:geheim@127.0.0.1/v1"}},
	} {
		stderr := p.bad(c.status, c.pattern, append([]string{"run", "x", "--model", c.model}, c.more...)...)
		if strings.Contains(stderr, "geheim") {
			t.Errorf("a password is shown:\n%s", stderr)
		}
	}
	if list := p.good("status"); strings.Contains(list, "tree-") {
		t.Errorf("refused runs left trees:\n%s", list)
	}
}

func TestBadContexts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("text", "a text about leases")
	p.write("empty", "")
	p.write("binary", "\x7fELF\x00\x01")
	p.write("utf16", "\xff\xfeh\x00i\x00")
	p.write("latin", strings.Repeat("\xe4\xf6\xfc", 100))
	p.write("circle/text", "in a circle")
	for _, folder := range []string{"nothing", "circle"} {
		if err := os.MkdirAll(filepath.Join(p.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"dangling": "gone", "circle/a": "b", "circle/b": "a",
		"circle/self": "../circle"} {
		if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	for name, pattern := range map[string]string{ // one bad name spoils all
		"empty": `"empty": it is empty`, "binary": `"binary": it is binary`,
		"latin":    `cannot be recognised`,
		"dangling": `no such file`, "circle/a": `"circle/a": it cannot be accessed`,
		"missing": `no such file`, "*.none": `matches no file`, "[a": `pattern is malformed`, "": `name is empty`,
		"-": `it is empty`,
	} {
		p.bad(2, pattern, "run", "x", "--model", "mock:echo", "--context", "text", "--context", name)
	}
	p.bad(2, `no text found`, "run", "x", "--context", "nothing")
	if list := p.good("status"); strings.Contains(list, "tree-") {
		t.Errorf("refused runs left trees:\n%s", list)
	}
	// Walked over, the same is left out, and circles end.
	status, stdout, stderr := p.run("run", "circle?", "--context", ".")
	if status != 0 || !strings.Contains(stdout, "in a circle") || !strings.Contains(stderr, "context: 3 files") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// answers are the answers of a hostile endpoint, by the first element of the path.
func answers() map[string]http.HandlerFunc {
	const stream = "text/event-stream"
	said := func(kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, text)
		}
	}
	endless := func(kind, head string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, head)
			part := strings.Repeat("a", 1<<20)
			for err := error(nil); err == nil; {
				_, err = fmt.Fprint(w, part)
			}
		}
	}
	return map[string]http.HandlerFunc{
		"nothing": said("", ""),
		"html":    said("text/html", "<html>log in</html>"),
		"foreign": said("application/json", `{"choices":5}`),
		"half":    said(stream, `data: {"choices":[{"delta":{"content":"half"}}]}`+"\n\n"),
		"line":    endless(stream, "data: "),
		"json":    endless("application/json", `{"choices":[{"message":{"content":"`),
		"close": func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		},
		"hang": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
}

// endpoint serves on a socket of its own until the test ends.
func endpoint(t *testing.T, at string, h http.Handler) (base string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
	}
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

func TestHostileEndpoint(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for name, h := range answers() {
		mux.HandleFunc("/"+name+"/", h)
	}
	base := endpoint(t, "127.0.0.1:0", mux)
	for _, c := range []struct {
		status        int
		path, pattern string
	}{
		{7, "nothing", `the reply contains no answer`},
		{7, "html", `the reply is a web page`},
		{7, "foreign", `the reply contains no answer`},
		{7, "half", `broke off after 4 bytes`},
		{1, "line", `larger than`},
		{1, "json", `larger than`},
		{7, "close", `/close`},
		{7, "hang", `did not answer within 50ms`},
		{7, "elsewhere", `answers 404`},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			args := []string{"run", "x", "--model", "openai:m", "--base-url", base + "/" + c.path, "--call-retries", "0",
				"--max-attempts", "1"}
			if c.path == "hang" {
				args = append(args, "--call-timeout", "50ms")
			}
			p.bad(c.status, c.pattern, args...)
		})
	}
}

// TestBadAnswersThenGoodOnes: a task that failed by a bad answer is retried, and no
// other task of the tree runs again.
func TestBadAnswersThenGoodOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status         int
		reply, pattern string
	}{
		"nothing":  {1, "empty: true", "returned an empty answer"},
		"cut":      {7, "text: half an answer\n    cut: 4", "broke off after 4 bytes"},
		"10 MB":    {3, "size: 11000000", "the answer was cut"},
		"not UTF8": {0, "text: fine\n    invalid_utf8: true", "fine\uFFFD"},
		"refused":  {7, "status: 503", "answers 503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, err := mock.Parse("test", []byte(`replies:
  - match: about a
    text: from a
  - match: about b
    repeat: 1
    `+c.reply+`
  - match: about b
    text: from b
`))
			if err != nil {
				t.Fatal(err)
			}
			server := mock.NewServer(script)
			p := newPlace(t)
			p.write("in/a", "about a")
			p.write("in/b", "about b")
			args := []string{"batch", "in/*", "Say", "--model", "openai:m", "--base-url", endpoint(t, "127.0.0.1:0", server) +
				"/v1",
				"--policy", "fail", "--concurrency", "1", "--call-retries", "0", "--max-attempts", "1"}
			if c.status == 0 || c.status == 3 {
				status, out, errs := p.run(args...)
				if status != c.status || !strings.Contains(out+errs, c.pattern) {
					t.Errorf("status %d, the answer is %.200q, %s", status, out, errs)
				}
				return
			}
			stderr := p.bad(c.status, c.pattern, args...)
			tree := regexp.MustCompile(`perdure resume (tree-[0-9a-f]{8})`).FindStringSubmatch(stderr)
			if tree == nil {
				t.Fatalf("no hint:\n%s", stderr)
			}
			if out := p.good("resume", tree[1]); !strings.Contains(out, "from a") || !strings.Contains(out, "from b") {
				t.Errorf("after the retry the answer is %q", out)
			}
			if n := server.Ledger().Totals().Started; n != 3 {
				t.Errorf("the endpoint was asked %d times, want 3", n)
			}
		})
	}
}

// TestUnreachableThenReachable: the endpoint starts after the run.
func TestUnreachableThenReachable(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	p.bad(7, regexp.QuoteMeta(at)+".*connection refused.*check that a server runs", "run", "x", "--model", "openai:m",
		"--base-url", "http://"+at+"/v1", "--call-retries", "0", "--max-attempts", "1")
	script, err := mock.Parse("test", []byte("replies: [{text: at last}]"))
	if err != nil {
		t.Fatal(err)
	}
	endpoint(t, at, mock.NewServer(script))
	if out := p.good("retry", "task-0001") + p.good("resume"); !strings.Contains(out, "at last") {
		t.Errorf("retry and resume say %q", out)
	}
}
