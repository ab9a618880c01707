package rlm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/dedupe"
	"github.com/perdure/perdure/rlm/internal/summarize"
)

// maxInputFile bounds the name of a file before a part, and leastReductionRoom
// is the least room for parts with which levels of calls end.
const (
	maxInputFile       = 200
	leastReductionRoom = 2 * minRoomTokens
)

// summarize has a model write one result from those of the parts: in one call
// where they fit its window, else in levels of calls, each over as many
// neighbours as fit.
func (a *attempt) summarize(ctx context.Context, m *merger, parts []part) (string, Data, error) {
	data := m.gather(parts)
	list := inputsOf(parts)
	if len(list) == 0 {
		return m.union(textsOf(parts)), data, nil
	}
	if len(list) == 1 {
		return list[0].Text, data, nil
	}
	by := a.writer()
	room := a.run.cfg.reductionRoom(by, m.prompt)
	if !m.marked && m.level && summarize.Total(list) <= room/int64(a.run.cfg.MaxChildren) {
		return dedupe.Concatenate(summarize.Text(list)), data, nil
	}
	if room < leastReductionRoom {
		return "", data, failf(KindPlan, "summarize: next to prompt and answer there is no room for results in the window "+
			"of model %q", by.name)
	}
	s := &summary{a: a, m: m, by: by, data: &data}
	text, err := s.run(ctx, list, room)
	if outOfBudget(err) {
		data.Incomplete = true
		data.addNotes([]string{whatEnded(err) + " before the results were summarized; they are put together as they are: " +
			err.Error()})
		return m.joinUnmerged(parts), data, nil
	}
	return text, data, err
}

// joinUnmerged puts results together that no model could merge.
func (m *merger) joinUnmerged(parts []part) string {
	if m.marked { // equal results count
		return dedupe.Concatenate(textsOf(parts))
	}
	return dedupe.Union(textsOf(parts))
}

// summary is one merge by summarize.
type summary struct {
	a    *attempt
	m    *merger
	by   *asked
	data *Data
	// divisible is set while the request can be divided into smaller ones.
	divisible bool
}

// run makes levels of calls until one text is left. After the first level no
// part is larger than half of the room, so each level at least halves their
// number. When the model finds a request too long, what is left is done with half
// of the room.
func (s *summary) run(ctx context.Context, list []summarize.Input, room int64) (string, error) {
	limit := room
	for {
		for i := range list {
			if note := list[i].Cut(limit, s.by.name); note != "" {
				s.data.addNotes([]string{note})
			}
		}
		groups := summarize.Group(list, room)
		s.divisible = room/2 >= leastReductionRoom
		if len(groups) == 1 {
			text, err := s.write(ctx, groups[0])
			if !s.divisible || !tooLong(err) {
				return text, err
			}
			room, limit = room/2, room/2
			continue
		}
		next := make([][]summarize.Input, len(groups))
		positions := make([]int, len(groups)) // 0: the part is passed on unchanged
		for i, g := range groups {
			next[i] = g
			if summarize.Shortens(g, room) {
				positions[i] = s.a.positions(1)
			}
		}
		from := make([]Data, len(groups))
		long := make([]bool, len(groups)) // each is one goroutine's
		err := s.a.sideBySide(len(groups), func(i int) error {
			if positions[i] == 0 {
				return nil
			}
			short, data, err := s.shorten(ctx, positions[i], groups[i])
			if long[i] = s.divisible && tooLong(err); long[i] {
				return nil // its parts are left for smaller groups
			}
			next[i], from[i] = []summarize.Input{short}, data
			return err
		})
		if err != nil {
			return "", err
		}
		for i := range from {
			s.take(&from[i])
		}
		list, limit = slices.Concat(next...), room/2
		if slices.Contains(long, true) {
			room = limit
		}
	}
}

// shorten makes one part of several neighbours.
func (s *summary) shorten(ctx context.Context, position int, group []summarize.Input) (summarize.Input, Data, error) {
	first, last := group[0], group[len(group)-1]
	by := *s.by
	by.quiet = true
	text, data, err := s.a.ask(ctx, position, &by, s.request(group, true))
	if err != nil {
		return summarize.Input{}, data, err
	}
	data.noteCut(s.a, s.by)
	out := summarize.Input{First: first.First, Last: last.Last, Of: first.Of, Text: text}
	if len(group) == 1 {
		out.File, out.Task, out.Where = first.File, first.Task, first.Where
	}
	return out, data, nil
}

