"""The tests of cpsched; `tests.oracle` has the naive twins that they compare with."""
