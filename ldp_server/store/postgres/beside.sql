-- What servers share beside the log.

-- Sealed records of volunteers (ldp_server/volunteers). The time of their arrival is not kept.
CREATE TABLE hearsay.volunteers (
    collection_id bytea NOT NULL,
    name          bytea NOT NULL,
    sealed        bytea NOT NULL,
    used          bigint,                           -- when a release used it; NULL: it can be withdrawn
    laid          boolean NOT NULL DEFAULT false,   -- its row was written again, in the order of names
    PRIMARY KEY (collection_id, name)
);
CREATE INDEX volunteers_to_lay ON hearsay.volunteers (collection_id) WHERE NOT laid;

-- The newest signature of each witness of the signed list.
CREATE TABLE hearsay.cosignatures (
    public_key bytea PRIMARY KEY,
    serial     bigint NOT NULL,                     -- how many collections the list had
    list_bytes bytea NOT NULL,
    signature  bytea NOT NULL
);
