CREATE SCHEMA hearsay;

CREATE TABLE hearsay.version (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    number integer NOT NULL
);

CREATE TABLE hearsay.collections (
    number            integer PRIMARY KEY,
    id                bytea NOT NULL UNIQUE,
    spec              bytea NOT NULL,               -- public; kept after deletion, because it proves the id
    public            boolean NOT NULL,
    admission         text NOT NULL,
    reports_per_token integer NOT NULL,
    created           bigint NOT NULL,
    closed            bigint,
    deleted           bigint,
    compacted         boolean NOT NULL DEFAULT false,
    oldest            bigint NOT NULL DEFAULT 0,
    swept             boolean NOT NULL DEFAULT false -- its partitions were dropped
);

CREATE TABLE hearsay.periods (
    number         integer PRIMARY KEY,             -- random; that of the collection for period 0
    collection     integer NOT NULL,
    period         bigint NOT NULL,
    last           bigint NOT NULL DEFAULT 0,       -- the sequence of the newest batch in a block
    folded         bigint NOT NULL DEFAULT 0,
    folded_batches bigint NOT NULL DEFAULT 0,
    folded_reports bigint NOT NULL DEFAULT 0,
    generation     bigint,
    folded_digest  bytea,
    dropped        boolean NOT NULL DEFAULT false,
    swept          boolean NOT NULL DEFAULT false,  -- what the folded counts replace was dropped
    tag            bytea NOT NULL,
    UNIQUE (collection, period)
);

-- Batches that are in no block yet. One row for all that came in one group; it goes when a block takes its place.
CREATE TABLE hearsay.segments (
    id      bigint NOT NULL,                        -- random: it says nothing of the order of arrival
    number  integer NOT NULL,                       -- of the period's row
    batches integer NOT NULL,
    ids     uuid[] NOT NULL,
    digests uuid[] NOT NULL,
    tokens  uuid[],
    lengths integer[],                              -- NULL: all payloads have one length
    payload bytea NOT NULL,
    PRIMARY KEY (number, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
-- Random bytes: to compress them would be tried in vain.
ALTER TABLE hearsay.segments ALTER COLUMN payload SET STORAGE EXTERNAL;
ALTER TABLE hearsay.segments ALTER COLUMN ids SET STORAGE EXTERNAL;
ALTER TABLE hearsay.segments ALTER COLUMN digests SET STORAGE EXTERNAL;
ALTER TABLE hearsay.segments ALTER COLUMN tokens SET STORAGE EXTERNAL;
ALTER TABLE hearsay.segments SET (toast_tuple_target = 8160);

-- The ids of the same batches. Small, so its indexes stay in memory.
CREATE TABLE hearsay.recent_ids (
    collection integer NOT NULL,
    number     integer NOT NULL,
    batch_id   uuid NOT NULL,
    digest     uuid NOT NULL,
    token_id   uuid,
    PRIMARY KEY (collection, batch_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX recent_tokens ON hearsay.recent_ids (collection, token_id) WHERE token_id IS NOT NULL;

-- From here on one partition for each collection: it is dropped as a whole.
CREATE TABLE hearsay.blocks (
    collection integer NOT NULL,
    number     integer NOT NULL,
    last       bigint NOT NULL,                     -- the sequence of its last batch
    batches    integer NOT NULL,
    tie        uuid NOT NULL,
    ids        uuid[] NOT NULL,                     -- in order
    digests    uuid[] NOT NULL,
    lengths    integer[],
    payload    bytea NOT NULL,
    PRIMARY KEY (collection, number, last)
) PARTITION BY LIST (collection);

CREATE TABLE hearsay.batch_ids (
    collection integer NOT NULL,
    number     integer NOT NULL,
    batch_id   uuid NOT NULL,
    digest     uuid NOT NULL,
    PRIMARY KEY (collection, batch_id)
) PARTITION BY LIST (collection);

CREATE TABLE hearsay.used_tokens (
    collection integer NOT NULL,
    token_id   uuid NOT NULL,
    PRIMARY KEY (collection, token_id)
) PARTITION BY LIST (collection);

CREATE TABLE hearsay.counted_units (
    collection integer NOT NULL,
    digest     uuid NOT NULL,
    PRIMARY KEY (collection, digest)
) PARTITION BY LIST (collection);

CREATE TABLE hearsay.folded_state (
    number     integer NOT NULL,
    generation bigint NOT NULL,
    part       integer NOT NULL,
    data       bytea NOT NULL,
    written    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (number, generation, part)
);
ALTER TABLE hearsay.folded_state ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE hearsay.analyst_tokens (
    id      text PRIMARY KEY,
    name    text NOT NULL,
    role    text NOT NULL,
    created bigint NOT NULL,
    expires bigint NOT NULL,
    revoked bigint,
    local   boolean NOT NULL,
    hash    bytea NOT NULL
);
CREATE UNIQUE INDEX names_in_use ON hearsay.analyst_tokens (name) WHERE revoked IS NULL;
CREATE TABLE hearsay.salt (salt bytea NOT NULL);
INSERT INTO hearsay.salt SELECT uuid_send(gen_random_uuid());
