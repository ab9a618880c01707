package loops

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// packed is the end of the names of checkpoints.
const packed = ".json.gz"

// document is a file of a loop as it was read: a value, or the bytes of a report.
type document struct {
	file  *file
	value *jsontree.Value
	bytes []byte
}

// loop is a loop as it was read.
type loop struct {
	folder string // its name in the imported folder
	lone   string // its only file if it is not in a folder of its own
	id     string // a valid ID
	files  map[string]string
	// docs are the documents by their place in the folder, without those of the
	// iterations.
	docs    map[string]*document
	iters   []*iteration
	running int // the number of the unfinished iteration, 0 for none

	created time.Time // the first result of createdAt
}

// iteration is an iteration of a loop: its record in the state, and its files.
type iteration struct {
	number int
	copy   int // 0 for the first record of the number, 1 for the second, and so on
	record *jsontree.Value
	line   *jsontree.Value // of the analytics
	files  map[string]*document
}

// Names in the data of an iteration's task.
const (
	iterationDoc  = "iteration"
	checkpointDoc = "checkpoint"
)

func (it *iteration) key() string {
	if it.copy > 0 {
		return fmt.Sprintf("%d#%d", it.number, it.copy+1)
	}
	return strconv.Itoa(it.number)
}

var (
	idPattern = lazyregexp.New(`^[a-z0-9][a-z0-9-]*-[0-9a-f]{8}$`)
	notSlug   = lazyregexp.New(`[^a-z0-9]+`)
	numbered  = lazyregexp.New(`^iteration-([0-9]{1,7})(\.json|\.json\.gz)$`)
)

// maxIDBytes is the limit of the schema.
const maxIDBytes = 200

// validID returns an ID of a loop if it is valid, else an ID that is made of it.
func validID(id string) string {
	if len(id) > maxIDBytes || !idPattern().MatchString(id) {
		return newID(id, id)
	}
	return id
}

// newID returns an ID of a loop that is made of a name and the hash of a seed.
func newID(given, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	slug := notSlug().ReplaceAllString(strings.ToLower(given), "-")
	return cmp.Or(strings.Trim(slug[:min(len(slug), 150)], "-"), "loop") + "-" + hex.EncodeToString(sum[:4])
}

// folders returns the loops of the folder by name, each with its files.
func (s *Source) folders() []*loop {
	byName := make(map[string]*loop)
	for _, name := range s.Files {
		rest, ok := strings.CutPrefix(name, Folder)
		folder, rest, inside := strings.Cut(rest, "/")
		if !ok || !inside {
			continue
		}
		l := byName[folder]
		if l == nil {
			l = &loop{folder: folder, id: validID(folder), files: make(map[string]string), docs: make(map[string]*document)}
			byName[folder] = l
		}
		l.files[rest] = name
	}
	list := make([]*loop, 0, len(byName))
	for _, name := range sortedKeys(byName) {
		list = append(list, byName[name])
	}
	return list
}

// read reads the files of a loop; it returns false if none can be imported.
func (m *importer) read(l *loop) bool {
	if l.id != l.folder {
		m.Note(Note{Kind: Corrected, File: cmp.Or(l.lone, Folder+l.folder),
			Message: fmt.Sprintf("%s is not a valid loop ID; it became %s", shown(l.folder), l.id)})
	}
	id := jsontree.NewString(l.id)
	byNumber := m.readIterations(l)
	newest := 0
	for n := range byNumber {
		newest = max(newest, n)
	}
	m.readDoc(l, stateFile, m.shapes.state, map[string]*jsontree.Value{"version": jsontree.NewString(stateVersion),
		"loop_id": id, "status": jsontree.NewString("paused"), "iteration": jsontree.NewNumber(newest)})
	m.readDoc(l, analyticsFile, m.shapes.analytics,
		map[string]*jsontree.Value{"loop_id": id, "iterations": {Kind: jsontree.Array}})
	if name, ok := l.files[hookFile]; ok {
		if d := m.lines(l, name); d != nil {
			l.docs[hookFile] = d
		}
	}
	for _, place := range reports() {
		if name, ok := l.files[place]; ok {
			if f := m.open(name); f != nil {
				l.docs[place] = &document{file: f, bytes: f.text}
			}
		}
	}
	if len(l.docs) == 0 && len(byNumber) == 0 {
		return false
	}
	if _, ok := l.files[stateFile]; !ok {
		m.Note(Note{Kind: Missing, File: Folder + l.folder + "/" + stateFile,
			Message: "the state of the loop is missing; its other files were imported"})
	}
	m.collect(l, byNumber)
	m.references(l)
	return true
}

