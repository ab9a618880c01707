package loops_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
)

// seedState is the state of the seed in a form.
func seedState(t testing.TB, name string) []byte {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", "states.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// YAML says the same as JSON, and nothing of either is lost.
func TestReadState(t *testing.T) {
	t.Parallel()
	fromYAML, notes, err := loops.ReadState("state.yaml", seedState(t, "seed.yaml"))
	if err != nil || len(notes) > 0 {
		t.Fatalf("%+v, %v", notes, err)
	}
	text := seedState(t, "seed.json")
	fromJSON, notes, err := loops.ReadState("state.json", text)
	if err != nil || len(notes) > 0 {
		t.Fatalf("%+v, %v", notes, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compact.String(), string(fromJSON)); diff != "" {
		t.Errorf("something was lost (-file +read):\n%s", diff)
	}
	if diff := cmp.Diff(string(fromJSON), string(fromYAML)); diff != "" {
		t.Errorf("YAML is read otherwise (-json +yaml):\n%s", diff)
	}
	schema := allSchemas(t)
	schema.check(t, schema.state, "the state", string(fromYAML))
}

const base = `{"version":"2.0.0","loop_id":"x-a1b2c3d4","status":"paused","iteration":1,"task":"t"`

// An invalid member that the loop needs is an error with its place.
func TestReadStateRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"nothing", " \n", "x:1:1: it is empty"},
		{"a list", "[1]", "x:1:1: want an object"},
		{"cut", base + `,"progr`, "x:1:86: "},
		{"text behind", base + "}\n}", "x:2:1: "},
		{"not UTF-8", base[:40] + "\xff", "x:1:41: is not UTF-8"},
		{"another version", `{"version":"1.3.0"}`, `x:1:12: version is "1.3.0"; versions 2.x`},
		{"nothing of it", "{}", "x:1:1: there is no version; x:1:1: there is no loop_id; x:1:1: there is no status; " +
			"x:1:1: there is no iteration; x:1:1: there is no task"},
		{"a status that is none", strings.Replace(base, "paused", "asleep", 1) + "}",
			`x:1:52: status is "asleep"`},
		{"a negative number", strings.Replace(base, `"iteration":1`, `"iteration":-1`, 1) + "}",
			"x:1:73: iteration is -1, less than 0"},
		{"a task that is none", strings.Replace(base, `"task":"t"`, `"task":{}`, 1) + "}",
			"task is object, want string"},
		{"limits", base + ",\n\"configuration\":{\"max_iterations\":0,\n  \"timeout_minutes\":\"soon\"}}",
			`x:2:35: configuration.max_iterations is 0, less than 1; x:3:21: configuration.timeout_minutes is string`},
		{"a configuration that is none", base + `,"configuration":7}`,
			"configuration is integer, want object or null"},
		{"iterations", base + `,"iteration_history":[{"quality_score":1},{"iteration":"one"},7]}`,
			"iteration_history[0] has no iteration; x:1:"},
		{"a history that is none", base + `,"iteration_history":7}`, "iteration_history is integer, want array"},
		{"deep", strings.Repeat(`{"a":`, 2000), "nested deeper than"},
		{"yaml: no mapping", "- a\n- b\n", "x:1:1: want an object"},
		{"yaml: a word", "hello", "x:1:1: want an object"},
		{"yaml: broken", "version: \"2.0.0\n", "x:1:1: invalid YAML"},
		{"yaml: anchors", "version: &a \"2.0.0\"\nloop_id: *a\n", "x:1:10: an anchor (&) is not allowed here"},
		{"yaml: documents", "version: \"2.0.0\"\n---\na: 1\n", "2 YAML documents"},
		{"yaml: place", "# c\nversion: \"2.0.0\"\nloop_id: x-a1b2c3d4\nstatus: ünwell\niteration: 1\ntask: t\n",
			"x:4:9: status is"},
		{"yaml: no number", "version: \"2.0.0\"\nloop_id: x-a1b2c3d4\nstatus: paused\niteration: .inf\ntask: t\n",
			"x:4:12: the value is not supported"},
		{"yaml: deep", strings.Repeat("[", 5000), "x:1:1001: nested deeper"},
		{"yaml: many lists", "a: " + strings.Repeat("- ", 5000), "nested too deeply"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc, _, err := loops.ReadState("x", []byte(tt.text))
			if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), tt.want) || doc != nil {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// An invalid member of the history is kept under another name, and noted.
func TestReadStateCorrects(t *testing.T) {
	t.Parallel()
	text := strings.Replace(base, "x-a1b2c3d4", "My Loop", 1) +
		",\n\"regression_events\":[{\"event_id\":\"e\",\"iteration\":1,\"regression_type\":\"odd\"," +
		"\"severity\":\"high\"}],\n\"own\":{\"kept\":[1.50]}}"
	doc, notes, err := loops.ReadState("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(notes) != 3 || notes[0].Line != 2 || notes[2].Line != 1 || !strings.Contains(notes[2].Message, `"My Loop"`) {
		t.Errorf("notes: %+v", notes)
	}
	for _, want := range []string{`"own":{"kept":[1.50]}`, `"regression_events":[]`, `"regression_type":"odd"`,
		`"loop_id":"my-loop-`} {
		if !strings.Contains(string(doc), want) {
			t.Errorf("%s is not in %s", want, doc)
		}
	}
	schema := allSchemas(t)
	schema.check(t, schema.state, "the state", string(doc))
}

// FuzzReadState: whatever is read is valid, and read again the same.
func FuzzReadState(f *testing.F) {
	for _, name := range []string{"seed.yaml", "seed.json", "plain.yaml"} {
		f.Add(seedState(f, name))
	}
	f.Add([]byte(base + "}"))
	f.Add([]byte("version: \"2.0.0\"\nloop_id: x-a1b2c3d4\nstatus: paused\niteration: 0x1f\ntask: |\n  a\n  b\n? q\n" +
		": 1_000\nf: 1e3\n"))
	schemas := allSchemas(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, _, err := loops.ReadState("x", text)
		if err != nil {
			if perdure.CodeOf(err) != perdure.CodeInvalid {
				t.Fatal(err)
			}
			return
		}
		schemas.check(t, schemas.state, "the state", string(doc))
		again, notes, err := loops.ReadState("x", doc)
		if err != nil || len(notes) > 0 || !bytes.Equal(doc, again) {
			t.Fatalf("read again: %v %+v\n%s\n%s", err, notes, doc, again)
		}
	})
}
