-- Whether "text" is compressed with DEFLATE (SQLite only; PostgreSQL compresses long values by itself). Its
-- hash is that of the value.
ALTER TABLE payload ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
