package state

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// typed returns the lines that keys produce.
func typed(t *testing.T, keys string, words ...string) (got []string, screen string) {
	t.Helper()
	var out bytes.Buffer
	raw := 0
	in := newTypedLines(iotestOneByte{strings.NewReader(keys)}, &out,
		func(line string, pos int) (string, int, []string) { return completeWord(line, pos, words) },
		func() (func(), error) { raw++; return func() { raw-- }, nil })
	for {
		line, err := in.read("> ")
		if raw != 0 {
			t.Fatal("the terminal stays raw")
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return got, out.String()
		}
		got = append(got, line)
	}
}

// iotestOneByte returns one key at a time, as typing does.
type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

func TestTypedLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, keys string
		want       []string
	}{
		{"enter", "a = 1\rb\r", []string{"a = 1", "b"}},
		{"editing", "bc\x1b[D\x1b[Da\r", []string{"abc"}},
		{"history", "first\rsecond\r\x1b[A\x1b[A\r", []string{"first", "second", "first"}},
		{"Ctrl-C clears the line", "garbage\x1b[D\x1b[D\x03a\r", []string{"a"}},
		{"completion", "err\t + 1\r", []string{"error_count + 1"}},
		{"completion in the middle", "(err)\x1b[D\t\r", []string{"(error_count)"}},
		{"completion as far as is certain", "fi\t\t\r", []string{"final_"}},
		{"nothing to complete", "nope\t\r", []string{"nope"}},
		{"Ctrl-D ends", "a\r\x04b\r", []string{"a"}},
		{"other letters", "größe\r", []string{"größe"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, screen := typed(t, test.keys, "error_count", "final_answer", "final_report")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			offered := strings.Contains(screen, "final_answer  final_report")
			if offered != (test.name == "completion as far as is certain") {
				t.Errorf("screen %q", screen)
			}
		})
	}
}

func TestPipedLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLine+10)
	in := &pipedLines{bufio.NewReader(strings.NewReader("a\r\n\n" + long + "\nb\n" + long[:maxLine-1] + "\nlast"))}
	for _, want := range []string{"a", "", "LONG", "b", long[:maxLine-1], "last", "EOF"} {
		line, err := in.read("> ")
		switch {
		case errors.Is(err, errLongLine):
			line = "LONG"
		case errors.Is(err, io.EOF):
			line = "EOF"
		case err != nil:
			t.Fatal(err)
		}
		if line != want {
			t.Errorf("a line of %d bytes: %.20q, want %.20q", len(line), line, want)
		}
	}
}

func FuzzCompleteWord(f *testing.F) {
	f.Add("a + err", 7, "error_count,errors")
	f.Add("größe", 3, "g,gr")
	f.Add("", 0, "")
	f.Fuzz(func(t *testing.T, line string, pos int, words string) {
		if pos < 0 || pos > len(line) {
			return
		}
		got, at, _ := completeWord(line, pos, strings.Split(words, ","))
		if at < pos || at > len(got) || got[at:] != line[pos:] || !strings.HasPrefix(got, line[:pos]) {
			t.Errorf("%q at %d becomes %q at %d", line, pos, got, at)
		}
	})
}
