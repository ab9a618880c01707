package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/jsonrpc"
)

// Piped makes an agent of a function that talks over pipes in this process.
// killed is closed when it is to end; it ends with its pipes, too.
func Piped(cfg Config, script func(in io.Reader, out io.Writer, killed <-chan struct{})) (*Agent, error) {
	cfg.Command = []string{os.Args[0]}
	a, err := New(cfg)
	if err != nil {
		return nil, err
	}
	a.start = func(context.Context, *run) (*peer, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		killed, done := make(chan struct{}), make(chan struct{})
		kill := sync.OnceFunc(func() {
			close(killed)
			_ = inR.Close()
			_ = outW.Close()
		})
		go func() {
			defer close(done)
			defer inR.Close()
			defer outW.Close()
			script(inR, outW, killed)
		}()
		return &peer{in: inW, out: outR, stop: kill, kill: kill, wait: func() error { <-done; return nil }}, nil
	}
	return a, nil
}

// Frames reads all lines: their text, whether they were cut, and how long they
// were.
func Frames(r io.Reader, limit int) (data [][]byte, cut []bool, sizes []int64) {
	f := jsonrpc.NewReader(r, limit)
	for {
		got, err := f.Next()
		if err != nil {
			return data, cut, sizes
		}
		data, cut, sizes = append(data, got.Data), append(cut, got.Cut), append(sizes, got.Size)
	}
}

// Droppable reports whether a frame with this head can be left out.
func Droppable(head []byte) bool { return jsonrpc.Droppable(head) }

// Story takes updates one after another, as lines of JSON. It returns the
// events, and what it holds of tool calls.
func Story(updates ...string) (events []agent.Event, calls, bytes int, err error) {
	s := &story{phase: working}
	for _, line := range updates {
		var u update
		if bad := jsonrpc.Lenient(json.RawMessage(line), &u); bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		events = append(events, s.take(&u, false)...)
	}
	return events, len(s.calls.known), s.calls.bytes, err
}

// The limits on what is remembered of tool calls.
const (
	MaxCalls     = maxCalls
	MaxCallBytes = maxCallBytes
)

// UsageOf reads the usage out of the result of session/prompt.
func UsageOf(result string) agent.Usage {
	c := readCompletion(json.RawMessage(result))
	return c.usage()
}

// KindOfText returns the kind of failure that a message describes.
func KindOfText(text string) agent.Kind { return kindOfText(text) }

// JoinWords makes a command line of words.
func JoinWords(words []string) string { return joinWords(words) }

// OpencodeEvents reads the events of opencode's server until ctx ends or the session is idle, and
// returns the usage.
func OpencodeEvents(ctx context.Context, handler http.Handler, session string, tell func(agent.Event)) (agent.Usage,
	error) {
	o, err := newOpencodeEvents(tell)
	if err != nil {
		return agent.Usage{}, err
	}
	o.session = session
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return agent.Usage{}, err
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	defer s.Close()
	go s.Serve(l) //nolint:errcheck // it is closed
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	err = o.follow(ctx, &done)
	o.settle(ctx)
	stop()
	done.Wait()
	usage, _ := o.total()
	return usage, err
}

// CostOf returns the cost of a turn with a usage update of an amount; -1 if it is unknown.
func CostOf(preset, model, amount string) int64 {
	p, _ := presetNamed(preset)
	s := &story{phase: working, model: model, prices: p.prices, before: new(int64)}
	var u update
	_ = jsonrpc.Lenient(json.RawMessage(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":`+amount+
		`,"currency":"USD"}}`), &u)
	s.take(&u, false)
	if micros := s.spent(); micros != nil {
		return *micros
	}
	return -1
}
