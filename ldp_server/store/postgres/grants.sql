-- hearsay_collector may append, and see what is asked. hearsay_keeper may do everything but change the schema.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearsay_collector') THEN
        CREATE ROLE hearsay_collector NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearsay_keeper') THEN
        CREATE ROLE hearsay_keeper NOLOGIN;
    END IF;
END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA hearsay FROM PUBLIC;
GRANT USAGE ON SCHEMA hearsay TO hearsay_collector, hearsay_keeper;
GRANT SELECT ON hearsay.version, hearsay.collections, hearsay.periods, hearsay.counted_units
    TO hearsay_collector;
GRANT EXECUTE ON FUNCTION hearsay.append_1 TO hearsay_collector, hearsay_keeper;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hearsay TO hearsay_keeper;
REVOKE INSERT, UPDATE, DELETE ON hearsay.version FROM hearsay_keeper;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA hearsay TO hearsay_keeper;
