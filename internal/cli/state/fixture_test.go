package state

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/inproc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	testenv.Set()
	goleak.VerifyTestMain(m)
}

var mine = perdure.StateRef{Scope: perdure.ScopeSession, Session: "me"}

// prompt is a console with its own store.
type prompt struct {
	*console
	store    *perdure.Store
	out, err bytes.Buffer
	// before, if not nil, is called before each request.
	before func(r *http.Request)
}

func newPrompt(t testing.TB, ref perdure.StateRef) *prompt {
	t.Helper()
	p := &prompt{store: testdb.Open(t, perdure.Config{Dir: t.TempDir()})}
	h := server.New(server.Config{Store: p.store})
	transport := &inproc.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.before != nil {
			p.before(r)
		}
		h.ServeHTTP(w, r)
	})}
	t.Cleanup(transport.Close)
	cl, err := client.New(client.Config{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	c := &commands{Env: env.New(env.Process{Stdout: &p.out, Stderr: &p.err})}
	p.console = &console{commands: c,
		eval: &evaluator{target: &target{Client: cl, ref: ref}, functions: starlark.StringDict{},
			steps: 10_000, print: func(text string) { c.Printf("%s\n", text) }}}
	return p
}

func (p *prompt) set(t testing.TB, name, value string) {
	t.Helper()
	_, err := p.store.SetVar(t.Context(), p.eval.ref, perdure.VarSpec{Name: name, Value: json.RawMessage(value)})
	if err != nil {
		t.Fatal(err)
	}
}

// enter runs lines and returns the output and the errors.
func (p *prompt) enter(t testing.TB, text string) (out, errs string) {
	t.Helper()
	p.out.Reset()
	p.err.Reset()
	p.in = &pipedLines{bufio.NewReader(strings.NewReader(text))}
	err := p.loop(t.Context())
	if failed := strings.Contains(p.err.String(), "error: "); failed != (env.StatusOf(err) == env.StatusFailed) {
		t.Fatalf("%v, printed %q", err, p.err.String())
	}
	return p.out.String(), p.err.String()
}

// values returns the variables of the prompt's state.
func (p *prompt) values(t testing.TB) map[string]string {
	t.Helper()
	list, err := p.store.Vars(t.Context(), p.eval.ref, perdure.VarFilter{})
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, v := range list {
		out[v.Name] = string(v.Value)
	}
	return out
}
