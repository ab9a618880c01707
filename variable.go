package perdure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"
)

// VarType says what a variable's value is.
type VarType string

// The types. Those of files hold a path or a file's content as text.
const (
	VarText        VarType = "text"
	VarNumber      VarType = "number"
	VarBoolean     VarType = "boolean"
	VarNull        VarType = "null"
	VarJSON        VarType = "json"
	VarArray       VarType = "array"
	VarFilePath    VarType = "file_path"
	VarFileContent VarType = "file_content"
)

// The special variables of trees and tasks. VarPrompt is read-only. VarFinal is
// null until the work is done; setting it completes the task.
const (
	VarPrompt = "prompt"
	VarFinal  = "Final"
)

// Variable is a named value of a state.
type Variable struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	Type  VarType         `json:"type"`
	// Size is the length of the value as JSON. Listings leave out the values
	// that are longer than [MaxInlineBytes].
	Size        int64  `json:"size_bytes"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source,omitempty"`
	// Version is the mutation that gave the value, for [VarSpec.IfVersion].
	Version   MutationID `json:"version,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	// Accessed counts reads, approximately: a read is never a disk flush.
	Accessed int64       `json:"access_count"`
	Metadata VarMetadata `json:"metadata"`
	// Task is whose state has the variable, when it is that of a tree.
	Task TaskID `json:"task_id,omitempty"`
}

// VarMetadata is what else holds for a variable.
type VarMetadata struct {
	ReadOnly   bool       `json:"read_only,omitempty"`
	Scope      Scope      `json:"scope"`
	TTLSeconds int64      `json:"ttl_seconds,omitempty"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
}

// Cause says why a state is changed, for its history.
type Cause struct {
	// Source is who does it: "task-0004", "user_edit"; Reason is free text.
	Source string
	Reason string
	// IfVersion, when set, refuses the change (CodeConflict) unless the
	// variable has that version; 0 means that it must not exist.
	IfVersion *MutationID
	// CancelRest cancels unfinished descendants when Final is set on a task
	// that has some; without it that is refused.
	CancelRest bool
}

// VarSpec is a variable to set.
type VarSpec struct {
	Name string
	// Value is JSON. Required.
	Value json.RawMessage
	// Type defaults to what the value is.
	Type        VarType
	Description string
	ReadOnly    bool
	// TTL, when set, makes the variable vanish after that time. In a temporary
	// state it defaults to TemporaryTTL.
	TTL time.Duration
	Cause
}

// maxTextBytes bounds descriptions, sources and reasons.
const maxTextBytes = 4096