func (m *importer) readDoc(l *loop, place string, s *shape, fallback map[string]*jsontree.Value) {
	name, ok := l.files[place]
	if !ok {
		return
	}
	if d := m.document(l, name, s, fallback); d != nil {
		l.docs[place] = d
	}
}

// readIterations reads the files of iterations.
func (m *importer) readIterations(l *loop) map[int]*iteration {
	byNumber := make(map[int]*iteration)
	for _, in := range []struct {
		folder, doc, ending string
		shape               *shape
	}{{itersFolder, iterationDoc, ".json", m.shapes.iteration},
		{checksFolder, checkpointDoc, packed, m.shapes.checkpoint}} {
		for _, place := range sortedKeys(l.files) {
			match := numbered().FindStringSubmatch(path.Base(place))
			if path.Dir(place)+"/" != in.folder || match == nil || in.doc == iterationDoc && match[2] != in.ending {
				continue
			}
			number, err := strconv.Atoi(match[1])
			if err != nil {
				continue
			}
			it := byNumber[number]
			if it == nil {
				it = &iteration{number: number, files: make(map[string]*document)}
			}
			right := in.folder + fileOf(number) + in.ending
			if _, other := l.files[right]; right != place && (other || it.files[in.doc] != nil) {
				if f := m.open(l.files[place]); f != nil {
					f.note(Left, -1, "not imported: iteration %d has another file", number)
				}
				continue
			}
			if d := m.iterationFile(l, place, in.shape, number); d != nil {
				it.files[in.doc], l.files[right] = d, l.files[place]
				byNumber[number] = it
				if right != place {
					d.file.note(Corrected, -1, "becomes %s", right)
				}
			}
		}
	}
	return byNumber
}

func fileOf(number int) string { return fmt.Sprintf("iteration-%03d", number) }

func (m *importer) iterationFile(l *loop, place string, s *shape, number int) *document {
	d := m.document(l, l.files[place], s,
		map[string]*jsontree.Value{"iteration": jsontree.NewNumber(number),
			"checkpoint_id": jsontree.NewString(fileOf(number))})
	if d == nil {
		return nil
	}
	if n, ok := iterationNumber(d.value.Get("iteration")); !ok || n != number {
		d.file.note(Corrected, d.value.Get("iteration").Start,
			"iteration is %s and the file is %s; the name of the file is used", d.value.Get("iteration").Scalar(),
			path.Base(place))
	}
	return d
}

// maxNumber is the highest number of an iteration that gets a task.
const maxNumber = 9999999

// iterationNumber reads the number of an iteration.
func iterationNumber(v *jsontree.Value) (int, bool) {
	if !v.Is(jsontree.Number) {
		return 0, false
	}
	f, err := strconv.ParseFloat(v.Scalar(), 64)
	return int(f), err == nil && f >= 0 && f <= maxNumber && f == math.Trunc(f)
}

// collect sets the iterations of a loop from all of its files. A number can have several
// records; the files and the analytics belong to the last one.
func (m *importer) collect(l *loop, byNumber map[int]*iteration) {
	take := func(n int) *iteration {
		if byNumber[n] == nil {
			byNumber[n] = &iteration{number: n}
		}
		return byNumber[n]
	}
	records := make(map[int][]*jsontree.Value)
	m.eachNumber(l, stateFile, "iteration_history", "iteration", func(n int, record *jsontree.Value) bool {
		take(n)
		records[n] = append(records[n], record)
		return len(records[n]) > 1
	})
	for _, list := range []string{"iterations", unrated} {
		m.eachNumber(l, analyticsFile, list, "iteration_number", func(n int, line *jsontree.Value) bool {
			twice := take(n).line != nil
			byNumber[n].line = line
			return twice
		})
	}
	for n, it := range byNumber {
		for i, record := range records[n] {
			if it.copy, it.record = i, record; i < len(records[n])-1 {
				l.iters = append(l.iters, &iteration{number: n, copy: i, record: record})
			}
		}
		l.iters = append(l.iters, it)
	}
	slices.SortFunc(l.iters, func(a, b *iteration) int { return cmp.Or(a.number-b.number, a.copy-b.copy) })
	m.gaps(l)
}

