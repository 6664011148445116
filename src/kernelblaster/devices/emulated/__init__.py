"""The emulated GPU as a device: a thin adapter over `ptxemu`."""
