-- What views and choices need of an iteration, without its long record. A row is
-- written with that of the iteration; "data" is its record without what is long.
-- "kinds" are its regressions by type and severity, empty without any; "eligible"
-- says that the loop may leave it in the workspace.
CREATE TABLE brief (
	tree BIGINT NOT NULL,
	number INTEGER NOT NULL,
	task BIGINT NOT NULL,
	status TEXT NOT NULL,
	quality INTEGER,
	started_at BIGINT NOT NULL,
	ended_at BIGINT,
	eligible INTEGER NOT NULL,
	passed INTEGER NOT NULL,
	regressions INTEGER NOT NULL,
	recoveries INTEGER NOT NULL,
	agent_errors INTEGER NOT NULL,
	warnings INTEGER NOT NULL,
	sealed INTEGER NOT NULL,
	work_ms BIGINT NOT NULL,
	added_ms BIGINT NOT NULL,
	kinds TEXT NOT NULL,
	data TEXT NOT NULL,
	PRIMARY KEY (tree, number)
){{compact}};
CREATE INDEX brief_best ON brief (tree, passed, quality DESC, number) WHERE eligible = 1;
CREATE INDEX brief_regressed ON brief (tree, number) WHERE regressions > 0;

-- Which form the briefs of its iterations have; 0: they are not there yet, and
-- are made by who asks for them first.
ALTER TABLE loop ADD COLUMN briefs INTEGER NOT NULL DEFAULT 0;
