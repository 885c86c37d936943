"""The rules of a site, compiled: calendars."""
