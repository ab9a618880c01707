package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/corpus/pack"
)

// outside is a folder outside of the project, whose every use is noticed.
type outside struct {
	t    *testing.T
	file string
	fd   int
}

const outsideText = "text-outside-of-the-project"

func newOutside(t *testing.T) *outside {
	t.Helper()
	dir := t.TempDir()
	o := &outside{t: t, file: filepath.Join(dir, "secret.txt")}
	if err := os.WriteFile(o.file, []byte(outsideText), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.fd, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err == nil {
		_, err = unix.InotifyAddWatch(o.fd, dir, unix.IN_ALL_EVENTS)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(o.fd) })
	return o
}

// used reports whether a process has opened, created, changed or removed something there.
func (o *outside) used() bool {
	n, err := unix.Read(o.fd, make([]byte, 4096))
	return n > 0 || err != unix.EAGAIN
}

// names returns paths of the file, as a client can write them.
func (o *outside) names(from string) []string {
	up := strings.Repeat("../", 16) + o.file[1:]
	relative, err := filepath.Rel(from, o.file)
	if err != nil {
		o.t.Fatal(err)
	}
	return []string{o.file, up, relative, "a/" + up, "file://" + o.file, "@" + o.file, strings.ReplaceAll(up, "/", `\`)}
}

// apiRoutes are the routes of the API, apiParameters the names of its query parameters, as the
// source has them.
func apiRoutes(t *testing.T) (routes, parameters []string) {
	t.Helper()
	files, err := filepath.Glob("../internal/api/server/*.go")
	if err != nil {
		t.Fatal(err)
	}
	route := regexp.MustCompile(`handle\("([A-Z]+ /v1/[^"]*)"`)
	parameter := regexp.MustCompile(`\br\.(?:text|tree|flag|limit|number|duration|task)\("([a-z_]+)"`)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range route.FindAllStringSubmatch(string(raw), -1) {
			routes = append(routes, m[1])
		}
		for _, m := range parameter.FindAllStringSubmatch(string(raw), -1) {
			parameters = append(parameters, m[1])
		}
	}
	if len(routes) < 40 || len(parameters) < 20 {
		t.Fatalf("found %d routes and %d parameters", len(routes), len(parameters))
	}
	return routes, parameters
}

// socketClient sends requests to the daemon of a place.
func (w *workplace) socketClient() (socket string, c *http.Client) {
	socket = strings.TrimPrefix(w.env[len(w.env)-1], "PERDURE_SOCKET=")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return socket, &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 4}}
}

// A path in a request to the API, wherever it is, reaches no file outside of the project: the
// daemon opens and creates none, and no reply has its text. Only the workspace of a loop and
// programs (exec:) reach further, which the user of the socket names.
func TestSecurityClientPaths(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	o := newOutside(t)
	w.sh("perdure var set a 1")
	w.serve()
	socket, web := w.socketClient()
	c, err := client.New(client.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := os.ReadFile(o.file); err != nil || !o.used() || o.used() {
		t.Fatalf("the use of the file is not noticed: %v", err)
	}
	routes, parameters := apiRoutes(t)
	for _, name := range o.names(filepath.Join(w.dir, ".perdure")) {
		for _, route := range routes {
			o.sweep(web, route, name, parameters)
		}
		o.bodies(c, name)
		if o.used() {
			t.Errorf("the file was used with %q", name)
		}
	}
	if text := w.sh("perdure var list --json && perdure events --json"); strings.Contains(text, outsideText) {
		t.Errorf("a list has the text: %s", text)
	}
	if o.used() {
		t.Error("the file was used afterwards")
	}
}

// sweep sends a request of a route with the name as each part of its path and as each parameter.
func (o *outside) sweep(web *http.Client, route, name string, parameters []string) {
	o.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	path = regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, strings.ReplaceAll(url.PathEscape(name), "$", "$$"))
	queries := []string{""}
	if method == http.MethodGet && !strings.Contains(path, "events") { // events stay open
		for _, p := range parameters {
			queries = append(queries, "?"+url.Values{p: {name}}.Encode())
		}
	}
	for _, q := range queries {
		body := fmt.Sprintf(`{"name":%[1]q,"path":%[1]q,"file":%[1]q}`, name)
		req, err := http.NewRequestWithContext(o.t.Context(), method, "http://localhost"+path+q, strings.NewReader(body))
		if err != nil {
			continue // not a URL
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := web.Do(req)
		if err != nil {
			o.t.Fatalf("%s %s: %v", method, path+q, err)
		}
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		if err != nil || strings.Contains(string(text), outsideText) {
			o.t.Errorf("%s %s: %s, %v", method, path+q, text, err)
		}
	}
}

// bodies sends the name in the fields that take text.
func (o *outside) bodies(c *client.Client, name string) {
	o.t.Helper()
	ctx, quoted := o.t.Context(), json.RawMessage(fmt.Sprintf("%q", name))
	var replies []any
	said := func(v any, err error) { replies = append(replies, v, fmt.Sprint(err)) }
	for _, kind := range []perdure.VarType{perdure.VarFilePath, perdure.VarFileContent} {
		ref := perdure.StateRef{Scope: perdure.ScopeGlobal}
		said(c.SetVar(ctx, ref, perdure.VarSpec{Name: "p", Value: quoted, Type: kind, Description: name}))
		said(c.Var(ctx, ref, "p"))
		said(c.RenameVar(ctx, ref, "p", name, perdure.Cause{Reason: name}))
		said(c.SaveCheckpoint(ctx, ref, name, name))
		said(c.Rollback(ctx, ref, name, perdure.Cause{}))
	}
	ref := ledger.Ref{Place: name, Task: "adhoc:a1"}
	entry := ledger.Entry{Kind: "step", Data: json.RawMessage(fmt.Sprintf(`{"step":%[1]q,"created":[%[1]q]}`, name))}
	said(c.WriteHandoff(ctx, ledger.Write{Ref: ref, Entries: []ledger.Entry{entry}, Projected: quoted, Previous: quoted}))
	said(c.ClaimHandoff(ctx, ledger.ClaimSpec{Ref: ref, Agent: name}))
	said(c.Handoff(ctx, ref))
	report, err := c.PutContext(ctx, func(to io.Writer) error {
		s := pack.NewStreamWriter(to)
		if err := s.Add(name, strings.NewReader("a line of a context\n")); err != nil {
			return err
		}
		return s.Close()
	})
	said(report, err)
	for _, config := range []string{`{"model":"builtin:extract","system":%q}`, `{"model":"mock:hash","session":%q}`,
		`{"model":%q}`, `{"model":"mock:hash","schema":{"$ref":%q}}`, `{"model":"builtin:extract","judge":%q}`,
		`{"model":"openai:m","base_url":%q}`} {
		tree, err := c.CreateTree(ctx, client.TreeRequest{Name: name, Prompt: name, ContextID: report.ID,
			Config: json.RawMessage(fmt.Sprintf(config, name)), IdempotencyKey: name + config})
		if said(tree, err); err == nil {
			said(c.WaitTree(ctx, tree.ID))
			said(c.Result(ctx, tree.ID))
		}
	}
	if all := fmt.Sprintf("%+v", replies); strings.Contains(all, outsideText) {
		o.t.Errorf("a reply has the text: %s", all)
	}
}
