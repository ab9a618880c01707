package handoff_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/handoff"
)

func small() *handoff.Checkpoint {
	return &handoff.Checkpoint{SchemaVersion: 2, Work: handoff.Work{
		Phase: handoff.PhasePlanning, Blockers: []string{"a: b, c"},
		Metadata: handoff.Metadata{CreatedBy: "me \"x\"", LastUpdatedAt: at("2026-02-28T10:00:00Z"),
			Reason: handoff.ReasonManual},
	}}
}

func TestWith(t *testing.T) {
	t.Parallel()
	const one = `{"schemaVersion":2,"phase":"planning","currentStep":null,"pendingSteps":[],"completedSteps":[],` +
		`"decisions":[],"blockers":["a: b, c"],"metadata":{"createdBy":"me \"x\"","lastUpdatedAt":"2026-02-28T10:00:00Z",` +
		`"reason":"manual","previousAgents":[]}}`
	indented := func(prefix, unit, newline string) string {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(one), prefix, unit); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(b.String(), "\n", newline)
	}
	spaced := strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(one)
	tests := []struct {
		name, before, place string
		c                   *handoff.Checkpoint
		want                string
	}{
		{"insert behind members", "{\n  \"activePrd\": {\n    \"id\": \"p\"\n  }\n}\n", "prd", small(),
			"{\n  \"activePrd\": {\n    \"id\": \"p\",\n    \"checkpoint\": " + indented("    ", "  ", "\n") + "\n  }\n}\n"},
		{"tabs and CRLF", "\ufeff{\r\n\t\"activePrd\": {\r\n\t\t\"id\": 1\r\n\t}\r\n}", "prd", small(),
			"\ufeff{\r\n\t\"activePrd\": {\r\n\t\t\"id\": 1,\r\n\t\t\"checkpoint\": " + indented("\t\t", "\t", "\r\n") +
				"\r\n\t}\r\n}"},
		{"four blanks", "{\n    \"activePrd\": {\n        \"checkpoint\": null\n    }\n}\n\n", "prd", small(),
			"{\n    \"activePrd\": {\n        \"checkpoint\": " + indented("        ", "    ", "\n") + "\n    }\n}\n\n"},
		{"compact", `{"activePrd":{"checkpoint":{"old":1},"z":1e400}}`, "prd", small(),
			`{"activePrd":{"checkpoint":` + one + `,"z":1e400}}`},
		{"on one line", `{"activePrd": {"id": "p", "checkpoint": {}, "z": 12345678901234567890}}`, "prd", small(),
			`{"activePrd": {"id": "p", "checkpoint": ` + spaced + `, "z": 12345678901234567890}}`},
		{"insert on one line", `{"activePrd":{"id":"p"}}`, "prd", small(), `{"activePrd":{"id":"p","checkpoint":` + one +
			`}}`},
		{"into nothing", "{\n  \"activePrd\": {}\n}", "prd", small(),
			"{\n  \"activePrd\": {\n    \"checkpoint\": " + indented("    ", "  ", "\n") + "\n  }\n}"},
		{"into blanks", "{\n  \"activePrd\": {\n  }\n}", "prd", small(),
			"{\n  \"activePrd\": {\n    \"checkpoint\": " + indented("    ", "  ", "\n") + "\n  }\n}"},
		{"into nothing on one line", `{"activePrd":{}}`, "prd", small(), `{"activePrd":{"checkpoint": ` + spaced + `}}`},
		{"ad hoc", "{\n  \"adhocQueue\": [\n    {\"id\": \"a\"},\n    {\n      \"id\": \"b\"\n    }\n  ]\n}", "adhoc:b",
			small(),
			"{\n  \"adhocQueue\": [\n    {\"id\": \"a\"},\n    {\n      \"id\": \"b\",\n      \"checkpoint\": " +
				indented("      ", "  ", "\n") + "\n    }\n  ]\n}"},
		{"to null", "{\"activePrd\": {\n  \"checkpoint\" : {\n  } }}", "prd", nil,
			"{\"activePrd\": {\n  \"checkpoint\" : null }}"},
		{"null stays away", `{"activePrd": {}}`, "prd", nil, `{"activePrd": {}}`},
		{"the last of two", `{"activePrd": {"checkpoint": 1, "checkpoint": null}, "activePrd": {"checkpoint": 2, ` +
			`"checkpoint": null}}`, "prd", nil,
			`{"activePrd": {"checkpoint": 1, "checkpoint": null}, "activePrd": {"checkpoint": 2, "checkpoint": null}}`},
		{"heartbeat before", `{"lastHeartbeat":"x","activePrd":{"checkpoint":{}}}`, "prd", nil,
			`{"lastHeartbeat":"2026-03-01T00:00:00Z","activePrd":{"checkpoint":null}}`},
		{"heartbeat behind", `{"activePrd":{"checkpoint":{}},"lastHeartbeat":null}`, "prd", nil,
			`{"activePrd":{"checkpoint":null},"lastHeartbeat":"2026-03-01T00:00:00Z"}`},
		{"heartbeat among others", `{"a":[1],"lastHeartbeat":"x","b":{"c":[2]},"activePrd":{"checkpoint":{}},"d":3}`, "prd",
			nil,
			`{"a":[1],"lastHeartbeat":"2026-03-01T00:00:00Z","b":{"c":[2]},"activePrd":{"checkpoint":null},"d":3}`},
		{"a heartbeat that is not a time", `{"activePrd":{"checkpoint":{}},"lastHeartbeat":12}`, "prd", nil,
			`{"activePrd":{"checkpoint":null},"lastHeartbeat":12}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, err := parse(t, tt.before).With(handoff.Place(tt.place), tt.c, at("2026-03-01T01:00:00+01:00"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(d.Bytes())); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
			again, err := d.With(handoff.Place(tt.place), tt.c, at("2026-03-01T00:00:00Z"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(d.Bytes()), string(again.Bytes())); diff != "" {
				t.Errorf("writing it again changes something (-first +second):\n%s", diff)
			}
		})
	}
}

// writer makes JSON documents in many styles.
type writer struct {
	t  *rapid.T
	nl string
	b  strings.Builder
}

func (w *writer) space(depth int, lines bool) {
	if lines {
		w.b.WriteString(w.nl + strings.Repeat("\t", depth))
		return
	}
	w.b.WriteString(rapid.SampledFrom([]string{"", "", " ", "  ", w.nl + " ", "\t"}).Draw(w.t, "space"))
}

func (w *writer) scalar() {
	w.b.WriteString(rapid.SampledFrom([]string{
		"null", "true", "false", "0", "-0.0e+10", "9007199254740993", "1e999", `""`, `"\u0000\ud800"`, `"é漢😀"`,
		`"\"}{][,:"`, `"\/\b\n"`, "{}", "[ ]", "[1,[2,{}]]",
	}).Draw(w.t, "scalar"))
}

func (w *writer) key() string {
	return rapid.SampledFrom([]string{`"id"`, `"a"`, `"a"`, `"\u0061"`, `"checkpoint "`, `"Checkpoint"`, `""`,
		`"activePRD"`, `"file"`}).Draw(w.t, "key")
}

// object writes one whose member named special, if any, is written by fn.
func (w *writer) object(depth int, special string, fn func()) {
	lines := rapid.Bool().Draw(w.t, "lines")
	n := rapid.IntRange(0, 4).Draw(w.t, "members")
	where := -1
	if special != "" {
		where = rapid.IntRange(0, n).Draw(w.t, "where")
		n++
	}
	w.b.WriteString("{")
	for i := range n {
		if i > 0 {
			w.b.WriteString(",")
		}
		w.space(depth, lines)
		if i == where {
			w.b.WriteString(special)
		} else {
			w.b.WriteString(w.key())
		}
		w.space(0, false)
		w.b.WriteString(":")
		w.space(0, false)
		if i == where {
			fn()
		} else {
			w.scalar()
		}
		w.space(0, false)
	}
	w.space(depth-1, lines)
	w.b.WriteString("}")
}

func (w *writer) maybeCheckpoint(depth int) {
	special := rapid.SampledFrom([]string{"", `"checkpoint"`, `"checkp\u006fint"`}).Draw(w.t, "special")
	w.object(depth, special, w.scalar)
}

func anyDocument(t *rapid.T) (text string, place handoff.Place) {
	w := &writer{t: t, nl: rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")}
	w.b.WriteString(rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "mark") +
		rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "lead"))
	if rapid.Bool().Draw(t, "prd") {
		place = handoff.PRD
		w.object(1, `"activePrd"`, func() { w.maybeCheckpoint(2) })
	} else {
		place = handoff.Adhoc("it")
		w.object(1, `"adhocQueue"`, func() {
			w.b.WriteString(`[ {"id":"other","checkpoint":{"x":1}},`)
			w.object(3, `"id"`, func() { w.b.WriteString(`"it"`) })
			w.b.WriteString(`, 7]`)
		})
	}
	w.b.WriteString(rapid.SampledFrom([]string{"", "\n", "\r\n", " \n\n"}).Draw(t, "end"))
	return w.b.String(), place
}

// span is where a member's value stands in a text, as the standard library reads
// it; -1 when there is none.
type span struct{ from, to int }

// memberOf finds the last member of that name in the object in a span.
func memberOf(t failer, text []byte, in span, name string) span {
	t.Helper()
	found := span{-1, -1}
	if in.from < 0 || text[in.from] != '{' {
		return found
	}
	dec := json.NewDecoder(bytes.NewReader(text[in.from:in.to]))
	if _, err := dec.Token(); err != nil {
		t.Fatalf("%v", err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatalf("%v", err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			t.Fatalf("%v", err)
		}
		if key == name {
			end := in.from + int(dec.InputOffset())
			found = span{end - len(raw), end}
		}
	}
	return found
}

// checkpointOf finds the checkpoint at a place, without the code under test.
func checkpointOf(t failer, text []byte, place handoff.Place) span {
	t.Helper()
	body := bytes.TrimRight(text, " \r\n\t")
	from := bytes.IndexByte(body, '{')
	whole := span{from, len(body)}
	if place == handoff.PRD {
		return memberOf(t, text, memberOf(t, text, whole, "activePrd"), "checkpoint")
	}
	queue := memberOf(t, text, whole, "adhocQueue")
	dec := json.NewDecoder(bytes.NewReader(text[queue.from:queue.to]))
	if _, err := dec.Token(); err != nil {
		t.Fatalf("%v", err)
	}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			t.Fatalf("%v", err)
		}
		end := queue.from + int(dec.InputOffset())
		item := span{end - len(raw), end}
		if id := memberOf(t, text, item, "id"); id.from >= 0 && string(text[id.from:id.to]) == `"it"` {
			return memberOf(t, text, item, "checkpoint")
		}
	}
	return span{-1, -1}
}

// For any document and any checkpoint: nothing but the checkpoint and the
// heartbeat changes, and reading gives the checkpoint back.
func TestSplicingChangesNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, place := anyDocument(t)
		var c *handoff.Checkpoint
		if rapid.IntRange(0, 4).Draw(t, "null") > 0 {
			l := anyLedger().Draw(t, "ledger")
			l.Phase = handoff.PhaseVerification // a file with another one is refused
			made := handoff.Project(l, 0)
			c = &made
		}
		d, err := handoff.Parse("x", []byte(text))
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if _, err := d.Task(place); err != nil {
			t.Skip("the id was written a second time")
		}
		got, err := d.With(place, c, time.Time{})
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if beat, err := d.With(place, c, at("2026-03-01T00:00:00Z")); err != nil || !bytes.Equal(beat.Bytes(), got.Bytes()) {
			t.Fatalf("%v: a heartbeat that is not there changed something: %q", err, text)
		}
		wantSpliced(t, d.Bytes(), got.Bytes(), place, c)
		back, err := got.Checkpoint(place)
		if err != nil {
			t.Fatalf("%v in %q", err, got.Bytes())
		}
		if diff := cmp.Diff(c, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("reads back otherwise (-want +got):\n%s", diff)
		}
	})
}

// wantSpliced checks that after is before with nothing but the checkpoint in its
// place, byte for byte.
func wantSpliced(t failer, before, after []byte, place handoff.Place, c *handoff.Checkpoint) {
	t.Helper()
	want := "null"
	if c != nil {
		text, err := c.Compact()
		if err != nil {
			t.Fatalf("%v", err)
		}
		want = string(text)
	}
	was, is := checkpointOf(t, before, place), checkpointOf(t, after, place)
	if was.from < 0 && c == nil {
		if !bytes.Equal(before, after) {
			t.Fatalf("there was nothing to remove, but something changed:\n%q\n%q", before, after)
		}
		return
	}
	if is.from < 0 {
		t.Fatalf("no checkpoint in %q", after)
	}
	var value bytes.Buffer
	if err := json.Compact(&value, after[is.from:is.to]); err != nil || value.String() != want {
		t.Fatalf("%v: the checkpoint is\n%s\nnot\n%s", err, value.String(), want)
	}
	if was.from >= 0 {
		if is.from != was.from || !bytes.Equal(before[:was.from], after[:is.from]) ||
			!bytes.Equal(before[was.to:], after[is.to:]) {
			t.Fatalf("more than the checkpoint changed:\n%q\n%q", before, after)
		}
		return
	}
	// Inserted: without the new member, and the blanks and the comma around it,
	// the file is what it was.
	n := len(after) - len(before)
	end := is.to + len(after[is.to:]) - len(bytes.TrimLeft(after[is.to:], " \t\r\n"))
	for to := is.to; to <= end; to++ {
		if from := to - n; from >= 0 && bytes.Equal(before[:from], after[:from]) && bytes.Equal(before[from:], after[to:]) {
			added := strings.TrimLeft(string(after[from:is.from]), ", \t\r\n")
			if strings.TrimRight(added, ": ") != `"checkpoint"` {
				t.Fatalf("%q was added before the checkpoint", added)
			}
			return
		}
	}
	t.Fatalf("more than a member was added:\n%q\n%q", before, after)
}

// Two places in one file do not touch each other.
func TestWithKeepsOtherTasks(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"activePrd": {"checkpoint": {"phase": "verification"}}, "adhocQueue": [{"id": "a", "checkpoint": `+
		`{"phase": "documentation"}}, {"id": "b"}]}`)
	d, err := d.With("adhoc:b", small(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[handoff.Place]handoff.Phase{"prd": handoff.PhaseVerification,
		"adhoc:a": handoff.PhaseDocumentation, "adhoc:b": handoff.PhasePlanning} {
		if c, err := d.Checkpoint(place); err != nil || c.Phase != want {
			t.Errorf("%s: %+v, %v", place, c, err)
		}
	}
}

// A large file costs no more than its size.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat(`{"n": 123456789012345678901234567890, "t": "é\u00e9"}, `, 200_000)
	text := `{"log": [` + filler + `0], "activePrd": {"id": "p"}}`
	d, err := parse(t, text).With(handoff.PRD, small(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(d.Bytes()), `{"log": [`+filler+`0], "activePrd": {"id": "p"`) || len(text) < 10<<20 {
		t.Errorf("the %d bytes before the checkpoint changed", len(filler))
	}
}

func BenchmarkUpdateLargeFile(b *testing.B) {
	text := `{"log": [` + strings.Repeat(`{"n": 123456789012345678901234567890, "t": "é\u00e9"}, `, 200_000) +
		`0], "activePrd": {"id": "p"}}`
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := parse(b, text).With(handoff.PRD, small(), time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
}
