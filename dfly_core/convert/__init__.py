"""Converts a DFly checkpoint to the MLX format: source, plan, write, as a stream of events.

`Converted.report` holds: `output`, `source`, `layout`, `repository`, `revision`, `dtype`,
`bits` (None when not quantised), `tensors`, `output_bytes`, `seconds`, `dropped` and `ignored`
(tensor names), `notes`, `source_files` and `files` ({name, bytes,
sha256}), `errors` (one row a quantised tensor:
{name, relative, largest}) and `agreement` ({rows, cosine_mean, cosine_least} or None).
"""
