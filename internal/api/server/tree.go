package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure"
)

// maxKeyBytes bounds the Idempotency-Key header.
const maxKeyBytes = 255

// treeRequest is the body of POST /v1/trees.
type treeRequest struct {
	Kind      string          `json:"kind"`
	Name      string          `json:"name"`
	Prompt    string          `json:"prompt"`
	ContextID string          `json:"context_id"`
	Config    json.RawMessage `json:"config"`
	Owner     string          `json:"owner"`
}

func (s *server) createTree(w http.ResponseWriter, r *http.Request) error {
	const op = "create tree"
	if err := noQuery(r); err != nil {
		return err
	}
	var body treeRequest
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	req, err := s.launchRequest(op, r, &body)
	if err != nil {
		return err
	}
	switch {
	case s.cfg.Launcher == nil:
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: "this server starts no trees"}
	case s.draining():
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: "the server is stopping",
			Hint: "try again when it runs"}
	}
	tree, err := s.cfg.Launcher.Launch(r.Context(), req)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/trees/"+string(tree.ID))
	return s.reply(w, http.StatusCreated, tree)
}

func (s *server) launchRequest(op string, r *http.Request, body *treeRequest) (LaunchRequest, error) {
	req := LaunchRequest{Kind: body.Kind, Name: body.Name, Prompt: body.Prompt, ContextID: body.ContextID,
		IdempotencyKey: r.Header.Get("Idempotency-Key")}
	if req.Kind == "" {
		req.Kind = "run"
	}
	if len(req.IdempotencyKey) > maxKeyBytes {
		return req, invalid(op, fmt.Sprintf("the idempotency key is longer than %d bytes", maxKeyBytes), "")
	}
	if len(body.Config) > 0 && string(body.Config) != "null" {
		if body.Config[0] != '{' {
			return req, invalid(op, `field "config" is not a JSON object`, "")
		}
		req.Config = body.Config
	}
	var err error
	req.Owner, err = s.owner(op, body.Owner)
	return req, err
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

func (s *server) trees(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	filter := perdure.TreeFilter{
		Kind:   q.text("kind"),
		Active: q.flag("active"),
		Limit:  q.limit(defaultPage),
		Before: q.tree("before"),
	}
	if err := q.done(); err != nil {
		return err
	}
	if filter.Before != "" {
		if _, err := s.store.Tree(r.Context(), filter.Before); err != nil {
			return err
		}
	}
	trees, err := s.store.Trees(r.Context(), filter)
	if err != nil {
		return err
	}
	page := struct {
		Trees []perdure.Tree `json:"trees"`
		Next  perdure.TreeID `json:"next"`
	}{Trees: trees}
	if trees == nil {
		page.Trees = []perdure.Tree{}
	}
	if len(trees) == filter.Limit {
		page.Next = trees[len(trees)-1].ID
	}
	return s.reply(w, http.StatusOK, page)
}

// tree shows a tree; with wait it first waits until the tree is terminal, or
// the time is over.
func (s *server) tree(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	wait := q.duration("wait", s.limits.Wait)
	if err := q.done(); err != nil {
		return err
	}
	id, err := pathTree(r)
	if err != nil {
		return err
	}
	tree, err := s.awaitTree(r.Context(), id, wait)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, tree)
}

// lookPause is the least time between two looks at a store that changes all
// the time; the first change after a quiet while is seen at once.
const lookPause = 5 * time.Millisecond

func (s *server) awaitTree(ctx context.Context, id perdure.TreeID, wait time.Duration) (perdure.Tree, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		changed, looked := s.store.Changed(), time.Now()
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
		if err := pause(ctx, looked.Add(lookPause)); err != nil {
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
	// maxLooked bounds those among which the slowest is looked for.
	maxLooked = 1000
)

func (s *server) treeStatus(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	id, err := pathTree(r)
	if err != nil {
		return err
	}
	progress, err := s.store.Progress(r.Context(), id)
	if err != nil {
		return err
	}
	active, err := s.store.Active(r.Context(), id, maxLooked)
	if err != nil {
		return err
	}
	slow, err := s.slowestOf(r, active)
	if err != nil {
		return err
	}
	pauses := []string{}
	if s.cfg.Pauses != nil && !progress.State.Terminal() {
		pauses = append(pauses, s.cfg.Pauses()...)
	}
	gate, err := s.gateOf(r.Context(), id, &progress)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		perdure.Progress
		Active []perdure.ActiveTask `json:"active"`
		// Slowest runs longest; null when nothing runs.
		Slowest *slowest `json:"slowest"`
		// Pauses are the models this process waits for, and why.
		Pauses []string `json:"pauses"`
		// Gate is what the tree waits for a person at, left out when it does not.
		Gate *openGate `json:"gate,omitempty"`
	}{progress, append([]perdure.ActiveTask{}, active[:min(len(active), maxActive)]...), slow, pauses, gate})
}

func (s *server) treeTasks(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	filter := perdure.TaskFilter{
		States: q.states("state"),
		After:  q.task("after"),
		Limit:  q.limit(defaultPage),
		Brief:  q.flag("brief"),
	}
	if parent := q.task("parent"); parent != 0 {
		filter.Parent = &parent
	}
	if err := q.done(); err != nil {
		return err
	}
	id, err := pathTree(r)
	if err != nil {
		return err
	}
	if _, err := s.store.Tree(r.Context(), id); err != nil {
		return err
	}
	filter.Tree = id
	tasks, err := s.store.Tasks(r.Context(), filter)
	if err != nil {
		return err
	}
	page := struct {
		Tasks []perdure.Task `json:"tasks"`
		Next  perdure.TaskID `json:"next"`
	}{Tasks: tasks}
	if tasks == nil {
		page.Tasks = []perdure.Task{}
	}
	if len(tasks) == filter.Limit {
		page.Next = tasks[len(tasks)-1].ID
	}
	return s.reply(w, http.StatusOK, page)
}

func (s *server) cancelTree(w http.ResponseWriter, r *http.Request) error {
	id, err := pathTree(r)
	if err != nil {
		return err
	}
	reason, err := s.reason(w, r)
	if err != nil {
		return err
	}
	if err := s.whole(r.Context(), "cancel tree", id); err != nil {
		return err
	}
	n, err := s.store.CancelTree(r.Context(), id, reason)
	if err != nil {
		return err
	}
	return s.replyCancelled(w, n)
}

func (s *server) resumeTree(w http.ResponseWriter, r *http.Request) error {
	id, err := pathTree(r)
	if err != nil {
		return err
	}
	if err := noQuery(r); err != nil {
		return err
	}
	var body struct {
		Owner string `json:"owner"`
	}
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	owner, err := s.owner("resume tree", body.Owner)
	if err != nil {
		return err
	}
	report, err := s.store.Recover(r.Context(), id, owner)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, report)
}
