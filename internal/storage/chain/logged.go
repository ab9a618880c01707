package chain

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// logged is what the log of a tree states of rows.
type logged struct {
	rows map[Row]Sum
	gone map[Row]bool // ledgers and states that were removed with their parts
	bare map[Row]bool // events of earlier versions about the row or its whole have no digest
}

func newLogged() logged {
	return logged{rows: make(map[Row]Sum), gone: make(map[Row]bool), bare: make(map[Row]bool)}
}

const sqlNewestDigests = `SELECT e.data FROM event_block k
	JOIN event e ON ` + sqldb.SQLEventsOfBlock + `
	WHERE k.tree = $1 AND e.kind = $2 ORDER BY k.block DESC, e.seq DESC`

// Logged returns the newest digest of a row in events of [KindRows], "" if there is none or
// the row was removed. It reads the events of the tree backwards until there.
func Logged(ctx context.Context, query sqldb.QueryFunc, r Row) (digest string, err error) {
	rows, err := query(ctx, sqlNewestDigests, r.Tree, KindRows)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	name := r.Name()
	for rows.Next() {
		var data string
		var digests map[string]string
		if err := rows.Scan(&data); err != nil {
			return "", err
		}
		if json.Unmarshal([]byte(data), &digests) != nil {
			continue
		}
		if digest, ok := digests[name]; ok {
			return digest, nil
		}
	}
	return "", rows.Err()
}

// LoggedRows returns the newest digests in events of [KindRows] of all rows of a kind of a
// tree, by their numbers.
func LoggedRows(ctx context.Context, query sqldb.QueryFunc, tree int64, kind string) (map[int]string, error) {
	newest := make(map[int]string)
	err := sqldb.Each(ctx, query, func(scan sqldb.Scan) error {
		var data string
		var digests map[string]string
		if err := scan(&data); err != nil || json.Unmarshal([]byte(data), &digests) != nil {
			return err
		}
		for name, digest := range digests {
			row := parseRow(tree, name)
			if _, ok := newest[row.Number]; row.Kind == kind && !ok {
				newest[row.Number] = digest
			}
		}
		return nil
	}, sqlNewestDigests, tree, KindRows)
	return newest, err
}

// parseSum is the reverse of String; it returns the zero digest for any other text.
func parseSum(text string) (s Sum) {
	if n, err := hex.Decode(s[:], []byte(text[:min(len(text), 2*len(s))])); err != nil || n != len(s) {
		return Sum{}
	}
	return s
}

// read takes over the digests in an event.
func (l *logged) read(e *Event) {
	if e.Kind == KindRows {
		var digests map[string]string
		if json.Unmarshal([]byte(e.Data), &digests) != nil {
			return
		}
		for name, digest := range digests {
			row := parseRow(e.Tree, name)
			delete(l.gone, row)
			if l.rows[row] = parseSum(digest); digest == "" {
				delete(l.rows, row)
				l.gone[row] = true
			}
		}
		return
	}
	if subject, _, _ := strings.Cut(e.Kind, "."); subject == "task" || subject == "call" || subject == "variable" ||
		subject == "handoff" || e.Kind == "tree.created" {
		l.readAbout(e)
	}
}

// about is the data of events about a row, as far as it names the row and its digest.
type about struct {
	Digest   string `json:"digest"`
	Result   string `json:"result_digest"`
	Imported string `json:"imported"`
	Call     string `json:"call_id"`
	State    string `json:"state_id"`
	Handoff  int64  `json:"handoff_id"`
	Name     string `json:"name"`
	To       string `json:"to"`
	Digested bool   `json:"digested"`
	Prompt   string `json:"prompt_digest"`
	Final    string `json:"final_digest"`
}

// readAbout takes over the digest of the row that an event is about.
func (l *logged) readAbout(e *Event) {
	var data about
	if json.Unmarshal([]byte(e.Data), &data) != nil {
		return
	}
	row := Row{Tree: e.Tree, Number: int(e.Task)}
	switch e.Kind {
	case "tree.created":
		row.Kind, row.Number = KindVariable, number(data.State, 16)
		if row.Number == 0 {
			return // a tree of an earlier version, whose state was created later
		}
		row.Part = "prompt"
		l.note(row, data.Prompt)
		row.Part = "Final"
		l.note(row, data.Final)
	case "task.created":
		row.Kind = KindPrompt
		l.note(row, data.Digest)
		if row.Kind = KindResult; data.Imported != "" {
			l.note(row, data.Result)
		}
	case "task.completed", "task.failed", "task.cancelled":
		row.Kind = KindResult
		l.note(row, data.Digest)
	case "call.completed", "call.failed":
		row.Kind, row.Number = KindCall, number(data.Call, 10)
		l.note(row, data.Digest)
	case "variable.set":
		row.Kind, row.Number, row.Part = KindVariable, number(data.State, 16), data.Name
		l.note(row, data.Digest)
	case "variable.deleted", "variable.renamed":
		row.Kind, row.Number, row.Part = KindVariable, number(data.State, 16), data.Name
		delete(l.rows, row)
		if row.Part = data.To; row.Part != "" {
			l.note(row, data.Digest)
		}
	case "variable.imported":
		row.Kind, row.Number = KindState, number(data.State, 16)
		l.bare[row] = !data.Digested
	case "handoff.started", "handoff.updated", "handoff.ended":
		row.Kind, row.Number = KindHandoff, int(data.Handoff)
		l.bare[row] = l.bare[row] || !data.Digested
	}
}

