-- What is kept of sessions' last turns: without the message, which the digest finds it by. They go with their session.
CREATE TABLE kept_turns (
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    digest BLOB NOT NULL,
    state TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    PRIMARY KEY (tenant, session, number)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER kept_turns_go_with_their_session AFTER DELETE ON turns BEGIN
    DELETE FROM kept_turns WHERE tenant = old.tenant AND session = old.session;
END;
