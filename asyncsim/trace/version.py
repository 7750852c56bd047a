"""The version of asyncsim. It stands here, at the bottom, because every trace names it."""

VERSION = "0.1.0"
