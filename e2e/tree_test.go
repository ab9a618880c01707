package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

// A tree whose answer can be computed without running it. A prompt is a path
// of digits: "f3d2/0/2" is the third child of the first child of a root whose
// tree has fan-out 3 and depth 2. Leaves ask twice; every fifth fails its first
// attempt; inner nodes whose path ends in 1 run their children one after
// another.

// shape is a tree of tasks.
type shape struct{ fan, depth int }

const kindShape = "shape"

func (s shape) prompt() string { return fmt.Sprintf("f%dd%d", s.fan, s.depth) }

func shapeOf(prompt string) (s shape, level int, err error) {
	root, _, _ := strings.Cut(prompt, "/")
	_, err = fmt.Sscanf(root, "f%dd%d", &s.fan, &s.depth)
	return s, strings.Count(prompt, "/"), err
}

func (s shape) children(prompt string) []string {
	all := make([]string, s.fan)
	for i := range all {
		all[i] = prompt + "/" + strconv.Itoa(i)
	}
	return all
}

func (s shape) leaves() int {
	n := 1
	for range s.depth {
		n *= s.fan
	}
	return n
}

func (s shape) nodes() int {
	n, level := 1, 1
	for range s.depth {
		level *= s.fan
		n += level
	}
	return n
}

// answer returns the expected answer of the tree.
func (s shape) answer(prompt string, level int) string {
	if level == s.depth {
		return digest(answerOf(prompt, 0), answerOf(prompt, 1))
	}
	parts := make([]string, s.fan)
	for i, child := range s.children(prompt) {
		parts[i] = s.answer(child, level+1)
	}
	return digest(parts...)
}

func answerOf(prompt string, position int) string { return digest(prompt, strconv.Itoa(position)) }

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8])
}

// fails reports whether the first attempt of a leaf fails.
func fails(prompt string) bool { return answerOf(prompt, 0)[0] < '4' }

// shapeHandler runs such trees. What it "sends" it writes to a ledger next to
// the store, as a model would count.
type shapeHandler struct {
	store  *perdure.Store
	ledger *os.File
}

func newShapeHandler(s *perdure.Store) (*shapeHandler, error) {
	f, err := os.OpenFile(ledgerPath(s.Dir()), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return &shapeHandler{store: s, ledger: f}, err
}

func ledgerPath(dir string) string { return filepath.Join(dir, "ledger") }

func (h *shapeHandler) Handle(ctx context.Context, l *perdure.Lease) error {
	s, level, err := shapeOf(l.Task.Prompt)
	if err != nil {
		return err
	}
	if level == s.depth {
		return h.leaf(ctx, l)
	}
	children, err := h.store.Tasks(ctx, perdure.TaskFilter{Tree: l.Tree.ID, Parent: &l.Task.ID, Limit: 1000})
	if err != nil {
		return err
	}
	if len(children) == 0 {
		specs := make([]perdure.TaskSpec, s.fan)
		for i, prompt := range s.children(l.Task.Prompt) {
			specs[i].Prompt = prompt
			if strings.HasSuffix(prompt, "1") {
				specs[i].Strategy = perdure.Sequential
			}
		}
		_, err := l.Spawn(ctx, specs)
		return err
	}
	parts := make([]string, len(children))
	for i, c := range children {
		if !c.State.Terminal() {
			return l.Wait(ctx)
		}
		parts[i] = c.Result
	}
	return l.Complete(ctx, perdure.Result{Text: digest(parts...)})
}

func (h *shapeHandler) leaf(ctx context.Context, l *perdure.Lease) error {
	var parts []string
	for position := range 2 {
		answer, err := h.ask(ctx, l, position)
		if err != nil {
			return err
		}
		parts = append(parts, answer)
		if position == 0 && l.Task.Attempts == 1 && fails(l.Task.Prompt) {
			return &worker.Failure{Kind: "model", Retry: true, After: time.Microsecond,
				Err: errors.New("the first attempt fails")}
		}
	}
	return l.Complete(ctx, perdure.Result{Text: digest(parts...)})
}

func (h *shapeHandler) ask(ctx context.Context, l *perdure.Lease, position int) (string, error) {
	c, replayed, err := l.BeginCall(ctx, perdure.CallSpec{Position: position, Model: "m", RequestHash: "h",
		ReserveTokens: 10})
	if err != nil || replayed {
		return c.Response, err
	}
	if _, err := fmt.Fprintf(h.ledger, "%s/%d/%d\n", l.Task.ID, l.Task.Attempts, position); err != nil {
		return "", err
	}
	answer := answerOf(l.Task.Prompt, position)
	return answer, l.SettleCall(ctx, c.ID, perdure.CallResult{Response: answer, InputTokens: 3, OutputTokens: 2})
}

// work runs trees of the store until ctx ends.
func work(ctx context.Context, s *perdure.Store, concurrency int) error {
	h, err := newShapeHandler(s)
	if err != nil {
		return err
	}
	defer h.ledger.Close()
	ss, err := s.OpenSession(ctx, "test")
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Store: s, Session: ss, Concurrency: concurrency,
		Handlers: map[string]worker.Handler{kindShape: h}})
	if err != nil {
		return err
	}
	return errors.Join(w.Run(ctx), ss.Close(context.WithoutCancel(ctx)))
}
