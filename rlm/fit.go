package rlm

import (
	"fmt"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/fanout"
	"github.com/perdure/perdure/rlm/internal/quote"
)

const (
	// DefaultWindow is the window of a model that does not know its own.
	DefaultWindow = 128_000
	// DefaultChunkTokens is the largest part when the window has room for
	// more: models read smaller parts better, and the parts run in parallel.
	DefaultChunkTokens = 32_000
	// minRoomTokens is the minimum of tokens for text next to a prompt.
	minRoomTokens = 100
	// documentBytes is what the frame around one document takes, without the
	// name of its file; see model.Render.
	documentBytes = 90
)

// room is how the window of a model is shared out, in tokens.
type room struct {
	window, prompt, answer, earlier int64
	// text is what is left for the context.
	text int64
}

// windowOf is how many tokens a model reads and writes at once.
func (c *Config) windowOf(m *asked) int64 {
	if c.ContextWindow > 0 {
		return int64(c.ContextWindow)
	}
	if w, ok := model.AsWindower(m.Model); ok && w.Window() > 0 {
		return int64(w.Window())
	}
	return DefaultWindow
}

// answerOf is how many of the tokens of a window are kept for the answer.
func (c *Config) answerOf(window int64) int64 {
	if c.AnswerTokens > 0 {
		return int64(c.AnswerTokens)
	}
	return min(defaultAnswerTokens, window/4)
}

// roomOf shares out the window of a model. part is for a leaf that sees a part
// of the context.
func (p *planning) roomOf(m *asked, part bool) (room, error) {
	r := room{window: p.cfg.windowOf(m)}
	r.answer = p.cfg.answerOf(r.window)
	prompt := len(p.cfg.System) + len(p.req.Prompt) + p.cfg.structureBytes(r.answer)
	if part {
		prompt += max(len(partInstruction(1, 1)), len(markedPartInstruction)+len(partNumber))
	}
	if p.cfg.Cite {
		prompt += len(quote.Instruction)
	}
	r.prompt = model.EstimateTokens(prompt)
	if part && p.cfg.ordered() {
		r.earlier = r.window / earlierShare
	}
	r.earlier += p.cfg.feedbackTokens(r.window)
	// A tenth is kept: the number of tokens is an estimate.
	r.text = (r.window-r.prompt-r.answer-r.earlier)*9/10 - 1
	if r.text < minRoomTokens {
		return r, invalid(fmt.Sprintf("the prompt (about %d tokens), the answer (%d) and earlier results (%d) leave no room "+
			"in the %d tokens of model %q", r.prompt, r.answer, r.earlier, r.window, m.name),
			"shorten the prompt or lower --max-output-tokens, or raise --context-window")
	}
	return r, nil
}

// renderedTokens estimates the tokens of the whole context as a model reads it,
// with the frames of its files, and of the largest frame.
func (p *planning) renderedTokens() (all, frame int64) {
	var bytes, longest int64
	for _, f := range p.reader.Manifest().Files {
		name := int64(len(f.Name)) + documentBytes
		bytes += f.Length + name
		longest = max(longest, name)
	}
	return model.EstimateTokens(int(bytes)), model.EstimateTokens(int(longest))
}

// decide chooses between one direct answer and a split, and puts the parts of a
// split into the root.
func (p *planning) decide(root *node) error {
	direct, err := p.roomOf(p.models[0], false)
	switch p.cfg.Planner {
	case PlannerModel:
		return p.decideLater(root, direct, err)
	case PlannerSearch:
		return p.useSearch(root)
	case PlannerRepl:
		return p.useRepl(root, direct, err)
	}
	if p.reader == nil {
		root.Window, root.Answer = direct.window, direct.answer
		return err
	}
	tokens, frame := p.renderedTokens()
	fits := err == nil && tokens <= direct.text
	if p.cfg.Planner == PlannerNone && !p.cfg.Batch {
		if err == nil && !fits {
			err = invalid(fmt.Sprintf("the context has about %d tokens; next to prompt and answer model %q reads %d at once, "+
				"and "+
				"the planner is none", tokens, p.models[0].name, direct.text), "leave out --planner, or raise --context-window")
		}
		root.Window, root.Answer = direct.window, direct.answer
		return err
	}
	wanted := p.cfg.ChunkTokens == 0 || tokens <= int64(p.cfg.ChunkTokens)
	if p.cfg.Planner == "" && !p.cfg.Batch && fits && wanted {
		root.Window, root.Answer = direct.window, direct.answer
		return nil
	}
	return p.split(root, tokens, frame, fits)
}

// split cuts the context into parts that fit the model, and refuses a tree that
// would be larger than allowed. fits reports whether the whole context fits into
// one request.
func (p *planning) split(root *node, tokens, frame int64, fits bool) error {
	r, err := p.roomOf(p.models[1], true)
	if err != nil {
		return err
	}
	root.Window, root.Answer = r.window, r.answer
	r.text -= frame // the first file's, which does not count as part of a chunk
	if r.text < minRoomTokens {
		return invalid(fmt.Sprintf("a file's name takes %d tokens of the window of model %q", frame, p.models[1].name),
			"raise --context-window")
	}
	size := min(r.text, DefaultChunkTokens)
	if p.cfg.ChunkTokens > 0 {
		size = int64(p.cfg.ChunkTokens)
	}
	if size > r.text {
		return invalid(fmt.Sprintf("chunk_tokens: %d are more than the %d that model %q reads at once next to prompt and "+
			"answer",
			size, r.text, p.models[1].name), fmt.Sprintf("use --chunk-tokens %d, or raise --context-window", r.text))
	}
	if int64(p.cfg.OverlapTokens) > size/2 {
		return invalid(fmt.Sprintf("overlap_tokens: %d are more than half of a part, %d", p.cfg.OverlapTokens, size),
			"use a smaller --overlap or larger parts")
	}
	if *p.cfg.MaxDepth == 0 {
		return invalid(fmt.Sprintf("max_depth: 0 means a direct answer, but the context (about %d tokens) has to be split",
			tokens),
			"raise --max-depth, or raise --context-window")
	}
	parts, err := p.cut(size, fanout.Chunk{})
	if err != nil {
		return err
	}
	p.cfg.PlannerReason = ""
	if why := p.preferSearch(parts, tokens); why != "" {
		p.cfg.PlannerReason = why
		err := p.useSearch(root)
		if err == nil {
			p.cfg.Planner = PlannerSearch
			return nil
		}
		p.cfg.PlannerReason += ", but " + err.Error()
	}
	root.Chunks, root.Head = parts, p.head
	if p.cfg.Batch {
		if err := p.assign(root); err != nil {
			return err
		}
	} else if len(parts) == 1 && fits {
		root.Chunks = nil // the part is the whole context: answer directly
		return nil
	}
	root.Total = len(parts)
	if err := p.checkReduction(); err != nil {
		return err
	}
	return p.checkSize(root, tokens, size)
}
