package perdure

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// SetVar sets a variable, and creates it if it does not exist. It fails with CodeConflict
// for a read-only variable, for one that does not have the version of IfVersion, for a new
// one in a state with [MaxVariables], and for Final of a task that cannot complete. Setting
// Final to a value other than null completes the task, and the tree if it is the root; a
// lease of the task is then lost.
func (s *Store) SetVar(ctx context.Context, ref StateRef, spec VarSpec) (Variable, error) {
	return s.changeVar(ctx, &varChange{ref: ref, spec: spec, kind: changeSet})
}

// DeleteVar removes a variable.
func (s *Store) DeleteVar(ctx context.Context, ref StateRef, name string, cause Cause) error {
	_, err := s.changeVar(ctx, &varChange{ref: ref, spec: VarSpec{Name: name, Cause: cause}, kind: changeDelete})
	return err
}

// RenameVar renames a variable. No variable may have the new name.
func (s *Store) RenameVar(ctx context.Context, ref StateRef, from, to string, cause Cause) (Variable, error) {
	return s.changeVar(ctx, &varChange{ref: ref, spec: VarSpec{Name: from, Cause: cause}, to: to, kind: changeRename})
}

// IncrVar adds to a number atomically; a missing variable counts as 0. Integers stay
// integers; IncrVar fails with CodeInvalid if the sum does not fit in 64 bits.
func (s *Store) IncrVar(ctx context.Context, ref StateRef, name string, by json.Number, cause Cause) (Variable, error) {
	return s.changeVar(ctx, &varChange{ref: ref, spec: VarSpec{Name: name, Cause: cause}, by: by, kind: changeIncr})
}

// AppendVar appends a value to an array atomically; a missing variable counts as an empty
// array. The array can have at most MaxPayloadBytes.
func (s *Store) AppendVar(ctx context.Context, ref StateRef, name string, value json.RawMessage, cause Cause) (
	Variable, error) {
	return s.changeVar(ctx, &varChange{ref: ref, spec: VarSpec{Name: name, Value: value, Cause: cause},
		kind: changeAppend})
}

// Var returns the reference to the state of the lease's own task.
func (l *Lease) Var() StateRef { return StateRef{Scope: ScopeTree, Tree: l.Tree.ID, Task: l.Task.ID} }

// SetVar is [Store.SetVar] under the lease: it fails with CodeLeaseLost after the lease was
// lost, and its change is undone if the task is run again before it completed, waited for
// children or saved a checkpoint. Setting Final of the lease's own task completes it and
// ends the lease.
func (l *Lease) SetVar(ctx context.Context, ref StateRef, spec VarSpec) (Variable, error) {
	return l.s.changeVar(ctx, &varChange{l: l, ref: ref, spec: spec, kind: changeSet})
}

// DeleteVar is [Store.DeleteVar] under the lease.
func (l *Lease) DeleteVar(ctx context.Context, ref StateRef, name string, cause Cause) error {
	_, err := l.s.changeVar(ctx, &varChange{l: l, ref: ref, spec: VarSpec{Name: name, Cause: cause}, kind: changeDelete})
	return err
}

// IncrVar is [Store.IncrVar] under the lease.
func (l *Lease) IncrVar(ctx context.Context, ref StateRef, name string, by json.Number, cause Cause) (Variable, error) {
	return l.s.changeVar(ctx, &varChange{l: l, ref: ref, spec: VarSpec{Name: name, Cause: cause}, by: by,
		kind: changeIncr})
}

// AppendVar is [Store.AppendVar] under the lease.
func (l *Lease) AppendVar(ctx context.Context, ref StateRef, name string, value json.RawMessage, cause Cause) (
	Variable, error) {
	return l.s.changeVar(ctx, &varChange{l: l, ref: ref, spec: VarSpec{Name: name, Value: value, Cause: cause},
		kind: changeAppend})
}

type changeKind int

const (
	changeSet changeKind = iota
	changeDelete
	changeRename
	changeIncr
	changeAppend
)

var changeOps = [...]string{"set variable", "delete variable", "rename variable", "increment variable",
	"append to variable"}

