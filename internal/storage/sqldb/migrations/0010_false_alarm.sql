-- What a person marked as a false alarm in a loop: it does not alarm there again.
CREATE TABLE false_alarm (
	tree BIGINT NOT NULL,
	fingerprint TEXT NOT NULL,
	iteration INTEGER NOT NULL,
	event TEXT NOT NULL,
	what TEXT NOT NULL,
	marked_by TEXT NOT NULL,
	reason TEXT NOT NULL,
	marked_at BIGINT NOT NULL,
	PRIMARY KEY (tree, fingerprint)
){{compact}};
