// Package invariant checks the conditions that hold in a store after every transaction.
package invariant

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Fault is a broken invariant. Kind is for programs, Detail for people.
type Fault struct{ Kind, Detail string }

// maxFaults bounds how many faults of one kind are listed.
const maxFaults = 20

// payloadColumn is the prefix of columns that refer to the table payload.
const payloadColumn = "\x01payload:"

// Find returns the faults in the snapshot of tx.
func Find(ctx context.Context, tx *sql.Tx) ([]Fault, error) {
	var faults []Fault
	for _, r := range rules() {
		var args []any
		if r.query == sqlCheckPayloads {
			args = []any{payloadColumn + "%"}
		}
		found, err := sqldb.Collect(ctx, tx.QueryContext, sqldb.Column[string],
			fmt.Sprintf("%s LIMIT %d", r.query, maxFaults), args...)
		if err != nil {
			return faults, fmt.Errorf("check %s: %w", r.kind, err)
		}
		for _, text := range found {
			faults = append(faults, Fault{r.kind, text})
		}
	}
	return faults, nil
}

// Blobs lists the hashes of the blobs that rows refer to.
func Blobs(ctx context.Context, tx *sql.Tx) ([]string, error) {
	return sqldb.Collect(ctx, tx.QueryContext, sqldb.Column[string], sqlCheckRefs)
}

// rule is an invariant; each row of the query describes one fault.
type rule struct{ kind, query string }

func rules() []rule {
	return []rule{
		{"running_without_lease", sqlCheckLease},
		{"lease_without_running", sqlCheckIdleLease},
		{"ready_not_queued", sqlCheckReady},
		{"stuck_queued", sqlCheckStuck},
		{"stuck_waiting", sqlCheckWaiting},
		{"open_children", sqlCheckPending},
		{"task_without_rows", sqlCheckRows},
		{"parent_missing", sqlCheckParent},
		{"terminal_over_living", sqlCheckLiving},
		{"tree_state", sqlCheckTree},
		{"tree_counters", sqlCheckCounters},
		{"session_counters", sqlCheckSessions},
		{"open_calls", sqlCheckOpenCalls},
		{"usage_counters", sqlCheckUsage},
		{"call_usage", sqlCheckCalls},
		{"settled_twice", sqlCheckTwice},
		{"result_missing", sqlCheckResult},
		{"event_numbers", sqlCheckEvents},
		{"event_blocks", sqlCheckBlocks},
		{"task_numbers", sqlCheckNumbers},
		{"state_counters", sqlCheckStates},
		{"state_rows", sqlCheckStateRows},
		{"state_numbers", sqlCheckMutations},
		{"payload_missing", sqlCheckPayloads},
		{"iteration_briefs", sqlCheckBriefs},
	}
}

