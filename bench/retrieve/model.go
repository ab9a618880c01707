package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

const (
	// shownFirst and shownThen are how many passages of the first and of each further
	// search are quoted.
	shownFirst, shownThen = 8, 2
)

// scripted is a model without knowledge of the places, over HTTP.
type scripted struct {
	url    string
	server *http.Server
	done   chan error
}

// startModel serves the model on a free port of this machine.
func startModel() (*scripted, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &scripted{url: "http://" + l.Addr().String() + "/v1", done: make(chan error, 1)}
	m.server = &http.Server{Handler: http.HandlerFunc(m.serve)}
	go func() { m.done <- m.server.Serve(l) }()
	return m, nil
}

func (m *scripted) close() error {
	err := m.server.Close()
	if served := <-m.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// serve answers a chat completion, streamed or not.
func (m *scripted) serve(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Stream   bool `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var prompt string
	for _, msg := range req.Messages {
		if err := json.Unmarshal(msg.Content, &prompt); err != nil {
			http.Error(w, "content is not a text", http.StatusBadRequest)
			return
		}
	}
	text := reply(prompt)
	usage := map[string]int{"prompt_tokens": len(prompt) / 4, "completion_tokens": len(text) / 4}
	choice := map[string]any{"index": 0, "finish_reason": "stop"}
	body := map[string]any{"model": "scripted", "choices": []any{choice}, "usage": usage}
	key, head, tail := "message", "", ""
	if req.Stream {
		key, head, tail = "delta", "data: ", "\n\ndata: [DONE]\n\n"
		w.Header().Set("Content-Type", "text/event-stream")
	} else {
		w.Header().Set("Content-Type", "application/json")
	}
	choice[key] = map[string]string{"role": "assistant", "content": text}
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "%s%s%s", head, raw, tail)
}

// passage is text of a file that the prompt shows.
type passage struct {
	file  string
	first int
	lines []string
}

var passageHead = lazyregexp.New(`^=== "(.*)" lines (\d+)-\d+ ===$`)

// passages returns the passages of a part of a prompt, in order.
func passages(text string) []passage {
	var out []passage
	open := false
	for line := range strings.SplitSeq(text, "\n") {
		if found := passageHead().FindStringSubmatch(line); found != nil {
			p := passage{file: found[1]}
			fmt.Sscan(found[2], &p.first) //nolint:errcheck // digits
			out, open = append(out, p), true
			continue
		}
		if strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "passages for ") {
			open = false // the end, or a passage that was shown before
		}
		if open {
			out[len(out)-1].lines = append(out[len(out)-1].lines, line)
		}
	}
	return out
}

// common are words that say nothing about what is looked for.
const common = " a an the of to in is are be it its that this how does do did what when where which who why with for " +
	"from and or not no than then so by on at as they them their there can i my me any has have had made make used " +
	"use into "

// contentWords returns the words of a question that say something.
func contentWords(question string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(strings.ToLower(question), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.')
	}) {
		if w = strings.Trim(w, ".-"); len(w) > 1 && !strings.Contains(common, " "+w+" ") && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

var declared = lazyregexp.New(`(?m)^(?:func (?:\([^)]*\) )?|type |class |const |function )([A-Za-z_]\w+)`)

// reply is what the model replies: searches at first, then the answer.
func reply(prompt string) string {
	question, rest, _ := strings.Cut(prompt, "\n\n=== folders ===\n")
	words := contentWords(question)
	first, later, searched := strings.Cut(rest, "\n=== your reply 1 ===\n")
	if !searched {
		return searches(words, passages(first))
	}
	if !strings.Contains(later, "\n=== your reply 2 ===\n") {
		return pairs(words)
	}
	var quoted []passage
	add := func(found []passage, most int) {
		quoted = append(quoted, found[:min(len(found), most)]...)
	}
	add(passages(first), shownFirst)
	for _, part := range strings.Split(later, "\npassages for ")[1:] {
		add(passages(part), shownThen)
	}
	return answer(quoted)
}

// searches asks for the words of the question, for each half of them, and for names that the
// best passages declare.
func searches(words []string, best []passage) string {
	half := (len(words) + 1) / 2
	queries := []string{strings.Join(words, " "), strings.Join(words[:half], " "), strings.Join(words[half:], " ")}
	var names []string
	for _, p := range best[:min(len(best), 3)] {
		if found := declared().FindStringSubmatch(strings.Join(p.lines, "\n")); found != nil {
			names = append(names, found[1])
		}
	}
	queries = append(queries, strings.Join(names, " "))
	var b strings.Builder
	for _, q := range queries {
		if strings.TrimSpace(q) != "" {
			fmt.Fprintf(&b, "SEARCH %s\n", q)
		}
	}
	return b.String()
}

// pairs asks for words of the question that are next to each other.
func pairs(words []string) string {
	var b strings.Builder
	for i := 0; i < len(words) && i < 8; i += 2 {
		fmt.Fprintf(&b, "SEARCH %s\n", strings.Join(words[i:min(i+2, len(words))], " "))
	}
	return b.String()
}

// answer quotes passages as a whole, each once.
func answer(quoted []passage) string {
	var text, notes strings.Builder
	text.WriteString("ANSWER\nThese places say it:")
	for i, p := range quoted {
		fmt.Fprintf(&text, " [^%d]", i+1)
		fmt.Fprintf(&notes, "\n\n[^%d]: %s:%d-%d\n> %s", i+1, p.file, p.first, p.first+len(p.lines)-1,
			strings.Join(p.lines, "\n> "))
	}
	return text.String() + notes.String() + "\n"
}
