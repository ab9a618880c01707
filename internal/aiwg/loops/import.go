package loops

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Counts tells what came in. What was there already is counted apart.
type Counts struct {
	Loops      int `json:"loops"`
	Iterations int `json:"iterations"`
	// Documents counts the files of loops that came in.
	Documents         int `json:"loop_files"`
	PresentLoops      int `json:"present_loops"`
	PresentIterations int `json:"present_iterations"`
	// Settings are those of agent_persistence. None of them changes what perdure
	// does.
	Settings []Setting `json:"settings,omitempty"`
}

// importKey is the member of a task's metadata and of a tree's configuration
// that says what a record was where it comes from.
const importKey = "perdure_import"

// What records of this package are.
const (
	kindLoop      = "loop"
	kindIteration = "iteration"
	kindSettings  = "settings"
)

// mark is importKey.
type mark struct {
	Kind string `json:"kind"`
	Loop string `json:"loop_id,omitempty"`
	// Given is what the loop is called where it comes from, if that is no ID.
	Given string `json:"loop_id_as_given,omitempty"`
	// Key names an iteration within its loop.
	Key string `json:"key,omitempty"`
	// Blobs are documents of the root that are too long to stand in its metadata.
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
	// maxInline bounds a document in the metadata of a task; longer ones are blobs.
	maxInline = 64 << 10
	// chunk is how many tasks go into one transaction.
	chunk = 1000
)

