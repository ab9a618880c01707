package extract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model/extract"
)

const goText = `package shop

import (
	"fmt"
	"os"
)

// Price is what a thing costs.
// It is in cents.
type Price int

// String writes the price
// in euros.
func (p Price) String() string {
	if p < 0 {
		return "free"
	}

	return fmt.Sprintf("%d.%02d", p/100, p%100)
}

func main() {
	for _, a := range os.Args {

		fmt.Println(a)

	}
	fmt.Println(Price(250))
}
`

const pythonText = `import os

class Shop:
    """A shop sells things.

    All day long.
    """

    def __init__(self):
        self.things = []
        self.open = False
        self.till = 0
        self.name = ""

    @property
    def empty(self):
        # Nothing on the shelves?
        return not self.things
`

const shopText = `/** A shop. */
export class Shop {
  things = new Map()
  doors = 1

  async close(reason: string): Promise<void> {
    if (this.doors > 0) {
      this.log(reason)
    }
    this.things.forEach((thing) => {
      thing.store()
      this.log(thing)
    })
    this.doors = 0
    while (this.things.size > 0) {
      this.log("left")
    }
  }
  #count() {
    return this.things.size
  }
}
`

func TestPassagesAreBlocks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		file, text string
		want       []string // the first lines
	}{
		{"shop.go", goText, []string{"package shop", "// String writes the price", "func main() {"}},
		{"shop.py", pythonText, []string{"import os", "    def __init__(self):", "    @property"}},
		{"garden.md", gardenText, []string{"# The garden", "## Pests", "## Tools"}},
		{
			"long.txt", strings.Repeat("a word\n", 20) + "\n" + strings.Repeat("more words\n", 30) + "\n\nLast\n====\nend\n",
			[]string{"a word", "more words", "Last"},
		},
		{"old.c", "int\nmain(int argc)\n{\n}\n\n/* Adds. */\nint add(int a, int b) {\n" + strings.Repeat("  a++;\n", 9) +
			"}\n",
			[]string{"int", "/* Adds. */"}},
		{"shop.ts", shopText, []string{"/** A shop. */", "  async close(reason: string): Promise<void> {", "  #count() {"}},
	} {
		lines := strings.Split(tc.text, "\n")
		var got []string
		for _, p := range extract.Passages(tc.file, tc.text) {
			got = append(got, lines[p[0]-1])
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.file, diff)
		}
	}
}

func TestCutsWithoutStructureAreAtRoundLines(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 95 {
		fmt.Fprintf(&b, "%d something happened\n", i)
	}
	want := [][2]int{{1, 39}, {40, 79}, {80, 95}}
	if diff := cmp.Diff(want, extract.Passages("a.log", b.String())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	for _, same := range []string{
		"allocate allocates allocated allocating allocator allocators allocation alloc",
		"decode decoder decoding decoded decodes",
		"cache cached caches caching", "stop stops stopped stopping", "try tries tried trying",
		"use used uses using", "connect connection connections connected", "buffer buffers buffered buf",
		"verify verified verifies verifying", "run runs running runner", "class classes",
		"compress compressed compression compressor", "write writes writing writer",
	} {
		words := strings.Fields(same)
		for _, w := range words[1:] {
			if extract.Root(w) != extract.Root(words[0]) {
				t.Errorf("%s has the root %s, %s has %s", w, extract.Root(w), words[0], extract.Root(words[0]))
			}
		}
	}
	for _, w := range []string{"string", "thing", "need", "bus", "is", "a", "go", "gc", "status", "ring"} {
		if got := extract.Root(w); len(got) < len(w)-1 {
			t.Errorf("%s is cut to %s", w, got)
		}
	}
}

func TestTermsOfPrompts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		prompt string
		want   []string
	}{
		{"How does the scheduler steal work?", []string{"scheduler", "steal", "work"}},
		{"Please explain http.ServeMux", []string{"http", "servemux", "serve", "mux"}},
		{"what is it?", []string{"what", "is", "it"}},
		{"the `for` loop", []string{"for", "loop"}},
		{"", nil},
		{"...!?", nil},
	} {
		if diff := cmp.Diff(tc.want, extract.Terms(tc.prompt)); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tc.prompt, diff)
		}
	}
	var long strings.Builder
	for i := range 500 {
		long.WriteString(fmt.Sprintf("word%d ", i))
	}
	terms := extract.Terms(long.String() + "importantName")
	if len(terms) != 64 || !strings.Contains(strings.Join(terms, " "), "importantname") {
		t.Errorf("a long prompt has the terms %q", terms)
	}
}
