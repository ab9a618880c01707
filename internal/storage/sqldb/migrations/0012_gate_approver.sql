-- What the answer to the gate of a loop needs, empty for older gates and those of runs, and
-- the SHA-256 of the token that answers it, empty without one. "refused" counts refused
-- answers, up to a limit.
ALTER TABLE gate ADD COLUMN approver TEXT NOT NULL DEFAULT '';
ALTER TABLE gate ADD COLUMN token TEXT NOT NULL DEFAULT '';
ALTER TABLE gate ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
