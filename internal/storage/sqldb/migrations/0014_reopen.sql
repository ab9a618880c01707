-- A tree that was reopened: how often, and when last, which its time limit counts from.
ALTER TABLE tree ADD COLUMN reopened INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tree ADD COLUMN reopened_at BIGINT;
-- The first attempt of a task whose calls answer the same requests of later attempts; 0: none.
ALTER TABLE task_hot ADD COLUMN replays INTEGER NOT NULL DEFAULT 0;
