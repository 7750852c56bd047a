"""Composites: what a collective call becomes, written against `Rank` only."""
