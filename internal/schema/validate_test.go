package schema_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/testing/schematest"
	"github.com/perdure/perdure/internal/text/jsontree"
)

func names(t testing.TB) (list []string) {
	t.Helper()
	entries, err := schema.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, strings.TrimSuffix(e.Name(), ".json"))
	}
	return list
}

func checker(t testing.TB) *schema.Checker {
	t.Helper()
	c, err := schema.NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func faults(t testing.TB, c *schema.Checker, name, text string) []schema.Fault {
	t.Helper()
	v, err := jsontree.Parse([]byte(text), jsontree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Faults(name, v)
}

// mutated is a document with one value changed, removed or added.
func mutated(r *rand.Rand, v any) any {
	odd := []any{nil, true, -1.0, 1.5, "x", "2026-13-01T00:00:00Z", "", []any{}, map[string]any{}, []any{nil}}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		switch n := r.IntN(10); {
		case len(keys) > 0 && n < 7:
			key := keys[r.IntN(len(keys))]
			v[key] = mutated(r, v[key])
		case len(keys) > 0 && n < 9:
			delete(v, keys[r.IntN(len(keys))])
		default:
			v["an odd name"] = odd[r.IntN(len(odd))]
		}
		return v
	case []any:
		if len(v) > 0 && r.IntN(4) > 0 {
			i := r.IntN(len(v))
			v[i] = mutated(r, v[i])
			return v
		}
	}
	return odd[r.IntN(len(odd))]
}

// The checker finds faults exactly where a strict validator does, in the examples of the
// published schemas and in changed ones.
func TestFaultsAgreeWithValidator(t *testing.T) {
	t.Parallel()
	c := checker(t)
	changed := 0
	for _, name := range names(t) {
		s := schematest.Published(t, name)
		r := rand.New(rand.NewPCG(1, uint64(len(name))))
		examples, _ := s.Doc["examples"].([]any)
		for _, example := range examples {
			raw := string(jsontree.MustMarshal(example))
			if got := faults(t, c, name, raw); len(got) > 0 {
				t.Errorf("example of %s: %+v", name, got)
			}
			for range 150 {
				var v any
				if err := json.Unmarshal([]byte(raw), &v); err != nil {
					t.Fatal(err)
				}
				for range 1 + r.IntN(3) {
					v = mutated(r, v)
				}
				text := string(jsontree.MustMarshal(v))
				err := s.ValidateJSON([]byte(text))
				if got := faults(t, c, name, text); (err == nil) != (len(got) == 0) {
					t.Fatalf("%s: %.2000s\nvalidator: %v\nfaults: %+v", name, text, err, got)
				}
				if err != nil {
					changed++
				}
			}
		}
	}
	if changed < 1000 {
		t.Errorf("only %d documents were invalid", changed)
	}
}

// Each fault names the field and its place.
func TestFaultsNameFields(t *testing.T) {
	t.Parallel()
	c := checker(t)
	for text, want := range map[string]string{
		`{"tasks":[]}`: "0 version is missing",
		`{"version":1,"tasks":[{"id":"t","prompt":"p","state":"done","createdAt":"2026-01-01T00:00:00Z","metadata":{}}]}`: `28 ` +
			`tasks[0].id is "t", which does not match ^task-[0-9]{4,}$; 53 tasks[0].state is "done", want "queued", "running", ` +
			`"completed", "failed", "cancelled"`,
		`{"version":"1","tasks":[]}`: `11 version is "1", want 1`,
		`{"version":1,"tasks":7}`:    "21 tasks is number, want array",
	} {
		var got []string
		for _, f := range faults(t, c, "tasks-file", text) {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s %s", f.Offset, f.Field, f.Message)))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s:\n%s, want\n%s", text, strings.Join(got, "; "), want)
		}
	}
}

func FuzzFaults(f *testing.F) {
	c := checker(f)
	all := names(f)
	for i, name := range all {
		examples, _ := schematest.Published(f, name).Doc["examples"].([]any)
		for _, example := range examples {
			f.Add(uint8(i), string(jsontree.MustMarshal(example)))
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, text string) {
		v, err := jsontree.Parse([]byte(text), jsontree.Options{})
		if err != nil {
			t.Skip()
		}
		for _, fault := range c.Faults(all[int(i)%len(all)], v) {
			if fault.Offset < 0 || fault.Offset > len(text) || fault.Message == "" {
				t.Errorf("%+v", fault)
			}
		}
	})
}

// A repeated member is a fault with its place, also in a document that is valid otherwise.
func TestRepeatedMembers(t *testing.T) {
	t.Parallel()
	v, err := jsontree.Parse([]byte(`{"a": [{"b": 1, "c": {"d": 1, "d": 2}, "b": 3}], "e": {"b": 1}}`), jsontree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range schema.Repeated(v) {
		got = append(got, fmt.Sprintf("%s %s at %d", f.Field, f.Message, f.Offset))
	}
	if want := []string{"a[0].c.d is repeated at 35", "a[0].b is repeated at 44"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A long name is cut between characters.
func TestLongNames(t *testing.T) {
	t.Parallel()
	v, err := jsontree.Parse([]byte(`{"x`+strings.Repeat("é", 100)+`": {"a": 1, "a": 2}}`), jsontree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `"x` + strings.Repeat("é", 29) + `".a`
	if got := schema.Repeated(v); len(got) != 1 || got[0].Field != want {
		t.Errorf("%+v, want the field %s", got, want)
	}
}

// The pattern of times is compiled once, not for each time of a large file.
//
//nolint:paralleltest // counts allocations
func TestTimesAreCheckedCheaply(t *testing.T) {
	c := checker(t)
	times := func(n int) *jsontree.Value {
		task := `{"id":"task-0001","prompt":"p","state":"queued","createdAt":"2026-01-01T00:00:00Z","metadata":{}}`
		v, err := jsontree.Parse([]byte(`{"version":1,"tasks":[`+strings.Repeat(task+",", n-1)+task+`]}`), jsontree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	const more, most = 100, 60
	count := func(v *jsontree.Value) float64 {
		return testing.AllocsPerRun(3, func() {
			if got := c.Faults("tasks-file", v); len(got) > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	if each := (count(times(1+more)) - count(times(1))) / more; each > most {
		t.Errorf("%.0f allocations for each task, want at most %d", each, most)
	}
}
