package server

import (
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// collectRequest is the body of POST /v1/gc. Times are in seconds. A missing one means
// the store's default, 0 at once.
type collectRequest struct {
	Completed     *float64 `json:"completed"`
	Failed        *float64 `json:"failed"`
	IncludeFailed bool     `json:"include_failed"`
	Checkpoints   int      `json:"checkpoints"`
	Handoffs      *float64 `json:"handoffs"`
	DryRun        bool     `json:"dry_run"`
}

func (s *server) collect(r *request) (any, error) {
	var body collectRequest
	if err := r.body(&body); err != nil {
		return nil, err
	}
	req := perdure.PruneRequest{DryRun: body.DryRun, Policy: perdure.RetentionPolicy{
		IncludeFailed: body.IncludeFailed, Checkpoints: body.Checkpoints, Completed: r.seconds("completed", body.Completed),
		Failed: r.seconds("failed", body.Failed), Handoffs: r.seconds("handoffs", body.Handoffs)}}
	if body.Checkpoints < 0 || body.Checkpoints > perdure.MaxCheckpoints {
		r.keep(invalid("collect garbage", fmt.Sprintf("field \"checkpoints\" is %d, expected 0 to %d", body.Checkpoints,
			perdure.MaxCheckpoints), ""))
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return s.store.Prune(r.Context(), req)
}

// maxSeconds is 100 years.
const maxSeconds = 100 * 365 * 24 * 3600

// seconds converts a field of the body.
func (r *request) seconds(field string, v *float64) time.Duration {
	if v == nil {
		return 0
	}
	if *v < 0 || *v > maxSeconds {
		r.keep(invalid("collect garbage", fmt.Sprintf("field %q is %g, expected seconds from 0 to %d", field, *v,
			maxSeconds), ""))
	}
	return max(time.Nanosecond, time.Duration(*v*float64(time.Second))) // the store takes 0 for its default
}

func (s *server) check(r *request) (any, error) {
	if err := r.done(); err != nil {
		return nil, err
	}
	problems, err := s.store.Check(r.Context())
	return client.CheckReport{OK: len(problems) == 0, Problems: orEmpty(problems)}, err
}
