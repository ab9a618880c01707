package loop

import (
	"context"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/failpoint"
)

// tokens are the tokens of the open gates that this process has made, by their hashes. They
// are stored nowhere.
type tokens struct {
	mu     sync.Mutex
	byHash map[string]string
}

// add makes a token for a gate and sets its hash.
func (t *tokens) add(g *perdure.Gate) (token string) {
	token = perdure.NewGateToken()
	g.SetToken(token)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byHash == nil {
		t.byHash = make(map[string]string)
	}
	t.byHash[g.TokenHash] = token
	return token
}

func (t *tokens) of(g *perdure.Gate) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byHash[g.TokenHash]
}

func (t *tokens) remove(g *perdure.Gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byHash, g.TokenHash)
}

// GateToken returns the token of an open gate, or "" if another process made it or the gate
// has none. It is for the user only: do not store or log it.
func (e *Engine) GateToken(g *perdure.Gate) string { return e.tokens.of(g) }

// renewToken replaces the token of a gate that another process opened, if this one can show
// the new token. With notify, it calls [EngineConfig.TokenReplaced].
func (r *run) renewToken(ctx context.Context, g *perdure.Gate, notify bool) error {
	shown := r.e.cfg.TokenReplaced
	if shown == nil || g.Answer != "" || !g.Approver.TakesToken() || r.e.GateToken(g) != "" {
		return nil
	}
	token := r.e.tokens.add(g)
	replaced, err := r.e.records.ReplaceGateToken(ctx, r.l, g.Number, token)
	if err != nil || !replaced { // answered meanwhile: the token is of no use
		r.e.tokens.remove(g)
		return err
	}
	failpoint.Hit("loop.token_replaced")
	if notify {
		shown(ctx, &r.l.Tree, g)
	}
	return nil
}
