-- A task that waits at a gate of its tree, or did: "why" is what keeps it from going
-- on, "answer" what was decided of it, "text" the result that a person wrote for it.
CREATE TABLE gate_task (
	task BIGINT PRIMARY KEY,
	tree BIGINT NOT NULL,
	gate INTEGER NOT NULL,
	why TEXT NOT NULL,
	answer TEXT NOT NULL,
	answered_by TEXT NOT NULL,
	text TEXT NOT NULL
);
CREATE INDEX gate_task_gate ON gate_task (tree, gate, task);
