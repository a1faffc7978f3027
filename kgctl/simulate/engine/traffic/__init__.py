"""Records as a fluid: exact between events, no record is an event of its own.

Amounts are whole millionths of a millionth of a record (``*_pr``), rates whole millionths of a record a second (``*_uhz``): a
rate times microseconds is an amount, and nothing is ever rounded but shares.
"""
