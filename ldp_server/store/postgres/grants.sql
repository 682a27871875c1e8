-- hearsay_collector may append, and see what is asked. hearsay_keeper may do everything but change the schema.
-- hearsay_curator may use volunteers' records, and see nothing else.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearsay_collector') THEN
        CREATE ROLE hearsay_collector NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearsay_keeper') THEN
        CREATE ROLE hearsay_keeper NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearsay_curator') THEN
        CREATE ROLE hearsay_curator NOLOGIN;
    END IF;
END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA hearsay FROM PUBLIC;
GRANT USAGE ON SCHEMA hearsay TO hearsay_collector, hearsay_keeper, hearsay_curator;
GRANT SELECT ON hearsay.version, hearsay.shard, hearsay.collections, hearsay.periods, hearsay.counted_units, hearsay.cosignatures
    TO hearsay_collector;
GRANT EXECUTE ON FUNCTION hearsay.append_1, hearsay.give_1, hearsay.withdraw_1, hearsay.cosign_1
    TO hearsay_collector, hearsay_keeper;
GRANT SELECT ON hearsay.version, hearsay.shard TO hearsay_curator;
GRANT SELECT, UPDATE, DELETE ON hearsay.volunteers TO hearsay_curator;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hearsay TO hearsay_keeper;
REVOKE INSERT, UPDATE, DELETE ON hearsay.version, hearsay.shard FROM hearsay_keeper;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA hearsay TO hearsay_keeper;
