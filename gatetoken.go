package perdure

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"strings"
)

// Approver is what the answer to the gate of a loop needs besides that no agent gives it.
// The server of the API requires it; [Store.AnswerGate] does not.
type Approver string

// The approvers. Gates of runs, and gates from before there were approvers, have none: they
// are as with ApproverAny.
const (
	// ApproverTerminal: the caller runs in the foreground of a terminal, or has the token.
	ApproverTerminal Approver = "terminal"
	// ApproverToken: the caller has the token.
	ApproverToken Approver = "token"
	// ApproverUser: the caller runs as another user than the process that opened the gate.
	ApproverUser Approver = "user"
	// ApproverAny: any caller that no agent started.
	ApproverAny Approver = "any"
)

// TakesToken reports whether gates with this approver have a token.
func (a Approver) TakesToken() bool { return a == ApproverTerminal || a == ApproverToken }

// Alphabet and size of tokens: 80 bits, shown in groups. The letters i, l, o and u are not
// in the alphabet.
const (
	tokenAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	tokenBytes    = 10
	tokenGroup    = 4
)

// NewGateToken returns a random token for a gate, such as "k3m9-7xqp-0d4w-hz5t".
func NewGateToken() string {
	var raw [tokenBytes]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	text := base32.NewEncoding(tokenAlphabet).EncodeToString(raw[:])
	var groups []string
	for ; text != ""; text = text[tokenGroup:] {
		groups = append(groups, text[:tokenGroup])
	}
	return strings.Join(groups, "-")
}

// tokenHash returns the SHA-256 of a token without regard to case, dashes, spaces and
// letters that look like digits.
func tokenHash(token string) string {
	plain := strings.NewReplacer("-", "", " ", "", "o", "0", "i", "1", "l", "1").Replace(
		strings.ToLower(strings.TrimSpace(token)))
	sum := sha256.Sum256([]byte(plain))
	return hex.EncodeToString(sum[:])
}

// SetToken sets the hash of a token, which a gate has before it is opened.
func (g *Gate) SetToken(token string) { g.TokenHash = tokenHash(token) }

// HasToken reports whether a token is the one of the gate. Case, dashes and spaces are
// ignored. It takes the same time for all tokens.
func (g *Gate) HasToken(token string) bool {
	return g.TokenHash != "" && subtle.ConstantTimeCompare([]byte(g.TokenHash), []byte(tokenHash(token))) == 1
}

const (
	sqlReplaceToken = `UPDATE gate SET token = $3 WHERE tree = $1 AND number = $2 AND answered_at IS NULL`
	sqlCountRefused = `UPDATE gate SET refused = refused + 1 WHERE tree = $1 AND number = $2 AND refused < $3`
)

// ReplaceGateToken replaces the token of an open gate: earlier tokens are not valid any more.
// It returns false, and does nothing, if the gate is answered.
func (tx *WriteTx) ReplaceGateToken(ctx context.Context, tree int64, number int, token string) (bool, error) {
	n, err := tx.Exec(ctx, sqlReplaceToken, tree, number, tokenHash(token))
	if err != nil || n == 0 {
		return false, err
	}
	tx.LogRow(tree, RowGate, number)
	return true, tx.AppendEvent(tree, 0, EventLoopGateToken, map[string]any{"gate": number})
}

// GateRefusal is an answer to a gate that was refused.
type GateRefusal struct {
	Gate int `json:"gate"`
	// PID and Program are the process that answered; 0 and empty if they are not known.
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	// Why is the reason.
	Why string `json:"why"`
}

// maxRefusals bounds the events about refused answers to one gate.
const maxRefusals = 10

// LogGateRefusal appends an event about a refused answer, for at most 10 answers to a gate.
func (s *Store) LogGateRefusal(ctx context.Context, tree TreeID, r GateRefusal) error {
	return s.WriteTx(ctx, func(ctx context.Context, tx *WriteTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err != nil {
			return err
		}
		n, err := tx.Exec(ctx, sqlCountRefused, key, r.Gate, maxRefusals)
		if err != nil || n == 0 {
			return err
		}
		return tx.AppendEvent(key, 0, EventLoopGateRefused, &r)
	})
}
