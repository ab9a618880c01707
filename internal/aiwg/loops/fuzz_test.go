package loops_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/testing/schematest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// wrapped is a document as the published schema of its kind has it.
func wrapped(v *validators, kind string, doc []byte) (*schematest.Schema, string) {
	switch kind {
	case "iteration":
		return v.extension, `{"iteration_history":[` + string(doc) + `]}`
	case "checkpoint":
		return v.checkpoint, string(doc)
	case "analytics":
		return v.analytics, string(doc)
	case "line":
		return v.hooks, string(doc)
	}
	return v.state, string(doc)
}

func kinds() []string { return []string{"state", "iteration", "checkpoint", "analytics", "line"} }

// FuzzFit: whatever stands in a document, what is taken of it is valid under the
// published schema, and taking that again changes nothing.
func FuzzFit(f *testing.F) {
	for _, archive := range archives(f) {
		for _, file := range archive.Files {
			base := filepath.Base(file.Name)
			switch {
			case base == "state.json":
				f.Add(byte(0), file.Data)
			case strings.Contains(file.Name, "/iterations/"):
				f.Add(byte(1), file.Data)
			case strings.Contains(file.Name, "/checkpoints/"):
				f.Add(byte(2), file.Data)
			case base == "analytics.json":
				f.Add(byte(3), file.Data)
			case base == "hook-log.jsonl":
				for line := range bytes.Lines(file.Data) {
					f.Add(byte(4), line)
				}
			}
		}
	}
	v := allSchemas(f)
	fit, err := loops.FitterForTest()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, which byte, text []byte) {
		kind := kinds()[int(which)%len(kinds())]
		if !utf8.Valid(text) {
			t.Skip() // is replaced before
		}
		out, _ := fit(kind, text)
		if out == nil {
			return
		}
		s, doc := wrapped(v, kind, out)
		v.check(t, s, kind+" of "+strconv.Quote(string(text)), doc)
		if again, notes := fit(kind, out); !bytes.Equal(again, out) || len(notes) > 0 {
			t.Errorf("%q became\n%s, then\n%s: %v", text, out, again, notes)
		}
	})
}

// FuzzUnpack: whatever a packed file holds, unpacking ends, and what was packed
// here is unpacked whole and packed to the same bytes.
func FuzzUnpack(f *testing.F) {
	packed := foreignPack(f, []byte(`{"iteration":1}`))
	f.Add(packed)
	f.Add(packed[:len(packed)-9])
	f.Add(append(slices.Clone(packed), packed...))
	f.Add(append(slices.Clone(packed), "garbage"...))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := loops.UnpackForTest(text); err == nil && len(text) < 18 {
			t.Errorf("%q is whole: %q", text, got)
		}
		first := must[[]byte](t)(loops.PackForTest(text))
		if back := must[[]byte](t)(loops.UnpackForTest(first)); !bytes.Equal(back, text) {
			t.Errorf("%q came back as %q", text, back)
		}
		if second := must[[]byte](t)(loops.PackForTest(text)); !bytes.Equal(first, second) {
			t.Error("packed twice it is not the same")
		}
	})
}

// FuzzSettings: whatever stands in a file of settings, reading it ends, the
// section is a part of it, and a file of the section alone has the same one.
func FuzzSettings(f *testing.F) {
	for _, archive := range archives(f) {
		for _, file := range archive.Files {
			if file.Name == "aiwg.yml" {
				f.Add(file.Data)
			}
		}
	}
	for _, text := range []string{"agent_persistence: {enabled: true}", "agent_persistence:",
		"a: 1\n\"agent_persistence\": 2\n- x\nb: 3", "agent_persistence:\n  a: &x [1]\n  b: *x\n",
		"agent_persistence:\n\t- {", "agent_persistence: |\n  text\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		section, found, problem := loops.SettingsForTest(text)
		if !bytes.Contains(text, section) || section == nil && found != nil || problem != "" && found != nil {
			t.Errorf("%q: %q, %v, %s", text, section, found, problem)
		}
		if alone, again, _ := loops.SettingsForTest(section); section != nil &&
			(!bytes.Equal(alone, section) || len(again) != len(found)) {
			t.Errorf("%q: the section %q alone has %q, %v and %v", text, section, alone, found, again)
		}
		for _, s := range found {
			if s.Line < 1 || s.Line > bytes.Count(section, []byte("\n"))+1 {
				t.Errorf("%q: %+v is beyond the section", text, s)
			}
		}
	})
}

func number(t *testing.T, name string, byDefault int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return byDefault
	}
	return must[int](t)(strconv.Atoi(text))
}

// TestDamagedLoops imports files in which parts are missing, doubled, exchanged
// or overwritten: the store stays sound, importing again brings nothing, and
// what is exported then is valid and survives a round trip. PERDURE_DAMAGE_ROUNDS
// sets how often (20), PERDURE_DAMAGE_SEED repeats a run.
func TestDamagedLoops(t *testing.T) {
	t.Parallel()
	rounds, seed := number(t, "PERDURE_DAMAGE_ROUNDS", 10), number(t, "PERDURE_DAMAGE_SEED", int(rand.Uint32()))
	t.Logf("PERDURE_DAMAGE_SEED=%d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	all := archives(t)
	v := allSchemas(t)
	for i := range rounds {
		from := all[r.IntN(len(all))]
		files := map[string]string{"rlm/some.txt": ""}
		for _, f := range from.Files {
			if f.Name == "want" {
				continue
			}
			data := f.Data
			if strings.HasSuffix(f.Name, ".gz") && r.IntN(2) == 0 {
				data = foreignPack(t, data)
			}
			if r.IntN(3) == 0 {
				data = damaged(r, data)
			}
			files[f.Name] = string(data)
		}
		dir := folder(t, files)
		s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
		importFrom(t, s, dir)
		first := exportTo(t, s)
		v.all(t, content(t, first))
		roundTrip(t, s, dir, first)
		if t.Failed() {
			a := &txtar.Archive{}
			for name, text := range files {
				a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
			}
			t.Fatalf("round %d, the damaged files:\n%.20000s", i, txtar.Format(a))
		}
	}
}

// damaged returns the text with one part changed.
func damaged(r *rand.Rand, text []byte) []byte {
	if len(text) == 0 {
		return []byte("{")
	}
	a, b := r.IntN(len(text)), r.IntN(len(text))
	a, b = min(a, b), min(max(a, b), min(a, b)+60)
	words := []string{"null", `""`, "[]", "{}", "-1", "1e9", "1e400", "true", `"ralph-fix-tests-a1b2c3d4"`,
		`"completed"`, `"running"`, `"2030-01-01T00:00:00Z"`, `"CRITICAL"`, `"x\u0000"`, `[[]]`}
	switch r.IntN(5) {
	case 0: // cut
		return text[:a]
	case 1: // a part is missing
		return slices.Concat(text[:a], text[b:])
	case 2: // a part is doubled
		return slices.Concat(text[:b], text[a:])
	case 3: // zeros, as after a power loss
		return slices.Concat(text[:a], make([]byte, b-a), text[b:])
	}
	// A value is another one: what follows the next colon.
	at := bytes.IndexByte(text[a:], ':')
	if at < 0 {
		return text
	}
	at += a + 1
	end := bytes.IndexAny(text[at:], ",}\n")
	if end < 0 {
		return text
	}
	return slices.Concat(text[:at], []byte(words[r.IntN(len(words))]), text[at+end:])
}
