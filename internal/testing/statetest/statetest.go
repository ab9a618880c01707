// Package statetest runs random operations on variables and checkpoints, and the same
// operations on a model of them, which is a map. Tests use it on both databases, within a
// process and across crashes of processes.
package statetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
)

// Model has the expected variables of a few states. It is used by one goroutine.
type Model struct {
	refs   []perdure.StateRef
	family []int // the first state with a number has checkpoints that cover all with it
	states []map[string]string
	marks  []mark
	// Undo permits operations that undo a rollback, which need the result of the rollback.
	Undo bool
	n    int // number of operations so far
}

// mark is a checkpoint, or a mutation that can be undone.
type mark struct {
	state int
	name  string
	saved map[int]map[string]string
}

// New returns the model of empty states. States of the same family are a tree and its tasks,
// the tree first.
func New(refs []perdure.StateRef, family []int) *Model {
	m := &Model{refs: refs, family: family, states: make([]map[string]string, len(refs))}
	for i := range m.states {
		m.states[i] = make(map[string]string)
	}
	return m
}

// Op is one operation on a store and on the model.
type Op struct {
	Text string
	// Do runs it on the store and returns its result as text.
	Do func(ctx context.Context, s *perdure.Store) string
	// Want runs it on the model and returns the expected result.
	Want func() string
	// Made reports whether the store has an operation that changes no value; nil for others.
	Made func(ctx context.Context, s *perdure.Store) (bool, error)
}

const names = 12

// Next returns a random operation.
func (m *Model) Next(r *rand.Rand) Op {
	m.n++
	i := r.IntN(len(m.refs))
	name := "v" + strconv.Itoa(r.IntN(names))
	switch k := r.IntN(100); {
	case k < 40:
		return m.set(i, name, value(r, m.n))
	case k < 55:
		return m.incr(i, name, r.IntN(7)-3)
	case k < 65:
		return m.push(i, name, strconv.Itoa(m.n))
	case k < 75:
		return m.remove(i, name)
	case k < 82:
		return m.rename(i, name, "v"+strconv.Itoa(r.IntN(names)))
	case k < 90 || len(m.marks) == 0:
		return m.save(i)
	default:
		return m.back(m.marks[r.IntN(len(m.marks))], m.Undo && r.IntN(2) == 0)
	}
}

func value(r *rand.Rand, n int) string {
	switch r.IntN(8) {
	case 0:
		return `{"n":` + strconv.Itoa(n) + `}`
	case 1:
		return `[]`
	case 2:
		return `"` + strings.Repeat("long ", perdure.MaxInlineBytes/4) + strconv.Itoa(n) + `"`
	case 3, 4, 5:
		return strconv.Itoa(r.IntN(1000))
	}
	return `"text ` + strconv.Itoa(n) + `"`
}

func outcome(err error) string {
	switch code := perdure.CodeOf(err); {
	case err == nil:
		return "done"
	case code == perdure.CodeInternal, code == perdure.CodeUnavailable, code == perdure.CodeDamaged:
		return err.Error()
	default:
		return string(code)
	}
}

func outcomeOf[T any](_ T, err error) string { return outcome(err) }

func (m *Model) set(i int, name, value string) Op {
	return Op{
		Text: fmt.Sprintf("set %s of %d to %.20s", name, i, value),
		Do: func(ctx context.Context, s *perdure.Store) string {
			return outcomeOf(s.SetVar(ctx, m.refs[i], perdure.VarSpec{Name: name, Value: json.RawMessage(value)}))
		},
		Want: func() string {
			m.states[i][name] = value
			return "done"
		},
	}
}

func (m *Model) incr(i int, name string, by int) Op {
	return Op{
		Text: fmt.Sprintf("add %d to %s of %d", by, name, i),
		Do: func(ctx context.Context, s *perdure.Store) string {
			v, err := s.IncrVar(ctx, m.refs[i], name, json.Number(strconv.Itoa(by)), perdure.Cause{})
			return outcome(err) + " " + string(v.Value)
		},
		Want: func() string {
			old, there := m.states[i][name]
			n, err := strconv.Atoi(old)
			if there && err != nil {
				return "invalid "
			}
			m.states[i][name] = strconv.Itoa(n + by)
			return "done " + m.states[i][name]
		},
	}
}

