package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/rlm"
)

// maxKeyBytes bounds the Idempotency-Key header.
const maxKeyBytes = 255

func (s *server) createTree(r *request) (any, error) {
	const op = "create tree"
	var body client.TreeRequest
	if err := r.body(&body); err != nil {
		return nil, err
	}
	req, err := s.launchRequest(op, r, &body)
	switch {
	case err != nil:
		return nil, err
	case s.cfg.Launcher == nil:
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: "this server cannot start trees"}
	case s.draining():
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: "the server is stopping",
			Hint: "retry after the server has restarted"}
	}
	tree, err := s.cfg.Launcher.Launch(r.Context(), req)
	return created{"/v1/trees/" + string(tree.ID), tree}, err
}

// estimate answers what the run that is asked for would take.
func (s *server) estimate(r *request) (any, error) {
	const op = "estimate run"
	var body client.TreeRequest
	if err := r.body(&body); err != nil {
		return nil, err
	}
	req, err := s.launchRequest(op, r, &body)
	if err == nil && s.cfg.Launcher == nil {
		err = &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: "this server cannot plan trees"}
	}
	if err != nil {
		return nil, err
	}
	return s.cfg.Launcher.Estimate(r.Context(), req)
}

func (s *server) launchRequest(op string, r *request, body *client.TreeRequest) (LaunchRequest, error) {
	req := LaunchRequest{Kind: cmp.Or(body.Kind, "run"), Name: body.Name, Prompt: body.Prompt, ContextID: body.ContextID,
		Ask:            body.Ask,
		IdempotencyKey: r.Header.Get("Idempotency-Key"), Supervised: supervised(r.Context())}
	if len(req.IdempotencyKey) > maxKeyBytes {
		return req, invalid(op, fmt.Sprintf("the idempotency key is longer than %d bytes", maxKeyBytes), "")
	}
	if body.Ask != "" {
		id, err := r.findTree(string(body.Ask))
		if err != nil {
			return req, err
		}
		req.Ask = id
	}
	if len(body.Config) > 0 && string(body.Config) != "null" {
		if body.Config[0] != '{' {
			return req, invalid(op, `field "config" is not a JSON object`, "")
		}
		req.Config = body.Config
	}
	var err error
	if req.IdempotencyKey != "" {
		if req.Request, err = digest(body); err != nil {
			return req, err
		}
	}
	req.Owner, err = s.owner(op, body.Owner)
	return req, err
}

