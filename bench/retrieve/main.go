// Command retrieve measures whether runs find the places that answer questions.
//
//	go run -C bench ./retrieve extract [-set first|second|third|shipped] [-trees FOLDER] [-list] [-only TEXT]
//	go run -C bench ./retrieve search [-set first|second|shipped] [-list] [-only TEXT]
//
// extract asks builtin:extract the questions of a set, each about one tree of a released
// package (fetched by go and npm), and counts those with a place among the first five
// citations.
//
// search puts the trees of the set, or those of first, and the source of the Go toolchain
// into one context of more than 100 MB, asks with --planner search, and counts the questions
// with a place among the quotes and the calls. The model is a server in this process that speaks the chat
// completions protocol. It follows the protocol of the planner, and does not know the
// places: it asks twice for searches, for parts and words of the question and for names in what it
// found, and quotes the best eight passages for the question and the best two of each search. The set shipped is that
// of model/extract, with which builtin:extract was tuned.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench retrieve:", err)
		os.Exit(1)
	}
}

// question is a question with the places that answer it; one of them is enough.
type question struct {
	Tree     string  `json:"tree"`
	Question string  `json:"question"`
	Places   []place `json:"places"`
}

// place is the line of a file of the tree on which anchor begins.
type place struct {
	File   string `json:"file"`
	Anchor string `json:"anchor"`
	// Lines are the first and the last line instead of an anchor.
	Lines [2]int `json:"lines"`
}

// options of a measurement.
type options struct {
	set, only string
	list      bool
	out       io.Writer
	dir       string // a new folder for the program and the stores
	program   string
	trees     map[string]string
}

func measure(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) == 0 || args[0] != "extract" && args[0] != "search" {
		return errors.New("use extract or search")
	}
	o := options{out: out}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&o.set, "set", "second", "first, second or shipped, the `QUESTIONS`")
	folder := flags.String("trees", "", "folder with the trees quic, progit and ruff of set third")
	flags.BoolVar(&o.list, "list", false, "print the questions that were missed, with what was cited")
	flags.StringVar(&o.only, "only", "", "only questions that contain `TEXT`")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp("", "perdure-retrieve-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	if o.trees, err = fetchTrees(ctx); err != nil {
		return err
	}
	for _, name := range []string{"quic", "progit", "ruff"} {
		o.trees[name] = filepath.Join(*folder, name)
	}
	o.program = filepath.Join(o.dir, "perdure")
	build := exec.CommandContext(ctx, "go", "build", "-o", o.program, "./cmd/perdure")
	build.Dir = ".." // measurements run in the folder bench
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build perdure: %w\n%s", err, text)
	}
	asked, err := o.questions()
	if err != nil {
		return err
	}
	if args[0] == "extract" {
		return o.extract(ctx, asked)
	}
	return o.search(ctx, asked)
}

