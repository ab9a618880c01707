-- One row: what every writing transaction counts up. "tx" changes with every
-- transaction, so that others notice; "event" is the last event number.
CREATE TABLE seq (
	id INTEGER PRIMARY KEY,
	tx BIGINT NOT NULL,
	event BIGINT NOT NULL,
	tree BIGINT NOT NULL,
	task BIGINT NOT NULL,
	call BIGINT NOT NULL,
	session BIGINT NOT NULL
);
INSERT INTO seq (id, tx, event, tree, task, call, session) VALUES (1, 0, 0, 0, 0, 0, 0);

CREATE TABLE session (
	id {{id}},
	name TEXT NOT NULL,
	kind TEXT NOT NULL,
	host TEXT NOT NULL,
	pid BIGINT NOT NULL,
	started_at BIGINT NOT NULL,
	seen_at BIGINT NOT NULL,
	ended_at BIGINT
);
CREATE UNIQUE INDEX session_name ON session (name);
CREATE INDEX session_open ON session (id) WHERE ended_at IS NULL;

CREATE TABLE tree (
	id {{id}},
	name TEXT NOT NULL,
	kind TEXT NOT NULL,
	title TEXT NOT NULL,
	config TEXT NOT NULL,
	root BIGINT NOT NULL,
	owner BIGINT NOT NULL,
	placement TEXT NOT NULL,
	idempotency TEXT,
	created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX tree_name ON tree (name);
CREATE UNIQUE INDEX tree_idempotency ON tree (idempotency) WHERE idempotency IS NOT NULL;

-- The counters of a tree, changed in the transaction that changes a task.
-- "held" tells how many of its tasks which session runs ("3=2,7=1"), so that
-- status can show the tasks of a dead session as queued without a look at them.
CREATE TABLE tree_stat (
	tree {{id}},
	state INTEGER NOT NULL,
	partial INTEGER NOT NULL,
	total BIGINT NOT NULL,
	queued BIGINT NOT NULL,
	running BIGINT NOT NULL,
	waiting BIGINT NOT NULL,
	completed BIGINT NOT NULL,
	failed BIGINT NOT NULL,
	cancelled BIGINT NOT NULL,
	calls BIGINT NOT NULL,
	uncertain_calls BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	cost_micros BIGINT NOT NULL,
	unpriced_calls BIGINT NOT NULL,
	open_calls BIGINT NOT NULL,
	open_tokens BIGINT NOT NULL,
	open_cost_micros BIGINT NOT NULL,
	limits TEXT NOT NULL,
	warned INTEGER NOT NULL,
	costs TEXT NOT NULL,
	timing TEXT NOT NULL,
	held TEXT NOT NULL,
	started_at BIGINT,
	ended_at BIGINT
);

-- What changes while a task lives, narrow, because a writer pays by the page.
-- state: 1 queued, 2 running, 3 waiting, 4 completed, 5 failed, 6 cancelled.
-- ready_at is set while the task may be claimed, session while it is leased.
CREATE TABLE task_hot (
	id {{id}},
	tree BIGINT NOT NULL,
	parent BIGINT NOT NULL,
	rank BIGINT NOT NULL,
	state INTEGER NOT NULL,
	ready_at BIGINT,
	session BIGINT,
	fence BIGINT NOT NULL,
	attempt INTEGER NOT NULL,
	max_attempts INTEGER NOT NULL,
	pending INTEGER NOT NULL,
	successor BIGINT NOT NULL,
	flags INTEGER NOT NULL,
	started_at BIGINT,
	claimed_at BIGINT,
	active_us BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	cost_micros BIGINT NOT NULL,
	calls INTEGER NOT NULL,
	unpriced INTEGER NOT NULL
);
CREATE INDEX task_ready ON task_hot (tree, rank) WHERE ready_at IS NOT NULL;
CREATE INDEX task_leased ON task_hot (session, tree, rank) WHERE session IS NOT NULL;

-- What is written once, when the task is created.
CREATE TABLE task (
	id {{id}},
	tree BIGINT NOT NULL,
	parent BIGINT NOT NULL,
	depth INTEGER NOT NULL,
	position INTEGER NOT NULL,
	prompt TEXT NOT NULL,
	agent TEXT NOT NULL,
	strategy TEXT NOT NULL,
	merge TEXT NOT NULL,
	context TEXT NOT NULL,
	metadata TEXT NOT NULL,
	priority INTEGER NOT NULL,
	created_at BIGINT NOT NULL
);
CREATE INDEX task_children ON task (tree, parent, position);

-- What is known about the last end of a task.
CREATE TABLE task_end (
	id {{id}},
	tree BIGINT NOT NULL,
	result TEXT NOT NULL,
	data TEXT NOT NULL,
	error_kind TEXT NOT NULL,
	error TEXT NOT NULL,
	ended_at BIGINT NOT NULL
);

CREATE TABLE task_output (
	task BIGINT NOT NULL,
	part BIGINT NOT NULL,
	tree BIGINT NOT NULL,
	text TEXT NOT NULL,
	PRIMARY KEY (task, part)
){{compact}};

-- The journal of requests to models and agents.
-- state: 1 started, 2 completed, 3 failed, 4 uncertain.
CREATE TABLE call (
	id {{id}},
	tree BIGINT NOT NULL,
	task BIGINT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	fence BIGINT NOT NULL,
	state INTEGER NOT NULL,
	model TEXT NOT NULL,
	request_hash TEXT NOT NULL,
	open_tokens BIGINT NOT NULL,
	open_cost_micros BIGINT NOT NULL,
	response TEXT NOT NULL,
	data TEXT NOT NULL,
	error_kind TEXT NOT NULL,
	error TEXT NOT NULL,
	tries INTEGER NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	estimated INTEGER NOT NULL,
	cost_micros BIGINT,
	started_at BIGINT NOT NULL,
	ended_at BIGINT
);
CREATE INDEX call_task ON call (task, attempt, position, id);

CREATE TABLE event (
	seq {{id}},
	at BIGINT NOT NULL,
	tree BIGINT NOT NULL,
	task BIGINT NOT NULL,
	kind TEXT NOT NULL,
	data TEXT NOT NULL
);

-- Which trees have events among those numbered block * 256 to block * 256 + 255:
-- an index of events by tree of which a transaction seldom changes a page.
CREATE TABLE event_block (
	tree BIGINT NOT NULL,
	block BIGINT NOT NULL,
	PRIMARY KEY (tree, block)
){{compact}};

-- Values too long to stand in their row, once by content and tree.
CREATE TABLE payload (
	tree BIGINT NOT NULL,
	hash TEXT NOT NULL,
	text TEXT NOT NULL,
	PRIMARY KEY (tree, hash)
){{compact}};

-- Which trees need which blob. Tree 0 with a time holds one that a tree is
-- about to need.
CREATE TABLE blob_ref (
	hash TEXT NOT NULL,
	tree BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (hash, tree)
){{compact}};
CREATE INDEX blob_ref_tree ON blob_ref (tree);

-- The bytes of blobs where the store has no folder (PostgreSQL).
CREATE TABLE blob_chunk (
	hash TEXT NOT NULL,
	part INTEGER NOT NULL,
	bytes {{bytes}} NOT NULL,
	PRIMARY KEY (hash, part)
){{compact}};

CREATE TABLE context (
	id TEXT PRIMARY KEY,
	pack TEXT NOT NULL,
	manifest TEXT NOT NULL,
	files BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	tokens BIGINT NOT NULL,
	created_at BIGINT NOT NULL
);
