package loops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// Counts counts the imported records, and those that were in the store already.
type Counts struct {
	Loops      int `json:"loops"`
	Iterations int `json:"iterations"`
	// Documents counts the imported files of loops.
	Documents         int `json:"loop_files"`
	PresentLoops      int `json:"present_loops"`
	PresentIterations int `json:"present_iterations"`
	// Settings are those of agent_persistence. Perdure does not apply them.
	Settings []Setting `json:"settings,omitempty"`
}

// importKey is the member of a task's metadata and of a tree's configuration
// that holds a mark.
const importKey = "perdure_import"

// Kinds of marks.
const (
	kindLoop      = "loop"
	kindIteration = "iteration"
	kindSettings  = "settings"
)

// mark identifies an imported record.
type mark struct {
	Kind string `json:"kind"`
	Loop string `json:"loop_id,omitempty"`
	// Given is the name of the loop's folder if that is not a valid ID.
	Given string `json:"loop_id_as_given,omitempty"`
	// Key identifies an iteration in its loop.
	Key string `json:"key,omitempty"`
	// Blobs are the documents of the root that are too long for its metadata.
	Blobs map[string]perdure.BlobRef `json:"blobs,omitempty"`
}

// rootMeta is the metadata of a loop's root.
type rootMeta struct {
	Documents map[string]json.RawMessage `json:"documents"`
	Mark      mark                       `json:"perdure_import"`
}

// iterMeta is the metadata of an iteration.
type iterMeta struct {
	Number int             `json:"iteration"`
	Record json.RawMessage `json:"record,omitempty"`
	Mark   mark            `json:"perdure_import"`
}

const (
	// maxInline is the limit of a document in the metadata of a task; longer ones are
	// blobs.
	maxInline = 64 << 10
	// chunk is the number of tasks in one transaction.
	chunk = 1000
)

// Import imports the loops of a folder into the store, each in a transaction, large
// ones in several. Records that the store has already are not changed; the next import
// completes an interrupted one.
func Import(ctx context.Context, store *perdure.Store, src Source) (Counts, error) {
	s, err := loadShapes()
	if err != nil {
		return Counts{}, err
	}
	m := &importer{Source: &src, store: store, shapes: s}
	folders := src.folders()
	for _, name := range append([]string{CurrentFile}, src.States...) {
		if l := m.lone(name, folders); l != nil {
			folders = append(folders, l)
		}
	}
	for _, l := range folders {
		if !m.read(l) {
			continue
		}
		if err := m.write(ctx, l); err != nil {
			return m.counts, fmt.Errorf("import loop %q: %w", l.folder, err)
		}
	}
	for _, name := range src.Settings {
		if err := m.settings(ctx, name); err != nil {
			return m.counts, fmt.Errorf("import %q: %w", name, err)
		}
	}
	return m.counts, nil
}

// says returns a text of the loop's state.
func (l *loop) says(key string) string { return l.docs[stateFile].Get(key).Text() }

// Get returns a member of the document, nil if there is no document.
func (d *document) Get(key string) *jsontree.Value { return d.whole().Get(key) }

func (m *importer) write(ctx context.Context, l *loop) error {
	var keys []string
	for _, id := range sameIDs(l.id) {
		keys = append(keys, ImportKey(kindLoop, id, l.says("started_at"), l.says("task")))
	}
	key := keys[0]
	have, err := m.store.ImportedKeys(ctx, keys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if id, there := have[key]; there {
			return m.update(ctx, l, id)
		}
	}
	if own, err := m.own(ctx, l); own || err != nil {
		return err
	}
	m.noteTimes(l)
	m.counts.Loops++
	m.counts.Documents += len(l.docs)
	tasks := make([]perdure.TaskRecord, 0, len(l.iters)+1)
	for _, it := range l.iters {
		tasks = append(tasks, m.iteration(l, it))
	}
	if l.running > 0 {
		tasks = append(tasks, m.unfinished(l))
	}
	for i := range tasks {
		tasks[i].Position = i
	}
	if m.DryRun {
		return nil
	}
	rec, err := m.root(ctx, l, key)
	if err != nil {
		return err
	}
	first := min(len(tasks), chunk-1)
	rec.Tasks = append(rec.Tasks, tasks[:first]...)
	out, err := m.store.ImportTrees(ctx, []perdure.TreeRecord{rec})
	if err != nil {
		return err
	}
	failpoint.Hit("import.after_loop")
	return m.add(ctx, out[0].ID, out[0].Root, tasks[first:])
}

