-- A tree that repeats an agent. "place" is the workspace, which at most one loop
-- that has not ended works in; "wish" is what a person asked for meanwhile;
-- "state" is the engine's own document, which "step" says how to go on from.
CREATE TABLE loop (
	tree BIGINT PRIMARY KEY,
	place TEXT NOT NULL,
	status TEXT NOT NULL,
	wish TEXT NOT NULL,
	step TEXT NOT NULL,
	iteration INTEGER NOT NULL,
	state TEXT NOT NULL,
	version BIGINT NOT NULL,
	updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX loop_open ON loop (place) WHERE status IN ('running', 'paused', 'completing');

-- One repetition. Its number is never used again. "data" is the record as the
-- engine makes it; what lists and choices are made by stands beside it.
CREATE TABLE iteration (
	tree BIGINT NOT NULL,
	number INTEGER NOT NULL,
	task BIGINT NOT NULL,
	status TEXT NOT NULL,
	quality INTEGER,
	data TEXT NOT NULL,
	started_at BIGINT NOT NULL,
	ended_at BIGINT,
	PRIMARY KEY (tree, number)
){{compact}};

-- A question to a person, which its loop waits for.
CREATE TABLE gate (
	tree BIGINT NOT NULL,
	number INTEGER NOT NULL,
	iteration INTEGER NOT NULL,
	kind TEXT NOT NULL,
	question TEXT NOT NULL,
	opened_at BIGINT NOT NULL,
	expires_at BIGINT,
	answer TEXT NOT NULL,
	answered_by TEXT NOT NULL,
	reason TEXT NOT NULL,
	answered_at BIGINT,
	PRIMARY KEY (tree, number)
){{compact}};
CREATE INDEX gate_open ON gate (tree) WHERE answered_at IS NULL;
