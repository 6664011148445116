#!/bin/sh
# Hands CAP_PERFMON on where the container was given it; see the Dockerfile.
if setpriv-perfmon --inh-caps +perfmon --ambient-caps +perfmon true 2>/dev/null; then
    exec setpriv-perfmon --inh-caps +perfmon --ambient-caps +perfmon "$@"
fi
exec "$@"
