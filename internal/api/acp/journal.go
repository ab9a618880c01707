package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/loop"
)

// The prompts of a session are variables of the session of the same name, so that an editor
// can load it in another process. A prompt is stored before its tree is created with a key that
// follows from the session and the number of the prompt: if the process is killed between the two, a
// later one finds the tree by the key, or creates it. What executes is not stored here, but follows
// from the flags and settings, because other programs can write variables.

// promptEntry is a stored prompt.
type promptEntry struct {
	Mode Mode `json:"mode"`
	// Text is the prompt as the user wrote it, Prompt its content.
	Text   string `json:"text"`
	Prompt Prompt `json:"prompt,omitzero"`
	// Tree is empty until the tree was created.
	Tree perdure.TreeID `json:"tree_id,omitempty"`

	name string // of the variable
}

// MaxPrompts is the maximum number of prompts of a session that are stored.
const MaxPrompts = 9999

// variables returns the state with the prompts of a session.
func variables(session string) perdure.StateRef {
	return perdure.StateRef{Scope: perdure.ScopeSession, Session: session}
}

// newEntry returns the next entry of a session.
func (ss *session) newEntry(mode Mode, in *input) (*promptEntry, error) {
	if ss.prompts >= MaxPrompts {
		return nil, invalidf("the session has %d prompts, which is the maximum; open a new one", MaxPrompts)
	}
	name := fmt.Sprintf("prompt_%04d", ss.prompts+1)
	return &promptEntry{Mode: mode, Text: in.shown, Prompt: in.Prompt, name: name}, nil
}

// key returns the idempotency key of the tree.
func (e *promptEntry) key(session string) string { return "acp/" + session + "/" + e.name }

// save stores an entry.
func (e *promptEntry) save(ctx context.Context, p *Project, session string) error {
	value, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode prompt: %w", err)
	}
	_, err = p.SetVar(ctx, variables(session), perdure.VarSpec{Name: e.name, Value: value,
		Description: "prompt of an editor", Cause: perdure.Cause{Source: "perdure acp"}})
	return err
}

// remove removes an entry whose tree was refused.
func (e *promptEntry) remove(ctx context.Context, p *Project, session string) {
	_ = p.DeleteVar(ctx, variables(session), e.name, perdure.Cause{Source: "perdure acp"}) // the refusal is reported
}

// entries returns the stored prompts of a session. The ID of a tree or a loop stands for a session
// with its only prompt.
func entries(ctx context.Context, p *Project, session string) ([]promptEntry, error) {
	var list []promptEntry
	for v, err := range p.AllVars(ctx, variables(session)) {
		switch {
		case perdure.CodeOf(err) == perdure.CodeNotFound:
			return ofTree(ctx, p, session)
		case err != nil:
			return nil, err
		case !strings.HasPrefix(v.Name, "prompt_"):
			continue
		}
		if v.Value == nil { // lists leave out long values
			if v, err = p.Var(ctx, variables(session), v.Name); err != nil {
				return nil, err
			}
		}
		e := promptEntry{name: v.Name}
		if json.Unmarshal(v.Value, &e) == nil { // else another program wrote it
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return ofTree(ctx, p, session)
	}
	return list, nil
}

// treeID matches the ID of a tree or a loop and captures its digits.
var treeID = lazyregexp.New(`^[a-z0-9][a-z0-9-]*-([0-9a-f]{8})$`)

// ofTree returns the tree that the ID of a session names as its only prompt.
func ofTree(ctx context.Context, p *Project, session string) ([]promptEntry, error) {
	unknown := &perdure.Error{Code: perdure.CodeNotFound, Op: "load session",
		Msg: fmt.Sprintf("there is no session %.100q, and no tree or loop of this ID", session)}
	match := treeID().FindStringSubmatch(session)
	if match == nil {
		return nil, unknown
	}
	tree, err := p.Tree(ctx, perdure.TreeID("tree-"+match[1]))
	if perdure.CodeOf(err) == perdure.CodeNotFound || err == nil && session != string(tree.ID) &&
		session != loop.ID(&tree) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	root, err := p.Task(ctx, tree.Root)
	if err != nil {
		return nil, err
	}
	mode := ModeRun
	if tree.Kind == perdure.KindLoop {
		mode = ModeLoop
	}
	return []promptEntry{{Mode: mode, Text: root.Prompt, Tree: tree.ID, name: "prompt_0001"}}, nil
}
