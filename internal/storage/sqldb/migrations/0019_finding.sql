-- Parts of requests that models refuse, so that other processes do not ask again: which part, and what is sent
-- instead (empty: it is left out). Older ones than a week are forgotten, because servers change.
CREATE TABLE finding (
	server TEXT NOT NULL,
	model TEXT NOT NULL,
	part TEXT NOT NULL,
	value TEXT NOT NULL,
	found_at BIGINT NOT NULL,
	PRIMARY KEY (server, model, part)
){{compact}};
