package export

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
)

// Imported is the result of an import.
type Imported struct {
	Tree  perdure.TreeID `json:"tree_id,omitempty"`
	Tasks int            `json:"tasks"`
	Calls int            `json:"calls"`
	Files int            `json:"files"`
	// Bytes is the size of the context.
	Bytes int64 `json:"bytes"`
	// Present is set if the store has the tree, or a record of it. Added counts the tasks that it
	// lacked.
	Present bool `json:"present"`
	Added   int  `json:"added"`
	// Left counts the lines by type that have no place in a record.
	Left map[string]int `json:"left,omitempty"`
}

// ImportConfig says what to import.
type ImportConfig struct {
	Store *perdure.Store
	// File is an export as [Write] wrote it. It is read twice.
	File io.ReadSeeker
	// DryRun imports nothing.
	DryRun bool
}

// IsExport reports whether a file begins as an export does.
func IsExport(in io.ReadSeeker) (bool, error) {
	head := make([]byte, 4096)
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("read export: %w", err)
	}
	var m manifest
	first, _, _ := bytes.Cut(head[:n], []byte("\n"))
	is := json.Unmarshal(first, &m) == nil && m.Format == Format
	_, err = in.Seek(0, io.SeekStart)
	return is, err
}

// Import reads an export into a record: a tree with its context, tasks, results, calls and costs, which
// is not executed. The same export is imported once; a second import completes an interrupted one.
// An export that is not complete, or lacks what a record needs, is an error with CodeInvalid.
func Import(ctx context.Context, cfg ImportConfig) (Imported, error) {
	sum, err := verify(cfg.File)
	if err != nil {
		return Imported{}, err
	}
	in := bufio.NewScanner(cfg.File)
	in.Buffer(make([]byte, 0, pieceBytes), maxLine)
	r := &importer{cfg: cfg, in: in, key: Format + ":" + sum, ids: make(map[perdure.TaskID]perdure.TaskID),
		at: make(map[perdure.TaskID]int)}
	err = r.read(ctx)
	return r.out, err
}

const (
	// maxLine bounds a line: a task with its prompt, result and output, as JSON.
	maxLine = 1 << 30
	// chunkRows bounds the tasks and calls of a transaction.
	chunkRows = 1000
)

