"""Tests of Bakeoff; a package, so that no other one called tests comes before it."""
