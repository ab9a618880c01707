-- The hash chain over the events of each tree: "events" and "head" are the number of
-- chained events and their hash. Events up to the number "unchained" were written before
-- there was a chain. "link" is the beginning of the hash after an event; it serves to
-- find the first event that was changed.
ALTER TABLE event ADD COLUMN link INTEGER;
ALTER TABLE tree_stat ADD COLUMN events BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tree_stat ADD COLUMN head TEXT NOT NULL DEFAULT '';
ALTER TABLE tree_stat ADD COLUMN unchained BIGINT NOT NULL DEFAULT 0;
UPDATE tree_stat SET unchained = (SELECT event FROM seq WHERE id = 1);

-- The chain of the events that belong to no tree, and the ID of the store, empty until
-- heads are recorded outside of it.
ALTER TABLE seq ADD COLUMN events BIGINT NOT NULL DEFAULT 0;
ALTER TABLE seq ADD COLUMN head TEXT NOT NULL DEFAULT '';
ALTER TABLE seq ADD COLUMN unchained BIGINT NOT NULL DEFAULT 0;
ALTER TABLE seq ADD COLUMN store TEXT NOT NULL DEFAULT '';
UPDATE seq SET unchained = event;
