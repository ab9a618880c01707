// Package extract is the offline retrieval engine builtin:extract. It finds
// the passages of a context that have most to do with a prompt and quotes them
// with file and lines. It holds no language model, invents nothing, and its
// answers say so.
//
// Passages are paragraphs, or blocks of program text with their comments. They
// are ranked by BM25 with the statistics of the whole context, computed once
// in [Engine.Prepare]; so the scores of different parts of the context can be
// compared, and [Merge] can rank them together.
package extract

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"sync"

	"github.com/perdure/perdure/model"
)

// Name is the name of the engine as people write it.
const Name = "builtin:extract"

// Config configures an [Engine]. The zero value is ready for use.
type Config struct {
	// TopK is the greatest number of citations of one answer; 0 means 20.
	TopK int
	// Workers is how many goroutines [Engine.Prepare] reads with; 0 means one
	// for each processor.
	Workers int
}

func (c Config) withDefaults() Config {
	if c.TopK <= 0 {
		c.TopK = 20
	}
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	return c
}

// Engine is a [model.Model] that finds passages. It is safe for concurrent
// use and holds no state between calls.
type Engine struct {
	cfg Config
	lex func() *lexicon // read when first needed
	abc func() *alphabet
}

var (
	_ model.Model    = (*Engine)(nil)
	_ model.Preparer = (*Engine)(nil)
	_ model.Windower = (*Engine)(nil)
)

// New returns an engine.
func New(cfg Config) *Engine {
	return &Engine{cfg: cfg.withDefaults(), lex: sync.OnceValue(newLexicon), abc: sync.OnceValue(newAlphabet)}
}

// Verbatim returns model.TextQuoted: answers are passages of the context.
func (e *Engine) Verbatim() model.TextKind { return model.TextQuoted }

// Window returns 0: there is no limit to what one request may hold.
func (e *Engine) Window() int { return 0 }

func (e *Engine) query(prompt string) *query { return newQuery(prompt, e.lex(), e.abc()) }

// Prepare counts, in one pass over the whole context, how many passages hold
// each term of the prompt. The result does not depend on the order of work; it
// is small, whatever the size of the context. Documents are read by
// cfg.Workers goroutines, which have ended when Prepare returns. The error is
// one of docs, or wraps ctx.Err().
func (e *Engine) Prepare(
	ctx context.Context, prompt string, docs iter.Seq2[model.Document, error],
) (json.RawMessage, error) {
	q := e.query(prompt)
	c, err := count(ctx, q, docs, e.cfg.Workers)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", Name, err)
	}
	raw, err := json.Marshal(c.stats(q))
	if err != nil {
		return nil, fmt.Errorf("prepare %s: write statistics: %w", Name, err)
	}
	return raw, nil
}