// questions reads the set.
func (o *options) questions() ([]question, error) {
	file := "../internal/corpus/index/testdata/questions.json"
	switch o.set {
	case "first", "second", "third":
		file = "retrieve/" + o.set + ".json"
	case "shipped":
	default:
		return nil, fmt.Errorf("no set %q: use first, second, third or shipped", o.set)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read questions (run in the folder bench): %w", err)
	}
	var all []question
	if o.set == "third" {
		var set struct{ Questions []question }
		err = json.Unmarshal(raw, &set)
		all = set.Questions
	} else {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	for i := range all {
		if all[i].Tree == "" {
			all[i].Tree = "go"
		}
	}
	return slices.DeleteFunc(all, func(q question) bool { return !strings.Contains(q.Question, o.only) }), nil
}

// citation is what of a result matters here.
type citation struct {
	Kind      string `json:"kind"`
	File      string `json:"file"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
}

// answered is the output of a run.
type answered struct {
	Citations []citation `json:"citations"`
	Dropped   int        `json:"quotes_dropped"`
	Usage     struct {
		Calls       int `json:"calls"`
		InputTokens int `json:"input_tokens"`
	} `json:"usage"`
	took   time.Duration
	memory int64 // peak, in KiB
}

// run asks one question.
func (o *options) run(ctx context.Context, env []string, args ...string) (a answered, err error) {
	dir, err := os.MkdirTemp(o.dir, "store-")
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd := exec.CommandContext(ctx, o.program, append([]string{"run", "--json"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, "PERDURE_DIR="+filepath.Join(dir, ".perdure"))...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	begun := time.Now()
	raw, err := cmd.Output()
	if err != nil {
		return a, fmt.Errorf("perdure run: %w\n%s", err, complaint.String())
	}
	a.took, a.memory = time.Since(begun), peak(cmd.ProcessState)
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("read result: %w", err)
	}
	return a, nil
}

// found returns the number, from 1, of the first citation that has a place; 0 if none has.
func (o *options) found(q *question, cited []citation) int {
	for i, c := range cited {
		for _, p := range q.Places {
			path := filepath.Join(o.trees[q.Tree], p.File)
			if c.File != path {
				continue
			}
			inLines := p.Anchor == "" && c.StartLine <= p.Lines[1] && c.EndLine >= p.Lines[0]
			if inLines || p.Anchor != "" && covers(path, p.Anchor, c) {
				return i + 1
			}
		}
	}
	return 0
}

// covers reports whether a citation has a line on which the anchor begins.
func covers(path, anchor string, c citation) bool {
	raw, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	text := string(raw)
	for at := 0; ; at++ {
		i := strings.Index(text[at:], anchor)
		if i < 0 {
			return false
		}
		at += i
		if line := 1 + strings.Count(text[:at], "\n"); line >= c.StartLine && line <= c.EndLine {
			return true
		}
	}
}

// extract measures builtin:extract, each tree alone.
func (o *options) extract(ctx context.Context, asked []question) error {
	byTree := make(map[string][2]int)
	for i := range asked {
		q := &asked[i]
		a, err := o.run(ctx, nil, q.Question, "--model", "builtin:extract", "--context", o.trees[q.Tree])
		if err != nil {
			return err
		}
		n, at := byTree[q.Tree], o.found(q, a.Citations)
		n[1]++
		if at > 0 && at <= 5 {
			n[0]++
		}
		byTree[q.Tree] = n
		o.report(q, &a, at, at > 0 && at <= 5)
	}
	hits := 0
	for tree, n := range byTree {
		hits += n[0]
		fmt.Fprintf(o.out, "%-10s %d of %d\n", tree, n[0], n[1])
	}
	fmt.Fprintf(o.out, "a place among the first five citations: %d of %d\n", hits, len(asked))
	return nil
}

// report prints a question that was missed.
func (o *options) report(q *question, a *answered, at int, hit bool) {
	if !o.list || hit {
		return
	}
	fmt.Fprintf(o.out, "missed (%d): %s\n", at, q.Question)
	for _, c := range a.Citations[:min(len(a.Citations), 5)] {
		fmt.Fprintf(o.out, "    %s %s:%d-%d\n", c.Kind, c.File, c.StartLine, c.EndLine)
	}
}

// search measures planner search over all trees.
func (o *options) search(ctx context.Context, asked []question) (err error) {
	m, err := startModel()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	args := []string{"--model", "openai:scripted", "--base-url", m.url, "--planner", "search", "--max-output-tokens",
		"16000", "--temperature", "0"}
	together := []string{"go", "npm-docs", "pgx", "webpack"}
	if o.set == "second" {
		together = []string{"go", "mongodb", "nats", "prometheus-docs"}
	}
	for _, name := range together {
		args = append(args, "--context", o.trees[name])
	}
	var hits, calls, most, dropped, tokens int
	var took time.Duration
	var memory int64
	for i := range asked {
		q := &asked[i]
		a, err := o.run(ctx, []string{"OPENAI_API_KEY=none"}, append([]string{q.Question}, args...)...)
		if err != nil {
			return err
		}
		quotes := slices.DeleteFunc(slices.Clone(a.Citations), func(c citation) bool { return c.Kind != "quote" })
		at := o.found(q, quotes)
		if at > 0 {
			hits++
		}
		o.report(q, &a, at, at > 0)
		calls, most, dropped = calls+a.Usage.Calls, max(most, a.Usage.Calls), dropped+a.Dropped
		tokens, took, memory = tokens+a.Usage.InputTokens, took+a.took, max(memory, a.memory)
	}
	n := max(len(asked), 1)
	fmt.Fprintf(o.out, "a place among the quotes: %d of %d; calls a question: %.1f, at most %d; quotes dropped: %d\n",
		hits, n, float64(calls)/float64(n), most, dropped)
	fmt.Fprintf(o.out, "mean of a run: %.1f s, %d input tokens; peak memory %d MiB\n", took.Seconds()/float64(n),
		tokens/n, memory>>10)
	return nil
}
