-- Advisory locks, (class, collection):
--   7900  shared by every append; exclusive for who changes what appends look at: it waits for who is inside
--   7901  exclusive for who lays the blocks of a collection
--   7902  exclusive while a collection is sealed; an append that cannot share it is told "sealed"
--   7903  (with 0) whoever does what one server does for all
--   7904, 7905 (with 0)  migrations; entering a collection
--   7906  (with 0)  who fills the database from another store
--   7907  (with 0) shared by who gives, withdraws or uses volunteers' records; exclusive for who writes their rows again

CREATE OR REPLACE FUNCTION hearsay.add_partitions(c integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parent text;
BEGIN
    -- Made beside the parent and attached: ATTACH locks nobody out, CREATE .. PARTITION OF would.
    FOREACH parent IN ARRAY ARRAY['blocks', 'batch_ids', 'used_tokens', 'counted_units'] LOOP
        EXECUTE format('CREATE TABLE hearsay.%1$s_%2$s (LIKE hearsay.%1$s INCLUDING ALL, CHECK (collection = %2$s))',
                       parent, c);
        IF parent = 'blocks' THEN
            EXECUTE format('ALTER TABLE hearsay.blocks_%s ALTER COLUMN payload SET STORAGE EXTERNAL', c);
        END IF;
        EXECUTE format('ALTER TABLE hearsay.%1$s ATTACH PARTITION hearsay.%1$s_%2$s FOR VALUES IN (%2$s)', parent, c);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION hearsay.drop_partitions(c integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    parent text;
    found_one boolean := false;
BEGIN
    IF NOT EXISTS (SELECT FROM hearsay.collections k WHERE k.number = c AND (k.compacted OR k.deleted IS NOT NULL)) THEN
        RAISE EXCEPTION 'collection % still takes batches', c;
    END IF;
    FOREACH parent IN ARRAY ARRAY['blocks', 'batch_ids', 'used_tokens', 'counted_units'] LOOP
        IF to_regclass(format('hearsay.%s_%s', parent, c)) IS NOT NULL THEN
            EXECUTE format('DROP TABLE hearsay.%s_%s', parent, c);
            found_one := true;
        END IF;
    END LOOP;
    RETURN found_one;
END $$;

-- The row of a period; made if this is its first batch. 8388607 is left out: on SQLite it has no places (catalog.py).
CREATE OR REPLACE FUNCTION hearsay.period_of(c integer, p bigint) RETURNS hearsay.periods
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    row hearsay.periods;
    drawn integer;
BEGIN
    LOOP
        SELECT * INTO row FROM hearsay.periods WHERE collection = c AND period = p;
        IF FOUND THEN
            RETURN row;
        END IF;
        drawn := CASE WHEN p = 0 THEN c ELSE 4194304 + floor(random() * 4194303)::integer END;
        INSERT INTO hearsay.periods (number, collection, period, tag)
        VALUES (drawn, c, p, substr(sha256(convert_to(format('%s %s %s', drawn, c, p), 'UTF8')), 1, 8))
        ON CONFLICT DO NOTHING;
    END LOOP;
END $$;

-- Appends batches of one period of a collection. NULL: all were stored. Else one digit for each, in the order given:
-- 0 stored, 1 duplicate, 2 conflict, 3 token used, 4 sealed, 6 period over. The caller sorts them by id, and sends no id
-- and no token twice in one call. Old and new programs overlap during an upgrade, so a change gets a new name.
CREATE OR REPLACE FUNCTION hearsay.append_1(
    c integer, p bigint, ids uuid[], digests uuid[], tokens uuid[], lens integer[], units uuid[], owners integer[],
    payload bytea
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n integer := cardinality(ids);
    taken integer;
    first bigint;
    row hearsay.periods;
    new uuid[];
    kept_digests uuid[] := digests;
    kept_tokens uuid[] := tokens;
    kept_lens integer[] := lens;
    kept bytea := payload;
    fates text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7900, c);
    IF NOT pg_try_advisory_xact_lock_shared(7902, c) THEN
        RETURN repeat('4', n);
    END IF;
    SELECT oldest INTO first FROM hearsay.collections
    WHERE number = c AND closed IS NULL AND deleted IS NULL AND NOT compacted;
    IF NOT FOUND THEN
        RETURN repeat('4', n);
    END IF;
    IF p < first THEN
        RETURN repeat('6', n);
    END IF;
    SELECT * INTO row FROM hearsay.periods WHERE collection = c AND period = p;
    IF NOT FOUND THEN
        row := hearsay.period_of(c, p);
    END IF;
    IF row.generation IS NOT NULL THEN
        RETURN repeat('4', n);
    END IF;
    -- Nearly always all are new. To insert them plainly, and to begin again if one is not, takes 0.6 to 0.8 of the CPU
    -- of ON CONFLICT (measured with groups of 512 and 64). Looked up one by one, each by its index, however small the tables were when this was planned.
    BEGIN
        INSERT INTO hearsay.recent_ids (collection, number, batch_id, digest, token_id)
        SELECT c, row.number, g.i, g.d, g.t FROM unnest(ids, digests, tokens) AS g(i, d, t)
        WHERE (SELECT true FROM hearsay.batch_ids b WHERE b.collection = c AND b.batch_id = g.i) IS NULL
          AND (g.t IS NULL OR
               (SELECT true FROM hearsay.used_tokens u WHERE u.collection = c AND u.token_id = g.t) IS NULL);
        GET DIAGNOSTICS taken = ROW_COUNT;
        IF taken < n THEN
            RAISE unique_violation;
        END IF;
        new := ids;
    EXCEPTION WHEN unique_violation THEN
        WITH stored AS (
            INSERT INTO hearsay.recent_ids (collection, number, batch_id, digest, token_id)
            SELECT c, row.number, g.i, g.d, g.t FROM unnest(ids, digests, tokens) AS g(i, d, t)
            WHERE (SELECT true FROM hearsay.batch_ids b WHERE b.collection = c AND b.batch_id = g.i) IS NULL
              AND (g.t IS NULL OR
                   (SELECT true FROM hearsay.used_tokens u WHERE u.collection = c AND u.token_id = g.t) IS NULL)
            ON CONFLICT DO NOTHING RETURNING batch_id)
        SELECT array_agg(batch_id) INTO new FROM stored;
    END;
    IF cardinality(new) < n THEN
        SELECT string_agg(substr(payload, k.start::integer + 1, k.size), '' ORDER BY k.start), array_agg(k.i ORDER BY k.start),
               array_agg(k.d ORDER BY k.start), array_agg(k.t ORDER BY k.start), array_agg(k.size ORDER BY k.start)
        INTO kept, new, kept_digests, kept_tokens, kept_lens
        FROM (SELECT s.i, s.d, s.t, s.size, sum(s.size) OVER (ORDER BY s.place) - s.size AS start
              FROM (SELECT g.i, g.d, g.t, g.place, coalesce(lens[g.place], length(payload) / n) AS size
                    FROM unnest(ids, digests, tokens) WITH ORDINALITY AS g(i, d, t, place)) AS s) AS k
        JOIN unnest(new) AS w(i) ON w.i = k.i;
        kept_tokens := CASE WHEN tokens IS NULL THEN NULL ELSE kept_tokens END;
    ELSIF new IS NOT NULL THEN
        new := ids;  -- in the order of the payloads
    END IF;
    IF new IS NOT NULL THEN
        INSERT INTO hearsay.segments VALUES (
            (random() * 9e18)::bigint, row.number, cardinality(new), new, kept_digests, kept_tokens, kept_lens, kept);
        IF units IS NOT NULL THEN
            INSERT INTO hearsay.counted_units SELECT c, u.d FROM unnest(units, owners) AS u(d, k)
            JOIN unnest(new) AS w(i) ON w.i = ids[u.k] ORDER BY u.d;
        END IF;
        IF cardinality(new) = n THEN
            RETURN NULL;
        END IF;
    ELSE
        -- Nothing is written, so nothing would wait for a standby that lacks what this answer rests on.
        PERFORM pg_logical_emit_message(true, 'hearsay', '');
    END IF;
    SELECT string_agg(CASE WHEN w.i IS NOT NULL THEN '0' WHEN h.digest IS NULL THEN '3'
                      WHEN h.digest = g.d AND h.number = row.number THEN '1' ELSE '2' END, '' ORDER BY g.place)
    INTO fates  -- a new statement and so a new snapshot: it sees who came first
    FROM unnest(ids, digests) WITH ORDINALITY AS g(i, d, place)
    LEFT JOIN unnest(new) AS w(i) ON w.i = g.i
    LEFT JOIN LATERAL (
        SELECT r.digest, r.number FROM hearsay.recent_ids r WHERE r.collection = c AND r.batch_id = g.i
        UNION ALL
        SELECT b.digest, b.number FROM hearsay.batch_ids b WHERE b.collection = c AND b.batch_id = g.i
        LIMIT 1) AS h ON true;
    RETURN fates;
END $$;

-- Keeps a volunteer's sealed record. 0 kept, also if the same was kept before; 1 its name holds another one; 2 the
-- collection is over.
CREATE OR REPLACE FUNCTION hearsay.give_1(id bytea, given_name bytea, given bytea) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c integer;
    held bytea;
BEGIN
    SELECT number INTO c FROM hearsay.collections k WHERE k.id = give_1.id;
    PERFORM pg_advisory_xact_lock_shared(7900, c);
    PERFORM 1 FROM hearsay.collections k WHERE k.number = c AND k.closed IS NULL AND k.deleted IS NULL;
    IF NOT FOUND THEN
        RETURN 2;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(7907, 0);
    LOOP
        INSERT INTO hearsay.volunteers (collection_id, name, sealed) VALUES (id, given_name, given)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN 0;
        END IF;
        SELECT v.sealed INTO held FROM hearsay.volunteers v WHERE v.collection_id = id AND v.name = given_name;
        IF FOUND THEN
            PERFORM pg_logical_emit_message(true, 'hearsay', '');  -- waits for the standbys, as what it rests on did
            RETURN CASE WHEN held = given THEN 0 ELSE 1 END;
        END IF;
    END LOOP;
END $$;

-- Deletes a volunteer's record. False if a release has used it. What is not there counts as deleted.
CREATE OR REPLACE FUNCTION hearsay.withdraw_1(id bytea, given_name bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7907, 0);
    DELETE FROM hearsay.volunteers v WHERE v.collection_id = id AND v.name = given_name AND v.used IS NULL;
    IF NOT FOUND THEN
        PERFORM pg_logical_emit_message(true, 'hearsay', '');
    END IF;
    RETURN NOT EXISTS (SELECT FROM hearsay.volunteers v WHERE v.collection_id = id AND v.name = given_name);
END $$;

-- Writes the rows of records that came since the last time again, in the order of their names. Nobody withdraws or uses
-- one meanwhile: a withdrawal that met a row which is deleted here would be told that it is gone.
CREATE OR REPLACE FUNCTION hearsay.lay_records_anew() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM hearsay.volunteers v WHERE NOT v.laid) THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(7907, 0);
    WITH gone AS (DELETE FROM hearsay.volunteers v WHERE NOT v.laid RETURNING v.*)
    INSERT INTO hearsay.volunteers (collection_id, name, sealed, used, laid)
    SELECT g.collection_id, g.name, g.sealed, g.used, true FROM gone g ORDER BY g.collection_id, g.name;
END $$;

-- Keeps a witness's signature, unless one of a longer list is kept. Whoever reads it checks it.
CREATE OR REPLACE FUNCTION hearsay.cosign_1(given_key bytea, size bigint, list bytea, signed bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF length(given_key) <> 32 OR length(signed) <> 64 OR length(list) > 1000000 THEN
        RAISE EXCEPTION 'this is no signature of a list';
    END IF;
    INSERT INTO hearsay.cosignatures AS c VALUES (given_key, size, list, signed)
    ON CONFLICT (public_key) DO UPDATE
    SET serial = excluded.serial, list_bytes = excluded.list_bytes, signature = excluded.signature
    WHERE c.serial <= excluded.serial;
    PERFORM pg_notify('hearsay_catalogue', '');
END $$;
