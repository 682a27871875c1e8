-- Which one of several databases this is (store/sharded). Without a row it is the only one.
CREATE TABLE hearsay.shard (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    place  integer NOT NULL,                        -- from 0 on: 0 is the home
    shards integer NOT NULL,                        -- how many there are
    family uuid NOT NULL                            -- of the databases that belong together
);

-- Over how many of them the batches of a collection are spread: the first ones. It never changes.
ALTER TABLE hearsay.collections ADD COLUMN shards integer NOT NULL DEFAULT 1;

-- Whoever may use the schema must see it; roles that were made before have no right to a new table.
GRANT SELECT ON hearsay.shard TO PUBLIC;
