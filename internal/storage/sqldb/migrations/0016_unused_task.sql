-- Ranges of numbers below the counter of tasks that no task ever had: an import moves the
-- counter past its highest ID, and its tasks keep their IDs if these are still unused.
CREATE TABLE unused_task (
	first BIGINT NOT NULL PRIMARY KEY,
	last BIGINT NOT NULL
);
