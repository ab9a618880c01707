package loop

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestOutputIsGathered: what is said while a write is under way goes into the next
// one, in its order and as a whole.
func TestOutputIsGathered(t *testing.T) {
	t.Parallel()
	var parts []string
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	o := newOutput(func(text string) error {
		if parts = append(parts, text); len(parts) == 1 {
			begun <- struct{}{}
			<-goOn
		}
		return nil
	})
	var said strings.Builder
	said.WriteString("first\n")
	o.say("first")
	<-begun
	for i := range 50_000 {
		line := fmt.Sprintf("line %d of ünïcode", i)
		o.say(line)
		said.WriteString(line + "\n")
	}
	close(goOn)
	o.close()
	o.say("too late")
	want := said.String()
	if got := strings.Join(parts, ""); got != want {
		t.Errorf("%d bytes are written, want %d", len(got), len(want))
	}
	if most := 2 + len(want)/maxPart; len(parts) > most {
		t.Errorf("%d writes, want at most %d", len(parts), most)
	}
	for _, part := range parts {
		if len(part) > maxPart || !utf8.ValidString(part) {
			t.Errorf("a part of %d bytes, valid text: %v", len(part), utf8.ValidString(part))
		}
	}
}

// TestOutputIsBounded: the rest is left out, and that is said.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	var kept strings.Builder
	o := newOutput(func(part string) error { kept.WriteString(part); return nil })
	for range 3 {
		o.say(strings.Repeat("x\xff\x00", maxTaken/4))
	}
	o.close()
	text := kept.String()
	if !strings.HasSuffix(text, "\n"+restLeftOut+"\n") || strings.Count(text, restLeftOut) != 1 ||
		len(text) > 2*maxTaken || !utf8.ValidString(text) {
		t.Errorf("%d bytes that end with %q", len(text), text[max(0, len(text)-100):])
	}
}

// TestOutputThatCannotBeWritten is no more than not written.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	writes := 0
	o := newOutput(func(string) error { writes++; return errors.New("lost") })
	for range 1000 {
		o.say("line")
	}
	o.close()
	if writes == 0 || writes > 1001 {
		t.Errorf("%d writes", writes)
	}
}
