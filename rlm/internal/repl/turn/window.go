package turn

import (
	"fmt"
	"strings"
)

const (
	// Whole, as [Done.Most], is all of an output.
	Whole = -1
	// Brief is how many characters of an old output are shown in a conversation that is shortened.
	Brief = 700
)

// isBrief reports whether little of the outputs is shown, as of an old turn.
func (d *Done) isBrief() bool { return d.Most > 0 && d.Most <= Brief }

// shorten returns the beginning and the end of a text that is longer than what is shown.
func (d *Done) shorten(text string) string {
	text = strings.TrimRight(text, "\n")
	runes := []rune(text)
	if d.Most <= 0 || len(runes) <= d.Most+Brief/2 { // the note has a length, too
		return text
	}
	head := d.Most * 3 / 5
	tail := d.Most - head
	note := fmt.Sprintf("%s characters are left out here", digits(int64(len(runes)-d.Most)))
	if d.Where != "" {
		note += "; " + d.Where + " has the whole message"
	}
	return string(runes[:head]) + "\n… (" + note + ") …\n" + string(runes[len(runes)-tail:])
}

// LeftOut are turns that are not shown any more, because the conversation is longer than the model
// reads.
type LeftOut struct {
	// Turns is how many, from the first one, and Summarized how many of these the model has summarised.
	Turns, Summarized int
	// Where is the expression that has them; it may be empty.
	Where string
	// Question is the question that is asked now, if it was asked in one of them.
	Question string
}

// Reply returns what is shown as the reply in the place of the turns, unless they are summarised.
func (l *LeftOut) Reply() string { return fmt.Sprintf("(My %s left out.)", turnsTo(l.Turns)) }

// turnsTo names the turns up to one, with a verb.
func turnsTo(last int) string {
	if last == 1 {
		return "turn 1 is"
	}
	return fmt.Sprintf("turns 1 to %d are", last)
}

// Message returns the message behind it.
func (l *LeftOut) Message() string {
	text := "Here " + turnsTo(l.Turns) + " left out, because the conversation is longer than what you can read at once."
	if l.Summarized > 0 {
		text += " Above, " + turnsTo(l.Summarized) + " summarised."
	}
	if l.Where != "" {
		text += " " + l.Where + " has them whole, as a list of {\"role\", \"content\"}."
	}
	text += " The variables are as the code left them: SHOW_VARS() lists them. Do not repeat what is done."
	if l.Question != "" {
		text += "\n\nThe question is now:\n\n" + l.Question
	}
	return text
}

// Summary is a request for a summary of turns.
type Summary struct {
	// Question is what is asked, Earlier the summary of the turns before First; it may be empty.
	Question, Earlier string
	First             int
	// Replies are those of the turns, Outputs the messages behind them.
	Replies []string
	Outputs []func(most int) string
	// Words is how long the summary should be at most.
	Words int
}

// SummarySystem is the system text of a request for a summary.
const SummarySystem = "You summarise the work of a model that answers a question by running code in a REPL. It " +
	"goes on from your summary, without the turns that you read."

// Prompt returns the prompt of the request in at most so many bytes, if that is possible: less of the
// turns is shown if they are long, and the first ones are left out if they are many.
func (s *Summary) Prompt(most int) string {
	var head string
	var turns []string
	for _, shown := range []int{4000, 2000, 1000, 500, 250, 120} {
		head, turns = s.head(shown), s.turns(shown)
		if length := len(head) + len(s.end()) + len(strings.Join(turns, "")); length <= most {
			return head + strings.Join(turns, "") + s.end()
		}
	}
	const note = "\n(%s are left out.)\n"
	room, skip := most-len(head)-len(s.end())-len(note)-len("1,000 turns"), len(turns)
	for skip > 0 && room >= len(turns[skip-1]) {
		skip--
		room -= len(turns[skip])
	}
	return head + fmt.Sprintf(note, count(skip, "turn")) + strings.Join(turns[skip:], "") + s.end()
}

// head returns the question and the summary before.
func (s *Summary) head(shown int) string {
	text := "The question:\n\n" + (&Done{Most: 2 * shown}).shorten(s.Question) + "\n"
	if s.Earlier != "" {
		text += fmt.Sprintf("\nThe summary of the turns before turn %d:\n%s\n", s.First, quoted(s.Earlier))
	}
	return text
}

// turns returns the turns with so many characters of each reply and half as many of each output.
func (s *Summary) turns(shown int) (list []string) {
	for i, reply := range s.Replies {
		list = append(list, fmt.Sprintf("\nTurn %d, the reply:\n%s\n\nAnd what came back:\n%s\n", s.First+i,
			quoted((&Done{Most: shown}).shorten(reply)), quoted(s.Outputs[i](shown/2))))
	}
	return list
}

// end returns what is asked.
func (s *Summary) end() string {
	return fmt.Sprintf("\nSummarise these turns in at most %s words: what was found, with exact numbers, names and "+
		"quotes; which variables hold what; what failed; what is still to be done. Write no code, and no final answer "+
		"that no code has printed.", digits(int64(s.Words)))
}
