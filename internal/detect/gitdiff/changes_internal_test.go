package gitdiff

import (
	"testing"
)

// Any output of git is read or refused, and no name is lost.
func FuzzParse(f *testing.F) {
	const a, b = "28ce6a8b26aa170e1de65536fe8abe1832bd3242", "0000000000000000000000000000000000000000"
	f.Add(":100644 100644 " + a + " " + b + " M\x00f\x00")
	f.Add(":100644 100644 " + a + " " + a + " R100\x00f\x00g\x00:000000 100644 " + b + " " + a + " A\x00h\x00")
	f.Add(":100644 000000 " + a + " " + b + " U\x00f\x00")
	f.Add(":160000 160000 " + a + " " + b + " M\x00sub\x00")
	f.Add(":100644 100644 " + a + " " + a + " R100\x00f\x00")
	f.Add("\x00\x00")
	f.Fuzz(func(t *testing.T, out string) {
		c := &Changes{}
		if err := c.parse([]byte(out)); err != nil {
			return
		}
		for i := range c.list {
			for _, s := range []side{c.list[i].old, c.list[i].new} {
				if s.path == "" && s.mode != "" && out[len(out)-1] != 0 {
					t.Errorf("%q: a side without a name: %+v", out, s)
				}
			}
		}
	})
}

func TestParse(t *testing.T) {
	t.Parallel()
	const a, none = "28ce6a8b26aa170e1de65536fe8abe1832bd3242", "0000000000000000000000000000000000000000"
	c := &Changes{}
	err := c.parse([]byte(":100644 100644 " + a + " " + none + " M\x00here\x00:100644 100755 " + a + " " + a +
		" R090\x00from\x00to\x00" +
		":100644 000000 " + a + " " + none + " D\x00gone\x00:000000 160000 " + none + " " + a +
		" A\x00sub\x00:100644 000000 " + a + " " + none + " U\x00both\x00"))
	if err != nil {
		t.Fatal(err)
	}
	want := []change{
		{side{path: "here", mode: "100644", id: a}, side{path: "here", mode: "100644"}},
		{side{path: "from", mode: "100644", id: a}, side{path: "to", mode: "100755", id: a}},
		{side{path: "gone", mode: "100644", id: a}, side{}},
	}
	if len(c.list) != len(want) || len(c.Skipped) != 2 {
		t.Fatalf("%+v, skipped %+v", c.list, c.Skipped)
	}
	for i := range want {
		if c.list[i] != want[i] {
			t.Errorf("%+v, want %+v", c.list[i], want[i])
		}
	}
	for _, out := range []string{"x\x00f\x00", ":1 2 3 M\x00f\x00", ":100644 100644 " + a + " " + a + " R100\x00f\x00",
		":100644 100644 " + a + " " + a + " M\x00"} {
		if err := new(Changes).parse([]byte(out)); err == nil {
			t.Errorf("%q is read", out)
		}
	}
}
