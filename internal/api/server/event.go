package server

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/view/outline"
)

// events lists a page of events, or follows them as server-sent events when
// the request accepts text/event-stream.
func (s *server) events(r *request) (any, error) {
	filter := perdure.EventFilter{
		After: r.number("after", 0, math.MaxInt64, 0),
		Tree:  r.tree("tree"),
		Limit: r.limit(maxPage),
	}
	newest := int(r.number("newest", 1, maxPage, 0))
	if newest > 0 && filter.Tree == "" {
		r.fail(`parameter "newest" needs a tree`, "")
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	if filter.Tree != "" {
		if _, err := s.store.Tree(r.Context(), filter.Tree); err != nil {
			return nil, err
		}
	}
	if newest > 0 {
		if err := s.skipTo(r.Context(), &filter, newest); err != nil {
			return nil, err
		}
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return nil, s.follow(r, filter)
	}
	events, err := s.store.Events(r.Context(), filter)
	page := client.EventPage{Events: orEmpty(events), Next: filter.After}
	if len(events) > 0 {
		page.Next = events[len(events)-1].Seq
	}
	return page, err
}

// skipTo leaves out all events of a tree but the newest.
func (s *server) skipTo(ctx context.Context, filter *perdure.EventFilter, newest int) error {
	return s.store.ReadTx(ctx, func(ctx context.Context, tx *perdure.ReadTx) error {
		after, err := outline.Tail(ctx, tx, filter.Tree, filter.After, newest)
		filter.After = after
		return err
	})
}

// follow sends all events after a number and then each new one, until the client
// disconnects or stops reading for too long, or the server drains. The client resumes by
// Last-Event-ID and misses nothing: every event is read from the store by its number,
// none is passed in memory. So a slow reader delays only itself.
func (s *server) follow(r *request, filter perdure.EventFilter) error {
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return invalid("follow events", "the header Last-Event-ID is not the number of an event", "")
		}
		filter.After = n
	}
	filter.Limit = maxPage
	first, err := s.store.Events(r.Context(), filter)
	if err != nil {
		return err
	}
	h := r.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	r.w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	f := &follower{s: s, filter: filter, out: s.timed(r.w)}
	f.buf = bufio.NewWriterSize(f.out, pieceBytes)
	if err := f.run(r.Context(), first); err != nil {
		s.log.DebugContext(r.Context(), "event stream ended", "error", err)
	}
	return nil
}

type follower struct {
	s      *server
	filter perdure.EventFilter
	out    *timedWriter
	buf    *bufio.Writer
}

func (f *follower) run(ctx context.Context, page []perdure.Event) error {
	heartbeat := time.NewTicker(f.s.limits.Heartbeat)
	defer heartbeat.Stop()
	if err := f.comment("events"); err != nil {
		return err
	}
	for {
		if err := f.send(page); err != nil || f.s.draining() {
			return err
		}
		changed, read := f.s.store.Changed(), time.Now()
		var err error
		if page, err = f.s.store.Events(ctx, f.filter); err != nil {
			return err
		}
		for len(page) == 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-f.s.cfg.Draining:
				return nil
			case <-heartbeat.C:
				if err := f.comment("alive"); err != nil {
					return err
				}
				continue
			case <-changed:
			}
			if err := pause(ctx, read.Add(readPause)); err != nil {
				return err
			}
			break
		}
	}
}

// comment sends a line that clients skip.
func (f *follower) comment(text string) error {
	if _, err := f.buf.WriteString(": " + text + "\n\n"); err != nil {
		return err
	}
	return f.flush()
}

func (f *follower) flush() error {
	if err := f.buf.Flush(); err != nil {
		return err
	}
	return f.out.flush()
}

func (f *follower) send(page []perdure.Event) error {
	if len(page) == 0 {
		return nil
	}
	for i := range page {
		if err := f.event(&page[i]); err != nil {
			return err
		}
	}
	f.filter.After = page[len(page)-1].Seq
	return f.flush()
}

// event writes one event. JSON has no line breaks, so one data line is enough.
func (f *follower) event(e *perdure.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	kind := strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, string(e.Kind))
	_, err = f.buf.WriteString("id: " + strconv.FormatInt(e.Seq, 10) + "\nevent: " + kind + "\ndata: " + string(data) +
		"\n\n")
	return err
}
