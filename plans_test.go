package perdure_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// scans are the statements that read a whole table, or all of a tree's rows in
// one, and why they may.
var scans = map[string]string{
	"sqlExpired": "retention looks at every tree, now and then",
	"sqlGone":    "retention looks at every tree, now and then",
	"sqlTasks":   "a beginning; the conditions follow",

	"sqlSweepCall":   "a bounded number of rows of a tree",
	"sqlSweepEnd":    "a bounded number of rows of a tree",
	"sqlSweepHot":    "a bounded number of rows of a tree",
	"sqlSweepOutput": "a bounded number of rows of a tree",
	"sqlSweepTask":   "a bounded number of rows of a tree",
	"sqlLastCall":    "sorts the calls of one position",

	"sqlAnsweredConfigs": "groups a bounded number of calls",

	"sqlSweepTaskVars":   "a bounded number of rows of a tree",
	"sqlInherited":       "sorts what the ancestors of one task have",
	"sqlDumpPast":        "sorts what one state that is exported had",
	"sqlOpenGates":       "the index holds the open gates and no others",
	"sqlWaitingTrees":    "the index holds the open gates and no others",
	"sqlOpenPlaces":      "the index holds the loops that have not ended and no others",
	"sqlFalseAlarms":     "sorts what people marked in one loop, of which there is a limit",
	"sqlKinds":           "groups the iterations of one loop that made something worse",
	"sqlColumns":         "groups the iterations of one loop",
	"sqlManyCheckpoints": "retention looks at every state, now and then",
}

// large are the tables that grow with the store.
var large = regexp.MustCompile(`SCAN (task|task_hot|task_end|task_output|call|event|event_block|payload|tree|` +
	`tree_stat|session|state|variable|variable_past|mutation|checkpoint|task_vars|handoff|handoff_entry|loop|iteration|` +
	`gate|blob_ref|blob_chunk|[a-z])\b|task_children \(tree=\?\)|TEMP B-TREE`)

// TestQueryPlans wants every statement to find its rows by an
// index on SQLite, whose planner has no statistics: a statement that reads a
// whole table is fast in every other test and stops a store of a million tasks.
func TestQueryPlans(t *testing.T) {
	t.Parallel()
	db := migratedSQLite(t)
	queries := queriesOf(t, ".", "internal/storage/gc", "loop/record", "handoff/ledger")
	for _, name := range sortedNames(queries) {
		text, err := planOf(t.Context(), db, queries[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if found := large.FindString(text); (found != "") != (scans[name] != "") {
			t.Errorf("%s: %q in the plan: %s", name, found, text)
		}
	}
}

// planOf says in one line how SQLite would run a statement.
func planOf(ctx context.Context, db *sql.DB, query string) (string, error) {
	rows, err := db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, manyArguments(query)...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return "", err
		}
		plan = append(plan, detail)
	}
	return strings.Join(plan, "; "), rows.Err()
}

// manyArguments are arguments for all parameters of a statement.
func manyArguments(query string) []any {
	n := 0
	for strings.Contains(query, fmt.Sprint("$", n+1)) {
		n++
	}
	args := make([]any, n)
	for i := range args {
		args[i] = 1
	}
	return args
}
