"""The ``runwick`` command. Every subcommand is a module of its own, loaded when it is called."""
