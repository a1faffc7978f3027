"""The tables that are built from decoded records: one module each, pure functions over Arrow tables, no Spark, no clock."""