// varChange is one change of one variable.
type varChange struct {
	l    *Lease // nil without one
	kept bool   // it is not undone when the task of l is run again
	ref  StateRef
	key  stateKey
	kind changeKind
	spec VarSpec
	to   string // of a rename
	by   json.Number

	value  string // as JSON
	stored stored
	result stored  // the task's result, for Final
	row    *varRow // the current row, also if its time to live is over
	out    Variable
}

// final reports whether the change completes the task.
func (c *varChange) final() bool {
	return c.kind == changeSet && c.spec.Name == VarFinal && c.key.scope == sqldb.ScopeTree && c.value != "null"
}

func (s *Store) changeVar(ctx context.Context, c *varChange) (Variable, error) {
	op := changeOps[c.kind]
	var err error
	if c.key, err = c.ref.key(op); err != nil {
		return Variable{}, err
	}
	if err := c.check(op); err != nil {
		return Variable{}, err
	}
	if c.kind == changeSet {
		if c.stored, err = s.store(ctx, c.value); err != nil {
			return Variable{}, err
		}
		if c.final() {
			if c.result, err = s.store(ctx, resultText(c.value)); err != nil {
				return Variable{}, err
			}
		}
	}
	if c.l != nil && c.spec.Source == "" {
		c.spec.Source = c.l.Task.ID.String()
	}
	if err := s.w.do(ctx, c); err != nil {
		return Variable{}, err
	}
	return c.out, nil
}

func (c *varChange) check(op string) (err error) {
	switch c.kind {
	case changeSet, changeAppend:
		c.value, err = c.spec.check(op)
		return err
	case changeRename:
		if err := checkName(op, c.to); err != nil {
			return err
		}
		if c.to == VarFinal || c.to == VarPrompt || c.spec.Name == VarFinal {
			return invalidf(op, "%q and %q cannot be renamed, and no variable can get these names", VarFinal, VarPrompt)
		}
	case changeIncr:
		if _, err := strconv.ParseFloat(string(c.by), 64); err != nil {
			return invalidf(op, "%q is not a number", c.by)
		}
	case changeDelete:
	}
	if err := checkName(op, c.spec.Name); err != nil {
		return err
	}
	return c.spec.Cause.check(op)
}

func (c *varChange) apply(ctx context.Context, b *batch) error {
	op := changeOps[c.kind]
	if c.l != nil {
		if err := b.held(ctx, c.l, op); err != nil {
			return err
		}
	}
	st, err := b.findState(ctx, c.key)
	if err != nil {
		return err
	}
	old, expired, err := b.current(ctx, st, c.spec.Name)
	if err != nil {
		return err
	}
	if c.row = old; expired && c.kind != changeSet {
		old = nil
	}
	if err := c.admit(op, st, old, expired); err != nil {
		return err
	}
	var final *finalChange
	if c.final() {
		if final, err = b.mayFinish(ctx, c, st); err != nil {
			return err
		}
	}
	next, err := c.next(ctx, b, st, old)
	if err != nil {
		return err
	}
	if err := c.write(ctx, b, st, old, next); err != nil {
		return undoing(err)
	}
	if final != nil {
		return undoing(final.apply(ctx, b))
	}
	return nil
}

// undoing makes a refusal roll back the transaction, after a part of a change was made.
func undoing(err error) error {
	if _, refused := errors.AsType[*Error](err); refused {
		return &undo{err}
	}
	return err
}

