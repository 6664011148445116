"""What can be known of a kernel from its PTX alone: data flow, and what ptxas will make of it.

Every module answers one question about the statements of a function; none changes them.
"""
