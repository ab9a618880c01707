package acp

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/jsonrpc"
)

const (
	// connectTimeout is how long the event stream of opencode may take to begin, idleTimeout
	// how long the events of a prompt that ended may take.
	connectTimeout = 10 * time.Second
	idleTimeout    = 3 * time.Second
	// maxEventBytes is the longest event that is read; longer ones are left out.
	maxEventBytes = 8 << 20
)

// opencodeEvents reads the events of opencode's own server, which runs in the process that
// speaks the protocol: they report the tokens of each answer, where the protocol reports those
// of the last one.
type opencodeEvents struct {
	address, password string
	tell              func(agent.Event)
	// session and model are set before follow.
	session, model string

	mu    sync.Mutex // guards the following
	seen  map[string]bool
	usage agent.Usage
	cost  float64
	idle  bool
	wake  chan struct{} // closed when the session is idle, or when the events end
}

// newOpencodeEvents chooses a free port for the server and a password.
func newOpencodeEvents(tell func(agent.Event)) (*opencodeEvents, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	return &opencodeEvents{address: address, password: rand.Text(), tell: tell, seen: make(map[string]bool),
		wake: make(chan struct{})}, l.Close()
}

// args and env make opencode's server listen there.
func (o *opencodeEvents) args() []string {
	host, port, _ := net.SplitHostPort(o.address) // of a listener
	return []string{"--hostname", host, "--port", port}
}

func (o *opencodeEvents) env() []string { return []string{"OPENCODE_SERVER_PASSWORD=" + o.password} }

// follow connects, and reads events until ctx ends, in a goroutine that done waits for. If it
// fails, settle does not wait.
func (o *opencodeEvents) follow(ctx context.Context, done *sync.WaitGroup) (err error) {
	defer func() {
		if err != nil {
			o.rest()
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.address+"/global/event", nil)
	if err != nil {
		return err
	}
	req.SetBasicAuth("opencode", o.password)
	client := &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: connectTimeout, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return fmt.Errorf("status %s", resp.Status)
	}
	done.Go(func() {
		defer o.rest()
		defer resp.Body.Close()
		o.read(resp.Body)
	})
	return nil
}

// rest records that no further events of the prompt come.
func (o *opencodeEvents) rest() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.idle {
		o.idle = true
		close(o.wake)
	}
}

// settle waits for the events of a prompt that ended.
func (o *opencodeEvents) settle(ctx context.Context) {
	late := time.NewTimer(idleTimeout)
	defer late.Stop()
	select {
	case <-o.wake:
	case <-late.C:
	case <-ctx.Done():
	}
}

// read reads a stream of server-sent events.
func (o *opencodeEvents) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEventBytes)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			o.hear([]byte(strings.TrimSpace(data)))
		}
	}
}

// opencodeEvent is an event of opencode's server.
type opencodeEvent struct {
	Payload struct {
		Type       string `json:"type"`
		Properties struct {
			SessionID string `json:"sessionID"`
			Part      struct {
				ID     string `json:"id"`
				Type   string `json:"type"`
				Cost   float64
				Tokens struct {
					Input     count `json:"input"`
					Output    count `json:"output"`
					Reasoning count `json:"reasoning"`
					Cache     struct {
						Read  count `json:"read"`
						Write count `json:"write"`
					} `json:"cache"`
				} `json:"tokens"`
			} `json:"part"`
			Status struct {
				Type    string `json:"type"`
				Attempt count  `json:"attempt"`
				Message string `json:"message"`
				Next    count  `json:"next"` // milliseconds of Unix time
			} `json:"status"`
		} `json:"properties"`
	} `json:"payload"`
}

// hear takes an event.
func (o *opencodeEvents) hear(raw []byte) {
	var e opencodeEvent
	if jsonrpc.Lenient(json.RawMessage(raw), &e) != nil {
		return
	}
	p := &e.Payload.Properties
	switch {
	case e.Payload.Type == "message.part.updated" && p.Part.Type == "step-finish":
		o.step(&e)
	case e.Payload.Type == "session.idle" && p.SessionID == o.session:
		o.rest()
	case e.Payload.Type == "session.status" && p.Status.Type == "retry":
		wait := agent.Event{Kind: agent.EventRateLimited, Text: clean(p.Status.Message), Attempt: int(p.Status.Attempt),
			Raw: raw}
		if p.Status.Next > 0 {
			wait.Until = time.UnixMilli(int64(p.Status.Next)).UTC()
		}
		o.tell(wait)
	}
}

// step counts an answer: its input leaves out what was read from or written to the cache.
func (o *opencodeEvents) step(e *opencodeEvent) {
	part := &e.Payload.Properties.Part
	o.mu.Lock()
	if part.ID == "" || o.seen[part.ID] {
		o.mu.Unlock()
		return
	}
	o.seen[part.ID] = true
	t := &part.Tokens
	u := &o.usage
	u.Reported = true
	u.InputTokens += int64(t.Input + t.Cache.Read + t.Cache.Write)
	u.OutputTokens += int64(t.Output + t.Reasoning)
	u.CachedTokens += int64(t.Cache.Read)
	u.CacheWriteTokens += int64(t.Cache.Write)
	o.cost += part.Cost
	event := agent.Event{Kind: agent.EventUsage, Usage: new(*u), Model: o.model}
	if micros, ok := (&cost{Amount: o.cost}).micros(); ok && micros > 0 { // 0 is also that of a model without a price
		event.CostMicros = &micros
	}
	o.mu.Unlock()
	o.tell(event)
}

// total returns the usage until now, and the number of answers.
func (o *opencodeEvents) total() (agent.Usage, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.usage, len(o.seen)
}