// admit returns an error if the change is not allowed, before anything is changed.
func (c *varChange) admit(op string, st *varState, old *varRow, expired bool) error {
	name := c.spec.Name
	current := old != nil && !expired
	special := c.key.scope == sqldb.ScopeTree && (name == VarPrompt || name == VarFinal)
	unwritten := special && st.id == 0 // it exists without a row
	var version MutationID
	if current {
		version = MutationID(old.born)
	}
	existing := c.kind == changeDelete || c.kind == changeRename
	switch {
	case current && old.readOnly || unwritten && name == VarPrompt:
		return conflictf(op, "variable %q is read-only", name)
	case c.spec.IfVersion != nil && *c.spec.IfVersion != version:
		return &Error{Code: CodeConflict, Op: op, Hint: "it was changed meanwhile; read it again",
			Msg: "variable \"" + name + "\" has version " + version.String() + ", not " + c.spec.IfVersion.String()}
	case existing && !current && !unwritten:
		return noVar(op, name)
	case special && c.kind == changeDelete:
		return conflictf(op, "variable %q cannot be deleted", name)
	case !existing && old == nil && st.variables >= MaxVariables:
		return &Error{Code: CodeConflict, Op: op, Hint: "delete some, or keep many values in one variable of type json",
			Msg: "the state has " + itoa(st.variables) + " variables, the limit is " + itoa(MaxVariables)}
	}
	return nil
}

// next returns the new row of the variable.
func (c *varChange) next(ctx context.Context, b *batch, st *varState, old *varRow) (*varRow, error) {
	v := &varRow{name: c.spec.Name, description: c.spec.Description, source: c.spec.Source, kind: c.spec.Type,
		readOnly: c.spec.ReadOnly}
	switch c.kind {
	case changeSet:
		v.column, v.size = c.stored.column, int64(len(c.value))
		c.limit(v, b.now)
		return v, nil
	case changeIncr, changeAppend:
		text, err := b.oldText(ctx, st, old)
		if err != nil {
			return nil, err
		}
		if c.kind == changeIncr {
			c.value, err = c.sum(text)
			v.kind = VarNumber
		} else {
			c.value, err = appended(text, c.value)
			v.kind = VarArray
		}
		if err != nil {
			return nil, err
		}
		if c.limit(v, b.now); old != nil {
			v.description, v.ttl, v.expiresAt = old.description, old.ttl, old.expiresAt
		}
		v.size = int64(len(c.value))
		c.stored, err = b.s.storedRow(c.value)
		v.column = c.stored.column
		return v, err
	case changeDelete, changeRename: // write no value
	}
	return nil, nil
}

// limit sets the time to live of a variable.
func (c *varChange) limit(v *varRow, now int64) {
	ttl := c.spec.TTL
	if ttl == 0 && c.key.scope == sqldb.ScopeTemporary {
		ttl = TemporaryTTL
	}
	if ttl > 0 {
		v.ttl, v.expiresAt = ttl.Microseconds(), new(now+ttl.Microseconds())
	}
}

// oldText reads the value of a variable in the transaction, "" for none.
func (b *batch) oldText(ctx context.Context, st *varState, old *varRow) (string, error) {
	if old == nil {
		return "", nil
	}
	if hash, ok := strings.CutPrefix(old.column, payloadRef); ok {
		return b.s.payload(ctx, b.tx.QueryRow, st.payloads(), hash)
	}
	if strings.HasPrefix(old.column, refMark) {
		return "", &Error{Code: CodeInvalid, Op: "change variable", Hint: "set the whole value instead",
			Msg: "variable \"" + old.name + "\" is longer than " + itoa(MaxPayloadBytes) + " bytes"}
	}
	return old.column, nil
}

func (c *varChange) sum(text string) (string, error) {
	const op = "increment variable"
	if text == "" || text == "null" {
		text = "0"
	}
	if typeOf(text) != VarNumber {
		e := invalidf(op, "variable %q is of type %s, not number", c.spec.Name, typeOf(text))
		if _, err := strconv.ParseFloat(strings.Trim(text, `"`), 64); err == nil {
			e.Hint = "the value is text that looks like a number; set it as JSON: --json " + strings.Trim(text, `"`)
		}
		return "", e
	}
	a, errA := strconv.ParseInt(text, 10, 64)
	d, errD := c.by.Int64()
	if errA == nil && errD == nil {
		sum := a + d
		if (sum > a) != (d > 0) && d != 0 {
			return "", invalidf(op, "%s + %s is not in the range of 64-bit integers", text, c.by)
		}
		return itoa(sum), nil
	}
	x, errX := strconv.ParseFloat(text, 64)
	y, errY := c.by.Float64()
	if errX != nil || errY != nil || math.IsInf(x+y, 0) {
		return "", invalidf(op, "%s + %s is not in the range of numbers", text, c.by)
	}
	raw, err := json.Marshal(x + y)
	return string(raw), err
}

