package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/sse"
)

// EventPage is a part of the log.
type EventPage struct {
	Events []perdure.Event `json:"events"`
	// Next is the number to ask for after.
	Next int64 `json:"next"`
}

// EventPage returns events behind a number, of all trees or of one, without
// waiting. limit 0 means 1,000, which is also the most.
func (c *Client) EventPage(ctx context.Context, after int64, tree perdure.TreeID, limit int) (EventPage, error) {
	return get[EventPage](ctx, c, "list events", "/v1/events", query("after", after, "tree", tree, "limit", limit))
}

// NewestEvents returns the events of a tree behind a number, but only the newest
// of them, at most so many (1 to 1,000), without waiting.
func (c *Client) NewestEvents(ctx context.Context, after int64, tree perdure.TreeID, newest int) (EventPage, error) {
	return get[EventPage](ctx, c, "list events", "/v1/events", query("after", after, "tree", tree, "newest", newest))
}

// Events yields all events behind a number, of all trees or of one, and then
// those to come, in order, each exactly once. When the connection breaks it
// connects again by itself and continues where it was. It ends when the caller
// stops, and with an error, yielded last: when the context ends, when the server
// refuses, or when it cannot be reached for Config.Patience.
func (c *Client) Events(ctx context.Context, after int64, tree perdure.TreeID) iter.Seq2[perdure.Event, error] {
	return func(yield func(perdure.Event, error) bool) {
		f := &follower{c: c, tree: tree, last: after, yield: yield, lastContact: time.Now(), delay: minDelay}
		if err := f.run(ctx); !errors.Is(err, errStopped) {
			yield(perdure.Event{}, err)
		}
	}
}

// errStopped ends a follower whose caller wants no more.
var errStopped = errors.New("stopped by the caller")

// The time between attempts to connect grows from minDelay to maxDelay.
const (
	minDelay = 50 * time.Millisecond
	maxDelay = 2 * time.Second
)

const opFollow = "follow events"

// maxEvent bounds one event of the stream, in bytes.
const maxEvent = 64 << 20

type follower struct {
	c     *Client
	tree  perdure.TreeID
	yield func(perdure.Event, error) bool
	// last is the number of the last event that was yielded.
	last        int64
	lastContact time.Time
	delay       time.Duration
}

func (f *follower) run(ctx context.Context) error {
	for {
		err := f.stream(ctx)
		switch {
		case errors.Is(err, errStopped):
			return err
		case ctx.Err() != nil:
			return f.c.transportError(ctx, opFollow, ctx.Err())
		case err != nil && permanent(err):
			return err
		case err != nil && f.c.cfg.Patience > 0 && time.Since(f.lastContact) > f.c.cfg.Patience:
			return err
		}
		jitter := time.Duration(rand.Int64N(int64(f.delay)))
		if err := f.c.sleep(ctx, f.delay/2+jitter); err != nil {
			return err
		}
		f.delay = min(2*f.delay, maxDelay)
	}
}

// permanent reports whether trying again is of no use.
func permanent(err error) bool {
	code := perdure.CodeOf(err)
	return errors.Is(err, errUnreadable) || code != perdure.CodeUnavailable && code != perdure.CodeInternal
}

// stream reads one connection until it ends; nil means that the server ended
// it.
func (f *follower) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A connection whose server is gone without a word shows by its silence.
	watchdog := time.AfterFunc(f.c.cfg.Silence, func() { cancel(errSilence) })
	defer watchdog.Stop()
	resp, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	begin := time.Now()
	defer func() {
		if time.Since(begin) > maxDelay {
			f.delay = minDelay // it was a good connection
		}
	}()
	events := sse.NewReader(resp.Body, maxEvent)
	for {
		m, err := events.Next()
		if err != nil {
			return f.broken(ctx, err)
		}
		watchdog.Reset(f.c.cfg.Silence)
		f.lastContact = time.Now()
		if m.Data == nil {
			continue
		}
		if err := f.deliver(m); err != nil {
			return err
		}
		// While the caller had the event the connection was not read.
		watchdog.Reset(f.c.cfg.Silence)
	}
}

var (
	errSilence    = errors.New("the event stream was silent for too long")
	errUnreadable = errors.New("it is not JSON of an event")
)

func (f *follower) connect(ctx context.Context) (*http.Response, error) {
	r := &request{op: opFollow, method: http.MethodGet, path: "/v1/events", query: query("tree", f.tree)}
	req, err := newRequest(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", strconv.FormatInt(f.last, 10))
	resp, err := f.c.http.Do(req)
	if err != nil {
		return nil, f.broken(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, problemError(opFollow, resp)
	}
	return resp, nil
}

// broken gives the end of a connection a code; silence is like any other end.
func (f *follower) broken(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilence) {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: opFollow, Err: errSilence}
	}
	return f.c.transportError(ctx, opFollow, err)
}

func (f *follower) deliver(m sse.Event) error {
	var e perdure.Event
	if err := json.Unmarshal(m.Data, &e); err != nil || e.Seq <= 0 {
		return &perdure.Error{Code: perdure.CodeInternal, Op: opFollow, Msg: "the server sent an event that cannot be read",
			Err: errors.Join(errUnreadable, err)}
	}
	if e.Seq <= f.last {
		return nil // seen before the connection broke
	}
	f.last, f.delay = e.Seq, minDelay
	if !f.yield(e, nil) {
		return errStopped
	}
	f.lastContact = time.Now()
	return nil
}
