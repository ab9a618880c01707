package model

import "context"

// Finding is a part of a request that a model at a server was found to refuse.
type Finding struct {
	// Part names it, for example "stream_options" or "temperature=0.7".
	Part string
	// Value is what is sent instead; empty if the part is left out.
	Value string
}

// Findings keeps findings between processes. Implementations are safe for concurrent use. Server is
// the address to which requests are sent, without a password.
type Findings interface {
	// Recall returns what is known of a model at a server.
	Recall(ctx context.Context, server, model string) ([]Finding, error)
	// Keep stores a finding.
	Keep(ctx context.Context, server, model string, f Finding) error
}
