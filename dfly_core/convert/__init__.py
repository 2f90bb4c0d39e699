"""Converts a DFly checkpoint to the MLX format: source, plan, write, as a stream of events.

`Converted.report` holds: `output`, `source`, `layout`, `repository`, `revision`, `dtype`,
`bits` (None when not quantised), `tensors`, `output_bytes`, `seconds`, `dropped` and `ignored`
(tensor names), `notes`, `source_files` and `files` ({name, bytes, sha256}, the last None for
large ones that nobody hashed), `checksums` (tensor to CRC-32), `errors` (one row a quantised
tensor: {name, relative, largest}) and `agreement` ({rows, cosine_mean, cosine_least} or None).
"""
