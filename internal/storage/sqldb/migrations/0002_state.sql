-- What every change of a variable counts up: the numbers of mutations, states
-- and checkpoints, each used once in a store.
ALTER TABLE seq ADD COLUMN mutation BIGINT NOT NULL DEFAULT 0;

-- One instance of a scope. scope: 1 global, 2 session, 3 tree, 4 temporary. In
-- the scope of a tree the root's state is the tree's, and each task below may
-- have one. "owner" is the session's or the temporary state's name.
CREATE TABLE state (
	id {{id}},
	scope INTEGER NOT NULL,
	tree BIGINT NOT NULL,
	task BIGINT NOT NULL,
	owner TEXT NOT NULL,
	variables BIGINT NOT NULL,
	mutations BIGINT NOT NULL,
	entries BIGINT NOT NULL,
	compacted BIGINT NOT NULL,
	checkpoints BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	expires_at BIGINT
);
CREATE UNIQUE INDEX state_of ON state (scope, tree, task, owner);

-- The variables as they are. "born" is the mutation that gave the value.
CREATE TABLE variable (
	state BIGINT NOT NULL,
	name TEXT NOT NULL,
	born BIGINT NOT NULL,
	value TEXT NOT NULL,
	size BIGINT NOT NULL,
	type TEXT NOT NULL,
	description TEXT NOT NULL,
	source TEXT NOT NULL,
	read_only INTEGER NOT NULL,
	ttl BIGINT NOT NULL,
	accessed BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	expires_at BIGINT,
	PRIMARY KEY (state, name)
);
CREATE INDEX variable_expiry ON variable (expires_at) WHERE expires_at IS NOT NULL;

-- The values that were: from the mutation "born" until the mutation "dead". A
-- checkpoint is a number between them, so nothing is copied for it. They lie in
-- the order in which they died: they are written one behind the other, and what a
-- rollback brings back is what died since.
CREATE TABLE variable_past (
	state BIGINT NOT NULL,
	name TEXT NOT NULL,
	born BIGINT NOT NULL,
	dead BIGINT NOT NULL,
	value TEXT NOT NULL,
	size BIGINT NOT NULL,
	type TEXT NOT NULL,
	description TEXT NOT NULL,
	source TEXT NOT NULL,
	read_only INTEGER NOT NULL,
	ttl BIGINT NOT NULL,
	accessed BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	expires_at BIGINT,
	PRIMARY KEY (state, dead, name)
);
CREATE INDEX variable_past_name ON variable_past (state, name, born);

-- What was done to a state. The value after is the one that was born with the
-- mutation; "before" is when the value before it was born, 0 when there was none.
CREATE TABLE mutation (
	state BIGINT NOT NULL,
	id BIGINT NOT NULL,
	operation TEXT NOT NULL,
	name TEXT NOT NULL,
	before BIGINT NOT NULL,
	detail TEXT NOT NULL,
	source TEXT NOT NULL,
	reason TEXT NOT NULL,
	task BIGINT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (state, id)
){{compact}};

CREATE TABLE checkpoint (
	id {{id}},
	state BIGINT NOT NULL,
	name TEXT NOT NULL,
	description TEXT NOT NULL,
	created_at BIGINT NOT NULL
);
CREATE INDEX checkpoint_state ON checkpoint (state, id);

-- Tasks whose lease has changed variables since it was claimed or made a
-- checkpoint: behind the mutation "since" everything it did is undone when the
-- task is run again.
CREATE TABLE task_vars (
	task {{id}},
	since BIGINT NOT NULL,
	states TEXT NOT NULL
);
