"""Schedules that show a finding: both orders of two operations, or an overflow; and the shortest such schedule."""