// invalid returns the error of an export that cannot be imported.
func invalid(hint, format string, args ...any) error {
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "import", Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// verify checks the hash in the last line of an export and returns it.
func verify(in io.ReadSeeker) (string, error) {
	const hint = "export the tree again"
	size, err := in.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fmt.Errorf("read export: %w", err)
	}
	tail := make([]byte, min(size, 64<<10))
	if _, err := in.Seek(size-int64(len(tail)), io.SeekStart); err != nil {
		return "", fmt.Errorf("read export: %w", err)
	}
	if _, err := io.ReadFull(in, tail); err != nil {
		return "", fmt.Errorf("read export: %w", err)
	}
	last := tail[bytes.LastIndexByte(bytes.TrimSuffix(tail, []byte("\n")), '\n')+1:]
	var e end
	if json.Unmarshal(last, &e) != nil || e.Type != "end" || !bytes.HasSuffix(last, []byte("\n")) {
		return "", invalid(hint, "the export is truncated: its last line is missing")
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("read export: %w", err)
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, in, size-int64(len(last))); err != nil {
		return "", fmt.Errorf("read export: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != e.SHA256 {
		return "", invalid(hint, "the export was changed: its SHA-256 is %s, and its last line has %s", got, e.SHA256)
	}
	_, err = in.Seek(0, io.SeekStart)
	return e.SHA256, err
}

// inputLine is a line of an export.
type inputLine struct {
	manifest

	Tree   perdure.Tree  `json:"tree"`
	Task   perdure.Task  `json:"task"`
	Call   *perdure.Call `json:"call"`
	Name   string        `json:"name"`
	Text   *string       `json:"text"`
	Base64 *string       `json:"base64"`
}

// importer reads the lines of an export in their order.
type importer struct {
	cfg  ImportConfig
	in   *bufio.Scanner
	key  string
	out  Imported
	line inputLine
	raw  []byte
	n    int // the number of the line
	done bool

	tree    perdure.Tree
	context string // its ID in this store, as far as there is one
	source  string // its ID in the export
	chunk   []perdure.TaskRecord
	rows    int
	// at are the places of the tasks of chunk, ids the IDs of tasks in the store, by the IDs of the
	// export. present are the tasks that the store had, by parent and position.
	at      map[perdure.TaskID]int
	ids     map[perdure.TaskID]perdure.TaskID
	present map[[2]int64]perdure.TaskID
}

// next reads a line. done is set behind the last one.
func (r *importer) next() error {
	if !r.in.Scan() {
		r.done = true
		return r.in.Err()
	}
	r.n++
	r.raw, r.line = r.in.Bytes(), inputLine{}
	if err := json.Unmarshal(r.raw, &r.line); err != nil {
		return invalid("", "line %d: %s", r.n, err)
	}
	return nil
}

func (r *importer) read(ctx context.Context) error {
	if err := r.begin(ctx); err != nil || r.out.Present && r.out.Tree != "" && r.present == nil {
		return err
	}
	for !r.done {
		var err error
		switch r.line.Type {
		case "context":
			err = r.readContext(ctx)
		case "task":
			err = r.readTask(ctx)
		default:
			if r.line.Type != "end" {
				r.countOmitted(r.line.Type)
			}
			err = r.next()
		}
		if err != nil {
			return err
		}
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	if r.out.Tasks == 0 {
		return invalid("", "the export has no task")
	}
	return nil
}

func (r *importer) countOmitted(kind string) {
	if r.out.Left == nil {
		r.out.Left = make(map[string]int)
	}
	r.out.Left[kind]++
}

// begin reads the first two lines and finds the tree in the store.
func (r *importer) begin(ctx context.Context) error {
	if err := r.next(); err != nil {
		return err
	}
	first := r.line.manifest
	if first.Format != Format || first.Version != Version {
		return invalid("", "the file is no export of version %d", Version)
	}
	if err := r.next(); err != nil {
		return err
	}
	r.tree = r.line.Tree
	switch {
	case r.line.Type != "tree" || r.tree.Root == 0:
		return invalid("", "line %d is not that of a tree", r.n)
	case r.tree.Kind == perdure.KindLoop:
		return invalid("`perdure loop status "+string(r.tree.ID)+" --json` writes what `perdure loop import` continues",
			"%s is a loop, and this export of a loop cannot be imported", r.tree.ID)
	case !first.WithContext:
		return invalid("export it again without --without-context",
			"the export was made with --without-context and cannot be imported")
	}
	return cmp.Or(r.find(ctx), r.next())
}

// find looks for the tree in the store: the one that was exported, or a record of the export.
func (r *importer) find(ctx context.Context) error {
	known, err := r.cfg.Store.Tree(ctx, r.tree.ID)
	if err == nil && known.Kind != perdure.KindRecord && known.CreatedAt.Equal(r.tree.CreatedAt) {
		r.out.Tree, r.out.Present = known.ID, true
		return nil
	}
	if err != nil && !errors.Is(err, perdure.ErrNotFound) {
		return err
	}
	found, err := r.cfg.Store.ImportedKeys(ctx, []string{r.key})
	if err != nil || found[r.key] == "" {
		return err
	}
	r.out.Tree, r.out.Present = found[r.key], true
	r.present = make(map[[2]int64]perdure.TaskID)
	filter := perdure.TaskFilter{Tree: r.out.Tree, Limit: pageSize, Brief: true}
	for {
		page, err := r.cfg.Store.Tasks(ctx, filter)
		if err != nil {
			return err
		}
		for i := range page {
			r.present[[2]int64{int64(page[i].Parent), int64(page[i].Position)}] = page[i].ID
		}
		if len(page) < pageSize {
			return nil
		}
		filter.After = page[len(page)-1].ID
	}
}

// readContext packs the files of the context again.
func (r *importer) readContext(ctx context.Context) error {
	var c contextLine
	if err := json.Unmarshal(r.raw, &c); err != nil {
		return invalid("", "line %d: %s", r.n, err)
	}
	r.source = c.Context.ID
	put := func(in io.Reader) (perdure.BlobRef, error) {
		if r.cfg.DryRun || r.out.Present {
			_, err := io.Copy(io.Discard, in)
			return perdure.BlobRef{}, err
		}
		return r.cfg.Store.PutBlob(ctx, in)
	}
	m, ref, err := pack.Store(pack.Limits{}, put, r.fill)
	if err != nil {
		return err
	}
	m.Skipped, m.MoreSkipped, m.SkippedKinds = c.Skipped, c.MoreSkipped, c.SkippedKinds
	m.Notes, m.MoreNotes = c.Notes, c.MoreNotes
	r.out.Files, r.out.Bytes = len(m.Files), m.Bytes
	if r.cfg.DryRun || r.out.Present {
		return nil
	}
	raw, err := m.Encode()
	if err != nil {
		return err
	}
	spec := perdure.ContextSpec{Pack: ref, Files: int64(len(m.Files)), Bytes: m.Bytes, Tokens: m.Tokens()}
	if spec.Manifest, err = r.cfg.Store.PutBlob(ctx, bytes.NewReader(raw)); err != nil {
		return err
	}
	made, err := r.cfg.Store.PutContext(ctx, spec)
	r.context = made.ID
	return err
}

// fill adds the files whose lines follow.
func (r *importer) fill(b *pack.Builder) error {
	if err := r.next(); err != nil {
		return err
	}
	for !r.done && r.line.Type == "file" {
		name := r.line.Name
		if err := r.next(); err != nil {
			return err
		}
		if err := b.Add(name, &content{r: r}); err != nil {
			return err
		}
	}
	return nil
}

// content reads the lines of the content of a file.
type content struct {
	r    *importer
	rest []byte
}

// Read reads from the current line, up to the last one of the content.
func (c *content) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.r.done || c.r.line.Type != "content" {
			return 0, io.EOF
		}
		switch l := &c.r.line; {
		case l.Text != nil:
			c.rest = []byte(*l.Text)
		case l.Base64 != nil:
			var err error
			if c.rest, err = base64.StdEncoding.DecodeString(*l.Base64); err != nil {
				return 0, invalid("", "line %d: %s", c.r.n, err)
			}
		}
		if err := c.r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// readTask adds a task with its calls to the chunk, unless the store has it.
func (r *importer) readTask(ctx context.Context) error {
	rec := perdure.TaskRecord{Task: r.line.Task}
	old := rec.ID
	for {
		if err := r.next(); err != nil {
			return err
		}
		if r.done || r.line.Type != "call" || r.line.Call == nil {
			break
		}
		rec.Calls = append(rec.Calls, *r.line.Call)
	}
	r.out.Tasks++
	r.out.Calls += len(rec.Calls)
	parent, stored := r.ids[rec.Task.Parent]
	if known := r.present[[2]int64{int64(parent), int64(rec.Position)}]; known != 0 && (stored || rec.Task.Parent == 0) {
		r.ids[old] = known
		return nil
	}
	if rec.Task.Parent != 0 {
		place, here := r.at[rec.Task.Parent]
		if !stored && !here {
			return invalid("", "line %d: the parent of %s is not before it", r.n, old)
		}
		rec.Parent, rec.At = parent, place
	}
	if rec.Context.Source == r.source && r.context != "" {
		rec.Context.Source = r.context
	}
	r.at[old] = len(r.chunk)
	r.chunk = append(r.chunk, rec)
	r.rows += 1 + len(rec.Calls)
	if r.rows >= chunkRows {
		return r.flush(ctx)
	}
	return nil
}

// flush imports the chunk.
func (r *importer) flush(ctx context.Context) error {
	chunk := r.chunk
	if len(chunk) == 0 {
		return nil
	}
	olds := make([]perdure.TaskID, len(chunk))
	for i := range chunk {
		olds[i] = chunk[i].ID
	}
	r.out.Added += len(chunk)
	ids, err := r.write(ctx, chunk)
	if err != nil {
		return err
	}
	for i, old := range olds {
		r.ids[old] = ids[i]
	}
	r.chunk, r.rows = nil, 0
	clear(r.at)
	return nil
}

// write imports tasks, the first ones with the tree, and returns their IDs.
func (r *importer) write(ctx context.Context, chunk []perdure.TaskRecord) ([]perdure.TaskID, error) {
	if r.cfg.DryRun {
		ids := make([]perdure.TaskID, len(chunk))
		for i := range chunk {
			ids[i] = chunk[i].ID
		}
		return ids, nil
	}
	if last := chunk[len(chunk)-1].ID; last <= perdure.MaxImportID {
		if err := r.cfg.Store.ReserveTasks(ctx, last); err != nil {
			return nil, err
		}
	}
	if r.out.Tree != "" {
		return r.cfg.Store.ImportTasks(ctx, r.out.Tree, chunk)
	}
	rec := perdure.TreeRecord{Key: r.key, ID: r.tree.ID, Name: r.tree.Name, Config: r.tree.Config, Limits: r.tree.Limits,
		Partial: r.tree.Partial, Tasks: chunk}
	if r.context != "" {
		rec.Contexts = []string{r.context}
	}
	made, err := r.cfg.Store.ImportTrees(ctx, []perdure.TreeRecord{rec})
	if err != nil {
		return nil, err
	}
	if made[0].Found {
		return nil, &perdure.Error{Code: perdure.CodeConflict, Op: "import", Msg: "another process imports this export",
			Hint: "import it again"}
	}
	r.out.Tree = made[0].ID
	return made[0].Tasks, nil
}
