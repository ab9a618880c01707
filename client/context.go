package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/perdure/perdure"
)

// ContextReport tells what became of an upload.
type ContextReport struct {
	ID     string `json:"context_id"`
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
	Tokens int64  `json:"tokens"`
	// Skipped are files that were left out; MoreSkipped counts those the list
	// has no room for.
	Skipped     []SkippedFile `json:"skipped"`
	MoreSkipped int64         `json:"more_skipped,omitempty"`
}

// SkippedFile is a file that was left out of a context.
type SkippedFile struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// errUploadOver tells the writer of an upload that nobody reads it any more.
var errUploadOver = errors.New("the server ended the upload")

// PutContext uploads the files of a context as one stream, which write writes:
// a tar file with a trailer, as the command `perdure run` sends it. The stream
// is read while it is written; of one that write does not finish nothing is
// kept, and write's error is returned as it is. When PutContext returns without
// an error, the context is durable.
func (c *Client) PutContext(ctx context.Context, write func(io.Writer) error) (ContextReport, error) {
	const op = "upload context"
	var report ContextReport
	r := &request{op: op, method: http.MethodPost, path: "/v1/contexts", out: &report}
	out, in := io.Pipe()
	written := make(chan error, 1)
	defer func() { <-written }() // write must not be running when this returns
	go func() {
		defer close(written)
		err := write(in)
		_ = in.CloseWithError(err)
		if !errors.Is(err, errUploadOver) && !errors.Is(err, io.ErrClosedPipe) {
			written <- err
		}
	}()
	defer out.CloseWithError(errUploadOver) //nolint:errcheck // always nil
	req, err := newRequest(ctx, r, out)
	if err != nil {
		return report, err
	}
	req.Header.Set("Content-Type", "application/x-tar")
	resp, err := c.http.Do(req)
	if err == nil {
		return report, c.answer(ctx, r, resp)
	}
	_ = out.CloseWithError(errUploadOver)
	if writeErr := <-written; writeErr != nil && ctx.Err() == nil {
		return report, writeErr
	}
	return report, c.transportError(ctx, op, err)
}

// Context returns what is known about a context.
func (c *Client) Context(ctx context.Context, id string) (perdure.Context, error) {
	var found perdure.Context
	err := c.get(ctx, "read context", "/v1/contexts/"+url.PathEscape(id), nil, &found)
	return found, err
}
