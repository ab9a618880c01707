package rlm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/lookup"
	"github.com/perdure/perdure/rlm/internal/repl/record"
)

// console is the REPL of one task: its engine, and how far the task is. It outlives the
// leases of its task as long as this process holds all of them; otherwise a new one
// repeats what is recorded.
type console struct {
	conversation
	engine  engine.Session
	context *lookup.Context
	fence   int64 // of the lease under which it was used last

	// recorded are the blocks that earlier consoles of the task ran, calls the tasks of their
	// sub-calls by place. They are read when the first block begins.
	recorded []record.Block
	calls    map[place]knownCall
	read     bool

	// block is the block that runs, nil between blocks; request is what its code waits for.
	block   *record.Block
	request *engine.Request
	ordinal int
	used    map[perdure.TaskID]bool     // the sub-calls that the block received
	earlier map[string][]perdure.TaskID // those that were known when the block began, by hash
	// lost are the sub-calls of blocks that were lost, by hash, oldest first; taken those whose
	// answers others have taken over.
	lost  map[string][]perdure.TaskID
	taken map[perdure.TaskID]bool
	// delivered counts them for the message about a block that failed.
	delivered int
	next      int // the number of the next block
	// vars are the variables of the engine, versions those of the task's state that were seen.
	vars     map[string]engine.Var
	versions map[string]perdure.MutationID
	notes    []string
	// idle counts the last replies in a row without new code; changed is set if the code of this turn
	// changed a variable.
	idle    int
	changed bool
	// journal is what the journal has of the requests for replies, inCode how many messages of the
	// conversation the engine has as the variable history.
	journal *turnJournal
	inCode  int
}

// knownCall is the task of a sub-call.
type knownCall struct {
	task perdure.TaskID
	hash string
}

// place is that of a prompt of the request that the code makes now.
func (c *console) place(slot int) place {
	return place{Turn: c.block.Turn, Block: c.block.Index, Ordinal: c.ordinal, Slot: slot}
}

// readRecords reads once what earlier consoles of the task have done, if there were any.
func (c *console) readRecords(ctx context.Context, a *attempt, any bool) (err error) {
	if c.read {
		return nil
	}
	c.read, c.calls = true, make(map[place]knownCall)
	c.lost, c.taken = make(map[string][]perdure.TaskID), make(map[perdure.TaskID]bool)
	if !any {
		return nil
	}
	if c.recorded, err = a.e.blocks.Blocks(ctx, a.l.Tree.ID, a.l.Task.ID); err != nil {
		return err
	}
	children, err := a.children(ctx, a.l.Task.ID)
	if err != nil {
		return err
	}
	for i := range children {
		n, err := nodeOf(&children[i])
		if err != nil {
			return err
		}
		if n.Call != nil { // the later one of a place is that of a divergence
			c.calls[n.Call.place] = knownCall{children[i].ID, n.Call.Hash}
			c.taken[n.Call.From] = true
		}
	}
	return nil
}

// spawned notes the tasks that were created for slots of a query.
func (c *console) spawned(q *query, slots []int, ids []perdure.TaskID) {
	for i, slot := range slots {
		c.calls[c.place(slot)] = knownCall{ids[i], q.hash(q.prompts[slot])}
	}
}

// reuse returns a sub-call that an earlier run of the block made, which asked the same and is not
// used yet.
func (c *console) reuse(hash string, used map[perdure.TaskID]bool) (perdure.TaskID, bool) {
	for _, id := range c.earlier[hash] {
		if !used[id] {
			return id, true
		}
	}
	return 0, false
}

// earlierCalls returns the sub-calls that are known of a block, by what they asked, oldest first.
func (c *console) earlierCalls(turn, index int) map[string][]perdure.TaskID {
	found := make(map[string][]perdure.TaskID)
	for at, known := range c.calls {
		if at.Turn == turn && at.Block == index {
			found[known.hash] = append(found[known.hash], known.task)
		}
	}
	for _, ids := range found {
		slices.Sort(ids)
	}
	return found
}

// errTriedAgain is a sub-call that was retried after its caller was claimed.
var errTriedAgain = errors.New("a sub-call is tried again")

