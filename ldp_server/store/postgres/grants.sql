-- hearsay_collector may append, and see what is asked. hearsay_keeper may do everything but change the schema.
-- hearsay_curator may use volunteers' records, and see nothing else.
-- Roles belong to all databases of a PostgreSQL: somebody may make them for another one at the same moment.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['hearsay_collector', 'hearsay_keeper', 'hearsay_curator'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', name);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
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
