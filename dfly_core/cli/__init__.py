"""The command line; the only place in the core that prints, and the only one that knows rich.

A subcommand is a module with NAME, HELP, add_arguments(parser) and run(args) -> exit code;
it imports MLX inside `run`, so that --help and usage errors are immediate.
"""
