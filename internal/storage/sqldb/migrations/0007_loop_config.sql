-- What a loop is to do since somebody changed that; empty: as its tree says.
ALTER TABLE loop ADD COLUMN config TEXT NOT NULL DEFAULT '';
