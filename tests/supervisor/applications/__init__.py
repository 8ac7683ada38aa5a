"""Applications that the tests of the supervisor have imported by a zygote."""
