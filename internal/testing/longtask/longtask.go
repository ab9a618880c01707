// Package longtask is a generator of tasks over long contexts with known answers, with the
// scripted models that solve them.
//
// A context has one question of a user a line, with its date. Each line has a [Label] that is
// not printed: a reader infers it from the words. [Generate] writes a context, [Truth] counts
// it, a [Question] has an exact answer, [Sub] labels the lines of a prompt, [Root] writes
// Python that asks it, and [Server] serves both models.
package longtask

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// Label is what a line asks for. It is not part of the line.
type Label int

// Labels is the number of labels, Users that of the users, Days that of the dates.
const (
	Labels = 4
	Users  = 12
	Days   = 60
)

// String returns the name of the label.
func (l Label) String() string { return [Labels]string{"number", "person", "place", "thing"}[l] }

// cues are the words from which a label is inferred: a line has exactly one of them.
var cues = [Labels][]string{
	{"how many", "how far", "how much", "how long"},
	{"who built", "who wrote", "whose hand shaped", "who owned"},
	{"where is", "in which town is", "from where came", "on what coast is"},
	{"what is", "which tool made", "what sort of thing is", "what covers"},
}

// subjects returns the ends of lines; none contains a cue.
func subjects() []string {
	return []string{"the old bridge", "the blue café lamp", "that \"small\" letter", "the river's mill",
		"a clock of 1750", "the iron gate {left}", "the last ferry", "the straße map"}
}

// Spec describes a context. The same one gives the same bytes.
type Spec struct {
	Seed uint64
	// Bytes is the least length, Lines the least number of lines: the last line is whole.
	Bytes, Lines int64
}

// Truth counts lines by user, day and label.
type Truth struct {
	Lines  int64
	Counts [Users][Days][Labels]int64
}

// Generate writes a context, line by line, and returns its truth.
func Generate(w io.Writer, s Spec) (*Truth, error) {
	r := rand.New(rand.NewPCG(s.Seed, 1))
	out := bufio.NewWriter(w)
	t, subjects := &Truth{}, subjects()
	for written := int64(0); written < s.Bytes || t.Lines < s.Lines; {
		user, day, label := r.IntN(Users), r.IntN(Days), Label(r.IntN(Labels))
		cue, subject := cues[label][r.IntN(len(cues[label]))], subjects[r.IntN(len(subjects))]
		n, err := fmt.Fprintf(out, "%s | %s | %s %s, case %d?\n", Date(day), User(user), cue, subject, t.Lines)
		if err != nil {
			return nil, err
		}
		written += int64(n)
		t.Lines++
		t.Counts[user][day][label]++
	}
	return t, out.Flush()
}

// Date returns a day as lines have it.
func Date(day int) string {
	return time.Date(2025, 3, 1+day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

// User returns the name of a user.
func User(n int) string { return fmt.Sprintf("user%02d", n) }

// Infer returns the label of a line, by its cue.
func Infer(line string) (Label, bool) {
	for label, list := range cues {
		for _, cue := range list {
			if strings.Contains(line, "| "+cue+" ") {
				return Label(label), true
			}
		}
	}
	return 0, false
}
