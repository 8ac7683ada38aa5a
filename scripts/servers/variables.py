"""How programs that are not ours find a database: the environment variables that all clients of PostgreSQL read.

A password in a command line could be read by everybody on the machine.
"""

from typing import Final

from psycopg.conninfo import conninfo_to_dict

_NAMES: Final = {
    "PGHOST": "host",
    "PGPORT": "port",
    "PGUSER": "user",
    "PGPASSWORD": "password",
    "PGDATABASE": "dbname",
}


def variables(url: str) -> dict[str, str]:
    """The variables that name the database at this URL, which names all five."""
    parts = conninfo_to_dict(url)
    return {variable: str(parts[name]) for variable, name in _NAMES.items()}
