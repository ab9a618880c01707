-- The work of which a place keeps a checkpoint for the next agent: its ledger.
-- "place" is the file that shows it, "task" which of the tasks in it. Of one
-- task at most one ledger is open. "projected" is what the file was last to
-- hold, written before the file is; "previous" what it held before that.
CREATE TABLE handoff (
	id {{id}},
	place TEXT NOT NULL,
	task TEXT NOT NULL,
	version BIGINT NOT NULL,
	fence BIGINT NOT NULL,
	agent TEXT NOT NULL,
	token TEXT NOT NULL,
	ttl BIGINT NOT NULL,
	expires_at BIGINT,
	projected TEXT NOT NULL,
	previous TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	ended_at BIGINT
);
CREATE UNIQUE INDEX handoff_open ON handoff (place, task) WHERE ended_at IS NULL;
CREATE INDEX handoff_of ON handoff (place, task, id);
CREATE INDEX handoff_ended ON handoff (ended_at) WHERE ended_at IS NOT NULL;

-- What was recorded, never changed.
CREATE TABLE handoff_entry (
	handoff BIGINT NOT NULL,
	number BIGINT NOT NULL,
	kind TEXT NOT NULL,
	data TEXT NOT NULL,
	source TEXT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (handoff, number)
){{compact}};