const (
	sqlCheckLease = `SELECT 'task ' || id FROM task_hot WHERE state = ` + sqldb.SQLRunning +
		` AND (session IS NULL OR claimed_at IS NULL)`
	sqlCheckIdleLease = `SELECT 'task ' || id FROM task_hot WHERE state <> ` + sqldb.SQLRunning +
		` AND session IS NOT NULL`
	sqlCheckReady = `SELECT 'task ' || id FROM task_hot WHERE state <> ` + sqldb.SQLQueued +
		` AND ready_at IS NOT NULL`
	sqlCheckStuck = `SELECT 'task ' || h.id FROM task_hot h WHERE h.state = ` + sqldb.SQLQueued +
		` AND h.ready_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM task t JOIN task_hot p ON p.id = t.id
			WHERE t.tree = h.tree AND t.parent = h.parent AND p.successor = h.id AND p.state IN ` + sqldb.SQLOpen + `)
		AND NOT EXISTS (SELECT 1 FROM tree x WHERE x.id = h.tree AND x.kind = '` + sqldb.KindRecord + `')`
	sqlCheckWaiting = `SELECT 'task ' || id FROM task_hot h WHERE state = ` + sqldb.SQLWaiting + ` AND pending = 0
		AND NOT EXISTS (SELECT 1 FROM gate_task g WHERE g.task = h.id AND g.answer = '')`
	sqlCheckPending = `SELECT 'task ' || p.id || ': ' || p.pending || ' counted' FROM task_hot p
		WHERE EXISTS (SELECT 1 FROM tree x WHERE x.id = p.tree) AND p.pending <> (SELECT COUNT(*) FROM task t JOIN task_hot h ON h.id = t.id
			WHERE t.tree = p.tree AND t.parent = p.id AND h.state IN ` + sqldb.SQLOpen + `)`
	sqlCheckRows = `SELECT 'task ' || t.id FROM task t WHERE NOT EXISTS (SELECT 1 FROM task_hot h WHERE h.id = t.id
			AND h.tree = t.tree AND h.parent = t.parent)
		UNION ALL SELECT 'task ' || h.id FROM task_hot h WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.id = h.id)`
	sqlCheckParent = `SELECT 'task ' || t.id FROM task t WHERE t.parent <> 0 AND EXISTS (SELECT 1 FROM tree x WHERE x.id = t.tree) AND NOT EXISTS (SELECT 1 FROM task p
		WHERE p.id = t.parent AND p.tree = t.tree AND p.depth = t.depth - 1 AND p.id < t.id)`
	sqlCheckLiving = `SELECT 'task ' || t.id FROM task t JOIN task_hot h ON h.id = t.id JOIN task_hot p ON p.id = t.parent
		WHERE h.state IN ` + sqldb.SQLOpen + ` AND p.state >= ` + sqldb.SQLCompleted
	sqlCheckTree = `SELECT 'tree ' || t.name FROM tree t LEFT JOIN tree_stat s ON s.tree = t.id
		LEFT JOIN task_hot r ON r.id = t.root
		WHERE s.tree IS NULL OR r.id IS NULL OR (r.state >= ` + sqldb.SQLCompleted +
		` AND s.state <> r.state) OR (r.state < ` + sqldb.SQLCompleted + ` AND s.state >= ` + sqldb.SQLCompleted + `)
			OR (s.state >= ` + sqldb.SQLCompleted + `) <> (s.ended_at IS NOT NULL)`
	sqlCheckCounters = `SELECT 'tree ' || s.tree FROM tree_stat s JOIN tree x ON x.id = s.tree LEFT JOIN (SELECT tree, COUNT(*) AS total,
			SUM(CASE WHEN state = ` + sqldb.SQLQueued + ` THEN 1 ELSE 0 END) AS q, SUM(CASE WHEN state = ` + sqldb.SQLRunning +
		` THEN 1 ELSE 0 END) AS r,
			SUM(CASE WHEN state = ` + sqldb.SQLWaiting + ` THEN 1 ELSE 0 END) AS w, SUM(CASE WHEN state = ` +
		sqldb.SQLCompleted + ` THEN 1 ELSE 0 END) AS c,
			SUM(CASE WHEN state = ` + sqldb.SQLFailed + ` THEN 1 ELSE 0 END) AS f, SUM(CASE WHEN state = ` +
		sqldb.SQLCancelled + ` THEN 1 ELSE 0 END) AS x
			FROM task_hot GROUP BY tree) n ON n.tree = s.tree
		WHERE n.tree IS NULL OR n.total <> s.total OR n.q <> s.queued OR n.r <> s.running OR n.w <> s.waiting
			OR n.c <> s.completed OR n.f <> s.failed OR n.x <> s.cancelled`
	sqlCheckSessions = `SELECT 'tree ' || s.tree FROM tree_stat s JOIN tree x ON x.id = s.tree
		LEFT JOIN (SELECT tree, STRING_AGG(session || '=' || n, ',' ORDER BY session) AS held
			FROM (SELECT tree, session, COUNT(*) AS n FROM task_hot WHERE session IS NOT NULL GROUP BY tree, session) r
			GROUP BY tree) h ON h.tree = s.tree
		WHERE s.held <> COALESCE(h.held, '')`
	sqlCheckOpenCalls = `SELECT 'tree ' || s.tree FROM tree_stat s JOIN tree x ON x.id = s.tree LEFT JOIN (SELECT tree, COUNT(*) AS n,
			SUM(open_tokens) AS tokens, SUM(open_cost_micros) AS cost FROM call WHERE state = ` + sqldb.SQLCallStarted +
		` GROUP BY tree) c ON c.tree = s.tree
		WHERE COALESCE(c.n, 0) <> s.open_calls OR COALESCE(c.tokens, 0) <> s.open_tokens
			OR COALESCE(c.cost, 0) <> s.open_cost_micros`
	sqlCheckUsage = `SELECT 'tree ' || s.tree FROM tree_stat s JOIN tree x ON x.id = s.tree LEFT JOIN (SELECT tree, SUM(calls) AS calls,
			SUM(input_tokens) AS i, SUM(output_tokens) AS o, SUM(cost_micros) AS m FROM task_hot GROUP BY tree) n ON n.tree = s.tree
		WHERE COALESCE(n.calls, 0) <> s.calls OR COALESCE(n.i, 0) <> s.input_tokens OR COALESCE(n.o, 0) <> s.output_tokens
			OR COALESCE(n.m, 0) <> s.cost_micros`
	// Before the usage of calls with unknown outcome was kept apart, it was part of the tree's tokens.
	sqlCheckCalls = `SELECT 'tree ' || s.tree FROM tree_stat s JOIN tree x ON x.id = s.tree
		JOIN (SELECT tree, SUM(input_tokens) AS i, SUM(output_tokens) AS o FROM call GROUP BY tree) c ON c.tree = s.tree
		WHERE (c.i <> s.input_tokens OR c.o <> s.output_tokens) AND (s.uncertain_calls = 0 OR s.costs LIKE '%"xt"%')`
	sqlCheckTwice = `SELECT 'task ' || task || ' position ' || position FROM call WHERE state = ` +
		sqldb.SQLCallCompleted + `
		GROUP BY task, attempt, position, request_hash HAVING COUNT(*) > 1`
	sqlCheckResult = `SELECT 'task ' || h.id FROM task_hot h WHERE h.state >= ` + sqldb.SQLCompleted +
		` AND NOT EXISTS (SELECT 1 FROM task_end e WHERE e.id = h.id)`
	sqlCheckBlocks = `SELECT 'event ' || e.seq FROM event e
		WHERE NOT EXISTS (SELECT 1 FROM event_block k WHERE k.tree = e.tree AND k.block = e.seq / ` + sqldb.SQLEventBlock +
		`)`
	sqlCheckEvents  = `SELECT 'event ' || e.seq || ' > counter ' || q.event FROM seq q JOIN event e ON e.seq > q.event`
	sqlCheckNumbers = `SELECT 'task ' || t.id || ' > counter ' || q.task FROM seq q JOIN task t ON t.id > q.task`
)