// note records the digest of a row, or that an event has none.
func (l *logged) note(r Row, digest string) {
	if digest == "" {
		delete(l.rows, r)
		l.bare[r] = true
		return
	}
	l.rows[r] = parseSum(digest)
}

// number returns the number after the dash of an ID, 0 if there is none.
func number(id string, base int) int {
	_, digits, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseInt(digits, base, 64)
	return int(n)
}

// whole returns the ledger or the state of which a row is a part, else the row. The answer
// for a task counts as a part of the task.
func (r Row) whole() Row {
	switch r.Kind {
	case KindHandoffEntry:
		r.Kind = KindHandoff
	case KindVariable:
		r.Kind = KindState
	case KindGateAnswer:
		r.Kind = KindPrompt
	}
	r.Part = ""
	return r
}

// compareRows compares all rows with their digests in the log.
func (v *verifier) compareRows(ctx context.Context, tx *sql.Tx) error {
	err := allDigests(ctx, tx.QueryContext, func(r Row, d Digests) {
		if t := v.trees[r.Tree]; t != nil && !v.going[r.Tree] {
			t.compare(r, &d)
		}
	})
	if err != nil {
		return err
	}
	if err := sqldb.Each(ctx, tx.QueryContext, v.payload, sqlPayloads); err != nil {
		return err
	}
	return v.compareIndex(ctx, tx)
}

// compare compares a row with its digest in the log. Rows from before there were digests
// have none, and rows whose events are missing or were changed are no news.
func (t *Tree) compare(r Row, now *Digests) {
	want, ok := t.rows[r]
	broken := t.bad != 0 || t.Events > t.state.Events
	delete(t.rows, r)
	switch {
	case ok && (want == now.Sum || want == now.Older && want != (Sum{})),
		!ok && (broken || t.Unchained > 0 || t.bare[r] || t.bare[r.whole()]):
	case ok:
		t.fault(FaultRow, 0, "%s was changed outside of perdure", r.text())
	default:
		t.fault(FaultRow, 0, "%s was inserted outside of perdure", r.text())
	}
}

const sqlPayloads = `SELECT tree, hash, text, packed FROM payload`

// payload compares a long value with the hash by which the digests of rows name it.
func (v *verifier) payload(scan sqldb.Scan) error {
	var tree int64
	var hash string
	var text []byte
	var packed bool
	if err := scan(&tree, &hash, &text, &packed); err != nil {
		return err
	}
	if packed {
		value, err := v.codec.Unpack(text)
		if err != nil {
			value = "" // no value has its hash: none is this short
		}
		text = []byte(value)
	}
	t := v.trees[max(tree, 0)] // negative: of a state outside of trees
	if sum := sha256.Sum256(text); t != nil && hash != hex.EncodeToString(sum[:]) {
		t.fault(FaultRow, 0, "the long value %s was changed outside of perdure", hash)
	}
	return nil
}

const sqlBlocks = `SELECT tree, block FROM event_block`

// compareIndex compares the index of events by tree with the events: without its rows, events
// are hidden from views and from [Logged].
func (v *verifier) compareIndex(ctx context.Context, tx *sql.Tx) error {
	err := sqldb.Each(ctx, tx.QueryContext, func(scan sqldb.Scan) error {
		var tree, block int64
		err := scan(&tree, &block)
		if t := v.trees[tree]; t != nil {
			delete(t.blocks, block)
		}
		return err
	}, sqlBlocks)
	for key, t := range v.trees {
		if len(t.blocks) > 0 && !v.going[key] {
			t.fault(FaultRow, 0, "the index of events from %d on was changed outside of perdure",
				slices.Min(slices.Collect(maps.Keys(t.blocks)))*sqldb.EventBlock)
		}
	}
	return err
}
