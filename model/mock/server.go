package mock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/internal/wire"
)

// maxRequest is the largest request a [Server] reads, in bytes.
const maxRequest = 256 << 20

// Server plays a script as an HTTP endpoint that speaks the OpenAI chat
// completions protocol and Anthropic's messages protocol, streaming and not:
// POST …/chat/completions, POST …/messages and GET …/models. It is safe for
// concurrent use.
//
// A reply that breaks off closes the connection in the middle, by
// panic(http.ErrAbortHandler), which net/http's server understands.
type Server struct {
	script *Script
	ledger *Ledger
	mux    *http.ServeMux
}

// NewServer returns a handler that plays the script; see [New] about sharing
// one. Serve it at any address: a base URL is that address and "/v1", for
// Anthropic's protocol that address.
func NewServer(script *Script) *Server {
	s := &Server{script: script, ledger: newLedger(), mux: http.NewServeMux()}
	for _, prefix := range []string{"", "/v1"} {
		s.mux.HandleFunc("POST "+prefix+"/chat/completions", s.complete)
		s.mux.HandleFunc("POST "+prefix+"/messages", s.message)
		s.mux.HandleFunc("GET "+prefix+"/models", s.models)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path)
	})
	return s
}

// Ledger returns what was asked and answered.
func (s *Server) Ledger() *Ledger { return s.ledger }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%s,"object":"model"}]}`, quote(s.script.model))
}

// chatRequest is what of a request matters here.
type chatRequest struct {
	Stream  bool `json:"stream"`
	Options struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []chatMessage `json:"messages"`
}

type chatMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a text, or a list of parts with text.
type content string

// UnmarshalJSON reads both forms.
func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content(text)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return errors.New("content is neither a text nor a list of parts")
	}
	for _, p := range parts {
		*c += content(p.Text)
	}
	return nil
}

// text is the request as [model.RenderAll] would give it.
func (r chatRequest) text() string {
	return joined(r.Messages)
}

// joined returns messages as one text. Those behind the first one of the user are a conversation.
func joined(messages []chatMessage) string {
	var parts []string
	var talk []model.Message
	begun := false
	for _, m := range messages {
		if begun {
			talk = append(talk, model.Message{Reply: m.Role == "assistant", Text: string(m.Content)})
			continue
		}
		begun = m.Role == "user"
		parts = append(parts, string(m.Content))
	}
	return strings.Join(parts, "\n\n") + model.RenderMessages(talk)
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	var req chatRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, "request is not valid: "+err.Error())
		return
	}
	s.play(w, r, req.text(), protocol{refuse: refuse, send: func(out *sender) {
		if req.Stream {
			out.stream(req.Options.Usage)
		} else {
			out.whole()
		}
	}})
}

// protocol is what differs between the protocols once a request is read.
type protocol struct {
	refuse func(w http.ResponseWriter, status int, msg string)
	send   func(out *sender)
}

// play answers a request with the script's next reply.
func (s *Server) play(w http.ResponseWriter, r *http.Request, text string, p protocol) {
	finished := false
	call := s.ledger.begin(text)
	defer func() { call.done(finished) }()

	reply, err := s.script.next(text)
	if err != nil {
		p.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if !wait(r.Context(), reply.delay) {
		return
	}
	if reply.status != 0 {
		retryAfter(w, reply.retryAfter)
		p.refuse(w, reply.status, reply.message)
		return
	}
	out := &sender{w: w, gone: r.Context().Err, flush: http.NewResponseController(w).Flush, reply: reply,
		model: s.script.model}
	call.answering()
	p.send(out)
	finished = out.err == nil
}

func refuse(w http.ResponseWriter, status int, msg string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"message":%s,"type":%s,"code":null,"param":null}}`, quote(msg),
		quote(string(model.KindOfStatus(status))))
}

// retryAfter writes whole seconds in the standard header, and fractions in the
// header of OpenAI.
func retryAfter(w http.ResponseWriter, d time.Duration) {
	switch {
	case d <= 0:
	case d%time.Second == 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(d/time.Second)))
	default:
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(d.Milliseconds(), 10))
	}
}

// sender writes one answer. After an error it writes nothing more.
type sender struct {
	w     http.ResponseWriter
	gone  func() error // reports whether the client left
	flush func() error
	reply *reply
	model string
	err   error
}

func (s *sender) print(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
}

// send hands over what was printed. The client is looked at before: one that
// leaves with the whole answer was answered.
func (s *sender) send() {
	s.err = cmp.Or(s.err, s.gone())
	if s.err == nil {
		s.err = s.flush()
	}
}

// abort breaks off what was begun.
func (s *sender) abort() {
	s.send()
	panic(http.ErrAbortHandler)
}

func (s *sender) stream(usage bool) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	head := fmt.Sprintf(`{"id":"mock","object":"chat.completion.chunk","created":%d,"model":%s`, time.Now().Unix(),
		quote(s.model))
	s.print("data: %s,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"+
		"\"finish_reason\":null}]}\n\n", head)
	for _, part := range s.reply.parts() {
		s.print("data: %s,\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", head,
			quote(part))
		s.send()
	}
	if s.reply.cut {
		s.abort()
	}
	s.print("data: %s,\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%s}]}\n\n", head, quote(s.reply.stopReason))
	if usage && !s.reply.usage.Omit {
		s.print("data: %s,\"choices\":[],\"usage\":%s}\n\n", head, s.usage())
	}
	s.print("data: [DONE]\n\n")
	s.send()
}

func (s *sender) whole() {
	s.w.Header().Set("Content-Type", "application/json")
	s.print(`{"id":"mock","object":"chat.completion","created":%d,"model":%s,`, time.Now().Unix(), quote(s.model))
	s.print(`"choices":[{"index":0,"message":{"role":"assistant","content":%s`, quote(s.reply.text))
	if s.reply.cut {
		s.abort()
	}
	s.print(`},"finish_reason":%s}]`, quote(s.reply.stopReason))
	if !s.reply.usage.Omit {
		s.print(`,"usage":%s`, s.usage())
	}
	s.print("}")
	s.send()
}

func (s *sender) usage() string {
	u := s.reply.usage
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d}}`,
		u.Input, u.Output, u.Input+u.Output, u.Cached)
}

// quote returns s as a JSON string. Bytes that are not UTF-8 stay as they are,
// which is not JSON: that is what a broken provider sends.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for s != "" {
		n := wire.ValidPrefix([]byte(s))
		text, err := json.Marshal(s[:n])
		if err == nil { // a string can always be encoded
			b.Write(text[1 : len(text)-1])
		}
		if n < len(s) {
			b.WriteByte(s[n])
			n++
		}
		s = s[n:]
	}
	b.WriteByte('"')
	return b.String()
}