// digest identifies a request for a tree. White space does not count, nor does the owner, which
// is another session when a process repeats its request after a restart.
func digest(body *client.TreeRequest) (string, error) {
	same := *body
	same.Owner = ""
	raw, err := json.Marshal(&same)
	if err != nil {
		return "", fmt.Errorf("encode request: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// owner returns the session of a name; only the process's own is accepted.
func (s *server) owner(op, name string) (*perdure.Session, error) {
	switch {
	case name == "":
		return nil, nil
	case s.cfg.Session == nil || s.cfg.Session.ID() != name:
		return nil, invalid(op, fmt.Sprintf("owner %q is not the session of this process", name), "leave the owner out")
	}
	return s.cfg.Session, nil
}

func (s *server) trees(r *request) (any, error) {
	filter := perdure.TreeFilter{
		Kind:   r.text("kind"),
		Active: r.flag("active"),
		Limit:  r.limit(defaultPage),
		Before: r.tree("before"),
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	if filter.Before != "" {
		if _, err := s.store.Tree(r.Context(), filter.Before); err != nil {
			return nil, err
		}
	}
	trees, err := s.store.Trees(r.Context(), filter)
	return client.TreePage{Trees: orEmpty(trees),
		Next: next(trees, filter.Limit, func(t *perdure.Tree) perdure.TreeID { return t.ID })}, err
}

// tree returns a tree; with wait it first waits until the tree is terminal, or
// the time is over.
func (s *server) tree(r *request) (any, error) {
	id, wait := r.pathTree(), r.duration("wait", s.limits.Wait)
	if err := r.done(); err != nil {
		return nil, err
	}
	return s.awaitTree(r.Context(), id, wait)
}

// readPause is the least time between two reads of a store that changes continuously;
// the first change after a pause is read at once.
const readPause = 5 * time.Millisecond

func (s *server) awaitTree(ctx context.Context, id perdure.TreeID, wait time.Duration) (perdure.Tree, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		changed, read := s.store.Changed(), time.Now()
		tree, err := s.store.Tree(ctx, id)
		if err != nil || tree.State.Terminal() || wait == 0 {
			return tree, err
		}
		select {
		case <-changed:
		case <-over.C:
			return tree, nil
		case <-s.cfg.Draining:
			return tree, nil
		case <-ctx.Done():
			return tree, ctx.Err()
		}
		if err := pause(ctx, read.Add(readPause)); err != nil {
			return tree, err
		}
	}
}

// pause waits until a moment that is usually past.
func pause(ctx context.Context, until time.Time) error {
	d := time.Until(until)
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	// maxActive bounds the running tasks in a status.
	maxActive = 100
	// maxRunning bounds the running tasks that are compared to find the slowest.
	maxRunning = 1000
)

func (s *server) treeStatus(r *request) (any, error) {
	id := r.pathTree()
	if err := r.done(); err != nil {
		return nil, err
	}
	progress, err := s.store.Progress(r.Context(), id)
	if err != nil {
		return nil, err
	}
	active, err := s.store.Active(r.Context(), id, maxRunning)
	if err != nil {
		return nil, err
	}
	slow, err := s.slowestOf(r.Context(), active)
	if err != nil {
		return nil, err
	}
	pauses := []string{}
	if s.cfg.Pauses != nil && !progress.State.Terminal() {
		pauses = append(pauses, s.cfg.Pauses()...)
	}
	gate, err := s.gateOf(r.Context(), id, &progress)
	return client.Status{Progress: progress, Active: orEmpty(active[:min(len(active), maxActive)]), Slowest: slow,
		Pauses: pauses, Gate: gate}, err
}

func (s *server) treeTasks(r *request) (any, error) {
	filter := perdure.TaskFilter{
		Tree:   r.pathTree(),
		States: r.states("state"),
		After:  r.task("after"),
		Limit:  r.limit(defaultPage),
		Brief:  r.flag("brief"),
	}
	if parent := r.task("parent"); parent != 0 {
		filter.Parent = &parent
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	if _, err := s.store.Tree(r.Context(), filter.Tree); err != nil {
		return nil, err
	}
	tasks, err := s.store.Tasks(r.Context(), filter)
	return client.TaskPage{Tasks: orEmpty(tasks),
		Next: next(tasks, filter.Limit, func(t *perdure.Task) perdure.TaskID { return t.ID })}, err
}

func (s *server) cancelTree(r *request) (any, error) {
	var body reasonRequest
	id := r.pathTree()
	if err := r.body(&body); err != nil {
		return nil, err
	}
	if err := s.refuseLoop(r.Context(), "cancel tree", id); err != nil {
		return nil, err
	}
	n, err := s.store.CancelTree(r.Context(), id, body.Reason)
	return object{"cancelled": n}, err
}

func (s *server) resumeTree(r *request) (any, error) {
	const op = "resume tree"
	var body client.ResumeRequest
	id := r.pathTree()
	if err := r.body(&body); err != nil {
		return nil, err
	}
	owner, err := s.owner(op, body.Owner)
	if err != nil {
		return nil, err
	}
	tree, err := s.store.Tree(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if tree.Kind != "run" || s.cfg.Launcher == nil {
		if len(body.Changes) > 0 {
			return nil, invalid(op, fmt.Sprintf("tree %q is a %s, which takes no changes here", id, tree.Kind), "")
		}
		return s.store.Recover(r.Context(), id, owner)
	}
	return s.cfg.Launcher.Resume(r.Context(), ResumeRequest{Tree: id, Changes: body.Changes, Owner: owner,
		Supervised: supervised(r.Context())})
}

// replayTree runs the code of a tree's REPLs again and compares it with the records.
func (s *server) replayTree(ctx context.Context, id perdure.TreeID) (rlm.Replay, error) {
	if s.cfg.Launcher == nil {
		return rlm.Replay{}, &perdure.Error{Code: perdure.CodeUnavailable, Op: "replay tree",
			Msg: "this server cannot execute trees"}
	}
	return s.cfg.Launcher.Replay(ctx, id)
}
