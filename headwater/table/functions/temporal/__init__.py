"""Functions of dates and times: their fields, rounding, text, differences, and the current time."""

FAMILY = "dates and times"
