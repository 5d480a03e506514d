"""One file per outside thing; nothing here is imported by the runtime."""