// own reports whether a loop is the export of one that runs or ran in this store, so that
// there is nothing to add.
func (m *importer) own(ctx context.Context, l *loop) (bool, error) {
	const digits = 8
	tree, err := m.store.Tree(ctx, perdure.TreeID("tree-"+l.id[len(l.id)-digits:]))
	if perdure.CodeOf(err) == perdure.CodeNotFound {
		return false, nil
	}
	if err != nil || tree.Kind == perdure.KindRecord || l.says("tree_id") != string(tree.ID) ||
		!instant(l.docs[stateFile].Get("started_at")).Equal(tree.CreatedAt) {
		return false, err
	}
	m.counts.PresentLoops++
	m.counts.PresentIterations += len(l.iters)
	return true, nil
}

// add adds iterations to a loop of the store.
func (m *importer) add(ctx context.Context, tree perdure.TreeID, root perdure.TaskID,
	tasks []perdure.TaskRecord) error {
	for part := range slices.Chunk(tasks, chunk) {
		for i := range part {
			part[i].Parent = root
		}
		if _, err := m.store.ImportTasks(ctx, tree, part); err != nil {
			return err
		}
		failpoint.Hit("import.after_iterations")
	}
	return nil
}

// root returns the tree of a loop without its iterations.
func (m *importer) root(ctx context.Context, l *loop, key string) (perdure.TreeRecord, error) {
	meta := rootMeta{Documents: make(map[string]json.RawMessage),
		Mark: mark{Kind: kindLoop, Loop: l.id, Blobs: make(map[string]perdure.BlobRef)}}
	if l.folder != l.id {
		meta.Mark.Given = strings.ToValidUTF8(l.folder, "\uFFFD")
	}
	rec := perdure.TreeRecord{Key: key, Name: l.id,
		Config: jsontree.MustMarshal(map[string]mark{importKey: {Kind: kindLoop, Loop: l.id}})}
	for _, place := range sortedKeys(l.docs) {
		text, inline := l.docs[place].stored()
		if inline {
			meta.Documents[place] = text
			continue
		}
		ref, err := m.store.PutBlob(ctx, bytes.NewReader(text))
		if err != nil {
			return rec, err
		}
		meta.Mark.Blobs[place] = ref
		if !slices.Contains(rec.Blobs, ref) {
			rec.Blobs = append(rec.Blobs, ref)
		}
	}
	state := l.docs[stateFile]
	task := perdure.Task{Prompt: l.prompt(), State: l.state(), CreatedAt: l.createdAt(),
		StartedAt: instant(state.Get("started_at")), Output: l.summary(), Metadata: jsontree.MustMarshal(meta)}
	if task.State.Terminal() {
		task.CompletedAt = later(task.CreatedAt, l.endedAt())
	}
	switch task.State {
	case perdure.Completed:
		task.Result, task.Output = task.Output, ""
	case perdure.Failed:
		why := cmp.Or(state.Get("error_context").Get("error_message").Text(),
			state.Get("last_error").Get("error_message").Text(), state.Get("last_error").Get("error").Text())
		task.Error = &perdure.TaskError{Kind: "loop_failed", Message: clip.Prefix(why, perdure.MaxErrorBytes)}
	}
	rec.Tasks = []perdure.TaskRecord{{Task: task}}
	return rec, nil
}

// stored returns the text of a document, and whether it fits into the metadata.
func (d *document) stored() (text []byte, inline bool) {
	if d.value == nil {
		return d.bytes, false
	}
	text = d.value.Append(nil)
	return text, len(text) <= maxInline
}

func (l *loop) prompt() string {
	text := cmp.Or(l.says("task"), l.docs[analyticsFile].Get("task_description").Text(), "the loop "+l.id)
	return clip.Prefix(text, perdure.MaxPromptBytes)
}

