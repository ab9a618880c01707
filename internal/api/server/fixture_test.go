package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/inproc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/rlm"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/perdure/perdure/internal/testing/testdb.startServer"))
}

// way is how a request gets to the handler.
type way struct {
	name string
	open func(t testing.TB, h http.Handler) client.Config
}

func ways() []way {
	return []way{
		{"socket", func(t testing.TB, h http.Handler) client.Config {
			return client.Config{Socket: serve(t, h, shortDir(t)+"/s").Path()}
		}},
		{"inproc", func(t testing.TB, h http.Handler) client.Config {
			transport := &inproc.Transport{Handler: h}
			t.Cleanup(transport.Close)
			return client.Config{Transport: transport}
		}},
	}
}

// shortDir is a folder whose path leaves room for a socket's name; those of
// testing can be too long.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pd") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// running is a server that serves a socket until it is stopped or the test ends.
type running struct {
	*server.Listener
	stop func()
}

func serve(t testing.TB, h http.Handler, path string) *running {
	t.Helper()
	l, err := server.Listen(path)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	srv := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	stop := func() {
		if srv.Close(); done == nil {
			return
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
		done = nil
	}
	t.Cleanup(stop)
	return &running{Listener: l, stop: stop}
}

// fixture is a store behind the API.
type fixture struct {
	store   *perdure.Store
	session *perdure.Session
	client  *client.Client
	http    *http.Client
}

// each runs a test over a socket on both databases, and in process on SQLite:
// how a request gets to the handler does not depend on the database.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	eachStore(t, func(t *testing.T, s *perdure.Store, w way) { test(t, newFixture(t, s, w, server.Config{})) })
}

func eachStore(t *testing.T, test func(t *testing.T, s *perdure.Store, w way)) {
	t.Helper()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			if w.name == "socket" || effort.Long() {
				testdb.Each(t, func(t *testing.T, s *perdure.Store) { test(t, s, w) })
				return
			}
			test(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), w)
		})
	}
}

func newFixture(t testing.TB, s *perdure.Store, w way, cfg server.Config) *fixture {
	t.Helper()
	session, err := s.OpenSession(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{store: s, session: session}
	cfg.Store, cfg.Session, cfg.Version = s, session, "1.2.3"
	if cfg.Launcher == nil {
		cfg.Launcher = storeLauncher{s}
	}
	ccfg := w.open(t, server.New(cfg))
	f.client = newClient(t, ccfg)
	f.http = &http.Client{Transport: ccfg.Transport}
	if ccfg.Socket != "" {
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", ccfg.Socket)
		}}
		t.Cleanup(transport.CloseIdleConnections)
		f.http.Transport = transport
	}
	return f
}

func newClient(t testing.TB, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// storeLauncher makes trees of what the request says, without a thought.
type storeLauncher struct{ s *perdure.Store }

func (l storeLauncher) Launch(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error) {
	spec := perdure.TreeSpec{Kind: req.Kind, Name: req.Name, Config: req.Config, Owner: req.Owner,
		IdempotencyKey: req.IdempotencyKey, Request: req.Request, Root: perdure.TaskSpec{Prompt: req.Prompt}}
	if req.ContextID != "" {
		spec.Contexts = []string{req.ContextID}
	}
	return l.s.CreateTree(ctx, spec)
}

func (l storeLauncher) Replay(context.Context, perdure.TreeID) (rlm.Replay, error) {
	return rlm.Replay{}, errors.New("nothing is replayed here")
}

func (l storeLauncher) Estimate(context.Context, server.LaunchRequest) (rlm.Estimate, error) {
	return rlm.Estimate{}, errors.ErrUnsupported
}

func (l storeLauncher) Resume(ctx context.Context, req server.ResumeRequest) (perdure.RecoverReport, error) {
	return l.s.Recover(ctx, req.Tree, req.Owner)
}

// launcherFunc is a Launcher that is a function.
type launcherFunc func(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error)

func (l launcherFunc) Launch(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error) {
	return l(ctx, req)
}

func (l launcherFunc) Estimate(context.Context, server.LaunchRequest) (rlm.Estimate, error) {
	return rlm.Estimate{}, errors.ErrUnsupported
}

func (l launcherFunc) Replay(context.Context, perdure.TreeID) (rlm.Replay, error) {
	return rlm.Replay{}, errors.New("nothing is replayed here")
}

func (l launcherFunc) Resume(context.Context, server.ResumeRequest) (perdure.RecoverReport, error) {
	return perdure.RecoverReport{}, errors.ErrUnsupported
}

// answer is a raw response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (f *fixture) send(t testing.TB, method, target, body string, header ...string) answer {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://perdure"+target, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(target, "/v1/contexts") {
		req.Header.Set("Content-Type", "application/x-tar")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := f.http.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return answer{resp.StatusCode, resp.Header, got}
}

