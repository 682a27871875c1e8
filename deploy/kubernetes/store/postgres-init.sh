#!/bin/sh
# Runs once, on an empty database: the users of the servers, with no more rights than each needs. `store prepare` then
# makes the tables. Passwords are read from files by psql itself: arguments and logs do not show them.
set -eu
secrets=${SECRETS:-/run/secrets}
psql -v ON_ERROR_STOP=1 --no-psqlrc --quiet --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<SQL
\\set owner \`cat $secrets/owner.password\`
\\set collect \`cat $secrets/collect.password\`
\\set keep \`cat $secrets/keep.password\`
CREATE ROLE hearsay_collector NOLOGIN;
CREATE ROLE hearsay_keeper NOLOGIN;
CREATE ROLE hearsay_curator NOLOGIN;
CREATE ROLE owner LOGIN NOSUPERUSER PASSWORD :'owner';
CREATE ROLE collect LOGIN NOSUPERUSER PASSWORD :'collect' IN ROLE hearsay_collector;
CREATE ROLE keep LOGIN NOSUPERUSER PASSWORD :'keep' IN ROLE hearsay_keeper;
CREATE DATABASE hearsay OWNER owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE hearsay FROM PUBLIC;
GRANT CONNECT ON DATABASE hearsay TO collect, keep;
SQL