// createdAt returns the first known time of the loop.
func (l *loop) createdAt() time.Time {
	if !l.created.IsZero() {
		return l.created
	}
	state := l.docs[stateFile]
	at := instant(state.Get("started_at"), l.docs[analyticsFile].Get("start_time"),
		state.Get("baseline_metrics").Get("captured_at"), state.Get("last_updated"))
	for _, it := range l.iters {
		if at.IsZero() {
			at = it.at()
		}
	}
	l.created = cmp.Or(at, time.UnixMicro(1).UTC())
	return l.created
}

// noteTimes notes the times that the documents of a loop lack, and what was taken instead.
func (m *importer) noteTimes(l *loop) {
	file := cmp.Or(l.lone, Folder+l.folder)
	note := func(format string, args ...any) {
		m.Note(Note{Kind: Default, File: file, Message: fmt.Sprintf(format, args...)})
	}
	begun := l.createdAt().Format(time.RFC3339)
	if instant(l.docs[stateFile].Get("started_at")).IsZero() {
		note("the loop has no started_at; its creation time was set to %s", begun)
	}
	if l.state().Terminal() && l.endedAt().IsZero() {
		note("the loop is %s and has no completed_at; it was set to %s", l.says("status"), begun)
	}
	var without []string
	for _, it := range l.iters {
		if it.at().IsZero() {
			without = append(without, strconv.Itoa(it.number))
		}
	}
	const shown = 10
	if more := len(without) - shown; more > 0 {
		without = append(without[:shown], fmt.Sprintf("and %d more", more))
	}
	if len(without) > 0 {
		note("no time of iterations: %s; it was set to %s", strings.Join(without, ", "), begun)
	}
}

// endedAt returns the time at which a loop ended, zero if it is not known.
func (l *loop) endedAt() time.Time {
	state := l.docs[stateFile]
	return instant(state.Get("completed_at"), state.Get("last_updated"), l.docs[analyticsFile].Get("end_time"))
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func (it *iteration) at() time.Time {
	check := it.files[checkpointDoc]
	return instant(it.record.Get("timestamp"), it.files[iterationDoc].Get("timestamp"), it.line.Get("timestamp"),
		check.Get("created_at"), check.Get("timestamp"))
}

// iteration returns the task of an iteration. It is completed: only a completed iteration
// has a record.
func (m *importer) iteration(l *loop, it *iteration) perdure.TaskRecord {
	m.counts.Iterations++
	m.counts.Documents += len(it.files)
	meta := iterMeta{Number: it.number, Mark: mark{Kind: kindIteration, Key: it.key()}}
	if it.record != nil {
		if raw := it.record.Append(nil); len(raw) <= maxInline {
			meta.Record = raw
		}
	}
	t := perdure.Task{Prompt: fmt.Sprintf("iteration %d", it.number), State: perdure.Completed,
		CreatedAt: later(l.createdAt(), it.at()), Metadata: jsontree.MustMarshal(meta), Result: l.verdict(it)}
	t.CompletedAt = t.CreatedAt
	if usd, err := strconv.ParseFloat(it.line.Get("token_cost_usd").Scalar(), 64); err == nil && usd > 0 && usd < 1e9 {
		t.Usage.CostUSD = usd
	}
	if ms, err := strconv.ParseFloat(it.line.Get("execution_time_ms").Scalar(), 64); err == nil && ms > 0 && ms < 1e12 {
		t.Active = time.Duration(ms*1000) * time.Microsecond
	}
	t.Data = m.data(it)
	return perdure.TaskRecord{Task: t}
}

// unfinished returns the task of the unfinished iteration, of which only the number is
// known.
func (m *importer) unfinished(l *loop) perdure.TaskRecord {
	rec := m.iteration(l, &iteration{number: l.running})
	rec.State, rec.Result, rec.CompletedAt = perdure.Running, "", time.Time{}
	return rec
}

// data returns the files of an iteration.
func (m *importer) data(it *iteration) json.RawMessage {
	docs := make(map[string]json.RawMessage, len(it.files))
	size := 64
	for _, name := range sortedKeys(it.files) {
		d := it.files[name]
		raw := d.value.Append(nil)
		if size += len(raw); size > perdure.MaxResultBytes {
			d.file.note(NotRead, -1, "not imported: the files of the iteration have more than %d bytes",
				perdure.MaxResultBytes)
			continue
		}
		docs[name] = raw
	}
	if len(docs) == 0 {
		return nil
	}
	return jsontree.MustMarshal(docs)
}