func (m *Model) push(i int, name, element string) Op {
	return Op{
		Text: fmt.Sprintf("append %s to %s of %d", element, name, i),
		Do: func(ctx context.Context, s *perdure.Store) string {
			return outcomeOf(s.AppendVar(ctx, m.refs[i], name, json.RawMessage(element), perdure.Cause{}))
		},
		Want: func() string {
			old, there := m.states[i][name]
			if !there {
				old = "[]"
			}
			if old[0] != '[' {
				return "invalid"
			}
			m.states[i][name] = strings.Replace(strings.TrimSuffix(old, "]")+","+element+"]", "[,", "[", 1)
			return "done"
		},
	}
}

func (m *Model) remove(i int, name string) Op {
	return Op{
		Text: fmt.Sprintf("delete %s of %d", name, i),
		Do: func(ctx context.Context, s *perdure.Store) string {
			return outcome(s.DeleteVar(ctx, m.refs[i], name, perdure.Cause{}))
		},
		Want: func() string {
			if _, there := m.states[i][name]; !there {
				return "not_found"
			}
			delete(m.states[i], name)
			return "done"
		},
	}
}

func (m *Model) rename(i int, from, to string) Op {
	return Op{
		Text: fmt.Sprintf("rename %s of %d to %s", from, i, to),
		Do: func(ctx context.Context, s *perdure.Store) string {
			return outcomeOf(s.RenameVar(ctx, m.refs[i], from, to, perdure.Cause{}))
		},
		Want: func() string {
			value, there := m.states[i][from]
			if !there {
				return "not_found"
			}
			if _, taken := m.states[i][to]; taken {
				return "conflict"
			}
			delete(m.states[i], from)
			m.states[i][to] = value
			return "done"
		},
	}
}

// covers returns the states that a checkpoint of one covers.
func (m *Model) covers(i int) []int {
	var list []int
	for j, f := range m.family {
		if j == i || f == m.family[i] && slices.Index(m.family, f) == i {
			list = append(list, j)
		}
	}
	return list
}

func (m *Model) save(i int) Op {
	name := "cp" + strconv.Itoa(m.n)
	return Op{
		Text: fmt.Sprintf("checkpoint %s of %d", name, i),
		Do: func(ctx context.Context, s *perdure.Store) string {
			return outcomeOf(s.SaveCheckpoint(ctx, m.refs[i], name, ""))
		},
		Made: func(ctx context.Context, s *perdure.Store) (bool, error) {
			list, err := s.Checkpoints(ctx, m.refs[i])
			return slices.ContainsFunc(list, func(c perdure.Checkpoint) bool { return c.Name == name }), err
		},
		Want: func() string {
			count := 1 // the one with which a state begins
			for _, k := range m.marks {
				if k.state == i {
					count++
				}
			}
			if count >= perdure.MaxCheckpoints {
				return "conflict"
			}
			k := mark{state: i, name: name, saved: make(map[int]map[string]string)}
			for _, j := range m.covers(i) {
				k.saved[j] = maps.Clone(m.states[j])
			}
			m.marks = append(m.marks, k)
			return "done"
		},
	}
}

// back rolls back to a checkpoint, and with undo undoes that at once.
func (m *Model) back(k mark, undo bool) Op {
	return Op{
		Text: fmt.Sprintf("roll %d back to %s, undone %v", k.state, k.name, undo),
		Do: func(ctx context.Context, s *perdure.Store) string {
			report, err := s.Rollback(ctx, m.refs[k.state], k.name, perdure.Cause{})
			if err == nil && undo {
				_, err = s.Rollback(ctx, m.refs[k.state], report.Mutation.String(), perdure.Cause{})
			}
			return outcome(err)
		},
		Want: func() string {
			for j, saved := range k.saved {
				if !undo {
					m.states[j] = maps.Clone(saved)
				}
			}
			return "done"
		},
	}
}