const (
	sqlCheckRefs   = `SELECT DISTINCT hash FROM blob_ref`
	sqlCheckStates = `SELECT 'state ' || s.id FROM state s WHERE s.variables <> (SELECT COUNT(*) FROM variable v WHERE v.state = s.id)
		OR s.entries <> (SELECT COUNT(*) FROM mutation m WHERE m.state = s.id)
		OR s.checkpoints <> (SELECT COUNT(*) FROM checkpoint c WHERE c.state = s.id)`
	sqlCheckStateRows = `SELECT 'variable of state ' || state || ': ' || name FROM variable v
			WHERE NOT EXISTS (SELECT 1 FROM state s WHERE s.id = v.state)
		UNION ALL SELECT 'past variable of state ' || v.state || ': ' || v.name FROM variable_past v
			WHERE v.dead <= v.born OR NOT EXISTS (SELECT 1 FROM state s WHERE s.id = v.state)`
	sqlCheckBriefs = `SELECT 'iteration ' || i.number || ' of tree ' || x.name FROM loop l JOIN tree x ON x.id = l.tree JOIN iteration i ON i.tree = l.tree
			LEFT JOIN brief b ON b.tree = i.tree AND b.number = i.number
			WHERE l.briefs > 0 AND (b.tree IS NULL OR b.task <> i.task OR b.status <> i.status OR b.started_at <> i.started_at
				OR COALESCE(b.quality, -1) <> COALESCE(i.quality, -1) OR COALESCE(b.ended_at, 0) <> COALESCE(i.ended_at, 0))
		UNION ALL SELECT 'brief ' || b.number || ' of tree ' || x.name FROM brief b JOIN tree x ON x.id = b.tree
			WHERE NOT EXISTS (SELECT 1 FROM iteration i WHERE i.tree = b.tree AND i.number = b.number)`
	sqlCheckMutations = `SELECT 'mutation ' || m.id FROM seq q JOIN mutation m ON m.id > q.mutation
		UNION ALL SELECT 'state ' || s.id FROM seq q JOIN state s ON s.id > q.mutation`
	sqlCheckPayloads = `SELECT 'tree ' || r.tree || ' needs payload ' || r.ref FROM (
			SELECT tree, substr(prompt, 10) AS ref FROM task WHERE prompt LIKE $1
			UNION ALL SELECT tree, substr(result, 10) FROM task_end WHERE result LIKE $1
			UNION ALL SELECT tree, substr(data, 10) FROM task_end WHERE data LIKE $1
			UNION ALL SELECT tree, substr(response, 10) FROM call WHERE response LIKE $1
			UNION ALL SELECT tree, substr(data, 10) FROM call WHERE data LIKE $1
			UNION ALL SELECT CASE WHEN s.tree = 0 THEN -s.id ELSE s.tree END, substr(v.value, 10) FROM variable v
				JOIN state s ON s.id = v.state WHERE v.value LIKE $1
			UNION ALL SELECT CASE WHEN s.tree = 0 THEN -s.id ELSE s.tree END, substr(v.value, 10) FROM variable_past v
				JOIN state s ON s.id = v.state WHERE v.value LIKE $1) r
		WHERE NOT EXISTS (SELECT 1 FROM payload p WHERE p.tree = r.tree AND p.hash = r.ref)`
)
