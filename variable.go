package perdure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/storage/chain"
)

// VarType is the type of a variable's value.
type VarType string

// The types. VarFilePath and VarFileContent are text: a path, or the content of a file.
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

// The special variables of trees and tasks. VarPrompt is read-only. VarFinal is null until
// the task completes; setting it completes the task.
const (
	VarPrompt = "prompt"
	VarFinal  = "Final"
)

// Variable is a named value of a state.
type Variable struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	Type  VarType         `json:"type"`
	// Size is the length of the value as JSON. Listings leave out values
	// that are longer than [MaxInlineBytes].
	Size        int64  `json:"size_bytes"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source,omitempty"`
	// Version is the mutation that set the value, for [VarSpec.IfVersion].
	Version   MutationID `json:"version,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	// Accessed counts reads. It is approximate, because a read never flushes the disk.
	Accessed int64       `json:"access_count"`
	Metadata VarMetadata `json:"metadata"`
	// Task is the task whose state has the variable, in the scope of a tree.
	Task TaskID `json:"task_id,omitempty"`
}

// VarMetadata has further properties of a variable.
type VarMetadata struct {
	ReadOnly   bool       `json:"read_only,omitempty"`
	Scope      Scope      `json:"scope"`
	TTLSeconds int64      `json:"ttl_seconds,omitempty"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
}

// Cause describes a change of a state for its history, and its conditions.
type Cause struct {
	// Source is the origin of the change: "task-0004", "user_edit"; Reason is free text.
	Source string
	Reason string
	// IfVersion, when set, makes the change fail with CodeConflict unless the
	// variable has that version; 0 means that it must not exist.
	IfVersion *MutationID
	// CancelRest cancels the unfinished descendants of a task whose Final is set.
	// Without it, setting Final fails if there are any.
	CancelRest bool
}

// VarSpec is a variable to set.
type VarSpec struct {
	Name string
	// Value is JSON. Required.
	Value json.RawMessage
	// Type defaults to the type of the JSON value.
	Type        VarType
	Description string
	ReadOnly    bool
	// TTL, when set, removes the variable after that time. In a temporary
	// state it defaults to TemporaryTTL.
	TTL time.Duration
	Cause
}

// maxTextBytes bounds descriptions, sources and reasons.
const maxTextBytes = 4096

// ValidName reports whether a variable may have the name: a letter or underscore, then
// letters, digits and underscores, at most MaxVariableName characters.
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
		return &Error{Code: CodeInvalid, Op: op, Msg: "\"" + validPrefix(name, 200) + "\" is not a valid variable name",
			Hint: "a name consists of letters, digits and underscores and does not begin with a digit"}
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

// check validates the specification and returns the value as compact JSON.
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

func (c *Cause) check(op string, more ...string) error {
	for _, text := range append(more, c.Source, c.Reason) {
		if len(text) > maxTextBytes || !storable(text) {
			return invalidf(op, "a description, source or reason is longer than %d bytes or not UTF-8 text",
				maxTextBytes)
		}
	}
	return nil
}

// holds reports whether a variable of type t can have a JSON value of a type.
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

// varRow is the row of a variable.
type varRow struct {
	name, column, description, source string
	kind                              VarType
	born, size, ttl, accessed         int64
	readOnly                          bool
	createdAt, updatedAt              int64
	expiresAt                         *int64
}

// putVar writes a value and its mutation. The previous value becomes a past one.
func (b *batch) putVar(ctx context.Context, st *varState, v *varRow, m *mutationRow) error {
	old, _, err := b.current(ctx, st, v.name)
	if err != nil {
		return err
	}
	return b.replaceVar(ctx, st, old, v, m)
}

// replaceVar is putVar with the row that the caller has read, nil if there is none.
func (b *batch) replaceVar(ctx context.Context, st *varState, old, v *varRow, m *mutationRow) error {
	v.updatedAt, v.createdAt = b.now, b.now
	if old == nil {
		st.variables++
	} else {
		v.createdAt, v.accessed = old.createdAt, old.accessed
	}
	m.next = v
	if err := b.mutate(ctx, st, v.name, old, m); err != nil {
		return err
	}
	b.writeVar(st, v.name, v)
	return nil
}

// dropVar removes an existing variable.
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

func eventOfMutation(operation string) EventKind {
	switch operation {
	case mutDelete:
		return EventVariableDeleted
	case mutRename:
		return EventVariableRenamed
	}
	return EventVariableSet
}

// digest returns the digest of the row. The number of accesses changes without an event.
func (v *varRow) digest(h *chain.Hasher) string {
	row := h.Row()
	row.Text(v.name)
	row.Int(v.born)
	row.Text(v.column)
	row.Int(v.size)
	row.Text(string(v.kind))
	row.Text(v.description)
	row.Text(v.source)
	row.Int(int64(boolInt(v.readOnly)))
	row.Int(v.ttl)
	row.Int(v.createdAt)
	row.Int(v.updatedAt)
	row.IntOrNull(v.expiresAt)
	return row.Sum().String()
}

// mutationRow is an entry of a state's history.
type mutationRow struct {
	id                int64
	operation, detail string
	source, reason    string
	task              int64
	next              *varRow // the new row, nil if there is none
	digest            string  // of the new row
	quiet             bool    // no event
}

// mutate appends to the history and archives the replaced value. m.next gets the number
// of the mutation.
func (b *batch) mutate(ctx context.Context, st *varState, name string, old *varRow, m *mutationRow) error {
	b.cache.seq.mutation++
	m.id = b.cache.seq.mutation
	digest := ""
	if m.next != nil {
		m.next.born = m.id
		m.digest = m.next.digest(&b.in.hasher)
		digest = `","digest":"` + m.digest
	}
	if m.operation == mutRename {
		digest += `","to":"` + m.next.name
	}
	var before int64
	if old != nil {
		before = old.born
		b.vars.past = old.appendTo(append(b.vars.past, st.id, m.id))
	}
	if !m.quiet {
		b.variableEvent(st, name, m, digest)
	}
	return b.countMutation(ctx, st, name, before, m)
}

// variableEvent appends the event of a mutation. more are further fields, without the last quote.
func (b *batch) variableEvent(st *varState, name string, m *mutationRow, more string) {
	b.event(st.tree, m.task, eventOfMutation(m.operation), `{"name":`+quote(name)+`,"state_id":"`+
		StateID(st.id).String()+`","mutation_id":"`+MutationID(m.id).String()+more+`"}`)
}

// countMutation appends to the history and compacts it if it is too long.
func (b *batch) countMutation(ctx context.Context, st *varState, name string, before int64, m *mutationRow) error {
	b.appendMutation(st, name, before, m)
	st.mutations++
	st.entries++
	b.touch(st)
	if st.entries > MaxHistory {
		return b.compact(ctx, st)
	}
	return nil
}

func (b *batch) appendMutation(st *varState, name string, before int64, m *mutationRow) {
	b.vars.mutations = append(b.vars.mutations, st.id, m.id, m.operation, name, before, m.detail, m.source, m.reason,
		m.task, b.now)
}