// ValidName reports whether a variable may have the name: a letter or
// underscore, then letters, digits and underscores, at most MaxVariableName.
func ValidName(name string) bool {
	if name == "" || len(name) > MaxVariableName {
		return false
	}
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func checkName(op, name string) error {
	switch {
	case utf8.RuneCountInString(name) > MaxVariableName:
		return invalidf(op, "the name has %d characters, the limit is %d", utf8.RuneCountInString(name), MaxVariableName)
	case !ValidName(name):
		return &Error{Code: CodeInvalid, Op: op, Msg: "\"" + validPrefix(name, 200) + "\" is not a variable's name",
			Hint: "a name has letters, digits and underscores and does not begin with a digit"}
	}
	return nil
}

// typeOf returns the type of a JSON value.
func typeOf(value string) VarType {
	switch value[0] {
	case '"':
		return VarText
	case '{':
		return VarJSON
	case '[':
		return VarArray
	case 't', 'f':
		return VarBoolean
	case 'n':
		return VarNull
	}
	return VarNumber
}

// check validates the specification and returns the value in its shortest form.
func (v *VarSpec) check(op string) (string, error) {
	if err := checkName(op, v.Name); err != nil {
		return "", err
	}
	if len(v.Value) > MaxVariableBytes {
		return "", invalidf(op, "the value of %q has %d bytes, the limit is %d", v.Name, len(v.Value), MaxVariableBytes)
	}
	value, err := compactJSON(v.Value)
	if err != nil {
		return "", invalidf(op, "the value of %q is not JSON: %v", v.Name, err)
	}
	if v.Type == "" {
		v.Type = typeOf(value)
	}
	if !v.Type.holds(typeOf(value)) {
		return "", invalidf(op, "the value of %q is of type %s, not %s", v.Name, typeOf(value), v.Type)
	}
	if v.TTL < 0 {
		return "", invalidf(op, "the time to live of %q is negative", v.Name)
	}
	return value, v.Cause.check(op, v.Description)
}

func (c *Cause) check(op string, texts ...string) error {
	for _, text := range append(texts, c.Source, c.Reason) {
		if len(text) > maxTextBytes || !storable(text) {
			return invalidf(op, "a description, source or reason is longer than %d bytes or not text", maxTextBytes)
		}
	}
	return nil
}

// holds tells whether values of a derived type may be called t.
func (t VarType) holds(derived VarType) bool {
	switch t {
	case VarFilePath, VarFileContent:
		return derived == VarText
	case VarJSON:
		return true
	case VarText, VarNumber, VarBoolean, VarNull, VarArray:
		return t == derived
	}
	return false
}

func compactJSON(raw json.RawMessage) (string, error) {
	if !utf8.Valid(raw) {
		return "", errors.New("it is not UTF-8")
	}
	var buf bytes.Buffer
	err := json.Compact(&buf, raw)
	return buf.String(), err
}

// varRow is a variable on its way to or from its row.
type varRow struct {
	name, column, description, source string
	kind                              VarType
	born, size, ttl, accessed         int64
	readOnly                          bool
	createdAt, updatedAt              int64
	expiresAt                         *int64
}

// putVar writes a value and the mutation that gave it. What was there becomes a
// value of the past.
func (b *batch) putVar(ctx context.Context, st *varState, v *varRow, m *mutationRow) error {
	old, _, err := b.current(ctx, st, v.name)
	if err != nil {
		return err
	}
	return b.replaceVar(ctx, st, old, v, m)
}

// replaceVar is putVar for who has read what is there, nil when there is none.
func (b *batch) replaceVar(ctx context.Context, st *varState, old, v *varRow, m *mutationRow) error {
	if err := b.mutate(ctx, st, v.name, old, m); err != nil {
		return err
	}
	v.born, v.updatedAt, v.createdAt = m.id, b.now, b.now
	if old == nil {
		st.variables++
	} else {
		v.createdAt, v.accessed = old.createdAt, old.accessed
	}
	b.writeVar(st, v.name, v)
	return nil
}

// dropVar removes a variable that is there.
func (b *batch) dropVar(ctx context.Context, st *varState, old *varRow, m *mutationRow) error {
	if err := b.mutate(ctx, st, old.name, old, m); err != nil {
		return err
	}
	st.variables--
	b.writeVar(st, old.name, nil)
	return nil
}

// Operations of mutations.
const (
	mutCreate    = "create"
	mutUpdate    = "update"
	mutDelete    = "delete"
	mutRename    = "rename"
	mutRollback  = "rollback"
	mutCompacted = "compacted"
)

func variableEvent(operation string) EventKind {
	switch operation {
	case mutDelete:
		return EventVariableDeleted
	case mutRename:
		return EventVariableRenamed
	}
	return EventVariableSet
}

// mutationRow is an entry of a state's history.
type mutationRow struct {
	id                int64
	operation, detail string
	source, reason    string
	task              int64
}

// mutate appends to the history and archives the value that dies.
func (b *batch) mutate(ctx context.Context, st *varState, name string, old *varRow, m *mutationRow) error {
	b.cache.seq.mutation++
	m.id = b.cache.seq.mutation
	var before int64
	if old != nil {
		before = old.born
		b.vars.past = old.appendTo(append(b.vars.past, st.id, m.id))
	}
	b.appendMutation(st, name, before, m)
	st.mutations++
	st.entries++
	b.touch(st)
	b.event(st.tree, m.task, variableEvent(m.operation), `{"name":`+quote(name)+`,"state_id":"`+StateID(st.id).String()+
		`","mutation_id":"`+MutationID(m.id).String()+`"}`)
	if st.entries > MaxHistory {
		return b.compact(ctx, st)
	}
	return nil
}

func (b *batch) appendMutation(st *varState, name string, before int64, m *mutationRow) {
	b.vars.mutations = append(b.vars.mutations, st.id, m.id, m.operation, name, before, m.detail, m.source, m.reason,
		m.task, b.now)
}