func appended(text, value string) (string, error) {
	const op = "append to variable"
	if text == "" || text == "null" {
		text = "[]"
	}
	if typeOf(text) != VarArray {
		return "", invalidf(op, "the variable is of type %s, not array", typeOf(text))
	}
	comma := ","
	if text == "[]" {
		comma = ""
	}
	out := strings.TrimSuffix(text, "]") + comma + value + "]"
	if len(out) > MaxPayloadBytes {
		return "", &Error{Code: CodeInvalid, Op: op, Hint: "append to another variable, or set the whole value",
			Msg: "the array would have " + itoa(int64(len(out))) + " bytes, the limit for appending is " +
				itoa(MaxPayloadBytes)}
	}
	return out, nil
}

// write makes the change. It is refused only if a blob was removed meanwhile.
func (c *varChange) write(ctx context.Context, b *batch, st *varState, old, next *varRow) error {
	made := st.id == 0
	if err := b.makeState(ctx, c.key, st); err != nil {
		return err
	}
	m := &mutationRow{operation: mutUpdate, source: c.spec.Source, reason: c.spec.Reason}
	if c.l != nil {
		m.task = int64(c.l.Task.ID)
		if !c.kept {
			if err := b.noteVars(ctx, c.l, st); err != nil {
				return err
			}
		}
	}
	switch c.kind {
	case changeDelete:
		m.operation = mutDelete
		return b.dropVar(ctx, st, old, m)
	case changeRename:
		return c.rename(ctx, b, st, old, m)
	case changeIncr:
		m.detail = "incr " + string(c.by)
	case changeAppend:
		m.detail = "append"
	case changeSet:
	}
	if old == nil {
		m.operation = mutCreate
	}
	if err := b.keepValue(ctx, st.payloads(), c.stored); err != nil {
		return err
	}
	var err error
	if made { // makeState may have created the variable
		err = b.putVar(ctx, st, next, m)
	} else {
		err = b.replaceVar(ctx, st, c.row, next, m)
	}
	if err != nil {
		return err
	}
	if st.expiresAt != nil && next.expiresAt != nil && *next.expiresAt > *st.expiresAt {
		st.expiresAt = next.expiresAt
	}
	c.out = next.variable(c.key.scope, st)
	c.out.Value = json.RawMessage(c.value)
	return nil
}

func (c *varChange) rename(ctx context.Context, b *batch, st *varState, old *varRow, m *mutationRow) error {
	taken, expired, err := b.current(ctx, st, c.to)
	if err != nil {
		return err
	}
	if taken != nil && !expired {
		return conflictf("rename variable", "variable %q exists already", c.to)
	}
	if taken != nil { // its time to live is over
		if err := b.dropVar(ctx, st, taken, &mutationRow{operation: mutDelete, source: "ttl"}); err != nil {
			return err
		}
	}
	next := *old
	next.name, next.updatedAt = c.to, b.now
	m.operation, m.detail, m.next = mutRename, c.to, &next
	if err := b.mutate(ctx, st, old.name, old, m); err != nil {
		return err
	}
	b.writeVar(st, old.name, nil)
	b.writeVar(st, next.name, &next)
	c.out = next.variable(c.key.scope, st)
	return nil
}

// variable returns the variable of a row, without its value.
func (v *varRow) variable(scope int64, st *varState) Variable {
	out := Variable{Name: v.name, Type: v.kind, Size: v.size, Description: v.description, Source: v.source,
		Version: MutationID(v.born), CreatedAt: micros(v.createdAt), UpdatedAt: micros(v.updatedAt),
		Accessed: v.accessed, Metadata: VarMetadata{ReadOnly: v.readOnly, Scope: scopes[scope],
			TTLSeconds: v.ttl / 1e6, ExpiresAt: timePtr(v.expiresAt)}}
	if scope == sqldb.ScopeTree {
		out.Task = TaskID(st.task)
	}
	return out
}