// eachNumber calls do for each item of a list of iterations; do reports whether the
// number is repeated.
func (m *importer) eachNumber(l *loop, place, list, key string, do func(n int, v *jsontree.Value) bool) {
	d := l.docs[place]
	if d == nil {
		return
	}
	for _, v := range d.value.Get(list).List() {
		n, ok := iterationNumber(v.Get(key))
		switch {
		case !ok:
			d.file.note(Corrected, v.Start, "%s is not a valid iteration number; the record is kept in the document only",
				shown(v.Get(key).Scalar()))
		case do(n, v):
			d.file.note(Corrected, v.Start, "iteration %d has several records; all are kept", n)
		}
	}
}

// gaps finds the unfinished iteration, and notes the iterations without a record.
func (m *importer) gaps(l *loop) {
	d := l.docs[stateFile]
	last, have := 0, 0
	if n := len(l.iters); n > 0 {
		have = l.iters[n-1].number
	}
	if d != nil {
		now, ok := iterationNumber(d.value.Get("iteration"))
		if ok && now > have && !l.state().Terminal() {
			l.running, now = now, now-1
		}
		have = max(have, now)
	}
	for i := 0; last < have; i++ {
		next := have + 1
		if i < len(l.iters) {
			next = l.iters[i].number
		}
		if next > last+1 {
			m.Note(Note{Kind: Missing, File: Folder + l.folder,
				Message: "no record of " + span(last+1, next-1)})
		}
		last = max(last, next)
	}
}

func span(from, to int) string {
	if from == to {
		return fmt.Sprintf("iteration %d", from)
	}
	return fmt.Sprintf("iterations %d to %d", from, to)
}

// references notes files of the loop that a document names and that do not exist.
func (m *importer) references(l *loop) {
	check := func(d *document, v *jsontree.Value, what string) {
		ref := v.Text()
		_, place, inside := strings.Cut(ref, Folder+l.id+"/")
		if !inside || l.files[place] != "" {
			return
		}
		d.file.note(Missing, v.Start, "%s is %s, which does not exist", what, shown(ref))
	}
	if d := l.docs[stateFile]; d != nil {
		for _, key := range []string{"last_checkpoint", "pre_iteration_snapshot", "completion_report_path"} {
			check(d, d.value.Get(key), key)
		}
		for _, key := range []string{"best_iteration", "selected_iteration"} {
			check(d, d.value.Get(key).Get("snapshot_path"), key)
		}
		for _, record := range d.value.Get("iteration_history").List() {
			check(d, record.Get("snapshot_path"), "the snapshot of iteration "+record.Get("iteration").Scalar())
		}
	}
	if d := l.docs[analyticsFile]; d != nil {
		for _, line := range d.value.Get("iterations").List() {
			check(d, line.Get("output_snapshot_path"), "the snapshot of iteration "+line.Get("iteration_number").Scalar())
		}
	}
}

// state returns the state of the loop's root task.
func (l *loop) state() perdure.State {
	states := map[string]perdure.State{"completed": perdure.Completed, "failed": perdure.Failed,
		"aborted": perdure.Cancelled}
	return cmp.Or(states[l.says("status")], perdure.Queued)
}

// instant returns the first of the values that is a time the store can keep.
func instant(values ...*jsontree.Value) time.Time {
	for _, v := range values {
		at, err := time.Parse(time.RFC3339Nano, v.Text())
		at = at.UTC().Truncate(time.Microsecond)
		if err == nil && at.Year() >= 1970 && at.UnixMicro() > 0 && at.Year() <= 9999 {
			return at
		}
	}
	return time.Time{}
}
