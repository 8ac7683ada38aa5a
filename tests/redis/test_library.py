"""The library: one text, under a name that is its content's."""

from runwick.stores.redis.library import Library, assembled, library, scoped


def test_the_name_is_the_contents_and_every_function_has_it() -> None:
    one, same, other = Library("-- a"), Library("-- a"), Library("-- b")
    assert (one.name, one.text) == (same.name, same.text)
    assert one.name != other.name
    assert one.text.startswith(f"#!lua name={one.name}\n")
    assert one.function("claim") == f"{one.name}_claim".encode()


def test_what_an_act_defines_is_its_own() -> None:
    assert assembled(["local a"], ["local b", "local c"]) == "local a\ndo\nlocal b\nend\ndo\nlocal c\nend"


def test_of_a_file_of_the_ground_others_see_the_table_of_its_own_name_alone() -> None:
    assert scoped("line", "-- a\nlocal line = { 1 }\nlocal b") == "-- a\nlocal line = { 1 }\ndo\nlocal b\nend"
    assert scoped("states", "-- a\nlocal PENDING = 1") == "-- a\nlocal PENDING = 1"


def test_this_releases_library_is_made_once() -> None:
    assert library() is library()
