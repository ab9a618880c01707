package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/perdure/perdure"
)

// Health reports whether the server runs and can read its store.
type Health struct {
	OK bool `json:"ok"`
	// Draining is set while the server stops: it starts no more trees.
	Draining bool `json:"draining"`
}

// Version is the version of the server.
type Version struct {
	Version string `json:"version"`
	// API is the version of the API, "v1".
	API string `json:"api"`
	// Database is "sqlite" or "postgres".
	Database string `json:"database"`
}

// Ping reports whether a server answers, within Config.PingTimeout. An error says
// whether there is no server, a dead one, or one that hangs.
func (c *Client) Ping(ctx context.Context) error {
	errSilent := errors.New("no answer in time")
	within, cancel := context.WithTimeoutCause(ctx, c.cfg.PingTimeout, errSilent)
	defer cancel()
	err := c.askWhileBroken(within)
	if err != nil && errors.Is(context.Cause(within), errSilent) && ctx.Err() == nil {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: "ping server",
			Msg:  fmt.Sprintf("the server takes connections and did not answer within %s", c.cfg.PingTimeout),
			Hint: "it may be busy or stopped; try again, or stop it and start `perdure serve`", Err: err}
	}
	return err
}

// A server that ends breaks the connections that it did not accept yet, for a moment.
const (
	brokenTries = 5
	brokenWait  = 10 * time.Millisecond
)

// askWhileBroken asks what the server is, and asks again if the connection breaks.
func (c *Client) askWhileBroken(ctx context.Context) error {
	for try := 1; ; try++ {
		_, err := c.Version(ctx) // unlike health it needs no store, which the next request reads anyway
		var sent *url.Error
		if !errors.As(err, &sent) || dialing(err) || try == brokenTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(brokenWait):
		}
	}
}

// Health asks how the server is.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return get[Health](ctx, c, "ask for health", "/v1/health", nil)
}

// Version asks what the server is.
func (c *Client) Version(ctx context.Context) (Version, error) {
	return get[Version](ctx, c, "ask for the version", "/v1/version", nil)
}
