"""The rules of a site, reduced: calendars."""
