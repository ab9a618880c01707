package longtask

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault is what a request gets in place of its answer.
type Fault int

// The faults: none, a status of 429 or 500, and a connection that is cut in mid-answer.
const (
	None Fault = iota
	TooMany
	Internal
	Cut
)

// Server serves the models "root" and "sub" with OpenAI's chat completions, streamed or not.
// It counts the requests by the hash of their messages.
type Server struct {
	// Question is what the root answers; a nested one uses REPLs of their own.
	Question Question
	Nested   bool
	// Delay is waited before each answer of the sub-model.
	Delay time.Duration
	// Fault, when set before the server starts, decides what happens to a request of a model, by
	// the number of the request, from 1.
	Fault func(model string, number int) Fault

	mu       sync.Mutex // guards all below
	onAnswer func(model string, number int)
	ledger   map[[32]byte]int
	requests map[string]int
	answers  map[string]int
	keys     map[string]int
	open     int
	peak     int
}

// OnAnswer sets what is called after each whole answer was written, with the number of answers
// of that model, from 1. The server may be in use.
func (s *Server) OnAnswer(do func(model string, number int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onAnswer = do
}

// Totals returns how many requests a model received and how many it answered.
func (s *Server) Totals(model string) (requests, answers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[model], s.answers[model]
}

// Sent returns how many requests came with an API key.
func (s *Server) Sent(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys["Bearer "+key]
}

// Peak returns how many requests were open at once.
func (s *Server) Peak() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}

// Repeated returns how many requests were made whose answer had been written before.
func (s *Server) Repeated() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, answers := range s.ledger {
		n += max(0, answers-1)
	}
	return n
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type request struct {
	Model    string    `json:"model"`
	Stream   bool      `json:"stream"`
	Messages []message `json:"messages"`
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(w, fmt.Sprintf(`{"error":{"message":"request is not valid: %v"}}`, err), http.StatusBadRequest)
		return
	}
	number := s.begin(req.Model, r.Header.Get("Authorization"))
	defer s.end()
	fault := None
	if s.Fault != nil {
		fault = s.Fault(req.Model, number)
	}
	switch fault {
	case TooMany:
		w.Header().Set("Retry-After", "0")
		http.Error(w, `{"error":{"message":"too many requests"}}`, http.StatusTooManyRequests)
		return
	case Internal:
		http.Error(w, `{"error":{"message":"internal error"}}`, http.StatusInternalServerError)
		return
	}
	if req.Model == "sub" && s.Delay > 0 {
		select {
		case <-time.After(s.Delay):
		case <-r.Context().Done():
			return
		}
	}
	write(w, req, s.reply(req), fault == Cut)
	s.answered(req)
}

func (s *Server) begin(model, key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests == nil {
		s.ledger, s.requests, s.answers = map[[32]byte]int{}, map[string]int{}, map[string]int{}
		s.keys = map[string]int{}
	}
	s.keys[key]++
	s.requests[model]++
	s.open++
	s.peak = max(s.peak, s.open)
	return s.requests[model]
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

func (s *Server) answered(req request) {
	data, _ := json.Marshal(req.Messages) // strings
	s.mu.Lock()
	s.ledger[sha256.Sum256(data)]++
	s.answers[req.Model]++
	number, do := s.answers[req.Model], s.onAnswer
	s.mu.Unlock()
	if do != nil {
		do(req.Model, number)
	}
}

// reply returns the text of an answer. The turn of a REPL is the last one announced.
func (s *Server) reply(req request) string {
	last := req.Messages[len(req.Messages)-1].Content
	turns := regexp.MustCompile(`Turn (\d+)/\d+`).FindAllStringSubmatch(last, -1)
	switch {
	case req.Model == "sub" && turns == nil:
		return Sub(last)
	case req.Model == "sub":
		return "```repl\n" + Child() + "\n```"
	case turns == nil:
		return "The request announces no turn."
	}
	turn, _ := strconv.Atoi(turns[len(turns)-1][1]) // digits
	return "```repl\n" + Root(s.Question, turn, s.Nested) + "\n```"
}

// write writes an answer with its usage; a cut one ends in the middle.
func write(w http.ResponseWriter, req request, text string, cut bool) {
	in := 0
	for _, m := range req.Messages {
		in += len(m.Content) / 4
	}
	usage := map[string]int{"prompt_tokens": in, "completion_tokens": len(text) / 4, "total_tokens": in + len(text)/4}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		data, _ := json.Marshal(map[string]any{"id": "x", "object": "chat.completion", "model": req.Model, "usage": usage,
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop",
				"message": message{"assistant", text}}}}) // strings and numbers
		if cut {
			data = data[:len(data)/2]
		}
		_, _ = w.Write(data)
	} else {
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, map[string]any{"index": 0, "delta": message{"assistant", text[:len(text)/2]}}, nil)
		if !cut {
			send(w, map[string]any{"index": 0, "delta": map[string]string{"content": text[len(text)/2:]}}, nil)
			send(w, map[string]any{"index": 0, "delta": map[string]string{}, "finish_reason": "stop"}, nil)
			send(w, nil, usage)
			_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
		}
	}
	_ = http.NewResponseController(w).Flush()
	if cut {
		panic(http.ErrAbortHandler)
	}
}

func send(w http.ResponseWriter, choice, usage any) {
	choices := []any{}
	if choice != nil && usage == nil {
		choices = append(choices, choice)
	}
	data, _ := json.Marshal(map[string]any{"id": "x", "object": "chat.completion.chunk", "choices": choices,
		"usage": usage}) // strings and numbers
	_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
}