// write makes the result of the last parts.
func (s *summary) write(ctx context.Context, group []summarize.Input) (string, error) {
	ask := s.a.askWhole
	if s.m.files {
		ask = s.a.askText // what is structured are the results of the files
	}
	text, data, err := s.a.gated(ctx, &writing{by: s.by, prompt: s.m.prompt + summarize.Render(group),
		write: func(ctx context.Context, by *asked, position int, feedback string) (string, Data, error) {
			req := s.request(group, false)
			req.Prompt += feedback
			return ask(ctx, position, by, req)
		}})
	if err != nil {
		return "", err
	}
	s.take(&data)
	s.data.Structured, s.data.Gate = data.Structured, data.Gate
	return text, nil
}

// take takes over what was unusual about a call of the merge.
func (s *summary) take(data *Data) {
	s.data.addNotes(data.Notes)
	s.data.Incomplete, s.data.Cut = s.data.Incomplete || data.Incomplete, s.data.Cut || data.Cut
}

// Instructions for merges in version 1.
const (
	summaryInstruction = "You are given the results of %d parts of one task, in order. Write the one result of the " +
		"whole task " +
		"from them. Keep every fact, name, number and place that bears on the task; say once what several results say; say " +
		"where they contradict each other; add nothing that none of them says. Write the result only, not about the results."
	shortenInstruction = "You are given %d of the results of the parts of one task, in order. Shorten them to one text " +
		"that will be put " +
		"together with others to answer the task. Keep every fact, name, number and place that bears on the task; say once " +
		"what several results say; say where they contradict each other; add nothing. Write the text only."
)

// request asks for the result of a group, or for one that is merged with others again.
func (s *summary) request(group []summarize.Input, some bool) *model.Request {
	req := &model.Request{Temperature: s.a.temperature(), Seed: s.a.run.cfg.Seed,
		MaxOutputTokens: s.a.answerLimit(), Divisible: s.divisible}
	var instruction string
	if s.m.marked {
		some = some || s.m.level
		instruction = s.m.kind.instruction(some)
		req.Prompt = s.m.mergePrompt(group)
		if some && s.a.run.shape != nil {
			req.Prompt += "\n\n" + s.a.run.shape.Hint()
		}
	} else {
		instruction = fmt.Sprintf(summaryInstruction, len(group))
		if some {
			instruction = fmt.Sprintf(shortenInstruction, len(group))
		}
		req.Prompt = s.m.prompt + summarize.Render(group)
	}
	if s.a.run.cfg.Cite {
		instruction += keepReferences
	}
	req.System = strings.TrimSpace(s.a.system() + "\n\n" + instruction)
	return req
}

// reductionRoom is how many tokens of results a model reads at once next to the
// prompt and its answer.
func (c *Config) reductionRoom(m *asked, prompt string) int64 {
	window := c.windowOf(m)
	answer := c.answerOf(window)
	instruction := len(summaryInstruction)
	if c.hasMarkedParts() {
		instruction = longestMergeInstruction() + len("The task:")
	}
	frame := model.EstimateTokens(len(c.System) + len(prompt) + instruction + summarize.Frame +
		c.structureBytes(answer))
	if c.Cite {
		frame += model.EstimateTokens(len(keepReferences))
	}
	// A tenth is kept: the number of tokens is an estimate.
	return (window-answer-c.feedbackTokens(window)-frame)*9/10 - 1
}

// piecesOf are the results that say something, with their numbers.
func inputsOf(parts []part) []summarize.Input {
	list := make([]summarize.Input, 0, len(parts))
	for i, p := range parts {
		text := strings.Trim(p.text, "\r\n")
		if t := strings.TrimSpace(text); t == "" || t == nothingHere {
			continue
		}
		list = append(list, summarize.Input{First: i + 1, Last: i + 1, Of: len(parts), File: clip.Bytes(p.file, maxInputFile),
			Task: p.task.String(), Text: text, Where: p.where})
	}
	return list
}

func textsOf(parts []part) []string {
	all := make([]string, len(parts))
	for i := range parts {
		all[i] = parts[i].text
	}
	return all
}
