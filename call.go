package perdure

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// CallState is the state of a journaled call.
type CallState string

// The states of a call. CallUncertain: the process that sent the call died
// before it recorded the result.
const (
	CallStarted   CallState = "started"
	CallCompleted CallState = "completed"
	CallFailed    CallState = "failed"
	CallUncertain CallState = "uncertain"
)

var callStates = [...]CallState{sqldb.CallStarted: CallStarted, sqldb.CallCompleted: CallCompleted,
	sqldb.CallFailed: CallFailed, sqldb.CallUncertain: CallUncertain}

// Call is one request to a model or agent in the journal.
type Call struct {
	ID      CallID `json:"call_id"`
	Task    TaskID `json:"task_id"`
	Attempt int    `json:"attempt"`
	// Position is the place in the attempt, from 0; there may be gaps.
	Position    int       `json:"position"`
	State       CallState `json:"state"`
	Model       string    `json:"model"`
	RequestHash string    `json:"request_hash"`
	Response    string    `json:"response,omitempty"`
	// Thoughts are what the model thought, which are no part of the response.
	Thoughts string `json:"thoughts,omitempty"`
	// Data is what the executor stores with the text, such as citations.
	Data  json.RawMessage `json:"data,omitempty"`
	Error *TaskError      `json:"error,omitempty"`
	// Tries counts the requests sent for this call.
	Tries        int   `json:"tries"`
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	CachedTokens int64 `json:"cached_tokens,omitempty"`
	// Estimated is set when the provider did not report tokens.
	Estimated bool `json:"estimated,omitempty"`
	// CostUSD is nil when the price is unknown.
	CostUSD *float64 `json:"cost_usd"`
	// UncertainTokens and UncertainCostUSD are what a call with unknown outcome took at most: its
	// reservation.
	UncertainTokens  int64   `json:"uncertain_tokens,omitempty"`
	UncertainCostUSD float64 `json:"uncertain_cost_usd,omitempty"`

	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
}

// CallSpec describes a call to begin.
type CallSpec struct {
	// Position is the call's place in the attempt, from 0: an interrupted
	// attempt finds the call there again. There may be gaps.
	Position int
	Model    string
	// RequestHash identifies everything that determines the answer.
	RequestHash string
	// ReserveTokens and ReserveCostMicros are reserved within the tree's limits
	// until the call is settled.
	ReserveTokens     int64
	ReserveCostMicros int64
}

// CallResult settles a call.
type CallResult struct {
	Response string
	// Thoughts are what the model thought; they are kept apart from the response.
	Thoughts string
	// Model is the model that answered, if it is not that of the CallSpec, because a
	// fallback was used.
	Model string
	Data  json.RawMessage
	// Err, when set, makes the call failed.
	Err *TaskError
	// Tries is the number of requests sent, at least 1. NotSent says that there was none,
	// because the answer was known.
	Tries        int
	NotSent      bool
	InputTokens  int64
	OutputTokens int64
	CachedTokens int64
	Estimated    bool
	// CostMicros is in millionths of a US dollar; nil when unknown.
	CostMicros *int64
}

const (
	// recentCalls is how many of the last calls of the store are searched for those to a
	// model, so that the time does not grow with the store.
	recentCalls  = 20_000
	sqlCallTimes = `SELECT COUNT(*), COALESCE(SUM(ended_at - started_at), 0) FROM (
		SELECT started_at, ended_at FROM call WHERE model = $1 AND tries > 0 AND state = ` + sqldb.SQLCallCompleted + `
			AND id > (SELECT COALESCE(MAX(id), 0) FROM call) - $2 ORDER BY id DESC LIMIT $3 + 0) AS last`
	// answeredTrees bounds the trees whose calls are searched.
	answeredTrees      = 100
	sqlAnsweredConfigs = `SELECT t.config FROM (SELECT tree, MAX(started_at) AS last FROM call WHERE model = $1
			AND tries > 0 AND state = ` + sqldb.SQLCallCompleted + `
			AND id > (SELECT COALESCE(MAX(id), 0) FROM call) - $2 GROUP BY tree ORDER BY tree DESC LIMIT $3 + 0) AS answered
		JOIN tree t ON t.id = answered.tree WHERE answered.last >= COALESCE(t.reopened_at, 0)`
)

// AnsweredConfigs returns the configurations of the newest trees in which a model answered, since
// they have these configurations.
func (s *Store) AnsweredConfigs(ctx context.Context, model string) ([]json.RawMessage, error) {
	var list []json.RawMessage
	err := sqldb.Each(ctx, s.db.Query, func(scan sqldb.Scan) error {
		var config string
		err := scan(&config)
		list = append(list, json.RawMessage(config))
		return err
	}, sqlAnsweredConfigs, model, recentCalls, answeredTrees)
	return list, wrap("read answered calls", err)
}

// MeanCallTime returns the mean time of the last calls to a model that were answered, at
// most so many. known is false if there is none among the last calls of the store.
func (s *Store) MeanCallTime(ctx context.Context, model string, most int) (mean time.Duration, known bool, err error) {
	var count, sum int64
	err = s.db.QueryRow(ctx, sqlCallTimes, []any{model, recentCalls, most}, &count, &sum)
	if err != nil || count == 0 {
		return 0, false, wrap("read call times", err)
	}
	return time.Duration(sum/count) * time.Microsecond, true, nil
}