// one claims the only task that is ready.
func (f *fixture) one(t testing.TB) *perdure.Lease {
	t.Helper()
	leases, err := f.session.Claim(t.Context(), perdure.ClaimRequest{Max: 1})
	if err != nil || len(leases) != 1 {
		t.Fatalf("claim: %d leases, %v", len(leases), err)
	}
	return leases[0]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// family makes a terminal tree: a root with two children, of which one failed,
// and a call of the other.
func (f *fixture) family(t testing.TB) (perdure.Tree, []perdure.TaskID) {
	t.Helper()
	ctx := t.Context()
	tree, err := f.store.CreateTree(ctx,
		perdure.TreeSpec{Kind: "run", Name: "a family", Config: json.RawMessage(`{"model":"mock:x"}`),
			Limits: perdure.Limits{MaxNodes: 10}, Root: perdure.TaskSpec{Prompt: "the root", Merge: "concatenate"}})
	must(t, err)
	ids, err := f.one(t).Spawn(ctx, []perdure.TaskSpec{
		{Prompt: "the good child", Metadata: json.RawMessage(`{"mine":1}`),
			Context: perdure.ContextRef{Type: "slice", Source: "ctx-1", Offset: 3, Length: 4, SizeTokens: 1}},
		{Prompt: "the bad child", MaxAttempts: 1},
	})
	must(t, err)
	good := f.one(t)
	call, _, err := good.BeginCall(ctx, perdure.CallSpec{Model: "mock:x", RequestHash: "abc"})
	must(t, err)
	cost := int64(1500)
	must(t, good.SettleCall(ctx, call.ID, perdure.CallResult{Response: "fine", Tries: 1, InputTokens: 10, OutputTokens: 2,
		CostMicros: &cost, Data: json.RawMessage(`{"note":"n"}`)}))
	must(t, good.Complete(ctx, perdure.Result{Text: "fine"}))
	_, err = f.one(t).Fail(ctx, perdure.Failure{Kind: "model", Message: "it refused"})
	must(t, err)
	must(t, f.one(t).Complete(ctx, perdure.Result{Text: "all is fine", Partial: true,
		Data: json.RawMessage(`{"citations":[{"file":"a.txt","start_line":1,"end_line":2,"text":"x","sha256":"00"}]}`)}))
	return tree, append([]perdure.TaskID{tree.Root}, ids...)
}

// golden compares a JSON document with a file, apart from what differs in each
// run: times, durations and drawn names.
func golden(t testing.TB, name string, body []byte) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("%s: %v: %s", name, err, body)
	}
	got, err := json.MarshalIndent((&normal{seen: map[string]string{}}).value("", doc), "", "  ")
	must(t, err)
	got = append(got, '\n')
	path := filepath.Join("testdata", "golden", name+".json")
	if *update {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs from its golden file (-want +got), -update rewrites it:\n%s", name, diff)
	}
}

var (
	drawn   = regexp.MustCompile(`tree-[0-9a-f]{8}\b|sess-[0-9a-f]+`)
	instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
	seconds = regexp.MustCompile(`_seconds$|_ms$|^bytes$`)
)

// normal replaces what differs in each run.
type normal struct{ seen map[string]string }

func (n *normal) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			v[k] = n.value(k, v[k])
		}
	case []any:
		for i, inner := range v {
			v[i] = n.value(key, inner)
		}
	case json.Number:
		if seconds.MatchString(key) && v != "0" {
			return "NUMBER"
		}
	case string:
		switch {
		case key == "database":
			return "DATABASE"
		case instant.MatchString(v):
			return "TIME"
		case strings.HasSuffix(key, "_digest"): // of rows with times
			return "DIGEST"
		}
		return drawn.ReplaceAllStringFunc(v, n.name)
	}
	return v
}

func (n *normal) name(s string) string {
	if n.seen[s] == "" {
		prefix, _, _ := strings.Cut(s, "-")
		n.seen[s] = prefix + "-NAME" + strconv.Itoa(len(n.seen)+1)
	}
	return n.seen[s]
}
