"""Raw records of ``__consumer_offsets`` as tables of what they say; numpy and Arrow alone, no Spark, no clock."""
