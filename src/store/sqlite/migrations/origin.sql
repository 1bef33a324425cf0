-- Which database this is, so that whoever copies it twice stores nothing twice.
CREATE TABLE origin (
    incarnation BLOB NOT NULL
) STRICT;
INSERT INTO origin (incarnation) VALUES (randomblob(16));
