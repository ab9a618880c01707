package tree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/perdure/perdure"
)

// The numbers of what an unwritten state begins with.
const (
	firstPrompt perdure.MutationID = iota + 1
	firstFinal
	firstCheckpoint
)

// unwrittenState returns the state of a task that has none in the store, as that of a new task
// begins: with its prompt, an open Final and the initial checkpoint. Such a task was created by
// an earlier version, imported without a state, or never changed a variable below the root.
func (x *exporter) unwrittenState(ctx context.Context, ref perdure.StateRef, task *perdure.Task,
	names map[perdure.TaskID]taskName) (*stateExport, error) {
	prompt, err := x.store.Var(ctx, ref, perdure.VarPrompt)
	if err != nil {
		return nil, err
	}
	final := perdure.Variable{Name: perdure.VarFinal, Value: json.RawMessage("null"), Type: perdure.VarNull,
		Metadata: perdure.VarMetadata{Scope: perdure.ScopeTree}, Version: firstFinal}
	prompt.Version = firstPrompt
	at := prompt.CreatedAt
	final.CreatedAt, final.UpdatedAt, prompt.UpdatedAt = at, at, at
	ref.Task = task.ID
	rec := &perdure.StateRecord{Ref: ref, CreatedAt: at, UpdatedAt: at,
		Versions: []perdure.VersionRecord{{Variable: prompt}, {Variable: final}}}
	for i := range rec.Versions {
		v := &rec.Versions[i]
		rec.Mutations = append(rec.Mutations, perdure.MutationRecord{Mutation: perdure.Mutation{ID: v.Version,
			Operation: "create", Name: v.Name, Source: v.Source, Time: at}})
	}
	rec.Checkpoints = []perdure.CheckpointRecord{{Checkpoint: perdure.Checkpoint{
		ID: perdure.CheckpointID(firstCheckpoint), Name: "initial_state", Time: at}}}
	sum := sha256.Sum256([]byte(string(ref.Tree) + " " + task.ID.String()))
	id := "state-" + hex.EncodeToString(sum[:4]) // the same in each export
	return x.exportRecord(rec, id, names)
}