// ended reads a task that has ended; errTriedAgain if it has not.
func (c *console) ended(ctx context.Context, a *attempt, id perdure.TaskID) (*perdure.Task, error) {
	t, err := a.e.cfg.Store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	if !t.State.Terminal() {
		return nil, errTriedAgain
	}
	return &t, nil
}

// passLost notes the sub-calls of a block that was lost.
func (c *console) passLost(b *record.Block) {
	for hash, ids := range c.earlierCalls(b.Turn, b.Index) {
		c.lost[hash] = append(c.lost[hash], ids...)
	}
}

// recordOf returns the record of the block that is to run next, nil if it did not run before.
func (c *console) recordOf(turn, index int) *record.Block {
	at := slices.IndexFunc(c.recorded, func(b record.Block) bool { return b.Turn == turn && b.Index == index })
	if at < 0 {
		return nil
	}
	return &c.recorded[at]
}

// begin begins a block, with the clock and the seed of its record if it has one.
func (c *console) begin(ctx context.Context, a *attempt, turn, index int, code string) error {
	if err := c.readRecords(ctx, a, a.l.Fence() > 1); err != nil {
		return err
	}
	c.ordinal, c.delivered, c.used, c.request = 0, 0, make(map[perdure.TaskID]bool), nil
	c.earlier = c.earlierCalls(turn, index)
	hash := hashOf(code)
	if old := c.recordOf(turn, index); old != nil {
		if old.CodeSHA256 != hash {
			return failf(KindDiverged, "turn %d has other code than what was recorded for it", turn)
		}
		b := *old
		c.block, c.next = &b, max(c.next, b.Number+1)
		return nil
	}
	b := &record.Block{Number: c.next, Turn: turn, Index: index, CodeSHA256: hash,
		Seed: seedOf(a.l.Task.ID, turn, index)}
	if !a.recordFrom(b) {
		var err error
		if b.Edits, err = c.edits(ctx, a); err != nil {
			return err
		}
	}
	if err := a.e.blocks.Begin(ctx, a.l, b); err != nil {
		return err
	}
	c.block = b
	c.next++
	return nil
}

// seedOf returns the seed of a block that runs for the first time.
func seedOf(task perdure.TaskID, turn, index int) uint64 {
	sum := sha256.Sum256([]byte(place{Turn: turn, Block: index}.String() + task.String()))
	var seed uint64
	for _, b := range sum[:8] {
		seed = seed<<8 | uint64(b)
	}
	return seed
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// told is the record of a text that the code receives at a slot.
func (c *console) told(slot int, text string) record.Told {
	raw, err := json.Marshal(text)
	if err != nil { // a text is always JSON
		raw = json.RawMessage(`""`)
	}
	return record.Told{Ordinal: c.ordinal, Slot: slot, Value: raw}
}

// toldValue returns what the code received at a slot when it ran before.
func (c *console) toldValue(slot int) (json.RawMessage, bool) {
	for _, t := range c.block.Told {
		if t.Ordinal == c.ordinal && t.Slot == slot {
			return t.Value, true
		}
	}
	return nil, false
}

// toldText is toldValue for a text.
func (c *console) toldText(slot int) (text string, known bool) {
	raw, ok := c.toldValue(slot)
	return text, ok && json.Unmarshal(raw, &text) == nil
}

// tell records what the code is about to receive.
func (c *console) tell(ctx context.Context, a *attempt, told []record.Told) error {
	if len(told) == 0 {
		return nil
	}
	if c.block.Result != nil { // the record is complete
		c.block.Told = append(c.block.Told, told...)
		return nil
	}
	return a.e.blocks.Tell(ctx, a.l, c.block, told...)
}

// noteDivergence records that the code did something else than before.
func (c *console) noteDivergence(ctx context.Context, a *attempt, what string) error {
	return a.l.AppendEvent(ctx, record.EventDiverged,
		map[string]any{"turn": c.block.Turn, "block": c.block.Index, "what": what})
}

// close ends the engine.
func (c *console) close() error {
	if c.engine == nil {
		return nil
	}
	err := c.engine.Close()
	c.engine = nil
	return err
}

// isEngine reports whether an error is one of the engine, after which it is of no use.
func isEngine(err error) (*engine.Error, bool) { return errors.AsType[*engine.Error](err) }
