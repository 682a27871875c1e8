"""Several servers on PostgreSQL beside one on SQLite."""
