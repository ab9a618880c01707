-- The request that the tree was created for, if it had an idempotency key, such as a digest: another
-- request with the same key is refused. Empty: not compared.
ALTER TABLE tree ADD COLUMN request TEXT NOT NULL DEFAULT '';