// Differs returns the first difference between the values of a store and the model.
func (m *Model) Differs(ctx context.Context, s *perdure.Store) error {
	for i, ref := range m.refs {
		list, err := s.Vars(ctx, ref, perdure.VarFilter{Limit: 1000})
		if err != nil {
			return err
		}
		left := maps.Clone(m.states[i])
		for _, v := range list {
			if v.Name == perdure.VarPrompt || v.Name == perdure.VarFinal {
				continue
			}
			want, there := left[v.Name]
			if delete(left, v.Name); !there {
				return fmt.Errorf("state %d has %s", i, v.Name)
			}
			if v.Value == nil { // long ones are not listed
				if v, err = s.Var(ctx, ref, v.Name); err != nil {
					return err
				}
			}
			if !bytes.Equal(v.Value, []byte(want)) {
				return fmt.Errorf("state %d: %s is %.100s, not %.100s", i, v.Name, v.Value, want)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("state %d has no %v", i, slices.Collect(maps.Keys(left)))
		}
	}
	return nil
}

// Sound returns the problems that the store's own checks find.
func Sound(ctx context.Context, s *perdure.Store) error {
	problems, err := s.Check(ctx)
	errs := []error{err}
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s: %s", p.Kind, p.Detail))
	}
	return errors.Join(errs...)
}

// Refs creates a tree with two tasks, if there is none, and returns a global state, one of a
// session, and those of the tree and its tasks, with their families.
func Refs(ctx context.Context, s *perdure.Store) ([]perdure.StateRef, []int, error) {
	tree, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "test", IdempotencyKey: "statetest"})
	if err != nil {
		return nil, nil, err
	}
	tasks, err := s.Tasks(ctx, perdure.TaskFilter{Tree: tree.ID, Parent: &tree.Root})
	if err != nil {
		return nil, nil, err
	}
	refs := []perdure.StateRef{{Scope: perdure.ScopeGlobal}, {Scope: perdure.ScopeSession, Session: "s"},
		{Scope: perdure.ScopeTree, Tree: tree.ID}}
	if len(tasks) == 0 {
		ids, err := s.Submit(ctx, tree.Root, make([]perdure.TaskSpec, 2)...)
		if err != nil {
			return nil, nil, err
		}
		tasks = []perdure.Task{{ID: ids[0]}, {ID: ids[1]}}
	}
	for _, t := range tasks {
		refs = append(refs, perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID, Task: t.ID})
	}
	return refs, []int{0, 1, 2, 2, 2}, nil
}

// Continue continues the operations of a seed after a crash of the process that acknowledged
// the first acked of them, and checks the store: it may have the operation after these, and
// no other. Continue runs operations until ctx ends, and calls ack with their number after
// each.
func Continue(ctx context.Context, s *perdure.Store, seed uint64, acked int, ack func(n int)) error {
	refs, family, err := Refs(context.WithoutCancel(ctx), s)
	if err != nil {
		return err
	}
	m, r := New(refs, family), rand.New(rand.NewPCG(seed, 1))
	for range acked {
		m.Next(r).Want()
	}
	settled := context.WithoutCancel(ctx)
	differs := m.Differs(settled, s)
	op := m.Next(r)
	made := differs != nil
	if !made && op.Made != nil {
		if made, err = op.Made(settled, s); err != nil {
			return err
		}
	}
	if made {
		op.Want()
		if err := m.Differs(settled, s); err != nil {
			return fmt.Errorf("after %d acknowledged: %w; with the next one, %s: %w", acked, differs, op.Text, err)
		}
		acked++
		ack(acked)
		op = m.Next(r)
	}
	if err := Sound(settled, s); err != nil {
		return err
	}
	for ; ctx.Err() == nil; op = m.Next(r) {
		if got, want := op.Do(settled, s), op.Want(); got != want {
			return fmt.Errorf("operation %d, %s: %s, want %s", acked, op.Text, got, want)
		}
		acked++
		ack(acked)
	}
	return nil
}
