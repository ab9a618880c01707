package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/acp"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/loop"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/corpus/walk"
)

// acpHost opens the stores of an editor's sessions. Each prompt has an environment of its own: the
// folder of the session, no terminal, and the flags of perdure acp.
type acpHost struct {
	a     *app
	flags map[acp.Mode][]string
}

// acpPrompt is the environment of one prompt.
type acpPrompt struct {
	a    *app
	cmd  *cobra.Command
	run  runFlags
	loop *loop.Starter
	l    *config.Loaded
}

// Open opens the store of a folder.
func (h *acpHost) Open(ctx context.Context, req *acp.OpenRequest) (*acp.Project, error) {
	if req.Read {
		return h.openRead(ctx, req.Dir)
	}
	p, err := h.prompt(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := p.checkTrust(req); err != nil {
		return nil, err
	}
	p.l.DrainTimeout = -1 // a stop does not wait for the end of calls and turns
	b, err := p.a.Open(ctx, p.l, env.Execute)
	if err != nil {
		return nil, err
	}
	project := &acp.Project{Client: b.Client, Close: b.Close, Work: &acpWork{acpPrompt: p, b: b}}
	if b.Local != nil {
		project.Tokens = b.Local
	}
	return project, nil
}

// openRead opens the store of a folder without its settings that act.
func (h *acpHost) openRead(ctx context.Context, dir string) (*acp.Project, error) {
	a := h.a.at(dir)
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	l, err := a.Load(cmd)
	if err != nil {
		return nil, err
	}
	b, err := a.Open(ctx, l, env.Read)
	if err != nil {
		return nil, err
	}
	return &acp.Project{Client: b.Client, Close: b.Close}, nil
}

// Trust records that the user trusts a folder, unless something else than req.Trusted acts.
func (h *acpHost) Trust(ctx context.Context, req *acp.OpenRequest) error {
	p, err := h.prompt(ctx, req)
	if err != nil {
		return err
	}
	if err := p.checkTrust(req); err != nil {
		return err
	}
	return p.a.TrustFolder(p.l)
}

// at returns the program in another folder, without a terminal. Its output is not for the user.
func (a *app) at(dir string) *app {
	p := a.Process
	p.Cwd, p.Stdin, p.Stdout, p.Stderr, p.Terminal = dir, nil, nil, a.Err, nil
	return &app{Env: env.New(p), parsed: true}
}

// prompt returns the environment of a prompt with its settings, which may not be trusted.
func (h *acpHost) prompt(ctx context.Context, req *acp.OpenRequest) (*acpPrompt, error) {
	p := &acpPrompt{a: h.a.at(req.Dir), cmd: &cobra.Command{Use: string(req.Mode)}}
	p.cmd.SetContext(ctx)
	p.a.UsesTokens = req.Own
	if req.Mode == acp.ModeLoop {
		p.loop = loop.NewStarter(p.a.Env, p.cmd)
	} else {
		p.run.registerContext(p.cmd)
		p.run.registerTree(p.cmd)
	}
	if req.Stored {
		env.ExecutesStored(p.cmd)
	} else {
		env.UsesActing(p.cmd)
	}
	if err := p.cmd.ParseFlags(h.flags[req.Mode]); err != nil {
		return nil, asUsageError(err)
	}
	for name, value := range map[string]string{"until": req.Until, "agent": req.Agent} {
		if value == "" || req.Mode != acp.ModeLoop {
			continue
		}
		if err := p.cmd.Flags().Set(name, value); err != nil {
			return nil, asUsageError(err)
		}
	}
	var err error
	p.l, err = p.a.LoadUntrusted(p.cmd, req.Dir)
	return p, err
}

// checkTrust returns an [*acp.UntrustedError] if something would act that the user does not trust.
func (p *acpPrompt) checkTrust(req *acp.OpenRequest) error {
	u, err := p.a.NeedsTrust(p.cmd, p.l)
	if err != nil || u == nil {
		return err
	}
	lines := u.Lines()
	if slices.Equal(lines, req.Trusted) {
		return nil
	}
	untrusted := &acp.UntrustedError{Dir: u.Dir, Lines: lines}
	if !env.Short(lines) {
		untrusted.Hint = "read the list with `perdure trust --show`, then `perdure trust`"
	}
	return untrusted
}

// acpWork starts and executes the trees of a prompt.
type acpWork struct {
	*acpPrompt
	b *env.Backend
	// elsewhere is the tree that another process executes, if one does.
	elsewhere perdure.TreeID
}

// Prepare returns the request that creates the tree of a prompt.
func (w *acpWork) Prepare(ctx context.Context, in *acp.Prompt) (client.TreeRequest, error) {
	if w.loop != nil {
		req, err := w.loop.Request(w.l, in.Task())
		return req, w.withCommands(err)
	}
	req := client.TreeRequest{Prompt: in.Text, Name: w.run.name}
	var err error
	if req.Config, err = w.run.config(w.a, w.cmd, w.l, false); err != nil {
		return req, err
	}
	report, err := w.upload(ctx, in)
	if err != nil {
		return req, err
	}
	req.ContextID = report.ID
	return req, w.a.confirm(ctx, w.b, &w.run, req)
}

// withCommands adds to an error the commands that set what is missing.
func (w *acpWork) withCommands(err error) error {
	for _, name := range []string{"until", "agent"} {
		if perdure.CodeOf(err) == perdure.CodeInvalid && w.cmd.Flags().Lookup(name).Value.String() == "" {
			return &perdure.Error{Code: perdure.CodeInvalid, Msg: err.Error(),
				Hint: "send `/until COMMAND` and `/agent AGENT`, or configure the editor with `perdure acp loop --until COMMAND " +
					"--agent AGENT`"}
		}
	}
	return err
}

// upload streams the attached files and text, or else the folder, to the server. A folder without
// text is no context.
func (w *acpWork) upload(ctx context.Context, in *acp.Prompt) (client.ContextReport, error) {
	cfg, err := w.run.walkConfig(w.a, w.b.Config)
	if err != nil {
		return client.ContextReport{}, err
	}
	paths, whole := in.Files, false
	if len(paths) == 0 && len(in.Parts) == 0 {
		paths, whole = w.run.contexts, len(w.run.contexts) == 0
	}
	if whole {
		paths = []string{"."}
	}
	cfg.Args = paths
	empty := false
	report, err := w.b.PutContext(ctx, func(out io.Writer) error {
		sink := pack.NewStreamWriter(out)
		if len(paths) > 0 {
			err := walk.Into(ctx, cfg, sink)
			if err != nil {
				_, empty = errors.AsType[*walk.Error](err)
				return contextError(ctx, err)
			}
		}
		for i := range in.Parts {
			if err := sink.Add(in.Parts[i].Name, strings.NewReader(in.Parts[i].Text)); err != nil {
				return err
			}
		}
		return sink.Close()
	})
	if whole && empty {
		return client.ContextReport{}, nil //nolint:nilerr // there is no text to ask about
	}
	return report, err
}

// Create creates the tree of a request, or returns the one that was created with its key.
func (w *acpWork) Create(ctx context.Context, req client.TreeRequest) (perdure.Tree, error) {
	req.Owner = w.b.Session()
	tree, err := w.b.CreateTree(ctx, req)
	if err == nil {
		w.b.Own(tree.ID)
	}
	return tree, err
}

// Resume prepares a tree to continue. It reports whether another process executes it.
func (w *acpWork) Resume(ctx context.Context, id perdure.TreeID) (elsewhere bool, err error) {
	err = w.take(ctx, id)
	if errors.Is(err, perdure.ErrConflict) && w.runs(ctx, id) {
		w.elsewhere = id
		return true, nil
	}
	return false, err
}

// take prepares a tree to continue in this process.
func (w *acpWork) take(ctx context.Context, id perdure.TreeID) error {
	if w.loop != nil {
		return w.loop.Resume(ctx, w.b, w.l, id)
	}
	return w.a.recover(ctx, w.b, id, nil)
}

// takeOver is take for a tree that another process has executed since Resume.
func (w *acpWork) takeOver(ctx context.Context, id perdure.TreeID) error {
	if w.loop != nil {
		return w.loop.TakeOver(ctx, w.b, id)
	}
	return w.take(ctx, id)
}

// runs reports whether a tree is executed.
func (w *acpWork) runs(ctx context.Context, id perdure.TreeID) bool {
	tree, err := w.b.Tree(ctx, id)
	return err == nil && !tree.State.Terminal()
}

// Follow calls follow while this process executes its trees. If another process executes the tree
// and ends before it, this one takes the tree over and calls follow once more.
func (w *acpWork) Follow(ctx context.Context, follow func(context.Context) error) error {
	if w.elsewhere == "" {
		return w.b.Follow(ctx, follow)
	}
	following, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		w.awaitTaken(following, cancel)
	}()
	err := follow(following)
	why := context.Cause(following)
	cancel(nil)
	<-watched
	switch {
	case why == nil || ctx.Err() != nil:
		return err
	case !errors.Is(why, errTaken):
		return why
	}
	w.elsewhere = ""
	return w.b.Follow(ctx, follow)
}

// takeEvery is the time between two tries to take over a tree from another process.
const takeEvery = time.Second

// errTaken ends the following of a tree that this process has taken over.
var errTaken = errors.New("the tree was taken over")

// awaitTaken tries to take the tree over until that works or ctx ends. It cancels with errTaken, or
// with the error for which the tree cannot be continued here.
func (w *acpWork) awaitTaken(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(takeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !w.runs(ctx, w.elsewhere) {
			continue // follow ends
		}
		switch err := w.takeOver(ctx, w.elsewhere); {
		case err == nil:
			cancel(errTaken)
			return
		case !errors.Is(err, perdure.ErrConflict) && w.runs(ctx, w.elsewhere):
			cancel(err)
			return
		}
	}
}
