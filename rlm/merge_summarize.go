package rlm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/texts"
)

// piece is a text to be summarized: the result of one part, or the summary of
// several.
type piece struct {
	first, last int // numbers of the parts, from 1
	of          int
	file        string // in a batch
	task        perdure.TaskID
	text        string
}

// pieceFrame is about how many bytes stand around a piece, without the name of
// its file.
const pieceFrame = 60

// maxPieceFile bounds the name of a file before a piece, and leastReductionRoom
// is the least room for pieces with which levels of calls come to an end.
const (
	maxPieceFile       = 200
	leastReductionRoom = 2 * minRoomTokens
)

func (p *piece) tokens() int64 {
	return model.EstimateTokens(len(p.text) + len(p.file) + pieceFrame)
}

func (p *piece) title() string {
	switch {
	case p.first != p.last:
		return fmt.Sprintf("results %d to %d of %d, put together", p.first, p.last, p.of)
	case p.file != "":
		return fmt.Sprintf("result %d of %d: %q", p.first, p.of, p.file)
	}
	return fmt.Sprintf("result %d of %d", p.first, p.of)
}

// summarize has a model write one result from those of the parts: in one call
// where they fit its window, else in levels of calls, each over as many
// neighbours as fit.
func (a *attempt) summarize(ctx context.Context, m *merger, parts []part) (string, Data, error) {
	data := m.gather(parts)
	pieces := piecesOf(parts)
	if len(pieces) == 0 {
		return texts.Union(textsOf(parts)), data, nil
	}
	if len(pieces) == 1 {
		return pieces[0].text, data, nil
	}
	by := a.writer()
	room := a.run.cfg.reductionRoom(by, m.prompt)
	if m.level && total(pieces) <= room/int64(a.run.cfg.MaxChildren) {
		return texts.Concatenate(textsOfPieces(pieces)), data, nil
	}
	if room < leastReductionRoom {
		return "", data, failf(KindPlan, "summarize: beside prompt and answer there is no room for results in the window of model %q", by.name)
	}
	s := &summary{a: a, m: m, by: by, data: &data}
	text, err := s.run(ctx, pieces, room)
	if outOfBudget(err) {
		data.Incomplete = true
		data.addNotes([]string{"the budget ended before the results were summarized; they are put together as they are: " + err.Error()})
		return texts.Union(textsOf(parts)), data, nil
	}
	return text, data, err
}

// summary is one merge by summarize.
type summary struct {
	a    *attempt
	m    *merger
	by   *asked
	data *Data
	// divisible tells that what is asked now can be asked with less.
	divisible bool
}

// run makes levels of calls until one text is left. After the first level no
// piece is larger than half of the room, so each level at least halves their
// number. When the model finds a request too long, what is left is done with half
// of the room.
func (s *summary) run(ctx context.Context, pieces []piece, room int64) (string, error) {
	limit := room
	for {
		s.cut(pieces, limit)
		groups := group(pieces, room)
		s.divisible = room/2 >= leastReductionRoom
		if len(groups) == 1 {
			text, err := s.write(ctx, groups[0])
			if !s.divisible || !tooLong(err) {
				return text, err
			}
			room, limit = room/2, room/2
			continue
		}
		next := make([][]piece, len(groups))
		positions := make([]int, len(groups)) // 0: the piece goes on as it is
		for i, g := range groups {
			next[i] = g
			if len(g) > 1 || g[0].tokens() > room/2 {
				positions[i] = s.a.positions(1)
			}
		}
		notes := make([][]string, len(groups))
		long := make([]bool, len(groups)) // each is one goroutine's
		err := s.a.sideBySide(len(groups), func(i int) error {
			if positions[i] == 0 {
				return nil
			}
			short, told, err := s.shorten(ctx, positions[i], groups[i])
			if long[i] = s.divisible && tooLong(err); long[i] {
				return nil // its pieces are left for smaller groups
			}
			next[i], notes[i] = []piece{short}, told
			return err
		})
		if err != nil {
			return "", err
		}
		for _, n := range notes {
			s.data.addNotes(n)
		}
		pieces, limit = slices.Concat(next...), room/2
		if slices.Contains(long, true) {
			room = limit
		}
	}
}

// cut takes out the middle of pieces that are larger than a model reads at
// once.
func (s *summary) cut(pieces []piece, limit int64) {
	for i := range pieces {
		p := &pieces[i]
		had := p.tokens()
		if had <= limit {
			continue
		}
		p.text = texts.WithoutMiddle(p.text, max(0, int(limit)*4-len(p.file)-pieceFrame))
		where := p.title()
		if p.task != 0 {
			where += fmt.Sprintf(" (task %q)", p.task)
		}
		s.data.addNotes([]string{fmt.Sprintf("%s has about %d tokens and model %q reads %d of one result at once: its middle was "+
			"left out of the summary", where, had, s.by.name, limit)})
	}
}

