package record

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/perdure/perdure"
)

// EventImported tells that a loop began elsewhere.
const EventImported perdure.EventKind = "loop.imported"

// Past describes a loop that began elsewhere. It stands in the state of its row,
// as "past".
type Past struct {
	// Document is the blob with the document that it came in as, LoopID what it
	// is called there, From where that stood.
	Document string `json:"document"`
	LoopID   string `json:"loop_id"`
	From     string `json:"from,omitempty"`
	// Iteration is the highest number that was given there. Iterations up to it
	// have no snapshots.
	Iteration int       `json:"iteration"`
	At        time.Time `json:"at"`
	// FalseAlarms is how many regressions a person marked there. That keeps nothing
	// from being found here: the document may have been in an agent's reach.
	FalseAlarms int `json:"false_alarms,omitempty"`
}

// Past returns that of a loop; nil for one that began here.
func (l *Loop) Past() (*Past, error) {
	var state struct {
		Past *Past `json:"past"`
	}
	if err := json.Unmarshal(l.State, &state); err != nil {
		return nil, wrap("read loop", err)
	}
	return state.Past, nil
}

// Document returns the document that a loop came in as; CodeNotFound for one that
// began here.
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
		return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: op, Msg: fmt.Sprintf("the loop of %s began here", tree)}
	}
	blob, err := r.store.OpenBlob(ctx, past.Document)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	text, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	return text, wrap(op, err)
}
