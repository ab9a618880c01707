package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure"
)

// ContextReport is the result of an upload.
type ContextReport struct {
	ID     string `json:"context_id"`
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
	Tokens int64  `json:"tokens"`
	// New is set if the store did not have the context, and CreatedAt is when it was stored.
	New       bool      `json:"new"`
	CreatedAt time.Time `json:"created_at"`
	// Skipped are files that were left out; MoreSkipped counts those the list
	// has no room for.
	Skipped     []SkippedFile `json:"skipped"`
	MoreSkipped int64         `json:"more_skipped,omitempty"`
	// SkippedKinds counts all of them by the kind of the reason; see LeftOut.
	SkippedKinds map[string]int64 `json:"skipped_kinds,omitempty"`
	// Notes are on files that were converted (converted) or have secrets (secret); MoreNotes
	// counts those the list has no room for.
	Notes     []ContextNote `json:"notes,omitempty"`
	MoreNotes int64         `json:"more_notes,omitempty"`
}

// ContextNote is a note on a file of a context.
type ContextNote struct {
	File string `json:"file"`
	// Kind is the kind of the note in a word, Text the note for people.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// SkippedFile is a file that was left out of a context.
type SkippedFile struct {
	File string `json:"file"`
	// Kind is the reason in a word; see LeftOut.
	Kind string `json:"kind,omitempty"`
	// Why is the reason for people.
	Why string `json:"why"`
}

// errUploadOver is the error of a writer of an upload whose reader has stopped.
var errUploadOver = errors.New("the server ended the upload")

// PutContext uploads the files of a context as one stream, which write writes:
// a tar file with a trailer, as the command `perdure run` sends it. The stream
// is read while it is written; of one that write does not finish nothing is
// kept, and write's error is returned as it is. When PutContext returns without
// an error, the context is durable.
func (c *Client) PutContext(ctx context.Context, write func(io.Writer) error) (ContextReport, error) {
	const op = "upload context"
	out, in := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(in)
		_ = in.CloseWithError(err)
		if errors.Is(err, errUploadOver) || errors.Is(err, io.ErrClosedPipe) {
			err = nil // the answer says why reading stopped
		}
		written <- err
	}()
	report, err := post[ContextReport](ctx, c, op, "/v1/contexts", out)
	_ = out.CloseWithError(errUploadOver)
	writeErr := <-written // write must not be running when this returns
	switch {
	case err != nil && ctx.Err() != nil:
		return report, c.transportError(ctx, op, ctx.Err())
	case writeErr != nil:
		return report, writeErr
	}
	return report, err
}

// Context returns what is known about a context.
func (c *Client) Context(ctx context.Context, id string) (perdure.Context, error) {
	return get[perdure.Context](ctx, c, "read context", "/v1/contexts/"+url.PathEscape(id), nil)
}

// ContextInfo is a context with the names of its first files.
type ContextInfo struct {
	perdure.Context
	Names []string `json:"names"`
}

// ContextFiles returns what is known about a context, with the names of its first files.
func (c *Client) ContextFiles(ctx context.Context, id string) (ContextInfo, error) {
	return get[ContextInfo](ctx, c, "read context", "/v1/contexts/"+url.PathEscape(id), url.Values{"names": {"1"}})
}

// DropContext removes a context that PutContext has just stored and for which no tree is created. It
// stays if the store had it before, if a tree needs it, or if it was uploaded again.
func (c *Client) DropContext(ctx context.Context, report *ContextReport) error {
	if !report.New || report.ID == "" {
		return nil
	}
	_, err := do[struct{}](ctx, c, &request{op: "remove context", method: http.MethodDelete,
		path: "/v1/contexts/" + url.PathEscape(report.ID), query: url.Values{"created_at": {
			report.CreatedAt.UTC().Format(time.RFC3339Nano)}}})
	return err
}