// group deals pieces, in their order, to as few calls as their sizes allow when
// each call takes as many as fit.
func group(pieces []piece, room int64) [][]piece {
	var groups [][]piece
	var used int64
	for i := range pieces {
		n := pieces[i].tokens()
		if len(groups) == 0 || used+n > room {
			groups = append(groups, nil)
			used = 0
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], pieces[i])
		used += n
	}
	return groups
}

// shorten makes one piece of several that stand side by side.
func (s *summary) shorten(ctx context.Context, position int, group []piece) (piece, []string, error) {
	first, last := group[0], group[len(group)-1]
	by := *s.by
	by.quiet = true
	text, data, err := s.a.ask(ctx, position, &by, s.request(group, shortenInstruction))
	if err != nil {
		return piece{}, nil, err
	}
	out := piece{first: first.first, last: last.last, of: first.of, text: text}
	if len(group) == 1 {
		out.file, out.task = first.file, first.task
	}
	return out, data.Notes, nil
}

// write makes the result of the last pieces.
func (s *summary) write(ctx context.Context, group []piece) (string, error) {
	ask := s.a.askWhole
	if s.m.files {
		ask = s.a.ask // what is structured are the results of the files
	}
	text, data, err := s.a.gated(ctx, &writing{by: s.by, prompt: s.m.prompt + renderPieces(group),
		write: func(ctx context.Context, by *asked, position int, feedback string) (string, Data, error) {
			req := s.request(group, summaryInstruction)
			req.Prompt += feedback
			return ask(ctx, position, by, req)
		}})
	if err != nil {
		return "", err
	}
	s.data.addNotes(data.Notes)
	s.data.Structured, s.data.Gate = data.Structured, data.Gate
	s.data.Incomplete = s.data.Incomplete || data.Incomplete
	return text, nil
}

const (
	summaryInstruction = "You are given the results of %d parts of one task, in order. Write the one result of the whole task " +
		"from them. Keep every fact, name, number and place that bears on the task; say once what several results say; say " +
		"where they contradict each other; add nothing that none of them says. Write the result only, not about the results."
	shortenInstruction = "You are given %d of the results of the parts of one task, in order. Shorten them to one text that will be put " +
		"together with others to answer the task. Keep every fact, name, number and place that bears on the task; say once " +
		"what several results say; say where they contradict each other; add nothing. Write the text only."
)

func (s *summary) request(group []piece, instruction string) *model.Request {
	return &model.Request{System: strings.TrimSpace(s.a.system() + "\n\n" + fmt.Sprintf(instruction, len(group))),
		Prompt: s.m.prompt + renderPieces(group), Temperature: s.a.temperature(), Seed: s.a.run.cfg.Seed,
		MaxOutputTokens: s.a.answerLimit(), Divisible: s.divisible}
}

// renderPieces writes the results behind the prompt.
func renderPieces(pieces []piece) string {
	var b strings.Builder
	b.WriteString("\n\n=== results ===\n")
	for i := range pieces {
		fmt.Fprintf(&b, "\n--- %s ---\n%s\n", pieces[i].title(), strings.TrimRight(pieces[i].text, "\n"))
	}
	b.WriteString("\n=== end of results ===\n")
	return b.String()
}

// reductionRoom is how many tokens of results a model reads at once beside the
// prompt and its answer.
func (c *Config) reductionRoom(m *asked, prompt string) int64 {
	window := c.windowOf(m)
	answer := c.answerOf(window)
	frame := model.EstimateTokens(len(c.System) + len(prompt) + len(summaryInstruction) + pieceFrame +
		c.structureBytes(answer))
	// A tenth is kept: the number of tokens is an estimate.
	return (window-answer-c.feedbackTokens(window)-frame)*9/10 - 1
}

// piecesOf are the results that say something, with their numbers.
func piecesOf(parts []part) []piece {
	pieces := make([]piece, 0, len(parts))
	for i, p := range parts {
		text := strings.Trim(p.text, "\r\n")
		if t := strings.TrimSpace(text); t == "" || t == nothingHere {
			continue
		}
		pieces = append(pieces, piece{first: i + 1, last: i + 1, of: len(parts), file: shorten(p.file, maxPieceFile), task: p.task, text: text})
	}
	return pieces
}

func total(pieces []piece) int64 {
	var n int64
	for i := range pieces {
		n += pieces[i].tokens()
	}
	return n
}

func textsOf(parts []part) []string {
	all := make([]string, len(parts))
	for i := range parts {
		all[i] = parts[i].text
	}
	return all
}

func textsOfPieces(pieces []piece) []string {
	all := make([]string, len(pieces))
	for i := range pieces {
		all[i] = pieces[i].text
	}
	return all
}
