package record

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/perdure/perdure"
)

// EventImported is appended to a loop that was imported.
const EventImported perdure.EventKind = "loop.imported"

// Past describes where an imported loop comes from. It is the field "past" of the
// state of its row.
type Past struct {
	// Document is the blob with the imported document, LoopID the loop's ID in it,
	// From the path of the document.
	Document string `json:"document"`
	LoopID   string `json:"loop_id"`
	From     string `json:"from,omitempty"`
	// Iteration is the last iteration of the document. The imported iterations have
	// no snapshots.
	Iteration int       `json:"iteration"`
	At        time.Time `json:"at"`
	// FalseAlarms counts the regressions that were marked in the document. They are
	// reported nevertheless: an agent may have written the document.
	FalseAlarms int `json:"false_alarms,omitempty"`
}

// Past returns where a loop was imported from, nil for one that was not.
func (l *Loop) Past() (*Past, error) {
	var state struct {
		Past *Past `json:"past"`
	}
	if err := json.Unmarshal(l.State, &state); err != nil {
		return nil, wrap("read loop", err)
	}
	return state.Past, nil
}

// Document returns the document that a loop was imported from. It fails with
// CodeNotFound for a loop that was not imported.
func (r *Records) Document(ctx context.Context, tree perdure.TreeID) (json.RawMessage, error) {
	const op = "read document of loop"
	l, err := r.Loop(ctx, tree)
	if err != nil {
		return nil, err
	}
	past, err := l.Past()
	if err != nil {
		return nil, err
	}
	if past == nil {
		return nil, refuse(perdure.CodeNotFound, op, "", "the loop of %s was not imported", tree)
	}
	blob, err := r.store.OpenBlob(ctx, past.Document)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	text, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	return text, wrap(op, err)
}
