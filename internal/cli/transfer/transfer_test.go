package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/transfer"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	goleak.VerifyTestMain(m)
}

// project is a folder in which commands are run.
type project struct {
	*testing.T
	dir string
}

// newProject creates a folder of the name, without a store.
func newProject(t *testing.T, name string) *project {
	t.Helper()
	p := &project{t, filepath.Join(t.TempDir(), name)}
	p.ok(os.Mkdir(p.dir, 0o700))
	return p
}

func (p *project) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// store opens the project's store, and creates it if there is none.
func (p *project) store() *perdure.Store {
	p.Helper()
	return testdb.Open(p, perdure.Config{Dir: filepath.Join(p.dir, ".perdure")})
}

// run executes a command and returns its output and its exit status.
func (p *project) run(args ...string) (stdout, stderr string, status int) {
	p.Helper()
	var out, notes bytes.Buffer
	e := env.New(env.Process{Stdout: &out, Stderr: &notes, Cwd: p.dir})
	cmd := map[string]func(*env.Env) *cobra.Command{
		"export": transfer.ExportCommand, "import": transfer.ImportCommand,
	}[args[0]](e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args[1:])
	err := cmd.ExecuteContext(p.Context())
	if err != nil {
		e.PrintError(err)
	}
	return out.String(), notes.String(), env.StatusOf(err)
}

// must executes a command that succeeds.
func (p *project) must(args ...string) string {
	p.Helper()
	out, notes, status := p.run(args...)
	if status != env.StatusDone {
		p.Fatalf("%q ended with status %d:\n%s%s", args, status, out, notes)
	}
	return out
}

// report executes an import and returns its report.
func (p *project) report(status int, args ...string) tree.Report {
	p.Helper()
	out, notes, got := p.run(append([]string{"import", "--json"}, args...)...)
	if got != status {
		p.Fatalf("import %q ended with status %d, want %d:\n%s%s", args, got, status, out, notes)
	}
	var r tree.Report
	p.ok(json.Unmarshal([]byte(out), &r))
	return r
}

func (p *project) put(name, text string) {
	p.Helper()
	path := filepath.Join(p.dir, name)
	p.ok(os.MkdirAll(filepath.Dir(path), 0o700))
	p.ok(os.WriteFile(path, []byte(text), 0o600))
}

// lived creates an ended tree of two tasks with a context and a variable.
func (p *project) lived(s *perdure.Store) perdure.Tree {
	p.Helper()
	ctx := p.Context()
	source := p.context(s, "a.txt", "text of the context")
	made, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Name: "first", Contexts: []string{source},
		Root: perdure.TaskSpec{Prompt: "the question", Context: perdure.ContextRef{Type: "full", Source: source}}})
	p.ok(err)
	session, err := s.OpenSession(ctx, "test")
	p.ok(err)
	defer func() { p.ok(session.Close(context.WithoutCancel(ctx))) }()
	root := p.claim(session)
	_, err = root.Spawn(ctx, []perdure.TaskSpec{{Prompt: "a part"}})
	p.ok(err)
	for range 2 {
		l := p.claim(session)
		p.ok(l.Complete(ctx, perdure.Result{Text: "the answer to " + l.Task.Prompt}))
	}
	_, err = s.SetVar(ctx, perdure.StateRef{Scope: perdure.ScopeTree, Tree: made.ID},
		perdure.VarSpec{Name: "plan", Value: json.RawMessage(`{"steps":[1,2]}`)})
	p.ok(err)
	return made
}

func (p *project) context(s *perdure.Store, name, text string) string {
	p.Helper()
	var packed bytes.Buffer
	b := pack.NewBuilder(&packed, pack.Limits{})
	p.ok(b.Add(name, strings.NewReader(text)))
	manifest, err := b.Manifest()
	p.ok(err)
	raw, err := manifest.Encode()
	p.ok(err)
	spec := perdure.ContextSpec{Files: 1, Bytes: manifest.Bytes, Tokens: manifest.Tokens()}
	spec.Pack, err = s.PutBlob(p.Context(), &packed)
	p.ok(err)
	spec.Manifest, err = s.PutBlob(p.Context(), bytes.NewReader(raw))
	p.ok(err)
	c, err := s.PutContext(p.Context(), spec)
	p.ok(err)
	return c.ID
}

func (p *project) claim(session *perdure.Session) *perdure.Lease {
	p.Helper()
	leases, err := session.Claim(p.Context(), perdure.ClaimRequest{Max: 1})
	p.ok(err)
	if len(leases) != 1 {
		p.Fatalf("claimed %d tasks", len(leases))
	}
	return leases[0]
}
