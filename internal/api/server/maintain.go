package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure"
)

// collectRequest is the body of POST /v1/gc. Times are in seconds; what is left
// out is the store's default; 0 is at once.
type collectRequest struct {
	Completed     *float64 `json:"completed"`
	Failed        *float64 `json:"failed"`
	IncludeFailed bool     `json:"include_failed"`
	Checkpoints   int      `json:"checkpoints"`
	Handoffs      *float64 `json:"handoffs"`
	DryRun        bool     `json:"dry_run"`
}

func (s *server) collect(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body collectRequest
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	req := perdure.PruneRequest{DryRun: body.DryRun}
	req.Policy.IncludeFailed = body.IncludeFailed
	var err error
	if req.Policy.Completed, err = seconds("completed", body.Completed); err != nil {
		return err
	}
	if req.Policy.Failed, err = seconds("failed", body.Failed); err != nil {
		return err
	}
	if req.Policy.Handoffs, err = seconds("handoffs", body.Handoffs); err != nil {
		return err
	}
	if req.Policy.Checkpoints = body.Checkpoints; body.Checkpoints < 0 || body.Checkpoints > perdure.MaxCheckpoints {
		return invalid("collect garbage", fmt.Sprintf("field \"checkpoints\" is %d, up to %d are kept", body.Checkpoints,
			perdure.MaxCheckpoints), "")
	}
	report, err := s.store.Prune(r.Context(), req)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, report)
}

// maxSeconds is 100 years.
const maxSeconds = 100 * 365 * 24 * 3600

func seconds(field string, v *float64) (time.Duration, error) {
	if v == nil {
		return 0, nil
	}
	if *v < 0 || *v > maxSeconds {
		return 0, invalid("collect garbage", fmt.Sprintf("field %q is %g, seconds from 0 to %d are needed", field, *v,
			maxSeconds), "")
	}
	// The store takes 0 for its default; here it is asked for in so many words.
	return max(time.Nanosecond, time.Duration(*v*float64(time.Second))), nil
}

func (s *server) check(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	problems, err := s.store.Check(r.Context())
	if err != nil {
		return err
	}
	if problems == nil {
		problems = []perdure.Problem{}
	}
	return s.reply(w, http.StatusOK, struct {
		OK       bool              `json:"ok"`
		Problems []perdure.Problem `json:"problems"`
	}{len(problems) == 0, problems})
}
