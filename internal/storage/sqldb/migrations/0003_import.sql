-- When a tree that was kept elsewhere came into this store. Retention counts
-- from then.
ALTER TABLE tree ADD COLUMN imported_at BIGINT;

-- What imported rows were called where they come from; "-" is what only the
-- import made. "extra" is a JSON object for whoever imported the state.
ALTER TABLE state ADD COLUMN foreign_id TEXT NOT NULL DEFAULT '';
ALTER TABLE state ADD COLUMN extra TEXT NOT NULL DEFAULT '';
ALTER TABLE mutation ADD COLUMN foreign_id TEXT NOT NULL DEFAULT '';
ALTER TABLE checkpoint ADD COLUMN foreign_id TEXT NOT NULL DEFAULT '';
