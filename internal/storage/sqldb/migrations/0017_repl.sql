-- A block of code that the REPL of a task ran or runs. "number" counts the blocks of the
-- task from 0; "turn" is the reply that has it. "data" is the record as package rlm makes
-- it, "output" what the code printed, cut at the limit of the engines.
CREATE TABLE repl_block (
	tree BIGINT NOT NULL,
	task BIGINT NOT NULL,
	number INTEGER NOT NULL,
	turn INTEGER NOT NULL,
	data TEXT NOT NULL,
	output TEXT NOT NULL,
	started_at BIGINT NOT NULL,
	ended_at BIGINT,
	PRIMARY KEY (tree, task, number)
);
