"""What a launch did, as exact counts: the core's report, and what follows from it for machine code. No times here."""
