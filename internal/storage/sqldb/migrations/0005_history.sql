-- Values of the past are found by the mutation in which they died: an index by
-- name was one more page to write for each change.
DROP INDEX variable_past_name;
