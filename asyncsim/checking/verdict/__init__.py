"""What the rest adds up to: PROVED, EXHAUSTED, SURVIVED or REFUTED, and what that rests on."""