// Import reads the loops of a folder into the store, each in a transaction, large
// ones in several. Importing what is there already changes nothing; an import
// that was interrupted is completed by the next.
func Import(ctx context.Context, store *perdure.Store, src Source) (Counts, error) {
	s, err := loadShapes()
	if err != nil {
		return Counts{}, err
	}
	m := &importer{Source: &src, store: store, shapes: s}
	for _, l := range src.folders() {
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

// key names a loop in all imports: by what never changes about it.
func (l *loop) key() string {
	h := sha256.New()
	for _, part := range []string{kindLoop, l.id, l.says("started_at"), l.says("task")} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return "import:" + hex.EncodeToString(h.Sum(nil))[:40]
}

// says is a text of the loop's state.
func (l *loop) says(key string) string { return l.docs[stateFile].Get(key).Text() }

func (d *document) Get(key string) *jsontree.Value {
	if d == nil {
		return nil
	}
	return d.value.Get(key)
}

func (m *importer) write(ctx context.Context, l *loop) error {
	key := l.key()
	have, err := m.store.ImportedKeys(ctx, []string{key})
	if err != nil {
		return err
	}
	if id, there := have[key]; there {
		return m.again(ctx, l, id)
	}
	if own, err := m.own(ctx, l); own || err != nil {
		return err
	}
	m.counts.Loops++
	m.counts.Documents += len(l.docs)
	tasks := make([]perdure.TaskRecord, 0, len(l.iters)+1)
	for _, it := range l.iters {
		tasks = append(tasks, m.iteration(l, it))
	}
	if l.under > 0 {
		tasks = append(tasks, m.underWay(l))
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

// own tells whether a loop is one that runs or ran in this store, and was
// exported: there is nothing to add to it.
func (m *importer) own(ctx context.Context, l *loop) (bool, error) {
	const digits = 8
	tree, err := m.store.Tree(ctx, perdure.TreeID("tree-"+l.id[len(l.id)-digits:]))
	if perdure.CodeOf(err) == perdure.CodeNotFound {
		return false, nil
	}
	state := l.docs[stateFile]
	if err != nil || tree.Kind == perdure.KindRecord || l.says("tree_id") != string(tree.ID) ||
		!instant(state.Get("started_at")).Equal(tree.CreatedAt) {
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

// root is a loop as a tree without its iterations.
func (m *importer) root(ctx context.Context, l *loop, key string) (perdure.TreeRecord, error) {
	meta := rootMeta{Documents: make(map[string]json.RawMessage),
		Mark: mark{Kind: kindLoop, Loop: l.id, Blobs: make(map[string]perdure.BlobRef)}}
	if l.folder != l.id {
		meta.Mark.Given = strings.ToValidUTF8(l.folder, "\uFFFD")
	}
	rec := perdure.TreeRecord{Key: key, Name: l.id,
		Config: mustJSON(map[string]mark{importKey: {Kind: kindLoop, Loop: l.id}})}
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
	task := perdure.Task{Prompt: l.prompt(), State: l.state(), CreatedAt: l.createdAt(), Metadata: mustJSON(meta)}
	task.StartedAt = instant(l.docs[stateFile].Get("started_at"))
	if task.State.Terminal() {
		task.CompletedAt = later(task.CreatedAt,
			instant(l.docs[stateFile].Get("completed_at"), l.docs[stateFile].Get("last_updated"),
				l.docs[analyticsFile].Get("end_time")))
	}
	switch task.State {
	case perdure.Completed:
		task.Result = l.summary()
	case perdure.Failed:
		state := l.docs[stateFile]
		why := cmp.Or(state.Get("error_context").Get("error_message").Text(),
			state.Get("last_error").Get("error_message").Text(), state.Get("last_error").Get("error").Text())
		task.Error = &perdure.TaskError{Kind: "loop_failed", Message: clip.Prefix(why, perdure.MaxErrorBytes)}
		task.Output = l.summary()
	default:
		task.Output = l.summary()
	}
	rec.Tasks = []perdure.TaskRecord{{Task: task}}
	return rec, nil
}

// stored is a document as the store keeps it: in the metadata, or as a blob.
func (d *document) stored() (text []byte, inline bool) {
	if d.value == nil {
		return d.bytes, false
	}
	if text = d.value.Append(nil); len(text) <= maxInline {
		return text, true
	}
	return text, false
}

func (l *loop) prompt() string {
	text := cmp.Or(l.says("task"), l.docs[analyticsFile].Get("task_description").Text(), "the loop "+l.id)
	return clip.Prefix(text, perdure.MaxPromptBytes)
}

// createdAt is when the loop began, as far as that is known.
func (l *loop) createdAt() time.Time {
	if l.created.IsZero() {
		l.created = l.firstInstant()
	}
	return l.created
}

// firstInstant reads every iteration if none has a time.
func (l *loop) firstInstant() time.Time {
	state := l.docs[stateFile]
	at := instant(state.Get("started_at"), l.docs[analyticsFile].Get("start_time"),
		state.Get("baseline_metrics").Get("captured_at"), state.Get("last_updated"))
	for _, it := range l.iters {
		if at.IsZero() {
			at = it.at()
		}
	}
	if at.IsZero() {
		return time.UnixMicro(1).UTC()
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (it *iteration) at() time.Time {
	check := it.files[checkpointDoc]
	return instant(it.record.Get("timestamp"), it.files[iterationDoc].Get("timestamp"), it.line.Get("timestamp"),
		check.Get("created_at"), check.Get("timestamp"))
}

// iteration is one as a task. It came to an end, or nothing would be there of it.
func (m *importer) iteration(l *loop, it *iteration) perdure.TaskRecord {
	m.counts.Iterations++
	m.counts.Documents += len(it.files)
	created := l.createdAt()
	meta := iterMeta{Number: it.number, Mark: mark{Kind: kindIteration, Key: it.key()}}
	if it.record != nil {
		if raw := it.record.Append(nil); len(raw) <= maxInline {
			meta.Record = raw
		}
	}
	t := perdure.Task{Prompt: fmt.Sprintf("iteration %d", it.number), State: perdure.Completed,
		CreatedAt: later(created, it.at()), Metadata: mustJSON(meta), Result: l.verdict(it)}
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

// underWay is the iteration of which nothing is there but its number.
func (m *importer) underWay(l *loop) perdure.TaskRecord {
	rec := m.iteration(l, &iteration{number: l.under})
	rec.State, rec.Result, rec.CompletedAt = perdure.Running, "", time.Time{}
	return rec
}

// data are the files of an iteration.
func (m *importer) data(it *iteration) json.RawMessage {
	docs := make(map[string]json.RawMessage, len(it.files))
	size := 64
	for _, name := range sortedKeys(it.files) {
		d := it.files[name]
		raw := d.value.Append(nil)
		if size += len(raw); size > perdure.MaxResultBytes {
			d.file.note(NotRead, -1, "is, with the other file of the iteration, longer than %d bytes; it was not taken",
				perdure.MaxResultBytes)
			continue
		}
		docs[name] = raw
	}
	if len(docs) == 0 {
		return nil
	}
	return mustJSON(docs)
}

// mustJSON encodes what cannot fail to be encoded.
func mustJSON(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
